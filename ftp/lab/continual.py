"""Learning tasks in a row: the matrix R of a run, its accuracy A_{1:N} and its forgetting F_N. Without torch.

R[i][n] is the accuracy on task n after i tasks. The paper's appendix has every picture classified by a head that is
cut to the tasks 1..n, so that only what happened to task n's own classes counts, not that more classes compete; that
is the metric "cut accuracy" of a world with tasks. The papers on prompts let all classes seen so far compete.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ftp.lab.record import LabError, RunRecord

Matrix = Sequence[Sequence[float]]  # row i has i + 1 entries
CUT = "cut accuracy"


def forgetting(matrix: Matrix, sizes: Sequence[float] | None = None) -> float:
    """F_N = 1/(N-1) sum_{i=2..N} sum_{n<i} |T_n|/|T_{1:i}| (R_nn - R_in): the paper's appendix, one misprint mended.

    Printed is the weight |T_N|/|T_{1:n}|, which does not sum to at most 1; see `forgetting_as_printed`.
    sizes: test pictures of each task; equal ones if None.

    >>> round(forgetting([[0.90], [0.80, 0.85], [0.70, 0.75, 0.88]]), 6)
    0.075
    """
    return _weighted(matrix, sizes, lambda size, i, n: size[n] / sum(size[: i + 1]))


def forgetting_as_printed(matrix: Matrix, sizes: Sequence[float] | None = None) -> float:
    """F_N with the weight |T_N|/|T_{1:n}| as it is printed: a misprint, here to be compared with.

    >>> round(forgetting_as_printed([[0.90], [0.80, 0.85], [0.70, 0.75, 0.88]]), 6)
    0.175
    """
    return _weighted(matrix, sizes, lambda size, i, n: size[-1] / sum(size[: n + 1]))


def forgetting_step_by_step(matrix: Matrix) -> float:
    """CODA-Prompt's code: 1/(N-1) sum_{i=2..N} 1/(i-1) sum_{n<i} (R_{i-1,n} - R_in), the drop from task to task.

    >>> round(forgetting_step_by_step([[0.90], [0.80, 0.85], [0.70, 0.75, 0.88]]), 6)
    0.1
    """
    rows = _checked(matrix)
    drops = (sum(a - b for a, b in zip(rows[i - 1], rows[i], strict=False)) / i for i in range(1, len(rows)))
    return sum(drops) / (len(rows) - 1)


def forgetting_from_best(matrix: Matrix) -> float:
    """The best that a task ever was minus what it is at the end, mean over all tasks but the last (mammoth, PILOT).

    >>> round(forgetting_from_best([[0.90], [0.80, 0.85], [0.70, 0.75, 0.88]]), 6)
    0.15
    """
    rows = _checked(matrix)
    last = len(rows) - 1
    return sum(max(row[n] for row in rows[n:]) - rows[last][n] for n in range(last)) / last


def accuracy(last: Sequence[float], sizes: Sequence[float] | None = None) -> float:
    """A_{1:N}: the share of all test pictures that are right after the last task; with equal sizes the tasks' mean.

    >>> round(accuracy([0.60, 0.70, 0.88], [100, 50, 50]), 6), round(accuracy([0.60, 0.70, 0.88]), 4)
    (0.695, 0.7267)
    """
    size = list(sizes or [1.0] * len(last))
    return sum(value * n for value, n in zip(last, size, strict=True)) / sum(size)


@dataclass(frozen=True)
class Tasks:
    """What a run in tasks amounts to; in the unit of its metric. NaN-free: a run of one task has no such summary."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    matrix: tuple[tuple[float, ...], ...]  # all classes seen so far compete
    cut: tuple[tuple[float, ...], ...]  # the head cut to the tasks 1..n, as the paper's R
    gamma: tuple[float | None, ...]  # mean over the constrained tensors at the end of each task (Fig. 4)

    @property
    def accuracy(self) -> float:
        """A_{1:N}."""
        return accuracy(self.matrix[-1], self.sizes)

    @property
    def forgetting(self) -> float:
        """F_N."""
        return forgetting(self.cut, self.sizes)

    def variants(self) -> dict[str, float]:
        """Every number that goes by these names, by what it is called here."""
        return {
            "A": self.accuracy,
            "mean of the tasks": accuracy(self.matrix[-1]),
            "F_N": self.forgetting,
            "F_N, weights as printed": forgetting_as_printed(self.cut, self.sizes),
            "forgetting, step by step": forgetting_step_by_step(self.matrix),
            "forgetting, from the best": forgetting_from_best(self.matrix),
        }


def in_tasks(record: RunRecord) -> bool:
    """Whether a run learned tasks in a row."""
    return len(record.phases) > 1 and bool(record.measures.splits("task"))


def matrix_so_far(record: RunRecord, metric: str = "") -> list[list[float]]:
    """R of a run that may still be learning: a row for each task that has ended, in a metric, else in the main one."""
    metric = metric or record.measures.main.name
    ends = {event.phase: event for event in record.evals if event.whole}
    tasks = [name for name in record.phases if record.measures.roles.get(name) == "task"]
    rows: list[list[float]] = []
    for i, event in sorted(ends.items()):
        if i != len(rows) or any(name not in event.scores.get(metric, {}) for name in tasks[: i + 1]):
            break
        rows.append([event.scores[metric][name] for name in tasks[: i + 1]])
    return rows


def tasks_of(record: RunRecord) -> Tasks:
    """The matrices of a finished run, from the evaluations at the end of each of its phases.

    >>> from ftp.lab.record import Settings
    >>> tasks_of(RunRecord("0123456789abcdef", Settings(), phases=("one",)))
    Traceback (most recent call last):
    ftp.lab.record.LabError: run 0123456789abcdef has 1 phase; forgetting needs at least two tasks in a row
    """
    names = record.measures.splits("task")
    if len(record.phases) < 2 or not names:
        count = f"{len(record.phases)} phase" + "s" * (len(record.phases) != 1)
        raise LabError(f"run {record.run_id} has {count}; forgetting needs at least two tasks in a row")
    ends = {event.phase: event for event in record.evals if event.whole}
    if set(ends) != set(range(len(record.phases))):
        raise LabError(f"run {record.run_id} was evaluated after {len(ends)} of {len(record.phases)} tasks")
    order = [name for name in record.phases if name in names]
    last = ends[len(order) - 1]

    def rows(metric: str) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(ends[i].scores[metric][name] for name in order[: i + 1]) for i in range(len(order)))

    return Tasks(
        tuple(order),
        tuple(last.counts[name] for name in order),
        rows(record.measures.main.name),
        rows(CUT if CUT in last.scores else record.measures.main.name),
        tuple(mean_gamma(record, phase) for phase in range(len(order))),
    )


def mean_gamma(record: RunRecord, phase: int) -> float | None:
    """At the last point of a phase; None where no point is kept or nothing is constrained."""
    point = next((p for p in reversed(record.points) if p.phase == phase), None)
    learned = [gamma for gamma in point.gamma if gamma is not None] if point else []
    return sum(learned) / len(learned) if learned else None


def _weighted(
    matrix: Matrix, sizes: Sequence[float] | None, weight: Callable[[Sequence[Any], int, int], float]
) -> float:
    rows = _checked(matrix)
    size = list(sizes or [1.0] * len(rows))
    drops = (weight(size, i, n) * (rows[n][n] - rows[i][n]) for i in range(1, len(rows)) for n in range(i))
    return sum(drops) / (len(rows) - 1)


def _checked(matrix: Matrix) -> list[Sequence[float]]:
    """The rows, each with an entry for every task so far."""
    rows = list(matrix)
    if len(rows) < 2 or any(len(row) <= i for i, row in enumerate(rows)):
        raise LabError("R needs two rows or more, and row i an accuracy for each of the first i tasks")
    return rows
