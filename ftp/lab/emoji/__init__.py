"""Emoji: 1,410 things, each drawn by six artists, as sheets of small pictures. Without torch.

    picture("noto", "tiger")        # a Pillow image, 64 x 64, with its transparency
    pictures("fluent_3d")           # all of them at once: (1410, 64, 64, 4) bytes, in the order of `things()`

`data_scripts/make_emoji.py` makes the sheets; whose work they are stands in LICENCES.md beside them. One picture is
empty in its package and so here: "squared new" as black outlines.
"""

import difflib
import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.record import LabError
from ftp.lab.registry import unknown

if TYPE_CHECKING:
    from numpy import ndarray
    from PIL.Image import Image

HOME = Path(__file__).resolve().parent
# the artists, and how people call them; the first is the one that others are compared with
TITLES = {
    "noto": "Noto",
    "twemoji": "Twemoji",
    "openmoji": "OpenMoji",
    "openmoji_black": "OpenMoji, black outlines",
    "fluent_3d": "Fluent 3D",
    "fluent_flat": "Fluent flat",
}


@dataclass(frozen=True)
class Thing:
    """One emoji: its code points, Unicode's name and a short one, its group, and its coarse class ("" for none)."""

    code: str
    name: str
    short: str
    group: str
    subgroup: str
    coarse: str

    @property
    def character(self) -> str:
        """The emoji as text.

        >>> things()[0].character
        '😀'
        """
        return "".join(chr(int(part, 16)) for part in self.code.split("-"))


def artists() -> tuple[str, ...]:
    """The names of the artists, those of the sheets."""
    return tuple(TITLES)


@functools.cache
def _index() -> dict[str, Any]:
    index: dict[str, Any] = json.loads((HOME / "things.json").read_text(encoding="utf-8"))
    return index


@functools.cache
def things() -> tuple[Thing, ...]:
    """Every thing, in the order of the sheets, which is that of Unicode's charts.

    >>> len(things()), things()[0].name
    (1410, 'grinning face')
    """
    return tuple(Thing(**row) for row in _index()["things"])


def classes() -> tuple[str, ...]:
    """The ten coarse classes.

    >>> classes()[:3]
    ('animal', 'food', 'vehicle')
    """
    return tuple(_index()["classes"])


@functools.cache
def sheet(artist: str) -> "Image":
    """The whole sheet of an artist, with its transparency."""
    from PIL import Image

    if artist not in TITLES:
        raise LabError(unknown("artist", artist, TITLES))
    with Image.open(HOME / f"{artist}.webp") as image:
        return image.convert("RGBA")


def picture(artist: str, thing: str) -> "Image":
    """One picture, 64 pixels wide, by the name of its thing or by its code.

    >>> picture("noto", "tiger").size
    (64, 64)
    >>> picture("noto", "tigre")
    Traceback (most recent call last):
    ftp.lab.record.LabError: thing is 'tigre'; did you mean tiger?
    """
    place = next((i for i, t in enumerate(things()) if thing in (t.name, t.code)), None)
    if place is None:
        close = difflib.get_close_matches(thing, [t.name for t in things()], n=1)
        hint = f"did you mean {close[0]}?" if close else "it must be a name in ftp/lab/emoji/things.json, such as tiger"
        raise LabError(f"thing is {thing!r}; {hint}")
    side, columns = _index()["side"], _index()["columns"]
    x, y = place % columns * side, place // columns * side
    return sheet(artist).crop((x, y, x + side, y + side))


def pictures(artist: str) -> "ndarray[Any, Any]":
    """All pictures of an artist as bytes, (things, 64, 64, 4): red, green, blue and how opaque.

    >>> pictures("openmoji_black").shape
    (1410, 64, 64, 4)
    """
    import numpy

    side, columns = _index()["side"], _index()["columns"]
    whole = numpy.asarray(sheet(artist))
    cells = whole.reshape(-1, side, columns, side, 4).swapaxes(1, 2).reshape(-1, side, side, 4)
    return cells[: len(things())]
