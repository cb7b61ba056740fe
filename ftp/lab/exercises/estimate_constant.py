"""Lesson 01: a lower bound of the Lipschitz constant of a function that can only be called, Eq. 14 over some pairs."""

from collections.abc import Callable

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals


def one_by_one(function: Callable[[Tensor], Tensor], x: Tensor, other: Tensor) -> float:
    """The steepest of the pairs, by a loop over pairs and entries; 0 if no pair differs.

    >>> one_by_one(lambda x: 3 * x, torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2))
    3.0
    """
    steepest = 0.0
    for left, right in zip(x, other, strict=True):
        a, b = function(left[None])[0].tolist(), function(right[None])[0].tolist()
        moved = max(abs(p - q) for p, q in zip(a, b, strict=True))
        distance = max(abs(p - q) for p, q in zip(left.tolist(), right.tolist(), strict=True))
        if distance > 0:
            steepest = max(steepest, moved / distance)
    return steepest


def _questions() -> tuple[Question, ...]:
    random = torch.Generator().manual_seed(2)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    first, second, bias = draw(4, 6), draw(3, 4), draw(4)
    pairs = [(draw(1, 6), draw(1, 6)), (draw(20, 6), draw(20, 6))]
    # two neighbours, two strangers and one pair that is the same point twice
    mixed = torch.zeros(3, 6, dtype=torch.float64)
    mixed[0, 0], mixed[1] = 0.01, 5.0
    start = torch.zeros(3, 6, dtype=torch.float64)
    return (
        Question("h(x) = 3x, one pair", (_triple, *pairs[0])),
        Question("h(x) = 3x + 10, one pair", (lambda x: 3 * x + 10, *pairs[0])),
        Question("a linear layer, 20 pairs", (lambda x: x @ first.T + bias, *pairs[1])),
        Question("a network with ReLU, 20 pairs", (lambda x: (x @ first.T + bias).relu() @ second.T, *pairs[1])),
        Question(
            "h(x) = sin(9x), pairs near and far, one of two equal points", (lambda x: (9 * x).sin(), mixed, start)
        ),
    )


def _triple(x: Tensor) -> Tensor:
    return 3 * x


def _code(moved: str = "h(x) - h(other)", drop: bool = True, last: str = "(moved / distance).max()") -> str:
    """A wrong answer: the solution with one of its lines changed; with or without a look at equal points."""
    lines = [f"moved, distance = ({moved}).abs().amax(dim=1), (x - other).abs().amax(dim=1)"]
    lines += ["moved, distance = moved[distance > 0], distance[distance > 0]"] if drop else []
    return "\n    ".join(["def my_estimate(h, x, other):", *lines, f"return {last}"])


# each of these is made with and without care for equal points
_BOTH = (
    (
        {"moved": "h(x - other)"},
        "you put the difference x - other into h; let h answer both points, then take h(x) - h(other).",
    ),
    (
        {"last": "(distance / moved).max()"},
        "the fraction is upside down; the constant is how far the output moves per move of the input.",
    ),
    (
        {"last": "moved / distance"},
        "you gave one ratio per pair; the constant is one number, the largest of them.",
    ),
)

EXERCISE = Exercise(
    name="estimate_constant",
    lesson="01",
    answer="my_estimate",
    missing="the largest ratio of moved output to moved input over the given pairs",
    well_done="Pairs can only prove that the constant is at least this large, never that it is no larger.",
    hints=(
        "for each pair: how far did the output move, how far did the input move, both by their largest entry?",
        "(h(x) - h(other)).abs().amax(dim=1) is how far each output moved; the input works the same way.",
        "divide the two and keep the largest, but leave out pairs of equal points: 0 / 0 is not a number.",
    ),
    solution="""
def my_estimate(h, x, other):
    moved = (h(x) - h(other)).abs().amax(dim=1)
    distance = (x - other).abs().amax(dim=1)
    apart = distance > 0
    return (moved[apart] / distance[apart]).max()
""",
    questions=_questions(),
    judge=equals(one_by_one),
    mistakes=(
        Mistake(
            "my_estimate = lambda h, x, other: ((h(x) - h(other)).norm(dim=1) / (x - other).norm(dim=1)).max()",
            "you measured Euclidean lengths; here both sides are measured by their largest entry.",
        ),
        Mistake(
            """
def my_estimate(h, x, other):
    moved, distance = (h(x) - h(other)).norm(dim=1), (x - other).norm(dim=1)
    return (moved[distance > 0] / distance[distance > 0]).max()
""",
            "you measured Euclidean lengths; here both sides are measured by their largest entry.",
        ),
        Mistake(
            """
def my_estimate(h, x, other):
    moved, distance = (h(x) - h(other)).abs().amax(dim=1), (x - other).abs().amax(dim=1)
    return (moved[distance > 0] / distance[distance > 0]).mean()
""",
            "you took the average pair; the constant must hold for the worst one.",
        ),
        Mistake(
            "my_estimate = lambda h, x, other: (h(x) - h(other)).abs().max() / (x - other).abs().max()",
            "you divided the largest move by the largest distance, which may come from two different pairs; divide "
            "within each pair first.",
        ),
        Mistake(
            """
def my_estimate(h, x, other):
    ratio = (h(x) - h(other)).abs().amax(dim=1) / (x - other).abs().amax(dim=1)
    return ratio.max()
""",
            "a pair of equal points gives 0 / 0, which is not a number; leave such pairs out.",
        ),
        Mistake(
            "my_estimate = lambda h, x, other: (h(x).abs().amax(dim=1) / x.abs().amax(dim=1)).max()",
            "you compared h(x) with x itself; compare how far h(x) and h(other) are apart.",
        ),
        Mistake(
            "my_estimate = lambda h, x, other: (h(x) - h(other)).abs().max()",
            "you measured how far the output moves, but not for how much shaking; divide by the input's distance.",
        ),
        Mistake(
            """
def my_estimate(h, x, other):
    moved, distance = (h(x) - h(other)).amax(dim=1), (x - other).amax(dim=1)
    return (moved[distance != 0] / distance[distance != 0]).max()
""",
            "you took the largest entry with its sign; the max norm is the largest size: abs() first.",
        ),
        Mistake(
            """
def my_estimate(h, x, other):
    apart = (x != other).all(dim=1)
    moved, distance = (h(x) - h(other)).abs().amax(dim=1), (x - other).abs().amax(dim=1)
    return (moved[apart] / distance[apart]).max()
""",
            "you dropped pairs that share one entry; only two points that are equal in every entry are no pair.",
        ),
        *(Mistake(_code(**change, drop=drop), says) for change, says in _BOTH for drop in (True, False)),
    ),
    variants=(
        "from ftp.lab.exercises.estimate_constant import one_by_one as my_estimate",
        """
from ftp.lipschitz import ratio
my_estimate = lambda h, x, other: ratio(h, x, other).max()
""",
        """
def my_estimate(h, x, other):
    ratio = (h(x) - h(other)).abs().amax(dim=1) / (x - other).abs().amax(dim=1)
    return ratio.nan_to_num(0.0).max()
""",
    ),
)
