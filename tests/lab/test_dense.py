"""Losses and scores of dense worlds against slow loops, torchmetrics and finite differences; the network's shape."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchmetrics.classification import MulticlassJaccardIndex
from torchvision.models import swin_t
from torchvision.models.swin_transformer import SwinTransformer

from ftp.lab.methods._blocks import blocks_of, depths
from ftp.lab.models.dense_network import AllMLPDecoder, DenseNetwork, SwinMaps
from ftp.lab.options import Option
from ftp.lab.record import Value
from ftp.lab.worlds._dense import (
    IGNORED,
    PARTS,
    TASK,
    DenseWorld,
    LabelMapMeter,
    NormalMeter,
    angles,
    labels_loss,
    normals_loss,
)

NAMES = ("background", "cat", "dog", "bird")
K = len(NAMES)


class Small(DenseWorld):
    options: ClassVar[Mapping[str, Option]] = {"task": TASK}
    kinds = NAMES


def world(task: str) -> Small:
    chosen: dict[str, Value] = {"task": task}
    return Small(chosen)


def label_maps(seed: int = 0, count: int = 6, ignored: float = 0.2) -> tuple[Tensor, Tensor]:
    """Scores and labels of a few pictures with ignored pixels; the last picture has none that is valid."""
    g = torch.Generator().manual_seed(seed)
    outputs = torch.randn(count, K, 5, 7, generator=g, dtype=torch.float64)
    targets = torch.randint(0, K, (count, 5, 7), generator=g)
    targets[torch.rand(targets.shape, generator=g) < ignored] = IGNORED
    targets[-1] = IGNORED
    return outputs, targets


def normal_maps(seed: int = 0, count: int = 4, ignored: float = 0.2) -> tuple[Tensor, Tensor]:
    """Predictions of any length and unit normals with ignored pixels; the last picture has none that is valid."""
    g = torch.Generator().manual_seed(seed)
    outputs = torch.randn(count, 3, 4, 5, generator=g, dtype=torch.float64)
    targets = F.normalize(torch.randn(count, 3, 4, 5, generator=g, dtype=torch.float64), dim=1)
    hidden = torch.rand((count, 1, 4, 5), generator=g) < ignored
    hidden[-1] = True
    return outputs, targets.masked_fill(hidden, IGNORED)


def pixels(targets: Tensor) -> list[tuple[int, int, int]]:
    """The places of the valid pixels."""
    shown = targets if targets.dim() == 3 else targets[:, 0]
    n, h, w = shown.shape
    return [(i, y, x) for i in range(n) for y in range(h) for x in range(w) if shown[i, y, x] != IGNORED]


def slow_iou(said: Tensor, targets: Tensor) -> list[float]:
    """IoU of each class in percent, pixel by pixel; NaN for a class that is nowhere."""
    scores = []
    for c in range(K):
        true = false = missed = 0
        for place in pixels(targets):
            if said[place] == c and targets[place] == c:
                true += 1
            elif said[place] == c:
                false += 1
            elif targets[place] == c:
                missed += 1
        union = true + false + missed
        scores.append(100 * true / union if union else math.nan)
    return scores


def metered(said: Tensor, targets: Tensor, leave_out_absent: bool = False, parts: int = 2) -> LabelMapMeter:
    meter = LabelMapMeter(NAMES, leave_out_absent)
    for some, of_them in zip(said.split(parts), targets.split(parts), strict=True):
        meter.add(F.one_hot(some, K).permute(0, 3, 1, 2).float(), of_them)
    return meter


@pytest.mark.parametrize("seed", range(4))
def test_miou_is_that_of_a_slow_loop_and_of_torchmetrics(seed: int) -> None:
    outputs, targets = label_maps(seed)
    said = outputs.argmax(1)
    meter = LabelMapMeter(NAMES)
    oracle = MulticlassJaccardIndex(K, ignore_index=IGNORED, average="none")
    for part, of_it in zip(outputs.split(2), targets.split(2), strict=True):  # batch by batch
        meter.add(part, of_it)
        oracle.update(part, of_it)
    slow = slow_iou(said, targets)
    assert list(meter.by_class()) == list(NAMES)
    assert list(meter.by_class().values()) == pytest.approx(slow, abs=1e-6)
    shares = [value / 100 for value in meter.by_class().values()]  # torchmetrics has shares in float32
    assert shares == pytest.approx(oracle.compute().tolist(), abs=1e-6)
    assert meter.values() == {"mIoU": pytest.approx(sum(slow) / K, abs=1e-6)}


def test_the_mean_over_pictures_is_another_number() -> None:
    outputs, targets = label_maps(0, count=4)
    said = outputs.argmax(1)
    by_picture = [metered(said[n : n + 1], targets[n : n + 1]).values()["mIoU"] for n in range(3)]
    assert abs(sum(by_picture) / 3 - metered(said, targets).values()["mIoU"]) > 0.1


@pytest.mark.parametrize("absent", [1, 3])
def test_an_absent_class_counts_0_unless_it_is_left_out(absent: int) -> None:
    outputs, targets = label_maps(1)
    said = outputs.argmax(1)
    said[said == absent] = 0
    targets[targets == absent] = 0
    slow = slow_iou(said, targets)
    assert math.isnan(slow[absent])
    present = [value for value in slow if not math.isnan(value)]
    assert metered(said, targets).values()["mIoU"] == pytest.approx(sum(present) / K, abs=1e-6)
    assert metered(said, targets, True).values()["mIoU"] == pytest.approx(sum(present) / (K - 1), abs=1e-6)
    assert math.isnan(metered(said, targets).by_class()[NAMES[absent]])
    oracle = MulticlassJaccardIndex(K, ignore_index=IGNORED, average="none")
    each = oracle(said, targets)
    each[absent] = 0.0  # torchmetrics calls it 0 or NaN, by version
    assert metered(said, targets).values()["mIoU"] / 100 == pytest.approx(float(each.mean()), abs=1e-6)


def test_a_class_that_is_only_said_counts_0_in_both_ways() -> None:
    targets = torch.zeros(1, 2, 2, dtype=torch.long)
    said = torch.tensor([[[0, 0], [0, 1]]])
    assert metered(said, targets).values()["mIoU"] == pytest.approx(75 / K, abs=1e-6)
    assert metered(said, targets, True).values()["mIoU"] == pytest.approx(75 / 2, abs=1e-6)


def test_what_is_said_of_ignored_pixels_counts_nothing() -> None:
    outputs, targets = label_maps(2)
    said = outputs.argmax(1)
    elsewhere = torch.where(targets == IGNORED, (said + 1) % K, said)
    assert torch.equal(metered(said, targets).confusion, metered(elsewhere, targets).confusion)
    assert not torch.equal(said, elsewhere)


def test_pictures_without_figures_count_nothing() -> None:
    said = torch.ones(1, 3, 3, dtype=torch.long)
    meter = metered(said, torch.full((1, 3, 3), IGNORED))
    assert int(meter.confusion.sum()) == 0
    assert meter.values() == {"mIoU": 0.0}
    assert math.isnan(metered(said, torch.full((1, 3, 3), IGNORED), True).values()["mIoU"])


def test_labels_as_bytes_are_labels() -> None:
    outputs, targets = label_maps(3)
    small = targets.to(torch.uint8)
    assert float(labels_loss(outputs, small)) == float(labels_loss(outputs, targets))
    assert torch.equal(metered(outputs.argmax(1), small).confusion, metered(outputs.argmax(1), targets).confusion)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_of_labels_is_that_of_a_slow_loop(seed: int) -> None:
    outputs, targets = label_maps(seed)
    each = []
    for i, y, x in pixels(targets):
        scores = outputs[i, :, y, x]
        each.append(float(scores.exp().sum().log() - scores[targets[i, y, x]]))
    assert float(labels_loss(outputs, targets)) == pytest.approx(sum(each) / len(each), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_of_normals_is_that_of_a_slow_loop(seed: int) -> None:
    outputs, targets = normal_maps(seed)
    each = []
    for i, y, x in pixels(targets):
        said = outputs[i, :, y, x].tolist()
        length = math.sqrt(sum(value * value for value in said))
        each += [abs(value / length - true) for value, true in zip(said, targets[i, :, y, x].tolist(), strict=True)]
    assert float(normals_loss(outputs, targets)) == pytest.approx(sum(each) / len(each), abs=1e-9)


@pytest.mark.parametrize("loss", [labels_loss, normals_loss])
def test_gradients_are_those_of_finite_differences(loss: Any) -> None:
    outputs, targets = label_maps(4, 2) if loss is labels_loss else normal_maps(4, 2)
    assert torch.autograd.gradcheck(lambda x: loss(x, targets), outputs.requires_grad_(), atol=1e-6)


@pytest.mark.parametrize("loss", [labels_loss, normals_loss])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_an_all_ignored_batch_is_0_with_a_gradient_of_0(loss: Any, dtype: torch.dtype) -> None:
    outputs, targets = label_maps() if loss is labels_loss else normal_maps()
    outputs = outputs.to(dtype).requires_grad_()
    value = loss(outputs, torch.full_like(targets, IGNORED))
    value.backward()
    assert float(value.detach()) == 0.0
    assert outputs.grad is not None
    assert torch.equal(outputs.grad, torch.zeros_like(outputs))


def test_a_prediction_of_0_has_a_finite_loss_and_a_gradient_of_0() -> None:
    outputs, targets = normal_maps()
    outputs[0, :, 0, 0] = 0.0
    targets[0, :, 0, 0] = torch.tensor([0.0, 0.0, 1.0])
    outputs.requires_grad_()
    normals_loss(outputs, targets).backward()
    assert outputs.grad is not None
    assert torch.isfinite(outputs.grad).all()
    assert outputs.grad[0, :, 0, 0].abs().max() == 0
    assert outputs.grad.abs().max() > 0


def test_the_loss_of_normals_does_not_depend_on_length() -> None:
    outputs, targets = normal_maps(5)
    assert float(normals_loss(7 * outputs, targets)) == pytest.approx(float(normals_loss(outputs, targets)), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_angles_are_those_of_a_slow_loop(seed: int) -> None:
    outputs, targets = normal_maps(seed)
    meter = NormalMeter()
    for part, of_it in zip(outputs.split(3), targets.split(3), strict=True):
        meter.add(part, of_it)
    each = []
    for i, y, x in pixels(targets):
        said, true = outputs[i, :, y, x].tolist(), targets[i, :, y, x].tolist()
        product = sum(a * b for a, b in zip(said, true, strict=True))
        lengths = math.sqrt(sum(a * a for a in said)) * math.sqrt(sum(b * b for b in true))
        each.append(math.degrees(math.acos(max(-1.0, min(1.0, product / lengths)))))
    mean, root = sum(each) / len(each), math.sqrt(sum(a * a for a in each) / len(each))
    assert meter.values() == {"mean angle": pytest.approx(mean, abs=1e-6), "angle RMSE": pytest.approx(root, abs=1e-6)}
    assert root > mean


@pytest.mark.parametrize("apart", [0.0, 1e-7, 1e-4, 1.0, 90.0, 179.9999, 180.0])
def test_small_and_straight_angles_are_exact(apart: float) -> None:
    turned = math.radians(apart)
    a = torch.tensor([[2.0, 0.0, 0.0]], dtype=torch.float64)
    b = 3 * torch.tensor([[math.cos(turned), math.sin(turned), 0.0]], dtype=torch.float64)
    assert float(angles(a, b)) == pytest.approx(apart, rel=1e-9, abs=1e-12)


def test_normals_without_a_valid_pixel_have_no_score() -> None:
    outputs, targets = normal_maps()
    meter = NormalMeter()
    meter.add(outputs, torch.full_like(targets, IGNORED))
    assert all(math.isnan(value) for value in meter.values().values())
    meter.add(outputs, targets)  # and it spoils nothing that follows
    assert all(math.isfinite(value) for value in meter.values().values())


def test_what_a_task_says_of_itself() -> None:
    semseg, parts, normals = (world(task) for task in ("semseg", "parts", "normals"))
    assert (semseg.classes, parts.classes, normals.classes) == (NAMES, PARTS, ())
    assert (semseg.outputs, parts.outputs, normals.outputs) == (4, 7, 3)
    assert [metric.higher_is_better for metric in (*semseg.metrics, *parts.metrics)] == [True, True]
    assert [(metric.name, metric.higher_is_better) for metric in normals.metrics] == [
        ("mean angle", False),
        ("angle RMSE", False),
    ]
    for place, maps in ((semseg, label_maps()), (normals, normal_maps())):
        outputs, targets = maps
        meter = place.meter()
        meter.add(outputs, targets)
        assert list(meter.values()) == [metric.name for metric in place.metrics]
        loss = place.loss(lambda x: x, outputs, targets)
        assert float(loss) == float((normals_loss if place is normals else labels_loss)(outputs, targets))


def small_swin() -> SwinTransformer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return SwinTransformer([4, 4], embed_dim=24, depths=[2, 2, 2], num_heads=[2, 4, 8], window_size=[4, 4])


@pytest.mark.parametrize(("outputs", "count"), [(21, 637_717), (7, 634_119), (3, 633_091)])
def test_the_decoder_has_the_published_number_of_weights(outputs: int, count: int) -> None:
    widths, width = (96, 192, 384, 768), 256
    decoder = AllMLPDecoder(widths, width, outputs, norms=False)
    formula = sum(c * width + width for c in widths) + 4 * width**2 + 2 * width + width * outputs + outputs
    assert sum(p.numel() for p in decoder.parameters()) == formula == count
    normed = AllMLPDecoder(widths, width, outputs)
    assert sum(p.numel() for p in normed.parameters()) == count + 2 * sum(widths)


def test_the_decoder_is_what_segformer_s_page_says() -> None:
    decoder = AllMLPDecoder((2, 3), 4, 5, dropout=0.0).eval()
    large, small = torch.randn(1, 8, 8, 2), torch.randn(1, 4, 4, 3)
    first, second = (
        F.linear(F.layer_norm(x, (x.shape[-1],)), linear.weight, linear.bias).permute(0, 3, 1, 2)
        for x, linear in zip((large, small), decoder.linears, strict=True)
    )
    second = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)(second)
    mixed = F.conv2d(torch.cat([second, first], 1), decoder.mix.weight)
    norm = decoder.mix_norm
    mixed = F.relu(F.batch_norm(mixed, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps))
    torch.testing.assert_close(decoder([large, small]), F.conv2d(mixed, decoder.readout.weight, decoder.readout.bias))


def test_the_maps_are_those_after_each_stage_of_torchvision_s_swin() -> None:
    swin = small_swin().eval()
    seen: list[Tensor] = []
    for place in (1, 3, 5):
        swin.features[place].register_forward_hook(lambda module, inputs, output: seen.append(output))
    x = torch.rand(2, 3, 64, 64)
    swin(x)
    hooked = list(seen)
    for ours, theirs in zip(SwinMaps(swin)(x), hooked, strict=True):
        assert torch.equal(ours, theirs)
    assert SwinMaps(swin).widths == (24, 48, 96)


def test_the_full_encoder_is_swin_t() -> None:
    maps = SwinMaps(swin_t())
    assert maps.widths == (96, 192, 384, 768)
    last_norm = 2 * 768  # of torchvision's own head, which is left out
    assert sum(p.numel() for p in maps.parameters()) == 27_519_354 - last_norm


def test_what_the_network_says_has_the_size_of_the_picture() -> None:
    network = DenseNetwork(SwinMaps(small_swin()), 5, width=16).eval()
    for height, width in ((64, 64), (48, 80)):
        assert network(torch.rand(1, 3, height, width)).shape == (1, 5, height, width)
    assert all(name.startswith(("encoder.", "decoder.")) for name, _ in network.named_parameters())


def test_mean_and_std_are_taken_off_inside() -> None:
    swin, x = small_swin(), torch.rand(1, 3, 32, 32)
    mean, std = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.6, 0.7])
    network = DenseNetwork(SwinMaps(swin), 3, width=8, mean=mean.tolist(), std=std.tolist()).eval()
    plain = DenseNetwork(SwinMaps(swin), 3, width=8).eval()
    plain.decoder = network.decoder
    torch.testing.assert_close(network(x), plain((x - mean.view(3, 1, 1)) / std.view(3, 1, 1)))
    assert network.state_dict().keys() == plain.state_dict().keys()  # weights alone are saved


def test_blocks_are_the_encoder_s_and_the_decoder_is_above_them() -> None:
    network = DenseNetwork(SwinMaps(small_swin()), 3, width=8)
    names = [name for name, _ in network.named_parameters()]
    assert list(blocks_of(network)) == [f"encoder.features.{stage}.{block}" for stage in (1, 3, 5) for block in (0, 1)]
    depth = depths(network, names, [name for name in names if name.startswith("decoder.")])
    assert depth["encoder.features.0.0.weight"] == 0
    assert depth["encoder.features.5.1.mlp.0.weight"] == 6
    assert {depth[name] for name in names if name.startswith("decoder.")} == {7}


def test_the_option_of_a_task_has_three_words() -> None:
    assert isinstance(TASK, Option)
    assert TASK.choices == ("semseg", "parts", "normals")
