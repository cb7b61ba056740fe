"""DomainNet: its lists and a short run on a tiny tree in the same layout; nothing is downloaded."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from lab.cli import apart
from PIL import Image

from ftp.lab import worlds
from ftp.lab.record import LabError, StartEvent
from ftp.lab.run import identify
from ftp.lab.settings import known, resolve
from ftp.lab.train import finetune

WORLD = "domainnet"
THINGS = ("zebra", "ant", "car")  # labels come from the lists, not from the alphabet
DOMAINS = ("real", "sketch", "painting", "infograph", "clipart")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for domain in DOMAINS:
        lines: dict[str, list[str]] = {"train": [], "test": []}
        for label, thing in enumerate(THINGS):
            (root / domain / thing).mkdir(parents=True)
            for n in range(20 if domain == "real" else 3):
                file = f"{domain}/{thing}/{domain}_{label}_{n}.jpg"
                Image.new("RGB", (70, 80), (100 * label, 250 - 100 * label, 0)).save(root / file)
                lines["test" if n < 3 else "train"].append(f"{file} {label}\n")
        (root / f"{domain}_test.txt").write_text("".join(lines["test"]))
        if domain == "real":
            (root / "real_train.txt").write_text("".join(lines["train"]))
            (root / "real_train_split.txt").write_text("".join(lines["train"][2:]))
            (root / "real_val_split.txt").write_text("".join(lines["train"][:2]))
    return root


def settings(tree: Path, method: str = "ftp", **given: Any) -> Any:
    small = {"model": "timm:test_resnet", "weights": "none", "size": 64, "steps": 2, "batch": 4, "workers": 1}
    return resolve(WORLD, method, {"data": str(tree), **small, **given})


def test_labels_are_those_of_the_lists(tree: Path) -> None:
    world = worlds.of(settings(tree))
    assert world.classes == THINGS
    assert (world.home, world.shifts) == ("real", DOMAINS[1:])
    for name in world.roles:
        split = world.split(name)
        pixels, labels = split.batch(torch.arange(len(split)))
        wanted = torch.tensor([(100 * n, 250 - 100 * n, 0) for n in labels.tolist()]) / 255
        assert (pixels.mean((2, 3)) - wanted).abs().max() < 0.03
    assert {name: len(world.split(name)) for name in ("train", "val", "real", "sketch")} == {
        "train": 49,
        "val": 2,
        "real": 9,
        "sketch": 9,
    }


def test_without_the_authors_division_it_is_made_and_said(tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    shutil.copytree(tree, root, ignore=shutil.ignore_patterns("*_split.txt"))
    world = worlds.of(settings(root))
    names = {name: set(world.split(name).names) for name in ("train", "val")}  # type: ignore[attr-defined]
    assert len(names["train"]) + len(names["val"]) == 51
    assert 1 <= len(names["val"]) <= 12
    assert not names["train"] & names["val"]
    assert any("real_train.txt is for validation" in remark for remark in world.remarks())
    assert not any("real_train.txt" in remark for remark in worlds.of(settings(tree)).remarks())
    assert identify(settings(root)) != identify(settings(tree))
    with pytest.raises(LabError) as error:
        settings(root, percent="10")
    wanted = "put the authors' list there, or write percent=100"
    assert str(error.value) == f"{root} has no real_train_10_percent_split.txt; {wanted}"


def test_a_short_run(tree: Path) -> None:
    run = finetune(settings(tree), device="cpu", watches=0)
    events = list(run)
    assert isinstance(events[0], StartEvent)
    assert not any(name.startswith("fc.") for name in events[0].layers)  # a new head has no anchor
    assert "released code has 0" in events[0].provenance["assumed"][0]
    assert run.model(torch.zeros(1, 3, 64, 64)).shape == (1, 3)


def test_pixels_are_normalised_as_in_the_released_code(tree: Path) -> None:
    seen: list[torch.Tensor] = []
    model = worlds.of(settings(tree)).model(0).eval()
    model.conv1.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(torch.full((1, 3, 64, 64), 0.5))
    wanted = [(0.5 - mean) / std for mean, std in zip((0.5964, 0.5712, 0.5336), (0.3228, 0.3165, 0.3374), strict=True)]
    assert seen[0][0, :, 3, 3].tolist() == pytest.approx(wanted, abs=1e-5)


def test_the_published_recipe() -> None:
    for method, lr in {"finetune": 0.05, "tpgm": 0.01, "ftp": 0.01}.items():
        chosen = {row.name: row.value for row in known(WORLD, method)}
        assert (chosen["lr"], chosen["batch"], chosen["steps"]) == (lr, 256, 21_500)
        assert (chosen["optimizer"], chosen["momentum"], chosen["weight_decay"]) == ("sgd", 0.9, 5e-4)
    assert 50 * (110_307 // 256) == 21_500
    assert 150 * (11_031 // 256) == 6_450
    assert apart("recipe", WORLD, "ftp").out.startswith("Published: Tab. 1 of the paper")


def test_what_is_missing_is_one_sentence(tree: Path, tmp_path: Path) -> None:
    for data, sentence in (
        ("", "the world domainnet needs its pictures; write --set data=PATH, the folder with real and the lists"),
        (
            str(tmp_path / "no"),
            f"data is '{tmp_path / 'no'}', and no folder is there; give the folder with real and the lists",
        ),
        (str(tmp_path), f"{tmp_path} has no real_test.txt; put the published lists beside the pictures"),
    ):
        with pytest.raises(LabError) as error:
            resolve(WORLD, "ftp", {"data": data})
        assert str(error.value) == sentence
    shutil.copytree(tree, tmp_path / "tree")
    (tmp_path / "tree" / "sketch_test.txt").write_text("sketch/ant/a.jpg\n")
    with pytest.raises(LabError, match=r"line 1 is 'sketch/ant/a.jpg'; it must be a file and its label"):
        worlds.load(WORLD, {"data": str(tmp_path / "tree")}).split("sketch")
