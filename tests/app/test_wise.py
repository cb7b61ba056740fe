"""The WiSE view: recorded curves, a run of one's own, and what the page gives to the scrubber."""

import json
import statistics
from pathlib import Path

import pytest
from app_views import open_view, sent

from app.supervisor import supervisor
from app.views import wise as view
from ftp.lab.figures import WiseCurve
from ftp.lab.jobs import Order
from ftp.lab.recordings.extras import extra
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store

CURVES = [view.curve_of(row) for row in extra("wise")["curves"]]
SEEDS = list(dict.fromkeys(curve.seed for curve in CURVES))
BEST = [view.best_of(curves) for curves in view.by_method(CURVES).values()]


@pytest.fixture
def finished(own_store: Path):
    """A finished run in the server's store."""
    with Store(own_store) as store:
        return execute(resolve("digits", "ftp", {"steps": 2, "batch": 8}), store, kinds=())


def test_the_recorded_curves():
    data = extra("wise")
    assert len(SEEDS) >= 4
    assert [(curve["seed"], curve["method"]) for curve in data["curves"]] == [
        (seed, method) for seed in SEEDS for method in ("finetune", "ftp")
    ]
    assert data["made_by"] == extra("corruptions")["made_by"]
    for curve in data["curves"]:
        points = len(curve["alphas"])
        assert points in (11, 21)
        assert curve["alphas"] == [round(i / (points - 1), 2) for i in range(points)]
        assert all(0 < v < 100 for v in (*curve["id"], *curve["ood_avg"]))


def test_first_view():
    page = open_view("wise")
    data = sent(page)
    assert data["alpha"] == view.START
    assert [curve["name"] for curve in data["curves"]] == ["Vanilla FT", "FTP"]
    for curve in data["curves"]:
        runs = [c for c in CURVES if view.style(c.method).name == curve["name"]]
        for i in (0, 5, -1):
            assert curve["ood"][i] == pytest.approx(statistics.fmean(c.ood_avg[i] for c in runs))
            assert curve["spread"]["ood"][i] == pytest.approx(statistics.stdev(c.ood_avg[i] for c in runs))
    assert len(page.table[0].value) <= 40  # the file has all
    assert not page.button


def test_single_seeds_on_demand():
    page = open_view("wise", seed=str(SEEDS[1]))
    assert [curve["ood"] for curve in sent(page)["curves"]] == [list(c.ood_avg) for c in CURVES if c.seed == SEEDS[1]]
    assert all(curve["spread"] is None for curve in sent(page)["curves"])
    assert any(f"seed {SEEDS[1]} alone" in caption.value for caption in page.caption)


def test_the_answer_comes_after_the_guess():
    page = open_view("wise")
    best = f"{BEST[0].ood:.1f}"
    assert not any(best in m.value for m in page.markdown)
    place = 0 if BEST[0].alpha == 0 else 2 if BEST[0].alpha == 1 else 1
    page.radio(key="wise_guess").set_value(view.GUESSES[place]).run()
    assert any(m.value.startswith("**Right") and best in m.value for m in page.markdown)


def curves_that_end(*ends):
    """Three points each: 80, 90 and then the end."""
    numbers = ((0.0, 0.5, 1.0), (90.0, 95.0, 97.0))
    return [WiseCurve("0" * 16, "finetune", *numbers, (80.0 + s, 90.0 + s, e), seed=s) for s, e in enumerate(ends)]


def test_an_end_within_the_noise_is_as_good_as_right():
    clear, level = view.best_of(curves_that_end(70, 71, 73)), view.best_of(curves_that_end(89, 92, 91))
    assert [view.mark(guess, clear) for guess in view.GUESSES] == ["Look again", "Right", "Look again"]
    assert [view.mark(guess, level) for guess in view.GUESSES] == ["Look again", "Right", "As good as right"]
    assert "more than the noise of 3 seeds" in view.answer([clear])
    assert "about the same, by the noise of 3 seeds" in view.answer([level])
    assert "noise" not in view.answer([view.best_of(curves_that_end(70))])


@pytest.mark.parametrize(("asked", "alpha"), [("0.25", 0.25), ("0", 0.0), ("2", 0.5), ("nan", 0.5), ("x", 0.5)])
def test_a_link_carries_alpha(asked, alpha):
    page = open_view("wise", alpha=asked)
    assert sent(page)["alpha"] == alpha
    # where it stands at first, the address stays short
    assert page.query_params.get("alpha") in ((None,) if alpha == view.START else (f"{alpha:g}", [f"{alpha:g}"]))


@pytest.mark.slow
def test_a_run_of_ones_own_is_asked_for_and_shown(finished):
    page = open_view("wise", run=finished.run_id)
    assert page.selectbox[2].value == finished.run_id
    assert [b.label for b in page.button] == ["Compute the curve of this run"]
    with Store(supervisor().store.path) as store:
        curve = {"run_id": finished.run_id, "method": "ftp", "alphas": [0, 1], "id": [80, 90], "ood_avg": [70, 60]}
        Order("wise", finished.run_id).path(store).write_text(json.dumps(curve))
    page = open_view("wise", run=finished.run_id)
    assert sent(page)["curves"][2]["ood"] == [70.0, 60.0]
    assert sent(page)["curves"][2]["spread"] is None
    assert not page.button


def test_the_copied_python_is_whole():
    code = view.python_of(0.25, None, "digits")
    compile(code, "cell", "exec")
    assert 'resolve("digits", "finetune")' in code
    assert "alphas=[0.0, 0.25, 1.0]" in code
