"""Emoji in little scenes, drawn with torch: each turned, scaled and moved on a pale ground, often beside another one.

A scene says everything but the artist: so the same scene by another artist differs in the hand alone.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Generator, Tensor

SIDE = 32
TURN, SMALLEST = 0.35, 0.62  # radians to either side; of the picture's width
BESIDE, BESIDE_SIZE = 0.5, (0.28, 0.42)  # how often another emoji stands in a corner behind, and how large it is


class Poses(NamedTuple):
    """Where things stand, one row a picture: the angle, size and place of the thing and of the one behind it."""

    thing: Tensor  # (n,) numbers in the order of `emoji.things()`
    front: Tensor  # (n, 4): angle, size, x and y of the middle in [-1, 1]
    other: Tensor  # (n,) the thing behind
    behind: Tensor  # (n, 4); size 0 for nothing
    ground: Tensor  # (n, 3) colours in [0, 1]


@functools.cache
def sheet(artist: str) -> Tensor:
    """All pictures of an artist as bytes (things, 4, 32, 32), colours already multiplied by how opaque they are."""
    import numpy
    import torch
    from torch.nn import functional as F

    from ftp.lab.emoji import pictures

    rows = []
    pixels_of_all = torch.from_numpy(numpy.array(pictures(artist))).permute(0, 3, 1, 2)
    for part in torch.split(pixels_of_all, 200):
        pixels = part.float().div_(255)
        pixels[:, :3] *= pixels[:, 3:]
        rows.append(F.avg_pool2d(pixels, pixels.shape[-1] // SIDE).mul_(255).round_().to(torch.uint8))
    return torch.cat(rows)


def poses(thing: Tensor, others: int, g: Generator) -> Poses:
    """Poses for these things; the one behind is any of the first `others` things of the sheets."""
    import torch

    n = len(thing)
    dice = torch.rand((n, 13), generator=g)
    size = SMALLEST + (1 - SMALLEST) * dice[:, 0]
    room = (1 - size)[:, None]
    front = torch.cat([TURN * (2 * dice[:, 1:2] - 1), size[:, None], room * (2 * dice[:, 2:4] - 1)], 1)
    low, high = BESIDE_SIZE
    small = (low + (high - low) * dice[:, 4]) * (dice[:, 5] < BESIDE)
    corner = torch.where(dice[:, 6:8] < 0.5, -1.0, 1.0) * (1 - small)[:, None]
    behind = torch.cat([TURN * (2 * dice[:, 8:9] - 1), small[:, None], corner], 1)
    other = torch.clamp((dice[:, 9] * others).long(), max=others - 1)
    return Poses(thing, front, other, behind, 200 / 255 + 55 / 255 * dice[:, 10:13])


def draw(artist: str, p: Poses) -> Tensor:
    """The pictures of these poses by an artist: floats (n, 3, 32, 32) in [0, 1]."""
    pixels = p.ground[:, :, None, None].expand(-1, -1, SIDE, SIDE)
    there = p.behind[:, 1] > 0
    pixels = pixels.clone()
    if there.any():
        pixels[there] = _over(pixels[there], sheet(artist)[p.other[there]], p.behind[there])
    return _over(pixels, sheet(artist)[p.thing], p.front).clamp_(0, 1)


def _over(ground: Tensor, glyphs: Tensor, pose: Tensor) -> Tensor:
    """Lay glyphs over a ground, each in its pose."""
    import torch
    from torch.nn import functional as F

    angle, size, x, y = pose.T
    cos, sin = angle.cos() / size, angle.sin() / size
    # from the place in the picture to the place in the glyph: move back, turn back, enlarge
    theta = torch.stack(
        [torch.stack([cos, sin, -(cos * x + sin * y)], -1), torch.stack([-sin, cos, sin * x - cos * y], -1)], 1
    )
    grid = F.affine_grid(theta, [len(glyphs), 4, SIDE, SIDE], align_corners=False)
    layer = F.grid_sample(glyphs.float().div_(255), grid, align_corners=False)
    return ground * (1 - layer[:, 3:]) + layer[:, :3]
