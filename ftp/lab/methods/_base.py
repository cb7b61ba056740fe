"""The interface of a method, which is also plain fine-tuning: a method overrides what it changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ftp.lab.base_rules import base_optimizer
from ftp.lab.options import Option
from ftp.lab.record import Settings

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from ftp.groups import Rows
    from ftp.lab.worlds import World


@dataclass
class Task:
    """What a method gets to work on. In a run of several phases, `anchors` and `phase` change with each."""

    model: nn.Module
    unanchored: frozenset[str]  # names of the new parameters, which have no anchor
    readout: frozenset[str]  # names of what a linear probe trains; a read-out may have an anchor
    anchors: Mapping[str, Tensor]  # W0 by name, of all parameters but the new ones
    settings: Settings
    sample: Tensor  # one picture as a batch, on the model's device
    loss: Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], Tensor]  # the world's: network, inputs, targets
    held_out: Callable[[int], tuple[Tensor, Tensor]]  # count -> a batch that its training never sees (TPGM)
    phase: int = 0
    phases: int = 1
    rows: Mapping[str, Rows] = field(default_factory=dict)  # of the tensors whose rows are not those of axis 0
    held: frozenset[str] = frozenset()  # names of what the world keeps as it is in this phase, whatever the method
    labels: range = range(0)  # what the training pictures of this phase can be; () where targets are no labels
    pool: Callable[[], Iterator[tuple[Tensor, Tensor]]] = lambda: iter(
        ()
    )  # this phase's training pictures, as they are


class Method:
    """Plain fine-tuning: every parameter follows the gradient, under a cosine learning rate."""

    title: ClassVar[str] = ""  # the name in the paper's tables
    summary: ClassVar[str] = ""  # one sentence: what it changes
    options: ClassVar[Mapping[str, Option]] = {}
    needs_held_out: ClassVar[bool] = False

    @classmethod
    def misfit(cls, world: World) -> str:
        """Why this method cannot work in a world, in one sentence; "" if it can."""
        return ""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.settings = task.settings
        self.model = task.model
        self.prepare()
        self.hold()
        self.optimizer = self.make_optimizer()

    def option(self, name: str) -> Any:
        """The value of one of the method's own settings."""
        return self.settings.options.get(name, self.options[name].default)

    def prepare(self) -> None:
        """Freeze or add parameters."""

    def hold(self) -> None:
        """Freeze what the world keeps as it is in this phase."""
        for name, param in self.model.named_parameters():
            if name in self.task.held:
                param.requires_grad_(False)

    def train_only(self, chosen: Callable[[str], bool]) -> None:
        """Freeze everything but the new parameters, the read-out and the chosen ones."""
        always = self.task.unanchored | self.task.readout
        for name, param in self.model.named_parameters():
            param.requires_grad_(name in always or chosen(name))

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

    def begin_phase(self) -> None:
        """A further phase begins: `task` has new anchors. By default the optimizer begins anew, with all its state."""
        self.hold()
        self.optimizer = self.make_optimizer()

    def end_phase(self) -> None:
        """A phase is over, the last one too; its training batches are still to be had."""

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """What the step makes small: by default the world's loss."""
        return self.task.loss(self.model, inputs, targets)

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


def longest_of(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Of matrices that are stacked in one tensor: the longest leash, and the mean share that was pulled back.

    >>> longest_of([(0.5, 1.0), (0.25, 0.0)])
    (0.5, 0.5)
    """
    return max(gamma for gamma, _ in parts), sum(share for _, share in parts) / len(parts)


def lacks_readout(title: str, world: World) -> str:
    """The sentence for a method that trains a read-out, in a world that has none; "" if it has one."""
    if world.readout or world.unanchored:
        return ""
    return f"{title} trains a read-out, and the world {world.name} names none; choose another method, such as ftp"


def cosine(lr: float, step: int, steps: int) -> float:
    """Half a cosine from lr at step 0 to 0 at `steps`.

    >>> cosine(0.1, 0, 10), cosine(0.1, 5, 10)
    (0.1, 0.05)
    """
    return lr * 0.5 * (1 + math.cos(math.pi * step / steps))


def body_in_eval(model: nn.Module, readout: frozenset[str]) -> None:
    """Normalisation layers keep their pre-trained statistics; for a body that does not train."""
    model.eval()
    for name, module in model.named_modules():
        if any(f"{name}.{p}".removeprefix(".") in readout for p, _ in module.named_parameters(recurse=False)):
            module.train()
