"""Lesson 01: the MARS norm of a matrix, Eq. 15. The truth is found by trying every sign vector."""

import itertools

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals, show


def strongest(weight: Tensor) -> Tensor:
    """The largest entry of |Wx| over all x of ones and minus ones, one by one.

    >>> strongest(torch.tensor([[3.0, -4.0], [1.0, 0.0]]))
    tensor(7.)
    """
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=weight.shape[1])), dtype=weight.dtype)
    return (signs @ weight.T).abs().max()


def matrices() -> tuple[Question, ...]:
    """From a matrix that fits in the head to random ones."""
    small = [[[3.0, -4.0, 2.0], [1.0, 1.0, -1.0]], [[1.0, 1.0], [-2.0, -3.0]], [[-5.0]], [[0.0, 0.0]]]
    # here the longest row has neither the largest weight nor, in the first, the largest Euclidean length
    small += [[[1.0, 1.0, -1.0], [2.0, 0.0, 0.0]], [[3.0, -3.0], [4.0, 0.0]]]
    tensors = [torch.tensor(rows, dtype=torch.float64) for rows in small]
    random = torch.Generator().manual_seed(1)
    tensors += [torch.randn(*shape, generator=random, dtype=torch.float64) for shape in ((5, 7), (4, 9), (9, 4))]
    texts = [f"W = {show(t)}" if t.numel() < 7 else f"a random W of shape {tuple(t.shape)}" for t in tensors]
    return tuple(Question(text, (t,)) for text, t in zip(texts, tensors, strict=True))


EXERCISE = Exercise(
    name="mars_norm",
    lesson="01",
    answer="my_mars_norm",
    missing="the largest absolute row sum of a matrix",
    well_done="One row decides: the one whose weights have the largest total size.",
    hints=(
        "take one row at a time: how large can the sum w_1 x_1 + w_2 x_2 + ... get if each x is 1 or -1?",
        "each x can have the sign of its weight, so a row reaches |w_1| + |w_2| + ...; the largest row counts.",
        "weight.abs() gives the sizes, .sum(dim=1) adds them up within each row; keep the largest.",
    ),
    solution="""
def my_mars_norm(weight):
    return weight.abs().sum(dim=1).max()
""",
    questions=matrices(),
    judge=equals(strongest),
    mistakes=(
        Mistake(
            "my_mars_norm = lambda weight: weight.abs().sum()",
            "you took the norm of the whole tensor; MARS is per row.",
        ),
        Mistake(
            "my_mars_norm = lambda weight: weight.abs().sum(dim=0).max()",
            "you added up the columns; a row makes one output, so add up the rows (dim=1).",
        ),
        Mistake(
            "my_mars_norm = lambda weight: weight.sum(dim=1).max()",
            "you added up the weights with their signs, so they cancel; take the sizes first: weight.abs().",
        ),
        Mistake(
            "my_mars_norm = lambda weight: weight.sum(dim=1).abs().max()",
            "you took the size of the sum; MARS is the sum of the sizes: abs() before sum().",
        ),
        Mistake(
            "my_mars_norm = lambda weight: weight.norm(dim=1).max()",
            "you took the Euclidean length of the rows; the max norm needs their sum of sizes.",
        ),
        Mistake(
            "my_mars_norm = lambda weight: torch.linalg.matrix_norm(weight, 2)",
            "you took the spectral norm, which belongs to the Euclidean length; the max norm needs row sums.",
        ),
        Mistake(
            "my_mars_norm = lambda weight: weight.norm()",
            "you took the Frobenius norm, the root of the sum of all squares; the max norm needs row sums.",
        ),
        Mistake(
            "my_mars_norm = lambda weight: weight.abs().max()",
            "you took the largest single weight; all weights of a row can pull together.",
        ),
        Mistake(
            "my_mars_norm = lambda weight: weight.abs().sum(dim=1).mean()",
            "you took the average row; the worst row decides.",
        ),
        Mistake(
            "my_mars_norm = lambda weight: weight.abs().sum(dim=1)",
            "you gave all row sums; the norm is one number, the largest of them.",
        ),
    ),
    variants=(
        "my_mars_norm = lambda weight: torch.linalg.matrix_norm(weight, float('inf'))",
        "my_mars_norm = lambda weight: max(sum(abs(w) for w in row) for row in weight.tolist())",
        "my_mars_norm = lambda weight: weight.float().norm(p=1, dim=1).amax(0, keepdim=True)",
        "my_mars_norm = ftp.mars_norm",
    ),
)
