"""Lesson 02: Lemma 2 without its assumption of linearity. Two ReLU units with the same weight and other biases."""

from typing import Any

from ftp.lab.exercises._exercise import CLOSE, Exercise, Mistake, Question, numbers

BIAS = 1.0
ON = "both units are on there, so the bias drops out."
OFF = "both units are off there, so the difference is zero."
WIDE = "the difference moves on a part of the way only; choose a narrower pair."


def difference(x: float) -> float:
    """relu(x + 1) - relu(x): what fine-tuning has added, with a weight that did not change at all.

    >>> difference(-1), difference(-0.25), difference(5)
    (0.0, 0.75, 1.0)
    """
    return max(0.0, x + BIAS) - max(0.0, x)


def judge(given: Any) -> str | None:
    """Right is every pair for which the difference moves as far as the input does.

    >>> judge((-1, 0)), judge((1, 2))
    (None, 'both units are on there, so the bias drops out.\\n  x = 1 to 2: the difference moves by 0, the input by 1')
    """
    pair = numbers(given)
    if pair.shape != (2,):
        return f"a pair has two numbers, yours has shape {tuple(pair.shape)}"
    x, other = sorted(pair.tolist())
    if x == other:
        return f"the two inputs must differ, yours are both {x:g}"
    moved, distance = abs(difference(x) - difference(other)), other - x
    if moved >= distance * (1 - CLOSE):
        return None
    why = ON if x >= 0 else OFF if other <= -BIAS else WIDE
    return f"{why}\n  x = {x:.4g} to {other:.4g}: the difference moves by {moved:.3g}, the input by {distance:.3g}"


EXERCISE = Exercise(
    name="broken_assumption",
    lesson="02",
    answer="my_pair",
    missing="two inputs between which the difference moves as far as the input",
    well_done="The weights are equal, so every leash is 0, and still the difference is as steep as the network itself.",
    hints=(
        "draw relu(x) and relu(x + 1) above each other: where is only one of them switched on?",
        "left of -1 both are off, right of 0 both are on; in both places the difference does not move.",
        "choose both inputs between -1 and 0, where only the fine-tuned unit is on.",
    ),
    solution="""
my_pair = (-1.0, 0.0)
""",
    questions=(Question(""),),
    judge=judge,
    mistakes=(
        Mistake("my_pair = (1.0, 2.0)", ON),
        Mistake("my_pair = (0.0, 7.0)", ON),
        Mistake("my_pair = (-3.0, -2.0)", OFF),
        Mistake("my_pair = (-2.0, -1.0)", OFF),
        Mistake("my_pair = (2.0, -2.0)", WIDE),
        Mistake("my_pair = (-1.0, 0.5)", WIDE),
    ),
    variants=("my_pair = (-0.75, -0.25)", "my_pair = torch.tensor([0.0, -1.0])", "my_pair = [-0.5, 0]"),
    takes="value",
)
