"""Lesson 13: the Fisher information of a linear read-out, by hand. The truth asks autograd, picture by picture."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals, show


def by_autograd(weight: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    """The mean over the pictures of the squared gradient of each one's cross-entropy.

    >>> by_autograd(torch.zeros(2, 1), torch.tensor([[2.0]]), torch.tensor([0]))
    tensor([[1.],
            [1.]])
    """
    total = torch.zeros_like(weight)
    for x, y in zip(inputs, labels, strict=True):
        w = weight.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(F.cross_entropy((w @ x).unsqueeze(0), y.unsqueeze(0)), w)
        total += gradient.square()
    return total / len(inputs)


def _questions() -> tuple[Question, ...]:
    g = torch.Generator().manual_seed(13)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    one = torch.tensor([[1.0], [0.0]], dtype=torch.float64), torch.tensor([[2.0]], dtype=torch.float64)
    two = torch.tensor([[1.0], [-1.0]], dtype=torch.float64), torch.tensor([[1.0], [-3.0]], dtype=torch.float64)
    return (
        Question(f"W = {show(one[0])}, one picture x = [2] of class 0", (*one, torch.tensor([0]))),
        Question(f"W = {show(two[0])}, pictures [1] of class 0 and [-3] of class 0", (*two, torch.tensor([0, 0]))),
        Question("3 classes, 4 features, 6 pictures", (draw(3, 4), draw(6, 4), torch.tensor([0, 1, 2, 2, 0, 1]))),
    )


HEAD = "def my_fisher(weight, inputs, labels):\n    p = (inputs @ weight.T).softmax(dim=1)\n"
HOT = "    hot = torch.nn.functional.one_hot(labels, len(weight))\n"
EACH = "    each = (p - hot).unsqueeze(2) * inputs.unsqueeze(1)\n"
EXERCISE = Exercise(
    name="fisher",
    lesson="13",
    answer="my_fisher",
    missing="the mean over the pictures of the squared gradient of each one's loss",
    well_done="A weight that no picture's loss depends on gets a spring of no stiffness; that is what EWC lets move.",
    hints=(
        "the gradient of one picture's cross-entropy at its logits is p - onehot(y); what do the weights add?",
        "for one picture the gradient is the outer product of p - onehot(y) with x. Square it, entry by entry.",
        "make all of them at once, of shape (pictures, classes, features), then .square().mean(dim=0).",
    ),
    solution="""
def my_fisher(weight, inputs, labels):
    p = (inputs @ weight.T).softmax(dim=1)
    error = p - torch.nn.functional.one_hot(labels, len(weight))
    each = error.unsqueeze(2) * inputs.unsqueeze(1)
    return each.square().mean(dim=0)
""",
    questions=_questions(),
    judge=equals(by_autograd),
    mistakes=(
        Mistake(
            HEAD + HOT + EACH + "    return each.mean(dim=0).square()",
            "you averaged first and squared then; gradients of different pictures cancel, so F is too small.",
        ),
        Mistake(
            HEAD + HOT + EACH + "    return each.square().sum(dim=0)",
            "that is the sum over the pictures; F is their mean, however many there are.",
        ),
        Mistake(
            HEAD + HOT + EACH + "    return each.abs().mean(dim=0)",
            "you took sizes instead of squares.",
        ),
        Mistake(
            HEAD + "    each = p.unsqueeze(2) * inputs.unsqueeze(1)\n    return each.square().mean(dim=0)",
            "the label is missing; the slope at the logits is p - onehot(y), not p.",
        ),
        Mistake(
            HEAD + "    hot = torch.nn.functional.one_hot(p.argmax(dim=1), len(weight))\n"
            "" + EACH + "    return each.square().mean(dim=0)",
            "you took the network's own answer as the label; here it is the true one (the empirical Fisher).",
        ),
        Mistake(
            HEAD + HOT + "    return (p - hot).square().mean(dim=0).unsqueeze(1).expand(weight.shape)",
            "that is the slope at the logits alone; a weight's slope is that times its input x.",
        ),
        Mistake(
            HEAD + HOT + EACH + "    return each.mean(dim=0)",
            "the square is missing; this is the gradient of the batch, which has a sign.",
        ),
    ),
    variants=(
        "from ftp.lab.exercises.fisher import by_autograd as my_fisher",
        """
def my_fisher(weight, inputs, labels):
    error = (inputs @ weight.T).softmax(1) - torch.eye(len(weight), dtype=weight.dtype)[labels]
    return error.square().T @ inputs.square() / len(inputs)
""",
    ),
)
