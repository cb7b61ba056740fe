"""One meaning per colour: no two share one, and what stands in one chart can be told apart by everybody."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from app.components.player import look
from ftp.lab.figures.template import METHOD_STYLE, depth_colors
from ftp.lab.palette import LABELS, METHODS, label_colors, palette

ROOT = Path(__file__).resolve().parents[2]
# how each kind of eye sees linear RGB: Machado, Oliveira and Fernandes (2009), severity 1
EYES = np.array(
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    ]
)
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)


def linear(color: str) -> np.ndarray:
    parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)] if color[0] == "#" else re.findall(r"\d+", color)[:3]
    share = np.array([float(part) for part in parts]) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    low, high = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) + 0.05 for color in (a, b))
    return high / low


def apart(a: str, b: str, eyes: np.ndarray = EYES) -> float:
    """The distance in Oklab (black to white is 100) for the eye that sees it smallest."""
    seen = [np.cbrt(np.clip(eyes @ linear(color), 0, 1) @ TO_LMS.T) @ TO_OKLAB.T for color in (a, b)]
    return 100 * float(np.linalg.norm(seen[0] - seen[1], axis=-1).min())


def test_the_distance_is_that_of_black_and_white() -> None:
    assert apart("#000000", "#FFFFFF") == pytest.approx(100, abs=0.5)
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


@pytest.mark.parametrize("dark", [False, True])
def test_no_two_meanings_share_a_colour(dark: bool) -> None:
    colors = palette(dark)
    meanings = {name: getattr(colors, name) for name in ("id", "ood", "leash", "walk", "anchor")}
    meanings |= {name: pair[dark] for name, pair in METHODS.items()}
    near = {
        (a, b): distance
        for (a, one), (b, other) in itertools.combinations(meanings.items(), 2)
        if (distance := apart(one, other, EYES[:1])) < 6
    }
    assert not near, "to the usual eye these look alike"


@pytest.mark.parametrize("dark", [False, True])
def test_what_stands_in_one_chart_can_be_told_apart_by_every_eye(dark: bool) -> None:
    colors = palette(dark)
    assert apart(colors.id, colors.ood) > 12
    assert apart(colors.leash, colors.walk) > 12
    assert apart(colors.layers[0], colors.layers[-1]) > 25
    assert min(apart(a[dark], b[dark]) for a, b in itertools.combinations(METHODS.values(), 2)) > 5
    late = [apart(layer, METHODS["ftp"][dark]) for layer in depth_colors(27, dark)]
    assert min(late) > 10  # orange was FTP and late layers at once


def test_labels_of_a_map_can_be_told_apart_by_every_eye() -> None:
    assert min(apart(a, b) for a, b in itertools.combinations(LABELS, 2)) > 15
    assert len(set(label_colors(8))) == 8


@pytest.mark.parametrize("dark", [False, True])
def test_right_wrong_and_ignored_pixels_can_be_told_apart_by_every_eye(dark: bool) -> None:
    colors = palette(dark)
    assert min(apart(colors.loss, other) for other in (colors.grid, colors.anchor)) > 12
    assert apart(colors.grid, colors.anchor) > 12


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_can_be_seen_on_its_paper(dark: bool) -> None:
    colors = palette(dark)
    assert all(contrast(getattr(colors, name), colors.paper) > 4.5 for name in ("gain", "loss", "muted"))
    assert all(contrast(getattr(colors, name), colors.paper) > 3 for name in ("id", "ood", "leash", "walk", "anchor"))
    assert min(contrast(layer, colors.paper) for layer in depth_colors(27, dark)) > 3


def test_figures_and_page_take_their_colours_from_the_palette() -> None:
    assert {name: (s.light, s.dark) for name, s in METHOD_STYLE.items()} == METHODS
    assert (look(dark=True)["ood"], look(dark=False)["id"]) == (palette(True).ood, palette(False).id)
    files = [*(ROOT / "app").glob("*.py"), *(ROOT / "app").glob("[vc]*s/*.py"), *(ROOT / "app/components").glob("*.js")]
    files += [*(ROOT / "ftp/lab/figures").glob("*.py")]
    assert len(files) > 40
    doctest = re.compile(r"^\s*(>>>.*|\(?'.*)$", re.M)  # what a doctest shows
    own = {path.name for path in files if re.search(r"#[0-9A-Fa-f]{6}\b", doctest.sub("", path.read_text("utf-8")))}
    assert not own, "a colour of its own; give it a meaning in ftp/lab/palette.py"
