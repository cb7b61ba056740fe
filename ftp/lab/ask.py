"""Questions to networks of pictures and words that were recorded on their way from W0 to W (WiSE). Without torch.

    asked = asking(world)             # a world with the recording `ask`
    asked.answers(3)                  # what each network says of thing 3, in every set and at every alpha
    asked.found("a small tiger")      # which pictures of every set each network finds for a caption

The networks were computed at every alpha from interpolated weights (`ftp.lab.ask_walk`); what a caption finds is
computed here: its unit vector, by the text tower in numpy, times those of the pictures. All share the text tower.
"""

import base64
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftp.lab.emoji.text_numpy import TextTower
from ftp.lab.emoji.words import read, words_of
from ftp.lab.recordings.extras import extra

MODELS = Path(__file__).resolve().parent / "models"  # importing that package would import torch
TOP = 3  # answers that are shown of each picture, and pictures of each caption
NOBODY = 2**16 - 1  # fills the lists of labels up
FULL = 2**16 - 1  # stands for a chance of 1
Numbers = NDArray[Any]


@dataclass(frozen=True)
class Cell:
    """The candidates of one network in one set: their labels, and the value of each at every alpha."""

    labels: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]

    def best(self, at: int) -> int:
        """The label with the highest value at the alpha of that number.

        >>> Cell((4, 7), ((0.9, 0.2), (0.1, 0.8))).best(1)
        7
        """
        return max(zip(self.values, self.labels, strict=True), key=lambda row: row[0][at])[1]


@dataclass(frozen=True)
class Found:
    """What a caption finds: cells by network and set, the things that it names, and a remark about its words."""

    cells: tuple[tuple[Cell, ...], ...]
    named: tuple[int, ...]
    remark: str


class Asking:
    """One world's recording: its sets (home first), and a walk from W0 for each method."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self.recorded = recorded
        self.things: tuple[str, ...] = tuple(recorded["things"])
        self.sets: tuple[str, ...] = tuple(row["name"] for row in recorded["sets"])
        self.titles: tuple[str, ...] = tuple(row["title"] for row in recorded["sets"])
        self.alphas: tuple[float, ...] = tuple(recorded["alphas"])
        self.found_at: tuple[float, ...] = tuple(recorded["found_at"])
        self.seed = int(recorded["seed"])
        self.across = int(recorded["across"])  # pictures in a row of a sheet
        self.methods: tuple[str, ...] = tuple(way["method"] for way in recorded["ways"])
        self.examples: tuple[str, ...] = tuple(recorded["examples"])
        self._labels = [unpacked(way["labels"]) for way in recorded["ways"]]
        self._chances = [unpacked(way["chances"]) for way in recorded["ways"]]
        start = _unit(unpacked(recorded["vectors"]))  # W0 is where every walk begins
        self._vectors = [np.concatenate([start, _unit(unpacked(way["vectors"]))]) for way in recorded["ways"]]

    @functools.cached_property
    def version(self) -> str:
        """Changes when the pictures do."""
        sheets = "".join(row["sheet"] for row in self.recorded["sets"])
        return hashlib.sha256(sheets.encode()).hexdigest()[:12]

    def right(self, way: int) -> list[list[int]]:
        """How many things a network names rightly: by set, then by alpha."""
        counts: list[list[int]] = self.recorded["ways"][way]["right"]
        return counts

    @property
    def tiles(self) -> bytes:
        """A small picture of each thing, as `World.tiles` makes them."""
        return base64.b64decode(self.recorded["tiles"])

    def sheet(self, name: str) -> bytes:
        """The pictures of a set, thing by thing, as one WebP of rows of `across`."""
        return base64.b64decode(self.recorded["sets"][self.sets.index(name)]["sheet"])

    def answers(self, thing: int) -> tuple[tuple[Cell, ...], ...]:
        """What the networks say of a thing's picture: a cell for each walk and set, with chances from 0 to 1."""
        return tuple(
            tuple(self._cell(way, n, thing) for n in range(len(self.sets))) for way in range(len(self.methods))
        )

    def _cell(self, way: int, number: int, thing: int) -> Cell:
        labels, chances = self._labels[way][number, thing], self._chances[way][number, thing]
        is_answer = labels != NOBODY
        values = (chances[is_answer] / FULL).round(4).tolist()
        return Cell(tuple(labels[is_answer].tolist()), tuple(map(tuple, values)))

    def named(self, way: int, number: int, at: int) -> list[bool]:
        """Whether a network names each thing of a set rightly, at the alpha of that number."""
        return [self._cell(way, number, thing).best(at) == thing for thing in range(len(self.things))]

    def found(self, text: str) -> Found:
        """The pictures nearest to a caption, by cosine; a text that cannot be read is refused with a sentence."""
        reading = read(text)
        vector = _tower(self.recorded["towers"]).encode(reading.ids)
        cells = tuple(tuple(map(_nearest, (vectors @ vector).transpose(1, 2, 0))) for vectors in self._vectors)
        words = set(words_of(text))
        both = zip(self.things, self.recorded["short"], strict=True)  # "automobile", and "car"
        named = tuple(n for n, two in enumerate(both) if any(words >= set(words_of(name)) for name in two))
        return Found(cells, named, reading.remark)


def _nearest(cosines: Numbers) -> Cell:
    """The pictures that are among the nearest at some alpha; cosines: (things, alphas)."""
    chosen = candidates(cosines)
    return Cell(tuple(chosen), tuple(tuple(row) for row in cosines[chosen].astype(float).round(4).tolist()))


def candidates(values: Numbers) -> list[int]:
    """The rows that are among the `TOP` largest in some column; values: (rows, columns).

    >>> candidates(np.array([[9, 1], [8, 2], [7, 3], [1, 4], [0, 0]]))
    [0, 1, 2, 3]
    """
    places: list[int] = np.unique(np.argpartition(-values, TOP - 1, axis=0)[:TOP]).tolist()
    return places


def packed(array: Numbers) -> dict[str, Any]:
    """An array for JSON.

    >>> unpacked(packed(np.array([[1, 2]], np.uint16))).tolist()
    [[1, 2]]
    """
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": base64.b64encode(little.tobytes()).decode()}


def unpacked(form: dict[str, Any]) -> Numbers:
    """The array that `packed` made JSON of."""
    kind = np.dtype(form["dtype"]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(form["data"]), kind).reshape(form["shape"])


def bytes_of(vectors: Numbers) -> Numbers:
    """Vectors as whole numbers from -127 to 127: their direction is kept within a degree, their length is not."""
    largest = np.abs(vectors).max(-1, keepdims=True)
    whole: Numbers = np.round(127 * vectors / largest).astype(np.int8)
    return whole


def _unit(vectors: Numbers) -> Numbers:
    floats = vectors.astype(np.float32)
    unit: Numbers = floats / np.linalg.norm(floats, axis=-1, keepdims=True)
    return unit


@functools.cache
def _tower(filename: str) -> TextTower:
    return TextTower(MODELS / filename)


@functools.cache
def asking(world: str) -> Asking:
    """The recording of a world, unpacked once; a world without one is refused with a sentence."""
    return Asking(extra("ask", world))


def level(one: Sequence[bool], other: Sequence[bool]) -> bool:
    """Whether two networks are about the same on the same pictures: fewer than two standard errors apart (McNemar).

    >>> level([True] * 30 + [False], [True] * 29 + [False, True]), level([True] * 30, [False] * 30)
    (True, False)
    """
    better = sum(a and not b for a, b in zip(one, other, strict=True))
    worse = sum(b and not a for a, b in zip(one, other, strict=True))
    return (better - worse) ** 2 <= 4 * (better + worse)
