"""PASCAL-Context: its loader and short runs on a tiny tree in the same layout; nothing is downloaded."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from ftp.lab import recipes, worlds
from ftp.lab.__main__ import main
from ftp.lab.evaluate import Corrupted
from ftp.lab.models.swin import swin_maps
from ftp.lab.record import EvalEvent, LabError, StartEvent
from ftp.lab.run import identify
from ftp.lab.settings import known, resolve
from ftp.lab.train import finetune
from ftp.lab.worlds._dense import IGNORED, angles
from ftp.lab.worlds.pascal import PART_NUMBERS, THINGS, WITH_NORMALS, Move, moved, moved_normals

WORLD = "pascal"
TRAIN, VAL = [f"2008_{n:06d}" for n in range(40)], [f"2010_{n:06d}" for n in range(4)]
HIGH, WIDE = 30, 40
FLOOR, SKY = 158, 360  # of the 459 classes: one with normals, one without


def things(picture: int) -> list[dict[str, Any]]:
    """A dog, and in every third picture a person with a head, an arm and a foot; one person has no parts."""
    mask = np.zeros((HIGH, WIDE), np.uint8)
    mask[5:25, 10:20] = 1
    parts = []
    for name, rows in (("hair", slice(5, 10)), ("luarm", slice(10, 15)), ("rfoot", slice(20, 25))):
        part = np.zeros((HIGH, WIDE), np.uint8)
        part[rows, 10:20] = 1
        parts.append({"part_name": name, "mask": part})
    dog = {"class": "dog", "class_ind": 12, "mask": mask, "parts": parts[:0]}
    if picture % 3:
        return [dog]
    shown = parts if picture != 3 else parts[:0]
    return [dog, {"class": "person", "class_ind": 15, "mask": mask, "parts": shown}]


def structures(rows: list[dict[str, Any]], fields: tuple[str, ...]) -> Any:
    """A struct array of MATLAB, 1 x n, or 0 x 0 if it is empty."""
    array = np.zeros((1, len(rows)) if rows else (0, 0), dtype=[(field, object) for field in fields])
    for n, row in enumerate(rows):
        for field in fields:
            array[0, n][field] = row[field]
    return array


def write_picture(root: Path, number: int, name: str) -> None:
    y, x = np.mgrid[:HIGH, :WIDE]
    colours = np.stack([x * 6, y * 8, np.full_like(x, 5 * number % 255)], -1).astype(np.uint8)
    Image.fromarray(colours).save(root / "JPEGImages" / f"{name}.jpg")
    labels = np.zeros((HIGH, WIDE), np.uint8)
    labels[5:25, 10:20] = 12
    labels[4, 9:21] = IGNORED
    Image.fromarray(labels).save(root / "semseg" / ("VOC12" if number % 2 else "pascal-context") / f"{name}.png")
    rows = [{**row, "parts": structures(row["parts"], ("part_name", "mask"))} for row in things(number)]
    anno = {"imname": name, "objects": structures(rows, ("class", "class_ind", "mask", "parts"))}
    savemat(root / "human_parts" / f"{name}.mat", {"anno": structures([anno], ("imname", "objects"))})
    normal = np.array([0.6, 0.0, 0.8])
    Image.fromarray(np.tile(((normal + 1) * 255 / 2).round().astype(np.uint8), (HIGH, WIDE, 1))).save(
        root / "normals_distill" / f"{name}.png"
    )
    classes = np.full((HIGH, WIDE), SKY, np.uint16)
    classes[15:] = FLOOR
    savemat(root / "pascal-context" / "trainval" / f"{name}.mat", {"LabelMap": classes})


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree") / "PASCAL_MT"
    for folder in (
        *("JPEGImages", "ImageSets/Context", "ImageSets/Parts", "semseg/VOC12", "semseg/pascal-context"),
        *("human_parts", "normals_distill", "pascal-context/trainval"),
    ):
        (root / folder).mkdir(parents=True)
    for part, names in (("train", TRAIN), ("val", VAL)):
        (root / "ImageSets" / "Context" / f"{part}.txt").write_text("".join(f"{name}\n" for name in names))
        for n, name in enumerate(names):
            write_picture(root, n, name)
    index = {name: [row["class_ind"] for row in things(n)] for n, name in enumerate(TRAIN)}
    (root / "ImageSets" / "Parts" / "train.txt").write_text(json.dumps(index))  # that of val is made
    return root


@pytest.fixture(autouse=True)
def _no_cache_of_mine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def settings(tree: Path, task: str = "semseg", method: str = "ftp", **given: Any) -> Any:
    small = {"model": "torchvision:swin_t", "weights": "none", "size": 32, "decoder_width": 8, "steps": 2, "batch": 4}
    return resolve(WORLD, method, {"data": str(tree), "task": task, **small, **given})


def place(tree: Path, task: str, **given: Any) -> Any:
    return worlds.of(settings(tree, task, **given))


def test_every_picture_has_one_place(tree: Path) -> None:
    world = place(tree, "semseg")
    train, val, test = (world.pictures(name) for name in world.roles)
    assert sorted((*train, *val)) == TRAIN
    assert 0 < len(val) < len(train)
    assert list(test) == VAL
    assert world.classes == THINGS
    assert len(THINGS) == 21
    assert len(WITH_NORMALS) == 170
    assert {FLOOR, 284, 427} < WITH_NORMALS  # floor, person, tvmonitor
    assert SKY not in WITH_NORMALS


def test_labels_are_those_of_the_files_with_their_ignored_pixels(tree: Path) -> None:
    split = place(tree, "semseg", size=40).split("id")
    pictures, targets = split.batch(torch.arange(4))
    assert pictures.shape == (4, 3, 40, 40)
    assert targets.shape == (4, 40, 40)
    assert targets.dtype == torch.int64
    assert sorted(targets.unique().tolist()) == [0, 12, IGNORED]
    assert 0 <= pictures.min() <= pictures.max() <= 1
    assert torch.equal(targets[0], targets[1])  # one is in semseg/VOC12, the other in semseg/pascal-context


def test_parts_are_numbered_and_pictures_without_people_are_left_out(tree: Path) -> None:
    world = place(tree, "parts", size=40)
    shown = {name for n, name in enumerate(TRAIN) if n % 3 == 0}
    assert {*world.pictures("train"), *world.pictures("val")} == shown
    assert list(world.pictures("id")) == [VAL[0], VAL[3]]  # the index of val is not there: their files say it
    _, targets = world.split("id").batch(torch.arange(2))
    assert sorted(targets[0].unique().tolist()) == [0, 1, 3, 6]
    column = targets[0][:, 15]
    rows = {int(label): (column == label).nonzero().flatten().tolist() for label in (1, 3, 6)}
    assert max(rows[1]) < min(rows[3]) < max(rows[3]) < min(rows[6])  # head, arm, foot
    assert targets[1].unique().tolist() == [IGNORED]  # a person whose parts nobody drew
    assert set(PART_NUMBERS.values()) == {1, 2, 3, 4, 5, 6}
    assert len(PART_NUMBERS) == 24


def test_normals_are_known_only_where_the_class_is_shared(tree: Path) -> None:
    _, targets = place(tree, "normals", size=40).split("id").batch(torch.arange(1))
    top, bottom = targets[0, :, :18], targets[0, :, 22:]
    assert top.unique().tolist() == [IGNORED]
    wanted = torch.tensor([0.6, 0.0, 0.8]).view(3, 1, 1).expand_as(bottom)
    torch.testing.assert_close(bottom, wanted, atol=0.01, rtol=0)
    known = targets[0][:, targets[0, 0] != IGNORED]
    torch.testing.assert_close(known.norm(dim=0), torch.ones(known.shape[1]))


def test_nothing_moves_without_a_generator_and_the_same_seed_moves_alike(tree: Path) -> None:
    for task in ("semseg", "parts", "normals"):
        split = place(tree, task).split("train")
        rows = torch.arange(4)
        plain, again = split.batch(rows), split.batch(rows)
        first, second = (split.batch(rows, torch.Generator().manual_seed(1)) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
        assert not torch.equal(plain[0], first[0])
        assert not torch.equal(plain[1], first[1])


def test_moving_by_hand() -> None:
    picture = torch.arange(12.0).view(1, 3, 4)
    assert torch.equal(moved(picture, Move(flip=True), 3, "nearest")[:, :, 0], picture[:, :, 3])
    square = torch.rand(2, 9, 9)
    turned = moved(square, Move(degrees=90.0), 9, "nearest")
    assert torch.equal(turned, square.rot90(1, (1, 2)))  # against the clock, as seen
    assert torch.equal(moved(square, Move(), 9, "nearest"), square)
    torch.testing.assert_close(moved(square, Move(), 9, "bicubic"), square)
    small = moved(torch.ones(1, 20, 20), Move(scale=0.5), 20, "nearest")
    assert int(small.sum()) == 100  # half as wide and high, black around it


def ball(flip: bool = False, degrees: float = 0.0, side: int = 81) -> torch.Tensor:
    """The normals of a ball off the middle: x to the right, y down, z to us; drawn where a move puts it."""
    turn = math.radians(degrees)
    x, y = -0.4 if not flip else 0.4, 0.1
    x, y = math.cos(turn) * x + math.sin(turn) * y, math.cos(turn) * y - math.sin(turn) * x
    places = torch.linspace(-1 + 1 / side, 1 - 1 / side, side)
    down, right = torch.meshgrid(places - y, places - x, indexing="ij")
    inside = right**2 + down**2 < 0.4**2
    depth = (0.4**2 - right**2 - down**2).clamp(min=0).sqrt()
    return torch.stack([right, down, depth]) / 0.4 * inside


@pytest.mark.parametrize(("flip", "degrees"), [(True, 0.0), (False, 90.0), (False, 17.0), (True, -20.0)])
def test_the_normals_of_a_ball_move_with_it(flip: bool, degrees: float) -> None:
    said, true = moved_normals(ball(), Move(flip, degrees), 81), ball(flip, degrees)
    both = (said[0] != IGNORED) & true.any(0)
    assert int(both.sum()) > 0.97 * int(true.any(0).sum())
    apart = angles(said[:, both].T.double(), true[:, both].T.double())
    assert float(apart.mean()) < 0.7
    left_alone = moved(ball(), Move(flip, degrees), 81, "bicubic")[:, both]  # directions that did not turn
    assert float(angles(left_alone.T.double(), true[:, both].T.double()).mean()) > 8


@pytest.mark.parametrize("task", ["semseg", "parts", "normals"])
def test_damage_leaves_the_maps_alone(tree: Path, task: str) -> None:
    world = place(tree, task)
    pictures, targets = world.split("id").batch(torch.arange(2))
    damaged, same = Corrupted(world, "gaussian_noise", 5, count=2).batch(torch.arange(2))
    assert torch.equal(targets, same)
    assert not torch.equal(pictures, damaged)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "method"), [("semseg", "ftp"), ("parts", "l2_sp"), ("normals", "llrd")])
def test_a_short_run(tree: Path, task: str, method: str) -> None:
    run = finetune(settings(tree, task, method), device="cpu", watches=0, kinds=["brightness"])
    events = list(run)
    first, last = events[0], events[-1]
    assert isinstance(first, StartEvent)
    assert isinstance(last, EvalEvent)
    assert all(name.startswith("encoder.") for name in first.layers)
    assert first.provenance["assumed"]
    assert set(last.main) == {"val", "id"}
    assert list(last.corruptions) == ["brightness"]
    assert all(math.isfinite(value) for value in last.main.values())
    assert run.model(torch.zeros(1, 3, 32, 32)).shape == (1, {"semseg": 21, "parts": 7, "normals": 3}[task], 32, 32)


def test_timm_s_swin_gives_the_same_kind_of_maps() -> None:
    encoder = swin_maps("timm:swin_tiny_patch4_window7_224", 64, False).eval()
    assert encoder.widths == (96, 192, 384, 768)
    with torch.no_grad():
        assert [tuple(m.shape) for m in encoder(torch.zeros(1, 3, 64, 64))] == [
            *((1, 16, 16, 96), (1, 8, 8, 192)),
            *((1, 4, 4, 384), (1, 2, 2, 768)),
        ]


def test_the_paper_s_recipe_is_the_default() -> None:
    chosen = {row.name: row.value for row in known(WORLD, "ftp")}
    wanted = {"optimizer": "adamw", "lr": 1e-4, "weight_decay": 1e-4, "batch": 8, "size": 512, "steps": 60 * 562}
    assert {name: chosen[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("task", "strength", "decay", "gamma", "k"),
    [("semseg", 5e-4, 0.65, 4.0, 1.0), ("parts", 1e-4, 0.45, 8.0, 0.0), ("normals", 1e-4, 0.65, 4.0, 0.0)],
)
def test_the_strengths_are_those_of_table_9(task: str, strength: float, decay: float, gamma: float, k: float) -> None:
    wanted = {"l2_sp": ("strength", strength), "llrd": ("decay", decay), "mars_sp": ("gamma", gamma), "ftp": ("k", k)}
    for method, (name, value) in wanted.items():
        (row,) = [row for row in known(WORLD, method, {"task": task}) if row.name == name]
        assert (row.value, row.source) == (value, "recipe")


def test_every_setting_says_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    for task in ("semseg", "parts", "normals"):
        sources = recipes.tuned(WORLD, "quick", {"task": task})["source"]
        assert {"steps", "batch", "optimizer", "lr", "weight_decay", "size", "decoder_width"} <= set(
            sources["every method"]
        )
        said = [text for of_method in sources.values() for text in of_method.values()]
        assert all(text.startswith(("paper", "released code", "assumed")) for text in said)
        for method, settings_of in recipes.tuned(WORLD, "quick", {"task": task})["recipe"].items():
            assert settings_of.keys() <= sources[method].keys()
    assert main(["recipe", WORLD, "ftp", "--set", "task=parts"]) == 0
    shown = capsys.readouterr().out
    assert "Published: what the paper's Tab. 9 gives" in shown
    assert re.search(r"ftp +k +0.0 +paper, Tab. 9", shown)
    assert "Chosen on ID validation" not in shown
    assert main(["recipe", WORLD]) == 0
    assert "Nothing was tuned here." in capsys.readouterr().out


def test_every_method_of_the_table_has_a_place_here(tree: Path) -> None:
    for method in ("finetune", "adapter", "bitfit", "l2_sp", "mars_sp", "llrd", "tpgm", "ftp"):
        assert settings(tree, "parts", method).method == method


def test_what_is_assumed_is_said(tree: Path) -> None:
    remarks = place(tree, "parts").remarks()
    assert sum(line.startswith("assumed, since the paper does not say it: ") for line in remarks) == 5
    count = len(place(tree, "parts").pictures("train"))
    assert remarks[-1].endswith(f"are {60 * (count // 8)} steps: write --set steps={60 * (count // 8)}")


def test_what_is_missing_is_one_sentence(tree: Path, tmp_path: Path) -> None:
    for data, sentence in (
        ("", "the world pascal needs its pictures; write --set data=PATH, the unpacked folder PASCAL_MT"),
        (
            str(tmp_path / "no"),
            f"data is '{tmp_path / 'no'}', and no folder is there; give the unpacked folder PASCAL_MT",
        ),
        (
            str(tmp_path),
            f"data is '{tmp_path}', and it has no ImageSets/Context/train.txt; give the unpacked folder PASCAL_MT",
        ),
    ):
        with pytest.raises(LabError) as error:
            resolve(WORLD, "ftp", {"data": data})
        assert str(error.value) == sentence
    with pytest.raises(LabError, match="model is 'torchvision:resnet50'; it must be a Swin"):
        finetune(settings(tree, model="torchvision:resnet50"), device="cpu")
    with pytest.raises(LabError, match="task is 'depth'; it must be semseg or parts or normals"):
        settings(tree, "depth")
    assert len({identify(settings(tree, task)) for task in ("semseg", "parts", "normals")}) == 3


def test_a_file_that_is_not_there_or_damaged_is_told(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "PASCAL_MT"
    for file in tree.rglob("*"):
        if file.is_file():
            (copy / file.relative_to(tree)).parent.mkdir(parents=True, exist_ok=True)
            (copy / file.relative_to(tree)).write_bytes(file.read_bytes())
    lost = copy / "semseg" / "pascal-context" / f"{VAL[0]}.png"
    lost.unlink()
    with pytest.raises(LabError, match=r"semseg/pascal-context/2010_000000.png is not there, and 2010_000000 is on a"):
        place(copy, "semseg").data_version()
    broken = copy / "human_parts" / f"{VAL[0]}.mat"
    broken.write_bytes(b"no MATLAB")
    with pytest.raises(LabError, match=r"2010_000000.mat cannot be read"):
        place(copy, "parts").pictures("id")
