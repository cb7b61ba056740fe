"""CLIP on ImageNet: its loaders and short runs on a tiny tree in the same layout; nothing is downloaded."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lab.cli import apart
from PIL import Image
from safetensors.torch import save_file
from torch.nn import functional as F

from ftp.lab import evaluate, worlds
from ftp.lab.alpha import is_whole
from ftp.lab.models.clip_network import (
    ClipNetwork,
    head_from_file,
    image_tower,
    open_clip_head,
    open_clip_model,
    text_head,
)
from ftp.lab.record import EvalEvent, LabError, StartEvent
from ftp.lab.run import execute, identify
from ftp.lab.settings import known, resolve
from ftp.lab.store import Store
from ftp.lab.train import finetune
from ftp.lab.wise import interpolate, wise

WORLD = "imagenet_clip"
CLASSES = [f"n0{1440764 + 7 * n}" for n in range(12)]
V2 = "imagenetv2-matched-frequency-format-val"
SOME = {"imagenet-a": (1, 3, 4), "imagenet-r": (0, 3, 11)}  # two different lists
WIDTH = 1000  # of the tiny network


def colour(label: int) -> tuple[int, int, int]:
    return 20 * label, 255 - 20 * label, 60 * (label % 4)


def fill(folder: Path, labels: Any, count: int, name: Any = lambda label: CLASSES[label]) -> None:
    for label in labels:
        place = folder / str(name(label))
        place.mkdir(parents=True)
        for n in range(count):
            Image.new("RGB", (70 + n, 66), colour(label)).save(place / f"ILSVRC_{label}_{n}.JPEG")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve classes, so that "10" comes before "2" in the alphabet; a colour tells the class."""
    root = tmp_path_factory.mktemp("tree")
    fill(root / "train", range(12), 40)
    fill(root / "val", range(12), 3)
    fill(root / V2, range(12), 2, lambda label: label)
    fill(root / "sketch", range(12), 2)
    for name, labels in SOME.items():
        fill(root / name, labels, 2)
    (root / "val" / "README.txt").write_text("no picture")
    g = torch.Generator().manual_seed(0)
    save_file({"head": torch.randn(12, WIDTH, generator=g)}, root / "head.safetensors")
    return root


def settings(tree: Path, method: str = "ftp", **given: Any) -> Any:
    small = {"model": "timm:test_vit", "weights": "none", "size": 64, "steps": 2, "batch": 4, "workers": 1}
    return resolve(WORLD, method, {"data": str(tree), "head": str(tree / "head.safetensors"), **small, **given})


@pytest.mark.parametrize("name", ["train", "val", "im", "v2", "a", "r", "sketch"])
def test_every_picture_has_the_label_of_its_colour(tree: Path, name: str) -> None:
    split = worlds.of(settings(tree)).split(name)
    pixels, labels = split.batch(torch.arange(len(split)))
    assert pixels.shape[1:] == (3, 64, 64)
    wanted = torch.tensor([colour(label) for label in labels.tolist()]) / 255
    assert (pixels.mean((2, 3)) - wanted).abs().max() < 0.02
    folder = {"a": "imagenet-a", "r": "imagenet-r"}.get(name, "")
    assert set(labels.tolist()) <= set(SOME.get(folder, range(12)))
    if name != "val":
        assert set(labels.tolist()) == set(SOME.get(folder, range(12)))


def test_validation_is_split_off_train_and_home_is_the_published_val(tree: Path) -> None:
    world = worlds.of(settings(tree))
    names = {name: set(world.split(name).names) for name in ("train", "val", "im")}  # type: ignore[attr-defined]
    assert len(names["train"]) + len(names["val"]) == 12 * 40
    assert not names["train"] & names["val"]
    assert 1 <= len(names["val"]) <= 20  # about one in a hundred
    assert all(name.startswith("val/") for name in names["im"])
    assert len(world.split("train", 0.1)) == 12 * 4
    assert world.home == "im"


def test_the_published_recipe_is_the_default(tree: Path) -> None:
    common = {"steps": 150_120, "batch": 256, "optimizer": "adamw", "weight_decay": 0.1}
    deit = {"drop_path": 0.2, "smoothing": 0.1, "mixup": 0.8, "cutmix": 1.0}
    none = dict.fromkeys(deit, 0.0)
    for method, wanted in {
        "finetune": {**common, **deit, "lr": 2e-5},
        "linear_probe": {**common, **none, "lr": 5e-3},
        "lp_ft": {**common, **deit, "lr": 2e-5, "probe_lr": 5e-3, "steps": 225_180},
        "l2_sp": {**common, **deit, "lr": 2e-5, "strength": 1e-5},
        "ftp": {**common, **deit, "lr": 3e-5, "k": 1.0, "gamma_lr": 1e-2},
    }.items():
        chosen = {row.name: row.value for row in known(WORLD, method)}
        assert {name: chosen[name] for name in wanted} == wanted, method
    assert round(225_180 * 2 / 3) == 150_120  # LP's part is 30 epochs
    said = apart("recipe", WORLD)
    assert said.out.startswith("Published: Tab. 3 of the paper")
    assert "Chosen on ID validation" not in said.out
    assert "assumed" in said.out


def test_a_short_run_says_what_is_assumed_and_walks_from_the_zero_shot_model(tree: Path, tmp_path: Path) -> None:
    run = finetune(settings(tree), device="cpu", watches=0, evaluate_at_end=False)
    first = next(iter(run))
    assert isinstance(first, StartEvent)
    assert "head.weight" in first.layers  # the head has an anchor
    assert len(first.layers) == len(list(run.model.named_parameters()))
    assert "no warm-up" in " ".join(first.provenance["assumed"])
    assert any("assumed" in remark for remark in worlds.of(settings(tree)).remarks())
    with Store(tmp_path / "runs.db") as store:
        record = execute(settings(tree, lr=1e-3), store, device="cpu")
        last = record.evals[-1]
        assert isinstance(last, EvalEvent)
        assert set(last.main) == {"val", "im", "v2", "a", "r", "sketch"}
        world = worlds.of(record.settings)
        assert is_whole(world)
        curve = wise(record, store, (0.0, 1.0), limit=None)
        zero = world.model(0).eval()
        assert curve.id[0] == evaluate.score(zero, world, "im").main
        assert {name: values[1] for name, values in curve.shifts.items()} == {
            name: last.main[name] for name in world.shifts
        }
        state = zero.state_dict()
        assert all(torch.equal(tensor, state[n]) for n, tensor in interpolate(state, state, 0.0).items())
        assert not any("mean" in name or "std" in name for name in state)  # constants are not averaged


@pytest.mark.parametrize("method", ["finetune", "linear_probe", "lp_ft", "l2_sp", "zero_shot"])
def test_every_row_of_the_table_can_be_trained(tree: Path, method: str) -> None:
    run = finetune(settings(tree, method), device="cpu", watches=0, evaluate_at_end=False)
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    assert len(list(run)) == 3
    moved = {name for name, tensor in run.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert bool(moved) == (method != "zero_shot")
    if method == "linear_probe":
        assert moved == {"head.weight"}


def test_two_hundred_ways_equal_a_slow_loop_and_are_never_mixed(tree: Path) -> None:
    whole, cut = (worlds.of(settings(tree, ways=ways)) for ways in ("1000", "200"))
    assert whole.shifts == ("v2", "a", "r", "sketch")
    assert cut.shifts == ("v2", "a-200", "r-200", "sketch")
    model = whole.model(0).eval()
    for name, folder in (("a", "imagenet-a"), ("r", "imagenet-r")):
        split, right, cut_right = whole.split(name), 0, 0
        for n in range(len(split)):
            pixels, label = split.batch(torch.tensor([n]))
            with torch.no_grad():
                scores = model(pixels)[0].tolist()
            right += max(range(12), key=lambda c: scores[c]) == int(label)
            cut_right += max(SOME[folder], key=lambda c: scores[c]) == int(label)
        assert evaluate.score(model, whole, name).main == pytest.approx(100 * right / len(split))
        assert evaluate.score(model, cut, f"{name}-200").main == pytest.approx(100 * cut_right / len(split))
        assert cut_right >= right
    assert evaluate.score(model, cut, "v2").main == evaluate.score(model, whole, "v2").main
    assert identify(settings(tree)) != identify(settings(tree, ways="200"))


def test_the_text_head_equals_a_slow_loop_over_templates() -> None:
    table = torch.randn(200, 7, generator=torch.Generator().manual_seed(1))
    templates = ["a photo of a {}.".format, "{} drawn".format, "the {}".format]

    def encode(texts: Any) -> torch.Tensor:
        return torch.stack([sum(table[ord(c)] for c in text) for text in texts])  # type: ignore[arg-type]

    head = text_head(encode, ["cat", "dog"], templates, 100.0)
    for row, name in zip(head, ("cat", "dog"), strict=True):
        total = torch.zeros(7)
        for template in templates:
            vector = encode([template(name)])[0]
            total += vector / vector.norm()
        mean = total / len(templates)
        torch.testing.assert_close(row, 100.0 * mean / mean.norm())
    assert head.norm(dim=1).tolist() == pytest.approx([100.0, 100.0])


@pytest.mark.slow
def test_the_text_head_equals_that_of_open_clip() -> None:
    open_clip = pytest.importorskip("open_clip")
    model = open_clip_model("ViT-B-16-quickgelu/openai", "none").eval()
    tokenizer = open_clip.get_tokenizer("ViT-B-16-quickgelu")
    names, templates = open_clip.IMAGENET_CLASSNAMES[:2], open_clip.OPENAI_IMAGENET_TEMPLATES[:3]
    scale = float(model.logit_scale.detach().exp())
    head = text_head(lambda texts: model.encode_text(tokenizer(list(texts))), names, templates, scale)
    theirs = open_clip.build_zero_shot_classifier(model, tokenizer, names, templates)  # stops before the scale
    torch.testing.assert_close(head, scale * theirs.detach().T)
    with pytest.raises(LabError) as error:
        open_clip_head("ViT-B-16-quickgelu/openai", 12, lambda done: None, "none")
    assert str(error.value) == "open_clip has names for 1000 classes, and there are 12; write head=FILE"
    assert (
        image_tower("open_clip:ViT-B-16-quickgelu/openai", "none", 224, 0.0)(torch.zeros(1, 3, 224, 224)).shape[1]
        == 512
    )


def test_logits_are_scaled_cosines() -> None:
    body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 5))
    words = torch.randn(4, 5)
    network = ClipNetwork(body, 100 * F.normalize(words, dim=1), "photographs")
    x = torch.rand(3, 3, 2, 2)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    seen = body((x - mean) / std)
    torch.testing.assert_close(network(x), 100 * F.cosine_similarity(seen[:, None], words[None], dim=-1))


def test_what_is_missing_is_one_sentence(tree: Path, tmp_path: Path) -> None:
    empty, flat = tmp_path / "empty", tmp_path / "flat"
    empty.mkdir()
    fill(flat / "train", range(2), 1)
    (flat / "val").mkdir()
    for data, sentence in (
        ("", "the world imagenet_clip needs its pictures; write --set data=PATH, a folder with train, val and shifts"),
        (
            str(tmp_path / "no"),
            f"data is '{tmp_path / 'no'}', and no folder is there; give the folder that holds train and val",
        ),
        (str(empty), f"{empty / 'train'} has no folders of classes; put it there"),
        (str(flat), f"{flat / 'val'} has no folders of classes; sort its pictures into folders by class"),
    ):
        with pytest.raises(LabError) as error:
            resolve(WORLD, "ftp", {"data": data})
        assert str(error.value) == sentence
    fill(flat / "val", range(2), 1)
    (flat / "val" / "x").mkdir()
    torch.save({"head": torch.zeros(12, 3)}, tmp_path / "zeros.pt")
    torch.save({"head": torch.zeros(3, 3)}, tmp_path / "three.pt")
    torch.save({"a": torch.ones(3, 3), "b": torch.ones(3, 3)}, tmp_path / "two.pt")
    for file, part in (
        ("zeros", "has a row without a direction (zeros or NaN); make the embeddings again"),
        ("three", "has 3 rows, and there are 12 classes; give a row for each class"),
        ("two", "holds 2 matrices; save one alone, with a row for each class"),
    ):
        with pytest.raises(LabError) as error:
            head_from_file(tmp_path / f"{file}.pt", 12, 100.0)
        assert str(error.value) == f"{tmp_path / f'{file}.pt'} {part}"
    narrow = settings(tree, model="timm:test_vit2", head=str(_saved(tmp_path / "narrow.pt", torch.ones(12, 3))))
    with pytest.raises(LabError, match="the head has 3 columns and timm:test_vit2 gives 1000 numbers"):
        worlds.of(narrow).model(0)
    with pytest.raises(LabError, match="open_clip has no drop-path; write drop_path=0"):
        image_tower("open_clip:ViT-B-16/openai", "none", 64, 0.2)
    with pytest.raises(LabError, match="model is 'resnet50'; write timm:NAME or open_clip:NAME/TAG"):
        image_tower("resnet50", "none", 64, 0.0)


def test_a_set_with_other_folders_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "train", range(3), 40)
    fill(tmp_path / "val", range(3), 1)
    fill(tmp_path / V2, range(3), 1)  # named as the others: whoever sorts by name would scramble the labels
    fill(tmp_path / "sketch", (0, 7), 1)
    world = worlds.load(WORLD, {"data": str(tmp_path)})
    for name, wanted in (("v2", "a number below 3"), ("sketch", "a class of train")):
        with pytest.raises(LabError, match=f"which is not {wanted}; check that it is the set that its name says"):
            world.split(name)
    assert world.shifts == ("v2", "sketch")
    assert world.remarks()[0] == "not there, so not tested: imagenet-a, imagenet-r"


def _saved(path: Path, head: torch.Tensor) -> Path:
    torch.save({"head": head}, path)
    return path
