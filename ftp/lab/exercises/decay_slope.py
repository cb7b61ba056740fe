"""Lesson 09: the same recipe for another knob, weight decay. The truth turns the knob and looks at the loss."""

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals, show


def more_decay(grad: Tensor, before: Tensor, lr: float) -> float:
    """How much the loss g . w grows when the weight decay of the step before grows by 1, in plain numbers.

    >>> more_decay(torch.tensor([1.0, 2.0]), torch.tensor([4.0, -1.0]), 0.5)
    -1.0
    """

    def loss(decay: float) -> float:
        total = 0.0
        for g, w in zip(grad.flatten().tolist(), before.flatten().tolist(), strict=True):
            total += g * (w - lr * decay * w)  # the part of the step that the decay makes
        return total

    return round(loss(2.0) - loss(1.0), 12)


def _questions() -> tuple[Question, ...]:
    random = torch.Generator().manual_seed(10)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def small(grad: list[float], before: list[float], lr: float) -> Question:
        g, w = torch.tensor(grad, dtype=torch.float64), torch.tensor(before, dtype=torch.float64)
        return Question(f"grad = {show(g)}, before = {show(w)}, lr = {lr:g}", (g, w, lr))

    return (
        small([1.0, 2.0], [4.0, -1.0], 1.0),
        small([1.0, 2.0], [4.0, -1.0], 0.5),
        small([-1.0, 0.5], [2.0, 2.0], 0.1),
        Question("a random layer of shape (4, 5)", (draw(4, 5), draw(4, 5), 0.3)),
    )


EXERCISE = Exercise(
    name="decay_slope",
    lesson="09",
    answer="my_decay_slope",
    missing="the next gradient times the arrow of weight decay",
    well_done="The same recipe for a third knob: find its arrow, multiply by the next gradient.",
    hints=(
        "ask first: when λ grows by 1, by how much does each weight move?",
        "W - α (g + λ W) is a line in λ; what stands beside λ is the arrow: -α W.",
        "return (grad * (-lr * before)).sum()",
    ),
    solution="""
def my_decay_slope(grad, before, lr):
    arrow = -lr * before
    return (grad * arrow).sum()
""",
    questions=_questions(),
    judge=equals(more_decay),
    mistakes=(
        Mistake(
            "my_decay_slope = lambda grad, before, lr: (grad * lr * before).sum()",
            "the sign is turned round: decay pulls the weights towards zero, so its arrow is -α W.",
        ),
        Mistake(
            "my_decay_slope = lambda grad, before, lr: -(grad * before).sum()",
            "α is missing: the decay reaches the weights through the rate, so its arrow is -α W.",
        ),
        Mistake(
            "my_decay_slope = lambda grad, before, lr: -(grad * before).sum() / lr",
            "you divided by α; λ moves the weights by α times W, so multiply.",
        ),
        Mistake(
            "my_decay_slope = lambda grad, before, lr: -lr * (before * before).sum()",
            "the next gradient is missing; without it the answer is always more decay.",
        ),
        Mistake(
            "my_decay_slope = lambda grad, before, lr: -lr * (grad * grad).sum()",
            "that is the arrow of a step along the gradient; the arrow of the decay is -α W.",
        ),
        Mistake(
            "my_decay_slope = lambda grad, before, lr: -lr * grad * before",
            "a slope is one number; add up over all weights.",
        ),
    ),
    variants=(
        "from ftp.lab.exercises.decay_slope import more_decay as my_decay_slope",
        """
def my_decay_slope(grad, before, lr):
    knob = torch.zeros((), dtype=before.dtype, requires_grad=True)
    (grad * (before - lr * knob * before)).sum().backward()
    return knob.grad
""",
    ),
)
