"""Maps in small pictures: many tiles of one size in a WebP sheet, as text, for recordings that a page draws.

A sheet has rows of `COLUMNS` tiles. Labels are grey levels, without loss; 255 is ignored. Directions are colours,
without loss too: level 128 is 0, and 127 more or less is 1 or -1; black is ignored, for it is no direction.
"""

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = 8
MIDDLE, REACH = 128, 127  # the level of 0, and how far 1 is from it
QUALITY = 80  # of photographs
EFFORT = 75  # for the smallest file without loss; 100 takes sixty times as long and saves 6 %


def sheet(tiles: NDArray[np.uint8], lossless: bool = True) -> str:
    """Tiles of shape (count, side, side), grey, or (count, side, side, 3) as one WebP in base64.

    >>> whole = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4)
    >>> bool((tiles_of(sheet(whole), 4, 2)[..., 0] == whole).all())
    True
    """
    from PIL import Image

    count, side = tiles.shape[:2]
    colours = tiles if tiles.ndim == 4 else np.repeat(tiles[..., None], 3, axis=3)
    rows = -(-count // COLUMNS)
    whole = np.zeros((rows * COLUMNS, side, side, 3), np.uint8)
    whole[:count] = colours
    pixels = whole.reshape(rows, COLUMNS, side, side, 3).swapaxes(1, 2).reshape(rows * side, COLUMNS * side, 3)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "WEBP", lossless=lossless, quality=EFFORT if lossless else QUALITY, method=4)
    return base64.b64encode(out.getvalue()).decode()


def tiles_of(text: str, side: int, count: int) -> NDArray[np.uint8]:
    """The tiles of a sheet, (count, side, side, 3)."""
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(text))) as file:
        pixels = np.asarray(file.convert("RGB"))
    rows = pixels.shape[0] // side
    tiles = pixels.reshape(rows, side, COLUMNS, side, 3).swapaxes(1, 2).reshape(-1, side, side, 3)
    return tiles[:count]


def directions(vectors: NDArray[Any], ignored: NDArray[np.bool_] | None = None) -> NDArray[np.uint8]:
    """Vectors of shape (count, 3, height, width) as colours; the longest part of each map has the full reach.

    >>> directions(np.array([0.0, 0.0, 2.0]).reshape(1, 3, 1, 1))[0, 0, 0].tolist()
    [128, 128, 255]
    """
    most = np.abs(vectors).max(axis=(1, 2, 3), keepdims=True)
    levels = np.rint(MIDDLE + REACH * vectors / np.where(most > 0, most, 1)).astype(np.uint8)
    if ignored is not None:
        levels = np.where(ignored[:, None], 0, levels).astype(np.uint8)
    return np.moveaxis(levels, 1, -1)


def enlarged(maps: NDArray[Any], side: int) -> NDArray[np.float64]:
    """Maps of shape (count, small, small, channels), bilinear, to (count, side, side, channels); as torch does it.

    >>> enlarged(np.array([0.0, 1.0]).reshape(1, 1, 2, 1).repeat(2, axis=1), 4)[0, 0, :, 0].tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    small = maps.shape[1]
    place = np.clip((np.arange(side) + 0.5) * small / side - 0.5, 0, small - 1)
    low = np.floor(place).astype(int)
    high, part = np.minimum(low + 1, small - 1), place - low
    rows = maps[:, low] * (1 - part)[:, None, None] + maps[:, high] * part[:, None, None]
    wide: NDArray[np.float64] = rows[:, :, low] * (1 - part)[:, None] + rows[:, :, high] * part[:, None]
    return wide


def vectors_of(tiles: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The vectors that colours stand for, up to their length: the way back from `directions`."""
    return (tiles.astype(float) - MIDDLE) / REACH
