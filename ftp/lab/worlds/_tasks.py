"""Worlds whose classes come in tasks, one after the other: one head that grows, masks, roles, and two accuracies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ftp.lab.options import Option
from ftp.lab.record import Value
from ftp.lab.summary import Metric
from ftp.lab.worlds._base import Meter, Phase, World

if TYPE_CHECKING:
    from torch import Tensor, nn

HOME = "all tasks"
MASK = Option("new", "which classes compete in the loss: the present task's, or all seen", choices=("new", "seen"))
TRAINED = Option("qkv", "what trains besides the head", choices=("qkv", "all"))


class TaskWorld(World):
    """A subclass deals its classes to tasks; label n is the n-th class in the order of the tasks.

    mask=new     only the classes of the present task compete in the loss; the head's rows of old ones stay as they are
    mask=seen    all classes seen so far compete, and all rows train
    trained=qkv  only the fused query, key and value matrices and the head train
    """

    protocol = "one head that grows by random rows for each task; no old picture is kept; no task is told at test"
    metrics = (Metric("accuracy", "%"), Metric("cut accuracy", "%"))
    corruptions = ()
    unanchored = readout = ("head.*",)
    lipschitz = False

    def __init__(self, options: Mapping[str, Value], seed: int = 0) -> None:
        super().__init__(options)
        self.seed = seed
        names, tasks = self.deal(seed)
        self.sources = [n for task in tasks for n in task]  # label -> the world's own number of that class
        starts = (0, *accumulate(map(len, tasks)))
        self.parts = [range(low, high) for low, high in pairwise(starts)]  # task -> its labels
        self.classes = tuple(self.class_name(n) for n in self.sources)
        self.trains = {f"{name}, training": n for n, name in enumerate(names)}
        self.tests = {name: n for n, name in enumerate(names)}
        self.roles = {
            **dict.fromkeys(self.trains, "train"),
            "val": "val",
            HOME: "home",
            **dict.fromkeys(self.tests, "task"),
        }
        self.phases = tuple(
            Phase(name, train, tuple(names[: n + 1]))
            for n, (name, train) in enumerate(zip(names, self.trains, strict=True))
        )

    def deal(self, seed: int) -> tuple[list[str], list[list[int]]]:
        """The name of each task, and the world's own numbers of its classes."""
        raise NotImplementedError

    def class_name(self, number: int) -> str:
        raise NotImplementedError

    def labels(self, phase: int) -> range:
        return self.parts[phase]

    def enter(self, model: nn.Module, phase: int, seed: int) -> None:
        """Random rows for the classes of this phase, made by the seed, unless they are there."""
        import torch

        head: Any = model.head
        if len(head) <= phase:
            g = torch.Generator().manual_seed(seed * 1_000_003 + phase)
            head.grow(len(self.parts[phase]), g)
            head.to(next(model.parameters()).device)

    def holds(self, name: str, phase: int) -> bool:
        if name.startswith("head."):
            return self.option("mask") == "new" and int(name.split(".")[1]) < phase
        if name.startswith("prompts."):  # of a method, not of the network
            return False
        return self.option("trained") == "qkv" and not any(part in name for part in (".qkv.", ".in_proj_"))

    def loss(self, model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, phase: int = 0) -> Tensor:
        """Cross-entropy; with mask=new the logits of old classes are cut off, which is to set them to -infinity."""
        from torch.nn import functional as F

        first = self.parts[phase].start if self.option("mask") == "new" else 0
        return F.cross_entropy(model(inputs)[:, first:], targets - first)

    def meter(self) -> Meter:
        return TaskMeter([part.stop for part in self.parts for _ in part])

    def about(self) -> dict[str, Value]:
        """Masking, head, order and what trains: for the provenance of a run, to be printed with every table."""
        return {name: self.option(name) for name in self.options} | {"head": "grows by random rows", "stored": 0}


class TaskMeter:
    """Percent right among all classes seen so far, and with the classifier cut to the tasks up to the picture's own.

    ends: of each label, how many labels there are up to the end of its task.

    >>> import torch
    >>> meter = TaskMeter([1, 2])  # two tasks of one class
    >>> meter.add(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([0, 1]))
    >>> meter.values()
    {'accuracy': 50.0, 'cut accuracy': 100.0}
    """

    def __init__(self, ends: Sequence[int]) -> None:
        self.ends = ends
        self.right, self.right_when_cut, self.count = 0, 0, 0

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        import torch

        outputs, targets = outputs.float().cpu(), targets.cpu()
        self.right += int((outputs.argmax(1) == targets).sum())
        later = torch.arange(outputs.shape[1]) >= torch.tensor(self.ends)[targets].unsqueeze(1)
        self.right_when_cut += int((outputs.masked_fill(later, -torch.inf).argmax(1) == targets).sum())
        self.count += len(targets)

    def values(self) -> dict[str, float]:
        return {"accuracy": 100 * self.right / self.count, "cut accuracy": 100 * self.right_when_cut / self.count}


def equal_parts(numbers: Sequence[int], tasks: int) -> list[list[int]]:
    """Cut a list into so many parts, as equal as can be.

    >>> equal_parts([1, 2, 3, 4, 5], 2)
    [[1, 2], [3, 4, 5]]
    """
    ends = [len(numbers) * n // tasks for n in range(tasks + 1)]
    return [list(numbers[low:high]) for low, high in pairwise(ends)]
