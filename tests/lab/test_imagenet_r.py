"""ImageNet-R: its loader and a short stream on a tiny tree in the same layout; nothing is downloaded."""

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from ftp.lab import methods, worlds
from ftp.lab.record import EvalEvent, LabError, StartEvent
from ftp.lab.run import identify
from ftp.lab.settings import known, resolve
from ftp.lab.train import finetune

WORLD = "imagenet_r"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four classes named as ImageNet's, a colour each, thirty pictures of several shapes."""
    root = tmp_path_factory.mktemp("tree") / "imagenet-r"
    for c, name in enumerate(("n01443537", "n01484850", "n01494475", "n01498041")):
        (root / name).mkdir(parents=True)
        for n in range(30):
            Image.new("RGB", (40 + n, 60 - n), (60 * c, 255 - 60 * c, 8 * n)).save(root / name / f"art_{n}.jpg")
    (root / "README.txt").write_text("no picture")
    return root


def settings(tree: Path, method: str = "ftp", **given: Any) -> Any:
    small = {"model": "timm:test_vit", "weights": "none", "size": 64, "tasks": 2, "steps": 2, "batch": 4}
    return resolve(WORLD, method, {"data": str(tree), **small, **given})


def test_every_picture_has_one_place(tree: Path) -> None:
    world: Any = worlds.of(settings(tree))
    assert world.classes == ("n01443537", "n01484850", "n01494475", "n01498041")
    splits = {name: world.split(name) for name in world.roles}
    files = [
        path for name in ("task 1, training", "task 2, training", "val", "all tasks") for path, _ in splits[name].rows
    ]
    assert len(files) == len(set(files)) == 120
    assert len(splits["all tasks"]) == len(splits["task 1"]) + len(splits["task 2"])
    assert 10 <= len(splits["all tasks"]) <= 40  # about one in five
    assert {label for _, label in splits["task 2, training"].rows} == {2, 3}
    for _, (path, label) in zip(range(9), splits["val"].rows, strict=False):
        assert path.parent.name == world.classes[label]


def test_pictures(tree: Path) -> None:
    split = worlds.of(settings(tree)).split("task 1, training")
    plain, labels = split.batch(torch.arange(3))
    moved, _ = split.batch(torch.arange(3), torch.Generator().manual_seed(0))
    again, _ = split.batch(torch.arange(3), torch.Generator().manual_seed(0))
    assert plain.shape == moved.shape == (3, 3, 64, 64)
    assert torch.equal(moved, again)
    assert 0 <= plain.min() <= plain.max() <= 1
    assert labels.tolist() == [0, 0, 0]
    assert float(plain[:, 1].mean()) == pytest.approx(1.0, abs=0.02)  # not normalised: the first class is green


def test_seed_0_keeps_the_order_and_others_deal_anew(tree: Path) -> None:
    orders = {worlds.of(settings(tree, seed=seed)).classes for seed in range(6)}
    assert len(orders) > 2


@pytest.mark.parametrize("method", ["ftp", "ftp_ewc", "nearest_mean"])
def test_a_short_stream(tree: Path, method: str) -> None:
    run = finetune(settings(tree, method), device="cpu", watches=0)
    events = list(run)
    first, last = events[0], events[-1]
    assert isinstance(first, StartEvent)
    assert isinstance(last, EvalEvent)
    assert all(".qkv." in name for name in first.layers)
    assert first.phases == ("task 1", "task 2")
    assert first.provenance["protocol"]["mask"] == "new"
    assert set(last.main) == {"val", "all tasks", "task 1", "task 2"}
    assert run.model(torch.zeros(1, 3, 64, 64)).shape == (1, 4)


def test_the_paper_s_recipe_is_the_default() -> None:
    chosen = {row.name: row.value for row in known(WORLD, "ftp")}
    wanted = {
        "batch": 128,
        "lr": 5e-4,
        "optimizer": "adamw",
        "weight_decay": 0.0,
        "steps": 450,
        "tasks": 10,
        "size": 224,
    }
    assert {name: chosen[name] for name in wanted} == wanted
    assert chosen["trained"] == "qkv"


def test_what_is_missing_is_one_sentence(tree: Path, tmp_path: Path) -> None:
    for data, sentence in (
        ("", "the world imagenet_r needs its pictures; write --set data=PATH, the unpacked folder imagenet-r"),
        (
            str(tmp_path / "no"),
            f"data is '{tmp_path / 'no'}', and no folder is there; give the unpacked folder imagenet-r",
        ),
        (str(tmp_path), f"data is '{tmp_path}', and it holds no folders of pictures; give a folder with one per class"),
    ):
        with pytest.raises(LabError) as error:
            finetune(resolve(WORLD, "ftp", {"data": data}), device="cpu")
        assert str(error.value) == sentence
    with pytest.raises(LabError, match="L2P\\+\\+ needs a network with a place for prompts"):
        settings(tree, "l2p")
    assert identify(settings(tree)) != identify(settings(tree, tasks=4))
    assert "ewc" in methods.fitting(worlds.of(settings(tree)))
