"""The numbers of learning in tasks: every variant on one worked example, and the matrices of a run."""

import pytest

from ftp.lab.continual import (
    accuracy,
    forgetting,
    forgetting_as_printed,
    forgetting_from_best,
    forgetting_step_by_step,
    tasks_of,
)
from ftp.lab.record import EvalEvent, LabError, RunRecord, Settings, StepEvent
from ftp.lab.summary import Measures, Metric

R = [[0.90], [0.80, 0.85], [0.70, 0.75, 0.88]]


@pytest.mark.parametrize(
    ("variant", "value"),
    [
        (forgetting, 0.075),
        (forgetting_as_printed, 0.175),
        (forgetting_step_by_step, 0.100),
        (forgetting_from_best, 0.150),
    ],
)
def test_the_worked_example(variant: object, value: float) -> None:
    assert callable(variant)
    assert variant(R) == pytest.approx(value)


def test_sizes_weigh_tasks() -> None:
    assert accuracy([0.60, 0.70, 0.88], [100, 50, 50]) == pytest.approx(0.695)
    assert accuracy([0.60, 0.70, 0.88]) == pytest.approx(2.18 / 3)
    # by hand: (100/150 * .1) + (100/200 * .2 + 50/200 * .1), over N - 1 = 2
    assert forgetting(R, [100, 50, 50]) == pytest.approx((0.1 * 2 / 3 + 0.1 + 0.025) / 2)
    # as printed: |T_3| = 50 over |T_1| = 100 and |T_{1:2}| = 150
    assert forgetting_as_printed(R, [100, 50, 50]) == pytest.approx((0.05 + 0.1 + 0.1 / 3) / 2)


def test_getting_better_later_is_negative_forgetting() -> None:
    better = [[0.5], [0.7, 0.8]]
    assert forgetting(better) < 0
    assert forgetting_step_by_step(better) == pytest.approx(-0.2)
    assert forgetting_from_best(better) == 0


def test_a_matrix_needs_a_row_for_every_task() -> None:
    for matrix in ([[0.9]], [[0.9], [0.8]], []):
        with pytest.raises(LabError, match="R needs two rows or more"):
            forgetting(matrix)


def run(tasks: tuple[str, ...] = ("b", "a")) -> RunRecord:
    """Two tasks; the one that comes first in time is not the first in the world's list."""
    metrics = (Metric("accuracy"), Metric("cut accuracy"))
    evals = (
        EvalEvent(1, {"accuracy": {"b": 10.0}, "cut accuracy": {"b": 10.0}}, counts={"b": 9}),  # small: does not count
        EvalEvent(2, {"accuracy": {"b": 90.0}, "cut accuracy": {"b": 90.0}}, counts={"b": 30}, whole=True),
        EvalEvent(
            4,
            {"accuracy": {"a": 80.0, "b": 50.0}, "cut accuracy": {"a": 80.0, "b": 70.0}},
            counts={"a": 10, "b": 30},
            whole=True,
            final=True,
            phase=1,
        ),
    )
    points = (
        StepEvent(1, 1.0, 0.1, (0.1, None), (0.0, 0.0), (0.0, None)),
        StepEvent(2, 1.0, 0.1, (0.3, None), (0.0, 0.0), (0.0, None)),
        StepEvent(4, 1.0, 0.1, (0.2, None), (0.0, 0.0), (0.0, None), phase=1),
    )
    measures = Measures(metrics, {"a": "task", "b": "task"})
    return RunRecord("0" * 16, Settings(), "done", evals=evals, points=points, measures=measures, phases=tasks)


def test_the_matrices_of_a_run() -> None:
    tasks = tasks_of(run())
    assert tasks.names == ("b", "a")
    assert tasks.sizes == (30, 10)
    assert tasks.matrix == ((90.0,), (50.0, 80.0))
    assert tasks.cut == ((90.0,), (70.0, 80.0))
    assert tasks.gamma == (0.3, 0.2)
    assert tasks.accuracy == pytest.approx(57.5)
    assert tasks.forgetting == pytest.approx(15.0)  # 30 / 40 of 20
    assert tasks.variants() == pytest.approx(
        {
            "A": 57.5,
            "mean of the tasks": 65.0,
            "F_N": 15.0,
            "F_N, weights as printed": 20 / 3,
            "forgetting, step by step": 40.0,
            "forgetting, from the best": 40.0,
        }
    )


def test_a_run_that_is_not_through_says_so() -> None:
    with pytest.raises(LabError, match="was evaluated after 2 of 3 tasks"):
        tasks_of(run(("b", "a", "c")))
