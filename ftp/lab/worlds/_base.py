"""The interface of a world: the only place that knows its task. A world overrides what is not as here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ftp.lab.options import Option
from ftp.lab.record import CORRUPTIONS, LabError, Value
from ftp.lab.summary import Measures, Metric

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


TILES = 20  # pictures in a row of `World.tiles`


class Split(Protocol):
    """A set of pictures with their targets that can be read in any order."""

    def __len__(self) -> int: ...

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Pictures as floats in [0, 1] and their targets; with a generator, augmented as for training."""
        ...


class Meter(Protocol):
    """Scores a set batch by batch, without keeping what the network said."""

    def add(self, outputs: Tensor, targets: Tensor) -> None: ...

    def values(self) -> dict[str, float]:
        """Every metric of the world by its name, the main one first."""
        ...


@dataclass(frozen=True)
class Phase:
    """A part of a run: the split that it trains on, and those that are looked at on the way and at its end.

    evaluated: None means all of them. Every phase begins with the weights of the last one as its anchors.
    """

    name: str = ""
    train: str = "train"
    evaluated: tuple[str, ...] | None = None


class World:
    """A world with its options. Making one costs nothing; reading begins with `model` or `split`."""

    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""  # one sentence
    paper: ClassVar[str] = ""  # the tables and figures of the paper that it stands for
    licence: ClassVar[str] = ""
    size: ClassVar[str] = ""
    offline: ClassVar[bool] = True
    own: ClassVar[bool] = False  # the person's own data: nothing of it is recorded in the kit
    order: ClassVar[int] = 100  # where it stands in lists; the first is the default
    options: ClassVar[Mapping[str, Option]] = {}
    # what `Settings` are there unless said otherwise, by scale: "quick" or "full"
    defaults: ClassVar[Mapping[str, Mapping[str, Value]]] = {}
    # rows of its table that are other settings of a method: their name, the method, and what is changed
    beside: ClassVar[Mapping[str, tuple[str, Mapping[str, Value]]]] = {}
    protocol: ClassVar[str] = ""  # what else has to be said with its table, such as how a head grows
    metrics: ClassVar[tuple[Metric, ...]] = ()  # the main one first
    corruptions: ClassVar[tuple[str, ...]] = CORRUPTIONS  # damages of the home set after training; () for none
    severities: ClassVar[str] = (
        "auto"  # which published numbers `corrupt` takes: "imagenet", "cifar", "tiny", or by size
    )
    dense: ClassVar[bool] = False  # targets are maps: a damage that moves pixels would move them away from their target
    in_colours: ClassVar[bool] = False  # of a dense world: its maps are labels or directions, which can be shown
    prefixes: ClassVar[bool] = False  # its network has a place for prompts, as `ftp.lab.models.small_vit`
    lipschitz: ClassVar[bool] = True  # the final evaluation looks for steep pairs of pictures
    step_seconds: ClassVar[float] = 0.08  # of a training step on one ordinary core, until a run has shown it
    accumulate: int = 1  # parts in which a training batch is computed, if it does not fit at once
    evaluated_at_once: int = 250  # pictures
    # these may follow from the options: then `__init__` sets them
    classes: tuple[str, ...] = ()  # the names of the labels; () where targets are no labels
    unanchored: tuple[str, ...] = ()  # patterns of new parameters: they have no pre-trained weights
    readout: tuple[str, ...] = ()  # patterns of what a linear probe trains
    roles: Mapping[str, str] = {}  # every split and its role, in the order of tables; see `ftp.lab.summary`
    phases: tuple[Phase, ...] = (Phase(),)  # one, or several tasks in a row

    def __init__(self, options: Mapping[str, Value]) -> None:
        self.chosen = dict(options)

    @property
    def name(self) -> str:
        """The name of its file."""
        return type(self).__module__.rpartition(".")[2]

    def option(self, name: str) -> Any:
        """The value of one of its options."""
        return self.chosen.get(name, self.options[name].default)

    @property
    def measures(self) -> Measures:
        return Measures(self.metrics, self.roles)

    @property
    def home(self) -> str:
        return self.measures.home

    @property
    def shifts(self) -> tuple[str, ...]:
        return self.measures.splits("shift")

    def layers(self) -> tuple[str, ...]:
        """The names of the pre-trained tensors that have an anchor; () if only the model tells. May read a header."""
        return ()

    def missing(self) -> str:
        """What has to be given before anything can be read, in one sentence; "" if nothing."""
        return ""

    def inventory(self) -> list[tuple[str, str]]:
        """What there is to train and test on, by rows of name and text, for `ftp-lab doctor --data`."""
        return []

    def remarks(self) -> list[str]:
        """What a person should know before training, a sentence each. May read everything."""
        return []

    def data_version(self) -> str:
        """Changes when data or weights do: part of a run's id. May read files."""
        raise NotImplementedError

    def model(self, seed: int) -> nn.Module:
        """The pre-trained model; what is new in it is made by `seed`."""
        raise NotImplementedError

    def for_seed(self, seed: int) -> World:
        """The same world for a run with this seed; another one where the seed also decides the order of classes."""
        return self

    def enter(self, model: nn.Module, phase: int, seed: int) -> None:
        """Make a model ready for a phase, such as new rows of a head; called before its anchors are taken."""

    def holds(self, name: str, phase: int) -> bool:
        """Whether a parameter stays as it is in a phase, whatever the method; it has no anchor then."""
        return False

    def labels(self, phase: int) -> range:
        """The labels that the training pictures of a phase can have."""
        return range(len(self.classes))

    def split(self, name: str, labels: float = 1.0) -> Split:
        """A split by its name; `labels` is the share of the training labels."""
        raise NotImplementedError

    def loss(self, model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, phase: int = 0) -> Tensor:
        """What training makes small, of one batch."""
        raise NotImplementedError

    def meter(self) -> Meter:
        """A new meter for one set."""
        raise NotImplementedError

    def tiles(self) -> bytes:
        """A small picture of each label, dark on white, in one PNG of rows of `TILES`; b"" if it has none. No torch."""
        return b""

    def provenance(self) -> dict[str, Any]:
        """Hashes and counts of what was loaded."""
        return {}

    def no_split(self, name: str) -> LabError:
        """The sentence for a split that is not there."""
        return LabError(f"split is {name!r}; it must be one of {', '.join(self.roles)}")
