"""Lesson 09: the slope of the loss in the learning rate, Eq. 7. The truth changes the rate and looks at the loss."""

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals, show


def longer_step(grads: list[Tensor], previous: list[Tensor]) -> float:
    """How much the loss g . w grows when the rate of the step before grows by 1, in plain numbers.

    >>> longer_step([torch.tensor([1.0, 2.0])], [torch.tensor([3.0, 4.0])])
    -11.0
    """

    def loss(rate: float) -> float:
        total = 0.0
        for grad, before in zip(grads, previous, strict=True):
            for g, step in zip(grad.flatten().tolist(), before.flatten().tolist(), strict=True):
                total += g * (-rate * step)  # Eq. 6: the weights have moved by -rate * step
        return total

    return round(loss(2.0) - loss(1.0), 12)


def _questions() -> tuple[Question, ...]:
    random = torch.Generator().manual_seed(9)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def small(grad: list[float], before: list[float]) -> Question:
        g, p = torch.tensor(grad, dtype=torch.float64), torch.tensor(before, dtype=torch.float64)
        return Question(f"grads = [{show(g)}], previous = [{show(p)}]", ([g], [p]))

    return (
        small([1.0, 2.0], [3.0, 4.0]),
        small([1.0, -2.0], [0.5, 1.0]),
        Question("one layer of shape (4, 5)", ([draw(4, 5)], [draw(4, 5)])),
        Question("a layer of shape (3, 2) and its bias", ([draw(3, 2), draw(3)], [draw(3, 2), draw(3)])),
    )


def _code(body: str) -> str:
    """A wrong answer: the sum over layers of something else."""
    return f"def my_rate_slope(grads, previous):\n    return sum({body} for g, p in zip(grads, previous))\n"


EXERCISE = Exercise(
    name="rate_slope",
    lesson="09",
    answer="my_rate_slope",
    missing="minus the product of the two gradients, summed over all layers",
    well_done="Two gradients that agree give a negative slope, and the rate grows.",
    hints=(
        "when the rate grows by 1, each weight ends farther along minus the previous gradient; what does the loss do?",
        "the arrow of a layer is -p; the slope is the sum over all its entries of g times that.",
        "return -sum((g * p).sum() for g, p in zip(grads, previous))",
    ),
    solution="""
def my_rate_slope(grads, previous):
    return -sum((g * p).sum() for g, p in zip(grads, previous, strict=True))
""",
    questions=_questions(),
    judge=equals(longer_step),
    mistakes=(
        Mistake(
            _code("(g * p).sum()"),
            "the sign is turned round: the step went against the previous gradient, so the slope is minus the product.",
        ),
        Mistake(
            "my_rate_slope = lambda grads, previous: -(grads[0] * previous[0]).sum()",
            "you took the first layer alone; one rate moves all layers, so add up over all of them.",
        ),
        Mistake(
            _code("-(g * p).mean()"),
            "you took the mean over the weights; a change of the loss adds up over them.",
        ),
        Mistake(
            _code("-(g * p).sum() / p.abs().sum()"),
            "that is Eq. 4, the leash: its arrow has length 1; the arrow of the rate is the whole gradient.",
        ),
        Mistake(
            _code("-(g * p).sum() / (g.norm() * p.norm())"),
            "that is the cosine of the angle; the lengths of the gradients belong to the slope.",
        ),
        Mistake(
            _code("-(p * p).sum()"),
            "you multiplied the previous gradient by itself; the next one must speak, or the answer is always more.",
        ),
    ),
    variants=(
        "from ftp.hyper import hyper_gradient as my_rate_slope",
        "from ftp.lab.exercises.rate_slope import longer_step as my_rate_slope",
        """
def my_rate_slope(grads, previous):
    flat = lambda tensors: torch.cat([tensor.flatten() for tensor in tensors])
    return -(flat(grads) @ flat(previous))
""",
    ),
)
