"""Lesson 03: how much of its way each row may keep, the factor of Eq. 10."""

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals, show


def by_cases(norms: Tensor, gamma: float) -> Tensor:
    """Row by row in words: within reach keeps all, beyond it keeps what the leash allows.

    >>> by_cases(torch.tensor([4.0, 0.5]), 1.0)
    tensor([0.2500, 1.0000])
    """
    return torch.tensor([1.0 if length <= gamma else gamma / length for length in norms.tolist()])


def _question(norms: list[float], gamma: float) -> Question:
    return Question(f"rows {show(norms)} away, γ = {gamma:g}", (torch.tensor(norms, dtype=torch.float64), gamma))


EXERCISE = Exercise(
    name="shrink_factor",
    lesson="03",
    answer="my_shrink",
    missing="min(1, γ / length) for each row",
    well_done="Rows within reach keep all of their way, the others just enough.",
    hints=(
        "a row 4 away on a leash of 1 may keep a quarter of its way; one 0.5 away may keep all of it.",
        "gamma / norms is the share; but a row within reach would get more than 1, and must get 1.",
        "(gamma / norms).clamp(max=1), and think about a row that has not moved at all.",
    ),
    solution="""
def my_shrink(norms, gamma):
    return (gamma / (norms + 1e-8)).clamp(max=1)
""",
    questions=(
        _question([4.0], 1.0),
        _question([4.0, 0.5], 1.0),
        _question([2.0, 8.0, 3.0, 0.5], 2.0),
        _question([0.0, 3.0], 1.5),
        _question([2.0, 1.0], 0.0),
    ),
    judge=equals(by_cases),
    mistakes=(
        Mistake(
            "my_shrink = lambda norms, gamma: gamma / (norms + 1e-8)",
            "a row within reach got a factor above 1, so it would be pushed out to the end of its leash; "
            "a leash pulls, it never pushes.",
        ),
        Mistake(
            "my_shrink = lambda norms, gamma: gamma / norms",
            "a row within reach got a factor above 1, so it would be pushed out to the end of its leash; "
            "a leash pulls, it never pushes.",
        ),
        Mistake(
            "my_shrink = lambda norms, gamma: (norms / (gamma + 1e-8)).clamp(max=1)",
            "the fraction is upside down; a row that is far keeps little, so the length is below.",
        ),
        Mistake(
            "my_shrink = lambda norms, gamma: (gamma / norms.max()).clamp(max=1).expand_as(norms)",
            "all rows got the factor of the longest one; each row has its own leash.",
        ),
        Mistake(
            "my_shrink = lambda norms, gamma: (gamma / (norms + 1e-8)).clamp(min=1)",
            "clamp(min=1) keeps what is above 1; what must not go above 1 needs clamp(max=1).",
        ),
        Mistake(
            "my_shrink = lambda norms, gamma: (gamma / norms).clamp(min=1)",
            "clamp(min=1) keeps what is above 1; what must not go above 1 needs clamp(max=1).",
        ),
        Mistake(
            "my_shrink = lambda norms, gamma: 1 - (gamma / (norms + 1e-8)).clamp(max=1)",
            "that is the share of its way that a row loses; the share that it keeps is wanted, without the 1 -.",
        ),
        Mistake(
            "my_shrink = lambda norms, gamma: norms.clamp(max=gamma)",
            "that is how far each row may be, not which share of its way it keeps; divide by how far it was.",
        ),
        Mistake(
            "my_shrink = lambda norms, gamma: torch.where(norms > gamma, gamma, 1.0)",
            "gamma is a length, not a share; a row beyond reach keeps gamma / length.",
        ),
    ),
    variants=(
        "my_shrink = lambda norms, gamma: (gamma / norms).clamp(max=1)",
        "my_shrink = lambda norms, gamma: torch.minimum(torch.ones_like(norms), gamma / (norms + 1e-12))",
        "my_shrink = lambda norms, gamma: [min(1, gamma / n) if n else 1 for n in norms.tolist()]",
        "from ftp.projection import shrink as my_shrink",
    ),
)
