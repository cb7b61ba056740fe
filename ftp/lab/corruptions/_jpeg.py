"""The parts of a JPEG file: quantisation tables, cosine transforms of 8 x 8 blocks, colour at half the size."""

import importlib
import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from ftp.lab.corruptions._filters import Blocks, across, split

# red, green, blue to brightness and two colour differences
TO_YCC = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))

Table = tuple[tuple[int, ...], ...]

# The example tables of the JPEG standard, Annex K: steps for quality 50, light and colour.
LIGHT = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
COLOUR = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)


def quantisation(table: Table, quality: int) -> Tensor:
    """The steps of an 8 x 8 block at a quality from 1 to 100, as libjpeg scales them.

    >>> quantisation(LIGHT, 25)[0, :3], quantisation(LIGHT, 50)[0, :3]
    (tensor([32., 22., 20.]), tensor([16., 11., 10.]))
    """
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return ((torch.tensor(table) * scale + 50) // 100).clamp(1, 255).float()


def cosines() -> Tensor:
    """The cosine transform of 8 values as an orthogonal matrix.

    >>> (cosines() @ torch.ones(8)).abs().round(decimals=3)
    tensor([2.8280, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000])
    """
    k = torch.arange(8, dtype=torch.float32)
    waves = torch.cos((2 * k + 1) * k[:, None] * (math.pi / 16)).div_(2)
    waves[0].mul_(math.sqrt(0.5))
    return waves


@lru_cache(maxsize=64)
def transforms(table: Table, quality: int, width: int, device: torch.device) -> tuple[Tensor, ...]:
    """What `requantise` multiplies with: along rows, along columns, 1 / steps, steps, and the way back.

    libjpeg keeps whole numbers: after the rows 4 sqrt(8) times the transform, after the columns 8 times. These
    roundings decide which way a coefficient falls that lies near the middle between two multiples.
    """
    waves, steps = cosines(), quantisation(table, quality).repeat(1, width // 8)
    # the tiny surplus rounds halves away from zero, as libjpeg does
    parts = (waves.T * (4 * math.sqrt(8)), waves * (math.sqrt(8) / 4), (1 + 1e-6) / (8 * steps), steps, waves.T, waves)
    return tuple(part.contiguous().to(device) for part in parts)


def requantise(plane: Tensor, table: Table, quality: int) -> Tensor:
    """What is left of levels -128 to 127 after cosine transform, rounding to multiples of the steps, and back.

    >>> requantise(torch.full((1, 8, 8), 100.0), LIGHT, 50)[0, 0, 0]
    tensor(100.)
    """
    width = plane.shape[-1]
    rows, columns, shrink, steps, columns_back, rows_back = transforms(table, quality, width, plane.device)
    lines = (plane.reshape(-1, 8) @ rows).round_()
    strips = (columns @ lines.view(-1, 8, width)).round_()  # the 8 rows of a row of blocks
    strips.mul_(shrink).round_().mul_(steps)
    lines = (columns_back @ strips).view(-1, 8) @ rows_back
    return lines.view(plane.shape).round_().clamp_(-128, 127)


@lru_cache(maxsize=16)
def double_blocks(size: int, real: int) -> Blocks:
    """Twice as many pixels, each 3/4 of the nearest old one and 1/4 of the next nearest of the `real` ones.

    >>> double_blocks(2, 2)[0][2]
    tensor([[1.0000, 0.0000],
            [0.7500, 0.2500],
            [0.2500, 0.7500],
            [0.0000, 1.0000]])
    """
    line = torch.arange(size)[:, None].clamp(max=real - 1)
    matrix = torch.zeros(size, 2, size)
    matrix.scatter_add_(2, line[:, None].expand(-1, 2, 1), torch.full((size, 2, 1), 0.75))
    aside = torch.cat([line - 1, line + 1], 1).clamp(0, real - 1)[..., None]
    matrix.scatter_add_(2, aside, torch.full((size, 2, 1), 0.25))
    return split(matrix.view(2 * size, size))


def doubled(x: Tensor, tall: int, wide: int) -> Tensor:
    """Twice as many rows and columns, by `double_blocks`; only tall x wide of the old pixels are real.

    >>> doubled(torch.tensor([[0.0, 4.0], [8.0, 12.0]]), 2, 2)[:, 0]
    tensor([0., 2., 6., 8.])
    """
    x = across(x, double_blocks(x.shape[-1], wide))
    x[..., tall:, :] = x[..., tall - 1 : tall, :]
    # the rows need no product: the upper and lower half of an old row, each mixed with its neighbour
    out = x.new_empty(*x.shape[:-1], 2, x.shape[-1])
    torch.lerp(x[..., 1:, :], x[..., :-1, :], 0.25, out=out[..., 1:, 0, :])
    torch.lerp(x[..., :-1, :], x[..., 1:, :], 0.25, out=out[..., :-1, 1, :])
    out[..., 0, 0, :], out[..., -1, 1, :] = x[..., 0, :], x[..., -1, :]
    return out.flatten(-3, -2)


@lru_cache(maxsize=1)
def libjpeg() -> Callable[[Tensor, int], Tensor] | None:
    """torchvision's libjpeg: write an image (3, height, width) of bytes at a quality, and read it. None without it.

    Its Python functions are to go, and warn at each call; the operators under them are taken while they are there.
    """
    try:
        importlib.import_module("torchvision.io")  # registers them; a second, and only JPEG needs it

        encode, decode = torch.ops.image.encode_jpeg, torch.ops.image.decode_jpeg
    except (ImportError, AttributeError):
        return None
    return lambda image, quality: decode(encode(image, quality), 0, False)
