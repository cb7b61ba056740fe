"""Lesson 08: why a bridge has so short a leash. A leash is a sum over a row; what is left of it for each weight?"""

import torch

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals
from ftp.projection import as_rows


def truth(gamma: float, shape: tuple[int, ...]) -> float:
    """Lay the tensor out as the projection does, and count the entries of one row.

    >>> truth(2.88, (64, 32, 3, 3)), truth(0.64, (64, 32, 1, 1)), truth(1.6, (16,))
    (0.01, 0.02, 0.1)
    """
    return gamma / as_rows(torch.empty(shape)).shape[1]


EXERCISE = Exercise(
    name="explain_layer",
    lesson="08",
    answer="my_per_weight",
    missing="the length of the leash for each weight of a row",
    well_done="Weight by weight the bridge may move farther than its neighbour: its rows are short, not its leash.",
    hints=(
        "γ is the most that the sizes of a whole row may add up to; how many weights share it?",
        "a row of a convolution is an output channel, so shape[0] does not count; a vector is one row.",
        "gamma / math.prod(shape[1:]) for a convolution, gamma / shape[0] for a vector.",
    ),
    solution="""
def my_per_weight(gamma, shape):
    row = shape[1:] if len(shape) > 1 else shape
    return gamma / math.prod(row)
""",
    questions=(
        Question("γ = 2.88, shape (64, 32, 3, 3)", (2.88, (64, 32, 3, 3))),
        Question("γ = 0.64, shape (64, 32, 1, 1)", (0.64, (64, 32, 1, 1))),
        Question("γ = 1.6, shape (16,)", (1.6, (16,))),
        Question("γ = 0.5, shape (10, 64)", (0.5, (10, 64))),
    ),
    judge=equals(truth),
    mistakes=(
        Mistake(
            "def my_per_weight(gamma, shape): return gamma / math.prod(shape)",
            "you divided by all weights of the layer; every row has a leash of its own.",
        ),
        Mistake(
            "def my_per_weight(gamma, shape): return gamma / shape[0]",
            "the first number of a shape counts the rows; how long is one of them?",
        ),
        Mistake(
            "def my_per_weight(gamma, shape): return gamma / shape[1] if len(shape) > 1 else gamma / shape[0]",
            "a row of a convolution is the whole output channel: inputs times height times width.",
        ),
        Mistake(
            "def my_per_weight(gamma, shape): return gamma / math.prod(shape[1:])",
            "a vector (gains, biases) is one row, with all its entries.",
        ),
        Mistake(
            "def my_per_weight(gamma, shape): return gamma * math.prod(shape[1:] if len(shape) > 1 else shape)",
            "the weights of a row share the leash: divide, do not multiply.",
        ),
    ),
    variants=(
        "def my_per_weight(gamma, shape): return gamma / torch.empty(shape).flatten(int(len(shape) > 1)).shape[-1]",
        "def my_per_weight(gamma, shape): return torch.tensor(gamma / math.prod(shape[int(len(shape) > 1):]))",
    ),
)
