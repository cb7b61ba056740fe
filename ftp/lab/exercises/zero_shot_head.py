"""Lesson 14: a head made of words. The truth is a loop over classes, templates and numbers, in plain Python."""

import math

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals

# class by class, template by template: vectors of the text tower, not yet of length 1
SMALL = torch.tensor([[[3.0, 4.0], [0.0, 2.0]], [[1.0, 0.0], [1.0, 0.0]]])
LONG = torch.tensor([[[10.0, 0.0, 0.0], [0.0, 0.1, 0.0]], [[0.0, 0.0, 5.0], [0.0, 1.0, 0.0]]])
MANY = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(14))


def looped(vectors: Tensor, scale: float) -> list[list[float]]:
    """Number by number.

    >>> looped(torch.tensor([[[3.0, 4.0]]]), 10.0)
    [[6.0, 8.0]]
    """
    head = []
    for of_class in vectors.tolist():
        total = [0.0] * len(of_class[0])
        for vector in of_class:
            length = math.sqrt(sum(number**2 for number in vector))
            total = [t + number / length for t, number in zip(total, vector, strict=True)]
        mean = [t / len(of_class) for t in total]
        length = math.sqrt(sum(number**2 for number in mean))
        head.append([scale * number / length for number in mean])
    return head


EXERCISE = Exercise(
    name="zero_shot_head",
    lesson="14",
    answer="my_zero_shot_head",
    missing="normalise each vector, take the mean over the templates, normalise again, multiply by the scale",
    well_done="Every template had one vote, every class has a row of the same length, and no picture was needed.",
    hints=(
        "vectors has the shape (classes, templates, numbers); the head has a row for each class.",
        "divide each vector by its length first: vectors / vectors.norm(dim=-1, keepdim=True).",
        "then .mean(dim=1), divide each mean by its length in the same way, and multiply by the scale.",
    ),
    solution="""
def my_zero_shot_head(vectors, scale):
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    mean = unit.mean(dim=1)
    return scale * mean / mean.norm(dim=-1, keepdim=True)
""",
    questions=(
        Question("two classes, two templates, scale 1", (SMALL, 1.0)),
        Question("templates whose vectors have very different lengths, scale 10", (LONG, 10.0)),
        Question("three classes, four templates, scale 28", (MANY, 28.0)),
    ),
    judge=equals(looped),
    mistakes=(
        Mistake(
            "my_zero_shot_head = lambda vectors, scale: scale * torch.nn.functional.normalize(vectors.mean(1), dim=-1)",
            "you took the mean of vectors as they are; long ones have more votes: normalise each of them first.",
        ),
        Mistake(
            "my_zero_shot_head = lambda vectors, scale: scale * torch.nn.functional.normalize(vectors, dim=-1).mean(1)",
            "the mean of unit vectors is shorter than 1, and shortest where templates disagree: normalise it again.",
        ),
        Mistake(
            "my_zero_shot_head = lambda vectors, scale: torch.nn.functional.normalize("
            "torch.nn.functional.normalize(vectors, dim=-1).mean(1), dim=-1)",
            "the scale is missing; without it all logits lie between -1 and 1.",
        ),
        Mistake(
            "my_zero_shot_head = lambda vectors, scale: scale * torch.nn.functional.normalize("
            "torch.nn.functional.normalize(vectors, dim=-1).mean(0), dim=-1)",
            "you took the mean over the classes; it is over the templates, dim=1.",
        ),
        Mistake(
            "my_zero_shot_head = lambda vectors, scale: scale * torch.nn.functional.normalize("
            "torch.nn.functional.normalize(vectors, dim=1).mean(1), dim=-1)",
            "you divided along the templates; a vector's length is along the last dimension, dim=-1.",
        ),
        Mistake(
            "my_zero_shot_head = lambda vectors, scale: scale * vectors.mean(1)",
            "nothing is normalised; logits are to be scale times the cosine of picture and name.",
        ),
        Mistake(
            "my_zero_shot_head = lambda vectors, scale: torch.nn.functional.normalize("
            "torch.nn.functional.normalize(vectors, dim=-1).mean(1), dim=-1) / scale",
            "you divided by the scale; the scale makes logits larger, so multiply.",
        ),
    ),
    variants=(
        "my_zero_shot_head = lambda vectors, scale: scale * torch.nn.functional.normalize("
        "torch.nn.functional.normalize(vectors, dim=-1).sum(1), dim=-1)",
        """
def my_zero_shot_head(vectors, scale):
    rows = []
    for of_class in vectors:
        mean = sum(v / v.norm() for v in of_class) / len(of_class)
        rows.append(scale * mean / mean.norm())
    return torch.stack(rows)
""",
    ),
)
