"""Lesson 04: the slope of the loss along the leash, Eq. 4. The truth pulls at the leash and looks at the loss."""

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals, show


def pulled(grad: Tensor, deviation: Tensor) -> float:
    """How much the loss g . w grows when all leashes get longer by 1, every row standing at the end of its own.

    >>> pulled(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]]))
    0.25
    """

    def loss(gamma: float) -> float:
        total = 0.0
        for slopes, way in zip(grad.flatten(1).tolist(), deviation.flatten(1).tolist(), strict=True):
            length = sum(abs(step) for step in way)
            if length:  # a row that has not moved has no way to follow
                total += sum(g * gamma * step / length for g, step in zip(slopes, way, strict=True))
        return total

    return round(loss(2.0) - loss(1.0), 12)


def _questions() -> tuple[Question, ...]:
    random = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def small(grad: list[list[float]], way: list[list[float]]) -> Question:
        g, d = torch.tensor(grad, dtype=torch.float64), torch.tensor(way, dtype=torch.float64)
        return Question(f"g = {show(g)}, d = {show(d)}", (g, d))

    return (
        small([[0.2, 0.4]], [[3.0, -1.0]]),
        small([[0.2, 0.4], [-1.0, 1.0]], [[3.0, -1.0], [0.5, 0.0]]),
        Question("a random layer of shape (4, 5)", (draw(4, 5), draw(4, 5))),
        small([[1.0, 2.0], [3.0, -1.0]], [[0.0, 0.0], [1.0, 1.0]]),
        Question("a convolution of shape (3, 2, 3, 3)", (draw(3, 2, 3, 3), draw(3, 2, 3, 3))),
    )


EXERCISE = Exercise(
    name="gamma_grad",
    lesson="04",
    answer="my_gamma_grad",
    missing="the sum over rows of g · d / (length of d)",
    well_done="One product per weight, and no pass through the network: that is all FTP pays for a learned leash.",
    hints=(
        "if the leash gets longer by 1, a row moves by its way, shortened to length 1; how does the loss change then?",
        "for each row: add up g * d over its weights, and divide by its length, the sum of the sizes of d.",
        "flatten(1) both, take (g * d).sum(dim=1) / (d.abs().sum(dim=1) + 1e-8), and add up the rows.",
    ),
    solution="""
def my_gamma_grad(grad, deviation):
    g, d = grad.flatten(1), deviation.flatten(1)
    slopes = (g * d).sum(dim=1) / (d.abs().sum(dim=1) + 1e-8)
    return slopes.sum()
""",
    questions=_questions(),
    judge=equals(pulled),
    mistakes=(
        Mistake(
            "my_gamma_grad = lambda g, d: (g * d).sum() / (d.abs().sum() + 1e-8)",
            "you divided by the size of the whole layer; each row has its own length, so divide row by row, then add.",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: (g * d).sum()",
            "the lengths are missing; a longer leash moves a row by its way shortened to length 1, so divide by it.",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: ((g * d).flatten(1).sum(1) / (d.flatten(1).norm(dim=1) + 1e-8)).sum()",
            "you divided by the Euclidean length; the leash is measured by the sum of sizes.",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: -((g * d).flatten(1).sum(1) / (d.flatten(1).abs().sum(1) + 1e-8)).sum()",
            "the sign is the other way round; this is the slope itself, and the step against it comes later (Alg. 2).",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: ((g * d).flatten(1).sum(1) / (d.flatten(1).abs().sum(1) + 1e-8)).mean()",
            "you took the mean over rows; one leash length serves all rows, so their slopes add up.",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: (g * d).flatten(1).sum(1) / (d.flatten(1).abs().sum(1) + 1e-8)",
            "that is one slope per row; the layer has one leash length, so add them up.",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: ((g * d).abs().flatten(1).sum(1) / (d.flatten(1).abs().sum(1) + 1e-8)).sum()",
            "you took the sizes of g * d; the signs say whether the batch pulls outwards or back, so keep them.",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: (g * d.sign()).sum()",
            "g · sign(d) is how g goes with the length of d; here g goes with d itself, shortened to length 1.",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: ((g * d).sum(0) / (d.abs().sum(0) + 1e-8)).sum()",
            "you added up the columns; each row has its own leash, so add up within rows (dim=1).",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: ((g * d).flatten(1).sum(1) / d.flatten(1).abs().sum(1)).sum()",
            "a row that has not moved gives 0 / 0, which is not a number; add 1e-8 to the length.",
        ),
        Mistake(
            "my_gamma_grad = lambda g, d: ((g * d).sum(1) / (d.abs().sum(1) + 1e-8)).sum()",
            "right for a matrix; a row of a convolution is a whole output channel, so flatten(1) before you add up.",
        ),
    ),
    variants=(
        "from ftp.constraint import gamma_grad as my_gamma_grad",
        "from ftp.lab.exercises.gamma_grad import pulled as my_gamma_grad",
        """
def my_gamma_grad(grad, deviation):
    total = 0.0
    for g, d in zip(grad, deviation):
        if d.abs().sum() > 0:
            total = total + (g * d).sum() / d.abs().sum()
    return total
""",
        """
def my_gamma_grad(grad, deviation):
    d = deviation.flatten(1)
    unit = torch.nn.functional.normalize(d, p=1, dim=1)
    return torch.einsum("ij,ij->", grad.flatten(1), unit)
""",
    ),
)
