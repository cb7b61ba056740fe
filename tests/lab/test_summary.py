"""What an evaluation amounts to: directions, gains, roles, and what is not there."""

import json
import math
import statistics
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftp.lab.record import EvalEvent, LabError, RunRecord, Settings, result_of
from ftp.lab.summary import Measures, Metric, Summary, average, measures_from_dict, summarise

ACCURACY = Metric("accuracy")
ANGLE = Metric("angle", "°", higher_is_better=False, digits=1, high=180.0)
MEASURES = Measures(
    (ACCURACY, Metric("ece", higher_is_better=False)),
    {"train": "train", "val": "val", "id": "home", "sketch": "shift", "typeset": "shift", "old": "task", "new": "task"},
)
values = st.floats(0.1, 100.0)


def test_a_gain_is_positive_in_either_direction() -> None:
    assert (ACCURACY.gain(90.0, 88.0), ACCURACY.gain(88.0, 90.0)) == (2.0, -2.0)
    assert (ANGLE.gain(10.0, 12.0), ANGLE.gain(12.0, 10.0)) == (2.0, -2.0)
    assert ACCURACY.relative_gain(90.0, 80.0) == pytest.approx(12.5)
    assert ANGLE.relative_gain(70.0, 80.0) == pytest.approx(12.5)
    assert ANGLE.relative_gain(90.0, 80.0) == pytest.approx(-12.5)


@given(values, values)
def test_gains_turn_with_the_direction_and_with_the_order(mine: float, other: float) -> None:
    lower = Metric("error", higher_is_better=False)
    assert ACCURACY.gain(mine, other) == -lower.gain(mine, other) == -ACCURACY.gain(other, mine)
    # the paper's delta, Tab. 1: 100 (score / score of fine-tuning - 1)
    assert ACCURACY.relative_gain(mine, other) == pytest.approx(100 * (mine / other - 1), rel=1e-9, abs=1e-9)
    assert lower.relative_gain(mine, other) == pytest.approx(-100 * (mine / other - 1), rel=1e-9, abs=1e-9)


def test_against_nothing_there_is_no_relative_gain() -> None:
    assert math.isnan(ACCURACY.relative_gain(5.0, 0.0))
    assert math.isnan(ANGLE.relative_gain(5.0, 0.0))
    assert math.isnan(ACCURACY.relative_gain(math.nan, 5.0))


def test_the_best_follows_the_direction_and_leaves_out_what_is_no_number() -> None:
    assert ACCURACY.best([70.0, math.nan, 90.0]) == 90.0
    assert ANGLE.best([70.0, math.nan, 90.0]) == 70.0
    assert math.isnan(ACCURACY.best([]))
    assert math.isnan(ANGLE.best([math.nan, math.inf]))


def test_values_as_text() -> None:
    assert (ACCURACY.text(97.249), ANGLE.text(12.34), ANGLE.text(None), ANGLE.text(math.nan)) == (
        *("97.25", "12.3", "-", "-"),
    )
    assert (ACCURACY.with_unit(97.249), ANGLE.with_unit(12.34)) == ("97.25 %", "12.3°")
    assert Metric("loss", "").with_unit(0.5) == "0.50"
    assert (Metric("loss", "").axis, Metric("loss", "", higher_is_better=False).axis) == (
        *("loss", "loss (lower is better)"),
    )


def test_each_role_has_its_place() -> None:
    main = {"train": 99.0, "val": 96.0, "id": 97.0, "sketch": 70.0, "typeset": 90.0, "old": 50.0, "new": 60.0}
    summary = summarise({"accuracy": main, "ece": {"id": 3.0}}, MEASURES)
    assert (summary.home, summary.val) == (97.0, 96.0)
    assert (summary.shifts, summary.shift_mean) == ({"sketch": 70.0, "typeset": 90.0}, 80.0)
    assert (summary.tasks, summary.task_mean) == ({"old": 50.0, "new": 60.0}, 55.0)
    assert MEASURES.home == "id"
    assert MEASURES.splits("shift", "home") == ("id", "sketch", "typeset")  # in the order of tables


def test_the_order_is_that_of_the_world_and_the_metric_the_first_one() -> None:
    scores = {"ece": {"id": 3.0, "sketch": 4.0}, "accuracy": {"typeset": 90.0, "sketch": 70.0, "id": 97.0}}
    summary = summarise(scores, MEASURES)
    assert (list(summary.shifts), summary.home) == (["sketch", "typeset"], 97.0)


def test_what_is_missing_is_no_number_and_no_zero() -> None:
    part = summarise(
        {"accuracy": {"sketch": 70.0, "moon": 1.0}}, MEASURES
    )  # a shift that was not looked at, a stranger
    assert (part.shifts, part.shift_mean, part.tasks) == ({"sketch": 70.0}, 70.0, {})
    assert math.isnan(part.home)
    assert math.isnan(part.val)
    assert math.isnan(part.task_mean)
    for nothing in (summarise({}, MEASURES), summarise({"accuracy": {"id": 1.0}}, Measures())):
        assert all(map(math.isnan, (nothing.home, nothing.val, nothing.shift_mean, nothing.task_mean)))
    assert math.isnan(summarise({"accuracy": {"sketch": math.nan, "typeset": 90.0}}, MEASURES).shift_mean)
    assert not Measures()
    assert Measures().home == ""
    assert Measures().main.name == "score"


def test_a_result_without_shifts_says_none_and_not_nan() -> None:
    plain = Measures((ANGLE,), {"train": "train", "id": "home"})
    final = EvalEvent(1, {"angle": {"id": 12.0}}, final=True)
    result = result_of(RunRecord("0" * 16, Settings("plain"), "done", evals=(final,), measures=plain))
    assert (result["id"], result["val"], result["ood"], result["ood_avg"], result["corruption_avg"]) == (
        *(12.0, None, {}, None, None),
    )
    assert result["metric"] == {"name": "angle", "unit": "°", "higher_is_better": False}
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    running = RunRecord("0" * 16, Settings("plain"), "running", measures=plain)
    assert math.isnan(running.summary().home)
    with pytest.raises(LabError):
        result_of(running)


@given(st.dictionaries(st.text(max_size=3), values, min_size=1, max_size=6))
def test_a_mean_is_the_plain_one(numbers: dict[str, float]) -> None:
    assert average(numbers) == pytest.approx(statistics.fmean(numbers.values()))
    assert average(numbers.values()) == average(numbers)
    assert Summary(math.nan, math.nan, numbers, {}).shift_mean == average(numbers)


def test_measures_survive_json() -> None:
    for measures in (MEASURES, Measures((ANGLE,), {"id": "home"}), Measures()):
        again = measures_from_dict(json.loads(json.dumps(measures.as_dict())))
        assert again == measures
        assert list(again.roles) == list(measures.roles)


def test_it_needs_nothing() -> None:
    code = "import sys, ftp.lab.summary; print(sorted({'torch', 'numpy', 'plotly'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_name_with_a_capital_inside_stays_as_it_is() -> None:
    assert [Metric(name).title for name in ("accuracy", "mean angle", "mIoU", "x")] == [
        *("Accuracy", "Mean angle", "mIoU", "x"),
    ]
