"""The interface of a method, which is also plain fine-tuning: a method overrides what it changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ftp.lab.record import Settings, Value

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer


@dataclass(frozen=True)
class Option:
    """One setting of a method's own: its default, what is allowed, and what it does."""

    default: Value
    help: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    layer: bool = False  # text: the name of a layer, or a pattern for several; empty for none


@dataclass
class Task:
    """What a method gets to work on."""

    model: nn.Module
    head: frozenset[str]  # names of the new parameters
    anchors: Mapping[str, Tensor]  # W0 by name, of all parameters but the head
    settings: Settings
    sample: Tensor  # one image as a batch, on the model's device
    held_out: Callable[[int], tuple[Tensor, Tensor]]  # count -> a batch that its training never sees (TPGM)


class Method:
    """Plain fine-tuning: every parameter follows the gradient, under a cosine learning rate."""

    title: ClassVar[str] = ""  # the name in the paper's tables
    summary: ClassVar[str] = ""  # one sentence: what it changes
    options: ClassVar[Mapping[str, Option]] = {}
    needs_held_out: ClassVar[bool] = False

    def __init__(self, task: Task) -> None:
        self.task = task
        self.settings = task.settings
        self.model = task.model
        self.prepare()
        self.optimizer = self.make_optimizer()

    def option(self, name: str) -> Any:
        """The value of one of the method's own settings."""
        return self.settings.options.get(name, self.options[name].default)

    def prepare(self) -> None:
        """Freeze or add parameters."""

    def train_only(self, chosen: Callable[[str], bool]) -> None:
        """Freeze everything but the head and the chosen parameters."""
        for name, param in self.model.named_parameters():
            param.requires_grad_(name in self.task.head or chosen(name))

    def trained(self) -> list[tuple[str, nn.Parameter]]:
        """The parameters that follow the gradient, by name."""
        return [(name, param) for name, param in self.model.named_parameters() if param.requires_grad]

    def anchored(self) -> Iterator[tuple[str, nn.Parameter, Tensor]]:
        """The trained parameters that have an anchor."""
        for name, param in self.trained():
            if name in self.task.anchors:
                yield name, param, self.task.anchors[name]

    def make_optimizer(self) -> Optimizer:
        return base_optimizer([{"params": [param for _, param in self.trained()]}], self.settings)

    def lr(self, step: int) -> float:
        """The learning rate of step 0, 1, ...: half a cosine from lr down to 0."""
        return cosine(self.settings.lr, step, self.settings.steps)

    def before_step(self, step: int) -> None:
        """Set the model's mode; called before every forward pass."""
        self.model.train()

    def after_backward(self, step: int) -> None:
        """Change the gradients."""

    def after_step(self, step: int) -> None:
        """Change the weights."""

    def report(self) -> dict[str, tuple[float, float]]:
        """Name of a constrained layer to its gamma and the share of its rows that were pulled back."""
        return {}

    def state_dict(self) -> dict[str, Tensor]:
        """What the method itself must remember in a checkpoint, besides model and optimizer."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """The counterpart of `state_dict`."""


def cosine(lr: float, step: int, steps: int) -> float:
    """Half a cosine from lr at step 0 to 0 at `steps`.

    >>> cosine(0.1, 0, 10), cosine(0.1, 5, 10)
    (0.1, 0.05)
    """
    return lr * 0.5 * (1 + math.cos(math.pi * step / steps))


def base_optimizer(groups: list[dict[str, Any]], settings: Settings) -> Optimizer:
    """SGD with Nesterov momentum, or AdamW. A group's `lr_scale` multiplies its learning rate."""
    import torch

    if settings.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=settings.lr, weight_decay=settings.weight_decay)
    return torch.optim.SGD(
        groups,
        lr=settings.lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.momentum > 0,
    )


def body_in_eval(model: nn.Module, head: frozenset[str]) -> None:
    """Normalisation layers keep their pre-trained statistics; for a body that does not train."""
    model.eval()
    for name, module in model.named_modules():
        if any(f"{name}.{p}" in head for p, _ in module.named_parameters(recurse=False)):
            module.train()
