"""Lesson 06: which methods are not beaten in both accuracies by another one."""

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals
from ftp.lab.recordings import by_method, recorded
from ftp.lab.summary import average


def by_sweeping(points: Tensor) -> list[float]:
    """From the best at home to the worst: who is better elsewhere than all that are better at home stays.

    >>> by_sweeping(torch.tensor([[3.0, 1.0], [2.0, 2.0], [1.0, 1.5]]))
    [1.0, 1.0, 0.0]
    """
    rows = [tuple(row) for row in points.tolist()]
    best, stays = float("-inf"), set()
    for row in sorted(set(rows), reverse=True):  # equal at home: the better elsewhere comes first
        if row[1] > best:
            best = row[1]
            stays.add(row)
    return [float(row in stays) for row in rows]


def recorded_means() -> Tensor:
    """The mean accuracies at home and elsewhere of all recorded methods, in their order.

    >>> recorded_means().shape
    torch.Size([11, 2])
    """
    means = []
    for runs in by_method(recorded()).values():
        results = [run.result for run in runs if run.result is not None]
        means.append([average([result[name] for result in results]) for name in ("id", "ood_avg")])
    return torch.tensor(means)


def _question(text: str, rows: list[list[float]]) -> Question:
    return Question(text, (torch.tensor(rows, dtype=torch.float64),))


_SOLUTION = """
def my_frontier(points):
    a, b = points[:, None], points[None]
    beats = (a >= b).all(2) & (a > b).any(2)  # the first index beats the second
    return ~beats.any(0)
"""
_RIGHT = _SOLUTION.replace("my_frontier", "right")

EXERCISE = Exercise(
    name="frontier",
    lesson="06",
    answer="my_frontier",
    missing="True for each row that no other row beats",
    well_done="What is left is a choice between home and elsewhere; everything else is simply worse than something.",
    hints=(
        "take one method and look for another that is at least as good in both columns, and better in one.",
        "compare all pairs at once: points[:, None] >= points[None] has the shape (row, other, 2).",
        "with a = points[:, None] and b = points[None], beats = (a >= b).all(2) & (a > b).any(2) says at [i, j] that i "
        "beats j; nobody beats j if column j has no True.",
    ),
    solution=_SOLUTION,
    questions=(
        _question("(98, 60) and (95, 87)", [[98, 60], [95, 87]]),
        _question("(98, 60), (95, 87) and (94, 80)", [[98, 60], [95, 87], [94, 80]]),
        _question("(98, 80), (98, 85) and (90, 85)", [[98, 80], [98, 85], [90, 85]]),
        _question("(97, 85) twice and (98, 80)", [[97, 85], [97, 85], [98, 80]]),
        _question("(98, 60), (97.9, 61), (95, 62) and (96, 70)", [[98, 60], [97.9, 61], [95, 62], [96, 70]]),
        Question("the recorded methods", (recorded_means(),)),
    ),
    judge=equals(by_sweeping),
    mistakes=(
        Mistake(
            "my_frontier = lambda points: (points == points.max(0).values).any(1)",
            "you kept the best of each column; between them may be a method that no other beats in both.",
        ),
        Mistake(
            "my_frontier = lambda points: points.sum(1) == points.sum(1).max()",
            "you added the two accuracies; a frontier does not weigh one against the other.",
        ),
        Mistake(
            "my_frontier = lambda points: ~(points[:, None] > points[None]).all(2).any(0)",
            "who is equal in one column and worse in the other is beaten too; you asked for better in both.",
        ),
        Mistake(
            "my_frontier = lambda points: "
            "~((points[:, None] >= points[None]).all(2) & ~torch.eye(len(points), dtype=torch.bool)).any(0)",
            "of two equal methods neither beats the other; both stay.",
        ),
        Mistake(
            "my_frontier = lambda points: ~(points[:, None] >= points[None]).all(2).any(0)",
            "with >= alone every method beats itself, so nobody is left; who beats must also be better in one column.",
        ),
        Mistake(
            "my_frontier = lambda points: (points[:, None] >= points[None]).all(2).all(1)",
            "you kept who beats everybody; on the frontier is who is beaten by nobody.",
        ),
        Mistake(
            "my_frontier = lambda points: ((points[:, None] >= points[None]).all(2) & "
            "(points[:, None] > points[None]).any(2)).any(0)",
            "you marked the methods that are beaten; the frontier is the others.",
        ),
        Mistake(
            "my_frontier = lambda points: ~((points[:, None] >= points[None]).all(2) & "
            "(points[:, None] > points[None]).any(2)).any(1)",
            "you kept who beats nobody; on the frontier is who is beaten by nobody: look along the other axis.",
        ),
        *(
            Mistake(
                f"{_RIGHT}\nmy_frontier = lambda points: right(points).nonzero(){shape}",
                "you gave the numbers of the rows; give one True or False for each row.",
            )
            for shape in ("", ".flatten()")
        ),
    ),
    variants=(
        "my_frontier = lambda points: [not any((q >= p).all() and (q > p).any() for q in points) for p in points]",
        "my_frontier = lambda points: [int(not any(q != p and q[0] >= p[0] and q[1] >= p[1] "
        "for q in points.tolist())) for p in points.tolist()]",
    ),
)
