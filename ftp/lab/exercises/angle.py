"""Lesson 15: the angle between two directions, also where they nearly agree. The truth asks sine and cosine at once."""

import math

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals


def by_both(a: Tensor, b: Tensor) -> list[float]:
    """In degrees, of each pair of rows: the angle whose sine goes with |a x b| and whose cosine goes with a . b.

    >>> by_both(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 2.0, 0.0]]))
    [90.0]
    """
    rows = []
    for (x, y, z), (u, v, w) in zip(a.double().tolist(), b.double().tolist(), strict=True):
        sine = math.hypot(y * w - z * v, z * u - x * w, x * v - y * u)
        rows.append(math.degrees(math.atan2(sine, x * u + y * v + z * w)))
    return rows


def _case(text: str, *pairs: tuple[list[float], list[float]]) -> Question:
    """A question with a row for each pair."""
    return Question(text, (torch.tensor([a for a, _ in pairs]), torch.tensor([b for _, b in pairs])))


X = [1.0, 0.0, 0.0]


UNIT = "    a, b = a / a.norm(dim=1, keepdim=True), b / b.norm(dim=1, keepdim=True)\n"
EXERCISE = Exercise(
    name="angle",
    lesson="15",
    answer="my_angle",
    missing="the angle between rows of a and of b, in degrees, exact also where it is tiny",
    well_done="The cosine is flat where two directions agree, so that its inverse cannot tell small angles apart.",
    hints=(
        "arccos of the cosine is right on paper; look at its answer for (1, 0, 0) and (1, 0.0001, 0) in float32.",
        "draw both unit vectors from one point: |a - b| is 2 sin(half the angle), and |a + b| is 2 cos(half of it).",
        "make both unit, then 2 * torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1)), in degrees.",
    ),
    solution="""
def my_angle(a, b):
    a = a / a.norm(dim=1, keepdim=True)
    b = b / b.norm(dim=1, keepdim=True)
    half = torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1))
    return torch.rad2deg(2 * half)
""",
    questions=(
        _case("(1, 0, 0) and (0, 1, 0)", (X, [0.0, 1.0, 0.0])),
        _case("(3, 0, 0) and (1, 1, 0)", ([3.0, 0.0, 0.0], [1.0, 1.0, 0.0])),
        _case("(1, 2, -1) and (-2, 0, 1)", ([1.0, 2.0, -1.0], [-2.0, 0.0, 1.0])),
        _case(
            "two rows, (4, 0, 0) and (0, 0, 1), (1, 1, 0) and (2, 2, 0)",
            ([4.0, 0, 0], [0, 0, 1.0]),
            ([1.0, 1.0, 0], [2.0, 2.0, 0]),
        ),
        _case("(1, 0, 0) and (-1, 0, 0)", (X, [-1.0, 0.0, 0.0])),
        _case("(1, 0, 0) and (1, 0.0001, 0): nearly the same", (X, [1.0, 0.0001, 0.0])),
        _case("(1, 0, 0) and (-1, 0.0003, 0): nearly opposite", (X, [-1.0, 0.0003, 0.0])),
    ),
    judge=equals(by_both),
    mistakes=(
        Mistake(
            "def my_angle(a, b):\n" + UNIT + "    return torch.rad2deg((a * b).sum(dim=1).clamp(-1, 1).arccos())",
            "on paper that is right; but near 1 the cosine is flat, and float32 cannot tell it from 1.",
        ),
        Mistake(
            "def my_angle(a, b):\n" + UNIT + "    return 2 * torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1))",
            "that is in radians; a right angle has 90 degrees.",
        ),
        Mistake(
            "def my_angle(a, b): return torch.rad2deg(2 * torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1)))",
            "you did not make them unit; the angle must not depend on how long a vector is.",
        ),
        Mistake(
            "def my_angle(a, b):\n" + UNIT + "    return torch.rad2deg(torch.atan2((a - b).norm(dim=1), (a + b)"
            ".norm(dim=1)))",
            "that is half the angle: |a - b| and |a + b| are the sine and the cosine of the half.",
        ),
        Mistake(
            "def my_angle(a, b):\n"
            + UNIT
            + "    return torch.rad2deg(torch.linalg.cross(a, b).norm(dim=1).clamp(max=1)"
            ".arcsin())",
            "the sine alone cannot tell an angle from what it lacks to 180°.",
        ),
        Mistake(
            "def my_angle(a, b):\n" + UNIT + "    return torch.rad2deg((a - b).norm(dim=1))",
            "that is the chord between them, a straight line; the angle is the arc.",
        ),
        Mistake(
            "def my_angle(a, b):\n" + UNIT + "    return torch.rad2deg((a * b).sum(dim=1).abs().clamp(max=1).arccos())",
            "you took the size of the cosine; a normal that points the other way is 180° off, not 0°.",
        ),
        Mistake(
            "def my_angle(a, b): return torch.rad2deg((a * b).sum(dim=1).clamp(-1, 1).arccos())",
            "a . b is the cosine of unit vectors alone: make them unit first. Then look at small angles.",
        ),
        Mistake(
            "def my_angle(a, b):\n"
            + UNIT
            + "    return torch.rad2deg(2 * ((a - b).norm(dim=1) / 2).clamp(max=1).arcsin())",
            "near 180° the sine of the half angle is flat, as the cosine is near 0°; it takes both to see every angle.",
        ),
        Mistake(
            "def my_angle(a, b):\n    a, b = a / a.norm(), b / b.norm()\n"
            "    return torch.rad2deg(2 * torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1)))",
            "a.norm() is the length of all rows together; each row has a length of its own: norm(dim=1, keepdim=True).",
        ),
        Mistake(
            "def my_angle(a, b):\n"
            + UNIT
            + "    return torch.rad2deg(2 * torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1))).mean()",
            "you took the mean over the rows; an angle for each pair is asked.",
        ),
    ),
    variants=(
        "from ftp.lab.worlds._dense import angles as my_angle",
        """
def my_angle(a, b):
    a, b = a.double(), b.double()
    return torch.rad2deg(torch.atan2(torch.linalg.cross(a, b).norm(dim=1), (a * b).sum(dim=1)))
""",
    ),
)
