"""Effective robustness: the line against numpy's fit, its clipping, its errors."""

import math
import random

import numpy as np
import pytest

from ftp.lab import robustness
from ftp.lab.figures.data import WiseCurve, example
from ftp.lab.figures.logit_plane import logit_plane
from ftp.lab.record import LabError
from ftp.lab.robustness import Line, check, fit, line_of, line_through, logit
from ftp.lab.summary import Metric
from ftp.lab.table import rows


@pytest.mark.parametrize("seed", range(5))
def test_the_line_equals_numpys(seed: int) -> None:
    r = random.Random(seed)
    pairs = [(r.uniform(20, 99), r.uniform(5, 90)) for _ in range(3 + 4 * seed)]
    line = fit(pairs)
    shares = np.array(pairs) / 100
    x, y = np.log(shares / (1 - shares)).T
    slope, intercept = np.polyfit(x, y, 1)
    assert (line.slope, line.intercept) == pytest.approx((slope, intercept))
    assert (line.models, line.low, line.high) == (len(pairs), min(pairs)[0], max(pairs)[0])
    home, shifted = 88.0, 61.0
    beta = 100 / (1 + np.exp(-np.polyval((slope, intercept), math.log(0.88 / 0.12))))
    assert line.above(home, shifted) == pytest.approx(shifted - beta)


def test_models_on_the_line_have_no_effective_robustness() -> None:
    line = Line(0.8, -1.0, 3, 40.0, 90.0)
    again = fit((home, line.expected(home)) for home in (40.0, 60.0, 90.0))
    assert (again.slope, again.intercept) == pytest.approx((0.8, -1.0))
    assert again.above(75.0, line.expected(75.0)) == pytest.approx(0.0, abs=1e-9)
    assert [line.covers(home) for home in (39.0, 40.0, 91.0)] == [False, True, False]


def test_nothing_and_everything_right_are_clipped() -> None:
    assert logit(1.0) == logit(0.9999) == pytest.approx(math.log(999))
    assert logit(0.0) == pytest.approx(-math.log(999))
    line = fit([(0.0, 0.0), (50.0, 50.0), (100.0, 100.0)])
    assert line.slope == pytest.approx(1.0)
    assert math.isfinite(line.above(100.0, 50.0))


def test_what_gives_no_line_is_a_sentence() -> None:
    with pytest.raises(LabError) as error:
        fit([(50.0, 30.0), (60.0, math.nan), (70.0, 40.0)])
    sentence = "2 models were given; a line needs 3 or more, 10 points apart at home: train some for longer"
    assert str(error.value) == sentence
    with pytest.raises(LabError, match="3 models were given"):
        fit([(0.7, 0.7), (1.0, 0.7), (2.2, 1.2)])  # all about at chance
    with pytest.raises(LabError) as error:
        check(Metric("angle", "°", higher_is_better=False))
    assert str(error.value) == (
        "the main metric is angle (°, lower is better); effective robustness needs a share of right answers in %"
    )


def test_runs_and_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = [example("finetune", seed) for seed in (-300, -150, 0)]
    line = line_through(ordinary)
    assert line.models == 3
    assert line_of("no such world") is None
    monkeypatch.setattr(robustness, "GROUP", "no such group")
    assert line_of("digits") is None
    made = rows([example("ftp")], line=line.above)[0]
    assert made.robustness.mean == pytest.approx(made.ood_avg.mean - line.expected(made.id.mean))


def test_the_figure_shows_runs_line_and_ways() -> None:
    ordinary = [example("finetune", seed) for seed in (-300, -150, 0)]
    curve = WiseCurve("0" * 16, "ftp", (0.0, 1.0), (90.0, 97.0), (85.0, 80.0))
    fig = logit_plane([example("ftp"), example("ftp", 1)], ordinary, [curve, curve])
    assert [trace.name for trace in fig.data] == ["ordinary models", "their line", "continued", "FTP", "FTP, WiSE"]
    line = line_through(ordinary)
    for x, y in zip(fig.data[1].x + fig.data[2].x, fig.data[1].y + fig.data[2].y, strict=True):
        assert y == pytest.approx(line.slope * x + line.intercept)
    assert fig.data[2].line.dash == "dash"  # beyond the best ordinary model
    assert list(fig.data[4].x) == pytest.approx([logit(0.90), logit(0.97)])
    assert fig.layout.xaxis.ticktext[5] == "10"
    assert fig.layout.xaxis.tickvals[5] == pytest.approx(logit(0.1))
    assert logit_plane([], ordinary, dark=True).data[0].name == "ordinary models"
