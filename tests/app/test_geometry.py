"""The plain-float projection and bound against the torch ones, and the view as a visitor meets it."""

import itertools
import math

import pytest
import torch
from app_views import open_view, sent

from app import geometry
from app.views import geometry as view
from ftp import project_mars
from ftp.lipschitz import worst_input
from ftp.projection import mars_norm

STEPS = [-2.0, -1.25, -0.3, 0.0, 0.7, 2.0]
GAMMAS = [0.0, 0.05, 1.0, 2.0]


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


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("number", [0, 1, 7, 19])
def test_the_bound_is_the_mars_norm_and_its_input_reaches_it(number, gamma):
    rows = geometry.matrix(number, gamma)
    difference = torch.tensor(rows, dtype=torch.float64)
    found = geometry.bound(rows)
    assert found.l_d == pytest.approx(float(mars_norm(difference)))
    assert found.l_d <= gamma + 1e-12
    assert geometry.slope(rows, found.worst) == pytest.approx(found.l_d)
    assert geometry.slope(rows, worst_input(difference).sign().tolist()) == pytest.approx(found.l_d)
    x = torch.rand(500, 3, generator=torch.Generator().manual_seed(number), dtype=torch.float64) * 2 - 1
    assert all(geometry.slope(rows, one) <= found.l_d + 1e-12 for one in x.tolist())


def test_no_input_has_no_slope():
    assert geometry.slope(geometry.matrix(0, 1.0), (0.0, 0.0, 0.0)) == 0.0


def test_the_copied_python_runs_and_says_the_same(capsys):
    row, rows = geometry.project(1.5, 0.6, 1.0), geometry.matrix(3, 1.0)
    exec(view.python_of(row, rows), {})
    said = capsys.readouterr().out
    assert "tensor([[0.7143, 0.2857]])" in said
    assert f"tensor({geometry.bound(rows).l_d:.4g}" in said.replace("1.0000", "1")


def test_first_view():
    page = open_view("geometry")
    assert page.header[0].value.endswith("?")
    assert sent(page) == {"x": 1.5, "y": 0.6, "gamma": 1.0, "circle": False}
    assert any("2.10 away is held at 1.00" in m.value for m in page.markdown)
    lemma = sent(page, 1)
    assert lemma["l_d"] == pytest.approx(max(sum(map(abs, row)) for row in lemma["matrix"]))


def test_a_link_carries_the_settings():
    page = open_view("geometry", x="-1.5", y="2", gamma="0.35", circle="true", matrix="4", x1="-1", x2="0.25", x3="1")
    assert sent(page) == {"x": -1.5, "y": 2.0, "gamma": 0.35, "circle": True}
    assert sent(page, 1)["x"] == [-1.0, 0.25, 1.0]
    assert [tuple(row) for row in sent(page, 1)["matrix"]] == [pytest.approx(row) for row in geometry.matrix(4, 0.35)]
    link = next(c.value for c in page.code if "geometry?" in c.value)
    assert "x=-1.5&y=2.0&gamma=0.35&circle=true&matrix=4&x1=-1.0&x2=0.25&x3=1.0" in link


@pytest.mark.parametrize("bad", ["nan", "inf", "99", "-1e400", "", "<b>", "1,5"])
def test_bad_links_fall_back_to_the_defaults(bad):
    page = open_view("geometry", x=bad, y=bad, gamma=bad, circle=bad, x1=bad, matrix=bad)
    assert sent(page) == {"x": 1.5, "y": 0.6, "gamma": 1.0, "circle": False}
    assert sent(page, 1)["x"] == [0.5, 0.5, 0.5]


def test_the_tables_can_be_downloaded():
    page = open_view("geometry")
    assert [button.label for button in page.get("download_button")] == ["Download as CSV", "Download as CSV"]
    assert list(page.table[0].value["l1 distance"]) == ["0", "2.1", "1"]


def test_a_prediction_gets_its_answer():
    page = open_view("geometry")
    assert not any("1.41 times" in m.value for m in page.markdown)
    page.radio(key="geometry_guess").set_value(view.GUESSES[0]).run()
    assert any(m.value.startswith("Right: ") and "1.41 times" in m.value for m in page.markdown)
