"""Lesson 01: the input that a matrix answers most strongly. Any input that reaches the top is right."""

from typing import Any

from torch import Tensor

from ftp.lab.exercises._exercise import CLOSE, Exercise, Mistake, numbers, show
from ftp.lab.exercises.mars_norm import matrices, strongest


def judge(given: Any, weight: Tensor) -> str | None:
    """Right is every x with entries in [-1, 1] whose answer is the strongest there is.

    >>> judge([1, -1], numbers([[3, -4], [1, 0]])), judge([1, 1], numbers([[3, -4], [1, 0]]))
    (None, 'the strongest answer is 7, your x = [1, 1] gets 1')
    """
    x = numbers(given)
    if x.shape != weight.shape[1:]:
        return f"x needs {weight.shape[1]} entries, one for each column, yours has shape {tuple(x.shape)}"
    if not x.abs().max() <= 1 + CLOSE:
        return f"every entry of x must lie between -1 and 1, yours is {show(x)}"
    reached, top = (weight @ x).abs().max(), strongest(weight)
    if reached < top * (1 - CLOSE):
        return f"the strongest answer is {show(top)}, your x = {show(x)} gets {show(reached)}"
    return None


EXERCISE = Exercise(
    name="worst_x",
    lesson="01",
    answer="my_worst_x",
    missing="an input with entries in [-1, 1] that the matrix answers most strongly",
    well_done="No search needed: the signs of the longest row are the worst input there is.",
    hints=(
        "first find the row that decides, then make all its terms w_j x_j pull the same way.",
        "w_j x_j is largest, namely |w_j|, when x_j is the sign of w_j.",
        "row = weight[weight.abs().sum(dim=1).argmax()] is the longest row; return its signs.",
    ),
    solution="""
def my_worst_x(weight):
    longest = weight[weight.abs().sum(dim=1).argmax()]
    return longest.sign()
""",
    questions=matrices(),
    judge=judge,
    mistakes=(
        Mistake(
            "my_worst_x = lambda weight: torch.ones_like(weight[0])",
            "an x of ones lets weights of opposite signs cancel; give each entry the sign of its weight.",
        ),
        Mistake(
            "my_worst_x = lambda weight: weight[0].sign()",
            "you took the signs of the first row; the longest row decides.",
        ),
        Mistake(
            "my_worst_x = lambda weight: weight[weight.sum(dim=1).argmax()].sign()",
            "you looked for the row with the largest sum; signs cancel there, so look for the largest sum of sizes.",
        ),
        Mistake(
            "my_worst_x = lambda weight: weight[weight.norm(dim=1).argmax()].sign()",
            "you looked for the row with the largest Euclidean length; the largest sum of sizes decides.",
        ),
        Mistake(
            "my_worst_x = lambda weight: weight[weight.abs().amax(dim=1).argmax()].sign()",
            "you looked for the row with the largest single weight; all weights of a row pull, so add up their sizes.",
        ),
        Mistake(
            "my_worst_x = lambda weight: weight[weight.abs().sum(dim=1).argmax()]",
            "you gave the longest row itself; an x with entries in [-1, 1] is wanted, so take its signs.",
        ),
        Mistake(
            """
def my_worst_x(weight):
    longest = weight[weight.abs().sum(dim=1).argmax()]
    return longest / longest.abs().max().clamp(min=1e-9)
""",
            "you scaled the longest row, which is the worst x on the Euclidean sphere; in the max norm every entry may "
            "go to 1 or -1.",
        ),
        Mistake(
            "my_worst_x = lambda weight: weight.sum(dim=0).sign()",
            "you took the signs of the column sums; one row alone decides, so take its signs.",
        ),
        Mistake(
            "my_worst_x = lambda weight: weight.sign()",
            "you gave the signs of all rows; an input is one vector, so choose the longest row.",
        ),
        Mistake(
            """
def my_worst_x(weight):
    longest = weight[weight.abs().sum(dim=1).argmax()]
    return torch.nn.functional.one_hot(longest.abs().argmax(), longest.numel())
""",
            "you shook one entry only; the others may move too, each by 1.",
        ),
    ),
    variants=(
        "my_worst_x = lambda weight: -weight[weight.abs().sum(dim=1).argmax()].sign()",
        "from ftp.lipschitz import worst_input as my_worst_x",
        """
def my_worst_x(weight):
    longest = max(weight.tolist(), key=lambda row: sum(map(abs, row)))
    return [1 if w > 0 else -1 for w in longest]
""",
    ),
)
