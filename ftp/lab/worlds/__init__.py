"""Worlds: a pre-trained model, a task to fine-tune it on, and shifts it should survive. One file each.

A module of this package offers `INFO` (plain data, readable without torch) and `open_world()`, which loads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ftp.lab.record import Value
from ftp.lab.registry import find, modules

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class Info:
    """What a person wants to know of a world before it is loaded.

    >>> info("digits").offline
    True
    """

    name: str
    title: str
    summary: str
    paper: str  # the tables and figures of the paper that it stands for
    offline: bool
    licence: str
    size: str
    classes: tuple[str, ...]
    shifts: tuple[str, ...]
    data_version: str  # changes when data or weights do: part of a run's id
    severities: str = "auto"  # which published numbers `corrupt` takes: "imagenet", "cifar", or by the images' size
    layers: tuple[str, ...] = ()  # names of the pre-trained tensors that have an anchor; () if only loading tells
    # what `Settings` are there unless said otherwise, by scale: "quick" or "full"
    defaults: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)


class Split(Protocol):
    """A set of labelled images that can be read in any order."""

    def __len__(self) -> int: ...

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Images as floats in [0, 1] and labels; with a generator, augmented as for training."""
        ...


class World(Protocol):
    """What the engine asks of a world."""

    info: Info
    head: tuple[str, ...]  # patterns of the new parameters, which have no anchor

    def model(self, seed: int) -> nn.Module:
        """The pre-trained model with a new head made by `seed`."""
        ...

    def split(self, name: str, labels: float = 1.0) -> Split:
        """ "train", "val", "id" (the test set) or a shift; `labels` is the share of the training labels."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Hashes and counts of what was loaded."""
        ...


def names() -> tuple[str, ...]:
    """The names of all worlds.

    >>> "digits" in names()
    True
    """
    return modules(__name__)


def info(name: str) -> Info:
    """The description of a world, without loading it.

    >>> info("digits").shifts
    ('optdigits', 'typeset', 'texture', 'colour', 'sketch')
    """
    found: Info = find(__name__, "INFO", name, "world")
    return found


def load(name: str) -> World:
    """Open a world; the second time is free."""
    opened: World = find(__name__, "open_world", name, "world")()
    return opened
