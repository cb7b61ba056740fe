"""The plain-float projection against the torch one, and the picture's shape."""

import csv
import doctest
import io
import itertools
import math

import plotly.graph_objects as go
import pytest
import torch

from app import geometry
from ftp import project_mars

STEPS = [-2.0, -1.25, -0.3, 0.0, 0.7, 2.0]
GAMMAS = [0.0, 0.05, 1.0, 2.0]


def test_docstring_examples():
    failed, tried = doctest.testmod(geometry)
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(("x", "y"), list(itertools.product(STEPS, STEPS)))
def test_project_agrees_with_torch(x, y, gamma):
    row = torch.tensor([[x, y]], dtype=torch.float64)
    expected = project_mars(row, torch.zeros_like(row), gamma)
    got = torch.tensor([geometry.project(x, y, gamma).projected], dtype=torch.float64)
    torch.testing.assert_close(got, expected, atol=2e-8, rtol=0)  # ftp divides by l1 + 1e-8


def test_inside_on_and_outside():
    assert geometry.project(0.3, -0.4, 1.0).projected == (0.3, -0.4)
    assert geometry.project(0.5, -0.5, 1.0).projected == (0.5, -0.5)
    outside = geometry.project(-2.0, 2.0, 1.0)
    assert outside.projected == (-0.5, 0.5)
    assert (outside.l1, outside.shrink, outside.pulled) == (4.0, 0.25, True)


def test_float_noise_on_the_boundary_is_no_pull():
    assert 0.1 + 0.2 > 0.3
    assert not geometry.project(0.1, 0.2, 0.3).pulled


def test_no_minus_zero():
    row = geometry.project(-1.0, -0.0, 0.0)
    assert [math.copysign(1, v) for v in (*row.projected, row.unconstrained[1])] == [1, 1, 1]


@pytest.mark.parametrize("bad", [(math.nan, 0.0, 1.0), (0.0, math.inf, 1.0), (0.0, 0.0, -0.1), (0.0, 0.0, math.nan)])
def test_bad_numbers_are_named(bad):
    with pytest.raises(ValueError, match="give finite numbers, and gamma >= 0"):
        geometry.project(*bad)


@pytest.mark.parametrize(
    ("settings", "ending"),
    [
        ((1.5, 0.6, 1.0), "2.10 away; the leash is 1.00 long, so it is pulled back to 48 % of its way."),
        ((0.3, 0.4, 1.0), "0.70 away; the leash is 1.00 long, so it is within reach and nothing happens."),
        ((0.3, 0.4, 0.0), "pulled all the way back to its anchor."),
        ((0.0, 0.0, 0.0), "the leash has nothing to do."),
        ((2.0, 0.0, 1.999), "pulled back to 99 % of its way."),
        ((2.0, 2.0, 0.001), "pulled back to 1 % of its way."),
    ],
)
def test_sentence(settings, ending):
    assert geometry.sentence(geometry.project(*settings)).endswith(ending)


def test_csv_holds_the_table_and_the_settings():
    row = geometry.project(1.5, 0.6, 1.0)
    text = geometry.to_csv(row)
    assert text.isascii()
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["point"] for line in lines] == ["anchor", "wanted", "kept"]
    assert float(lines[1]["l1 distance"]) == pytest.approx(2.1)
    assert float(lines[2]["l1 distance"]) == pytest.approx(1.0)
    assert [float(line["shrink"]) for line in lines] == pytest.approx([1 / 2.1] * 3)
    assert [float(line["gamma"]) for line in lines] == [1.0] * 3


@pytest.mark.parametrize("circle", [False, True])
@pytest.mark.parametrize("settings", [(1.5, 0.6, 1.0), (0.3, 0.4, 1.0), (0.0, 0.0, 0.0), (-2.0, 2.0, 0.0)])
def test_figure(settings, circle):
    row = geometry.project(*settings)
    figure = geometry.figure(row, circle)
    go.Figure(figure)  # Plotly knows every property
    names = [trace["name"] for trace in figure["data"]]
    assert ("l2 circle, same γ" in names) == circle
    assert ("pull-back" in names) == row.pulled
    always = ["reach |x| + |y| ≤ γ", "leash", "anchor W₀", "wanted W̃", "kept W"]
    assert [name for name in names if name not in ("l2 circle, same γ", "pull-back")] == always
    assert all(math.isfinite(v) for trace in figure["data"] for v in (*trace["x"], *trace["y"]))
    assert figure["layout"]["yaxis"]["scaleanchor"] == "x"
    assert figure["layout"]["template"] == "none"


def test_figure_draws_the_projection():
    row = geometry.project(-2.0, 1.0, 1.5)
    traces = {trace["name"]: trace for trace in geometry.figure(row)["data"]}
    kept = traces["kept W"]["x"] + traces["kept W"]["y"]
    assert kept == pytest.approx([-1.0, 0.5])
    assert [traces["leash"]["x"][-1], traces["leash"]["y"][-1]] == kept
    assert [traces["pull-back"]["x"][-1], traces["pull-back"]["y"][-1]] == kept
    diamond = traces["reach |x| + |y| ≤ γ"]
    assert all(abs(x) + abs(y) == 1.5 for x, y in zip(diamond["x"], diamond["y"], strict=True))
