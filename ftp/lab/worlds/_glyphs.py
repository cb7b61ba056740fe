"""Glyphs: letters and digits drawn from the fonts that matplotlib carries, bent, coloured and textured in batches.

The digits world is pre-trained on these, and three of its shifts are made of these. What a shift uses (fonts,
textures, the pencil) is never used in pre-training: see HELD_OUT_FONTS and TEXTURES.
"""

import functools
import importlib.util
import math
import string
from pathlib import Path

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from ftp.lab.record import LabError

CHARACTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase  # 62 classes
FINE, SIDE = 64, 32  # pixels: shapes are bent at FINE and shown at SIDE

FONTS = (
    *("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique"),
    *("DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique"),
    *("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic"),
    *("cmr10", "cmb10", "cmti10"),
)
HELD_OUT_FONTS = ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta", "cmss10", "cmtt10")
TEXTURES = ("clouds", "stripes", "gradient", "grain")
HELD_OUT_TEXTURES = ("checks", "rings", "bricks")


@functools.cache
def atlas(fonts: tuple[str, ...], characters: str = CHARACTERS) -> Tensor:
    """Every character in every font: floats in [0, 1] of shape (fonts, characters, 64, 64), centred.

    >>> atlas(("DejaVuSans",), "01").shape
    torch.Size([1, 2, 64, 64])
    """
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    spec = importlib.util.find_spec("matplotlib")  # only its files are needed, and importing it takes its time
    if spec is None or spec.origin is None:
        raise LabError("the package matplotlib with its fonts is missing; install the kit again: make app")
    folder = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf"
    sheets = torch.zeros(len(fonts), len(characters), FINE, FINE)
    for f, name in enumerate(fonts):
        font = ImageFont.truetype(str(folder / f"{name}.ttf"), 96)
        for c, character in enumerate(characters):
            page = Image.new("L", (192, 192), 0)
            ImageDraw.Draw(page).text((48, 24), character, font=font, fill=255)
            ink = page.crop(page.getbbox())
            scale = 40 / max(ink.size)  # as MNIST: the longer side takes 20 of 32 pixels
            ink = ink.resize((max(1, round(ink.width * scale)), max(1, round(ink.height * scale))))
            pixels = torch.from_numpy(np.array(ink, dtype="float32")) / 255
            top, left = (FINE - pixels.shape[0]) // 2, (FINE - pixels.shape[1]) // 2
            sheets[f, c, top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return sheets


def uniform(shape: tuple[int, ...], low: float, high: float, g: Generator) -> Tensor:
    """Random numbers between low and high."""
    return torch.rand(shape, generator=g) * (high - low) + low


def bend(shapes: Tensor, g: Generator, strength: float = 1.0) -> Tensor:
    """Turn, shear, scale, shift and wobble each shape: (batch, 1, 64, 64) -> the same."""
    n = len(shapes)
    angle = uniform((n,), -0.35, 0.35, g) * strength
    size = torch.exp(uniform((2, n), -0.25, 0.25, g) * strength)
    shear = uniform((n,), -0.35, 0.35, g) * strength
    shift = uniform((2, n), -0.15, 0.15, g) * strength
    cos, sin = angle.cos(), angle.sin()
    theta = torch.stack(
        [
            torch.stack([cos / size[0], (shear * cos - sin) / size[0], shift[0]], -1),
            torch.stack([sin / size[1], (shear * sin + cos) / size[1], shift[1]], -1),
        ],
        1,
    )
    grid = F.affine_grid(theta, [n, 1, FINE, FINE], align_corners=False)
    wobble = uniform((n, 2, 5, 5), -0.16, 0.16, g) * strength
    smooth = F.interpolate(wobble, size=(FINE, FINE), mode="bicubic", align_corners=True)
    return F.grid_sample(shapes, grid + smooth.permute(0, 2, 3, 1), align_corners=False).clamp(0, 1)


def grow(shapes: Tensor, radius: int) -> Tensor:
    """Thicker strokes for radius > 0, thinner ones for radius < 0."""
    if radius == 0:
        return shapes
    if radius < 0:
        return -grow(-shapes, -radius)
    for dim in (-1, -2):  # one direction after the other: the same values as a square window, ten times as fast
        wide = F.pad(shapes, (radius, radius) if dim == -1 else (0, 0, radius, radius), value=-math.inf)
        parts = [wide.narrow(dim, k, shapes.shape[dim]) for k in range(2 * radius + 1)]
        shapes = functools.reduce(torch.maximum, parts)
    return shapes


def outline(shapes: Tensor, outer: int, inner: int) -> Tensor:
    """The rim of each shape: what growing adds and shrinking takes away."""
    return (grow(shapes, outer) - grow(shapes, -inner)).clamp(0, 1)


def shrink(shapes: Tensor) -> Tensor:
    """From 64 pixels to the 32 that are shown."""
    return F.avg_pool2d(shapes, 2)


def texture(kind: str, n: int, g: Generator) -> Tensor:
    """Grey patterns in [0, 1] of shape (n, 1, 32, 32), each with its own frequency, angle and place."""
    axis = torch.arange(SIDE) / SIDE
    y, x = axis.view(1, 1, -1, 1), axis.view(1, 1, 1, -1)
    angle, phase, rate = (uniform((n, 1, 1, 1), low, high, g) for low, high in ((0, math.pi), (0, 1), (2.5, 7)))
    along = x * angle.cos() + y * angle.sin()
    across = y * angle.cos() - x * angle.sin()
    if kind == "clouds":
        cells = torch.rand((n, 1, 6, 6), generator=g)
        return F.interpolate(cells, size=(SIDE, SIDE), mode="bicubic", align_corners=True).clamp(0, 1)
    if kind == "stripes":
        return 0.5 + 0.5 * torch.sin(2 * math.pi * (along * rate + phase))
    if kind == "gradient":
        return (0.5 + (along - along.mean((2, 3), keepdim=True)) * 0.9).clamp(0, 1)
    if kind == "grain":
        return torch.rand((n, 1, SIDE, SIDE), generator=g)
    if kind == "checks":
        return ((along * rate + phase).floor() + (across * rate).floor()).remainder(2)
    if kind == "rings":
        cx, cy = uniform((n, 1, 1, 1), 0, 1, g), uniform((n, 1, 1, 1), 0, 1, g)
        return 0.5 + 0.5 * torch.cos(2 * math.pi * (((x - cx) ** 2 + (y - cy) ** 2).sqrt() * rate * 1.5 + phase))
    if kind == "bricks":
        row = (across * rate).floor()
        joint = (across * rate).remainder(1) < 0.2
        return 1 - (joint | ((along * rate * 0.6 + 0.5 * row + phase).remainder(1) < 0.12)).float()
    raise ValueError(f"texture kind is {kind!r}; it must be one of {', '.join(TEXTURES + HELD_OUT_TEXTURES)}")


def two_colours(n: int, g: Generator, least: float = 0.35) -> tuple[Tensor, Tensor]:
    """Ink and paper of shape (n, 3, 1, 1), their brightness at least `least` apart, either one the darker."""
    ink, paper = torch.rand((n, 3, 1, 1), generator=g), torch.rand((n, 3, 1, 1), generator=g)
    weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
    for _ in range(20):
        close = ((ink - paper) * weights).sum((1, 2, 3)).abs() < least
        if not close.any():
            break
        ink[close] = torch.rand((int(close.sum()), 3, 1, 1), generator=g)
        paper[close] = torch.rand((int(close.sum()), 3, 1, 1), generator=g)
    return ink, paper


def paint(shapes: Tensor, ink: Tensor, paper: Tensor) -> Tensor:
    """Ink where the shape is, paper elsewhere: (batch, 3, 32, 32) in [0, 1]."""
    return (paper + shapes * (ink - paper)).expand(-1, 3, -1, -1).clamp(0, 1)


def textured(ink: Tensor, pattern: Tensor, depth: Tensor | float) -> Tensor:
    """A colour that a pattern makes lighter and darker."""
    return (ink + (pattern - 0.5) * depth).clamp(0, 1)


def pencil(shapes: Tensor, g: Generator) -> Tensor:
    """The sketch: a thin wobbling outline with gaps, in grey pencil on light paper. shapes at 64 pixels."""
    n = len(shapes)
    rim = outline(bend(shapes, g, 0.25), 2, 0)
    gaps = F.interpolate(torch.rand((n, 1, 9, 9), generator=g), size=(FINE, FINE), mode="bicubic")
    lines = shrink(rim * (gaps > 0.18)) * uniform((n, 1, 1, 1), 0.6, 1.0, g)
    paper = uniform((n, 1, 1, 1), 0.85, 1.0, g) - 0.05 * texture("grain", n, g)
    return paint(lines, uniform((n, 1, 1, 1), 0.05, 0.3, g), paper)
