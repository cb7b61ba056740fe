"""Lesson 04b: positive gradient annealing, Eq. 5. The truth is an `if` for each layer, as Alg. 1 writes it."""

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals, show


def one_by_one(slopes: Tensor, k: float) -> Tensor:
    """Alg. 1, word for word: if the slope is above 0, it counts k times.

    >>> one_by_one(torch.tensor([2.0, -2.0]), 0.5).tolist()
    [1.0, -2.0]
    """
    annealed = []
    for slope in slopes.reshape(-1).tolist():
        if slope > 0:
            slope = k * slope
        annealed.append(slope)
    return torch.tensor(annealed, dtype=torch.float64).reshape(slopes.shape)


def _questions() -> tuple[Question, ...]:
    def ask(slopes: list[float], k: float) -> Question:
        tensor = torch.tensor(slopes, dtype=torch.float64)
        return Question(f"slope = {show(tensor)}, κ = {k:g}", (tensor, k))

    return (
        ask([3.0], 1.0),  # one layer; always a vector, one slope for each
        ask([-3.0], 0.5),
        ask([3.0], 0.5),
        ask([3.0, -3.0, 0.0, 0.2], 0.5),
        ask([3.0, -3.0, 0.0, 0.2], 0.0),
    )


EXERCISE = Exercise(
    name="anneal",
    lesson="04b",
    answer="my_anneal",
    missing="the slopes, those above 0 multiplied by κ",
    well_done="What would lengthen a leash counts in full, what would shorten it only κ times.",
    hints=(
        "γ moves against its slope: which slopes shorten the leash?",
        "slopes above 0 shorten it; those are multiplied by κ, the others stay as they are.",
        "torch.where(condition, a, b) takes a where the condition holds and b elsewhere, for each layer by itself.",
    ),
    solution="""
def my_anneal(slope, k):
    return torch.where(slope > 0, k * slope, slope)
""",
    questions=_questions(),
    judge=equals(one_by_one),
    mistakes=(
        Mistake(
            "my_anneal = lambda slope, k: torch.where(slope < 0, k * slope, slope)",
            "you annealed the negative slopes; γ moves against its slope, so it is the positive ones that shorten it.",
        ),
        Mistake(
            "my_anneal = lambda slope, k: k * slope",
            "you annealed every slope; what would lengthen the leash counts in full.",
        ),
        Mistake(
            "my_anneal = lambda slope, k: slope.clamp(max=k)",
            "κ is not a ceiling but a share: a positive slope is multiplied by it.",
        ),
        Mistake(
            "my_anneal = lambda slope, k: slope.clamp(max=0)",
            "you dropped the positive slopes; that is κ = 0, and other κ keep a share of them.",
        ),
        Mistake(
            "my_anneal = lambda slope, k: torch.where(slope > 0, k * slope, 0 * slope)",
            "the negative slopes are gone; they lengthen the leash, and stay as they are.",
        ),
        Mistake(
            "my_anneal = lambda slope, k: torch.where(slope > 0, (1 - k) * slope, slope)",
            "you took 1 - κ; κ is the share that stays, so κ = 1 changes nothing.",
        ),
        Mistake(
            "my_anneal = lambda slope, k: torch.where(slope > 0, slope - k, slope)",
            "κ is multiplied, not subtracted (Eq. 5).",
        ),
        Mistake(
            """
def my_anneal(slope, k):
    return k * slope if slope > 0 else slope
""",
            "right for one layer; with a slope for each layer, an `if` cannot decide for all at once: use torch.where.",
        ),
        Mistake(
            "my_anneal = lambda slope, k: k * slope if slope.sum() > 0 else slope",
            "one `if` decided for all layers together; each layer has its own leash: use torch.where.",
        ),
    ),
    variants=(
        "from ftp.constraint import anneal as my_anneal",
        "my_anneal = lambda slope, k: k * slope.clamp(min=0) + slope.clamp(max=0)",
        "my_anneal = lambda slope, k: torch.minimum(slope, k * slope)",
        "from ftp.lab.exercises.anneal import one_by_one as my_anneal",
        "my_anneal = lambda slope, k: [k * s if s > 0 else s for s in slope]",
    ),
)
