"""Blur: every pixel becomes a mean of pixels around it."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from ftp.lab.corruptions._filters import (
    band,
    fast_size,
    fold,
    gaussian,
    gaussian_weights,
    multiply,
    streak,
    zoom_blocks,
)
from ftp.lab.corruptions._registry import corruption


def disk(radius: float, smooth: float) -> Tensor:
    """A round aperture as a kernel of sum 1, its rim smoothed by a small Gaussian of width `smooth`.

    >>> disk(1, 0.1)[7:10, 7:10].round(decimals=4)
    tensor([[0.0000, 0.2000, 0.0000],
            [0.2000, 0.2000, 0.2000],
            [0.0000, 0.2000, 0.0000]])
    """
    reach = max(8, int(radius))
    offset = torch.arange(-reach, reach + 1)
    inside = (offset[:, None] ** 2 + offset**2 <= radius**2).float()
    rim = band(2 * reach + 1, gaussian_weights(smooth, 1 if radius <= 8 else 2), "mirror")
    return rim @ (inside / inside.sum()) @ rim.T


@lru_cache(maxsize=32)
def disk_spectrum(radius: float, smooth: float, tall: int, wide: int) -> Tensor:
    """The Fourier transform of a disk, on a grid of tall x wide pixels; real, for a disk is symmetric.

    >>> disk_spectrum(3, 0.1, 32, 32)[0, 0].round(decimals=4)
    tensor(1.)
    """
    kernel = disk(radius, smooth)
    middle = len(kernel) // 2
    kernel = F.pad(kernel, (0, wide - len(kernel), 0, tall - len(kernel))).roll((-middle, -middle), (0, 1))
    spectrum: Tensor = torch.fft.rfft2(kernel)
    return spectrum.real.contiguous()


@corruption(
    "defocus_blur",
    imagenet=[(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    cifar=[(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
    tiny=[(0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)],
)
def defocus_blur(x: Tensor, radius: float, smooth: float) -> Tensor:
    """A lens out of focus: every point becomes a disk of `radius` pixels.

    >>> defocus_blur(torch.ones(1, 1, 8, 8), 3, 0.1).mean().round(decimals=4)
    tensor(1.)
    """
    height, width = x.shape[-2:]
    margin = int(radius) + 1
    down = fold(torch.arange(-margin, height + margin), height, "mirror").to(x.device)
    right = fold(torch.arange(-margin, width + margin), width, "mirror").to(x.device)
    tall, wide = fast_size(max(32, len(down))), fast_size(max(32, len(right)))
    padded = x.new_zeros(*x.shape[:2], tall, wide)
    padded[..., : len(down), margin : margin + width] = x.index_select(2, down)
    for side in (slice(0, margin), slice(margin + width, len(right))):
        padded[..., side] = padded.index_select(3, margin + right[side])
    spectrum = torch.fft.rfft2(padded).mul_(disk_spectrum(radius, smooth, tall, wide).to(x.device))
    blurred: Tensor = torch.fft.irfft2(spectrum, s=(tall, wide))
    return blurred[..., margin : margin + height, margin : margin + width]


@corruption("gaussian_blur", imagenet=[1, 2, 3, 4, 6], cifar=[0.4, 0.6, 0.7, 0.8, 1], tiny=[0.5, 0.75, 1, 1.25, 1.5])
def gaussian_blur(x: Tensor, sigma: float) -> Tensor:
    """A soft lens: a mean with weights exp(-distance^2 / 2 sigma^2).

    >>> gaussian_blur(torch.ones(1, 1, 8, 8), 2.0).mean().round(decimals=4)
    tensor(1.)
    """
    return gaussian(x, sigma)


@corruption(
    "glass_blur",
    moves_pixels=True,
    imagenet=[(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)],
    cifar=[(0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
    tiny=[(0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)],
)
def glass_blur(x: Tensor, sigma: float, reach: int, rounds: int, *, generator: Generator | None) -> Tensor:
    """Frosted glass: blur, let each pixel be replaced by one at most `reach` away, `rounds` times, blur.

    >>> glass_blur(torch.ones(1, 1, 8, 8), 0.7, 1, 2, generator=None).mean().round(decimals=4)
    tensor(1.)
    """
    count, _, height, width = x.shape
    x = gaussian(x, sigma)
    source = shuffle(count, height, width, reach, generator, x.device)
    for _ in range(rounds - 1):
        source = source.index_select(0, shuffle(count, height, width, reach, generator, x.device))
    for channel in x.unbind(1):  # all channels of a pixel move together
        channel.copy_(channel.flatten().index_select(0, source).view_as(channel))
    return gaussian(x, sigma)


def shuffle(
    count: int, height: int, width: int, reach: int, generator: Generator | None, device: torch.device
) -> Tensor:
    """The pixel that each pixel's content comes from: indices into all pixels of all images, flattened.

    The original visits the pixels one by one, from the last to the first, and writes into each the present
    content of a neighbour between -reach and reach - 1 away. (It means to swap the two, but NumPy's views
    make it a copy.) A neighbour that was visited before already holds another pixel's content: a chain.
    All chains are followed at once, in steps of doubling length: the same result without the order.

    >>> shuffle(1, 3, 3, 1, torch.Generator().manual_seed(0), torch.device("cpu")).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 4]
    """
    total = count * height * width
    small = torch.int32 if 2 * total < 2**31 else torch.int64
    offset = torch.arange(-reach, reach, device=device, dtype=small)
    steps = (offset[:, None] * width + offset).flatten()
    # p stands for what pixel p holds at the end, p + total for what it held at the start: there a chain ends
    jump = steps + (steps <= 0).to(small) * total
    inner = (count, max(0, height - 2 * reach), max(0, width - 2 * reach))
    draw = torch.randint(len(steps), inner, generator=generator, device=device, dtype=small)
    link = torch.arange(2 * total, device=device, dtype=small)
    link[:total] += total
    region = (slice(None), slice(reach + 1, height - reach + 1), slice(reach + 1, width - reach + 1))
    link[:total].view(count, height, width)[region] += jump.index_select(0, draw.flatten()).view(inner) - total
    while total and int(link[:total].amin()) < total:
        link[:total] = link.index_select(0, link[:total])
    return link[:total].sub_(total)


@corruption(
    "motion_blur",
    imagenet=[(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
    cifar=[(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
    tiny=[(10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)],
)
def motion_blur(x: Tensor, radius: int, sigma: float, *, generator: Generator | None) -> Tensor:
    """A moved camera: a one-sided streak of 2 radius + 1 pixels, at an angle between -45 and 45 degrees.

    >>> motion_blur(torch.ones(1, 1, 8, 8), 6, 1.0, generator=None).mean().round(decimals=4)
    tensor(1.)
    """
    return streak(x, radius, sigma, -45, 45, generator)


@corruption(
    "zoom_blur",
    moves_pixels=True,
    imagenet=[(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    cifar=[(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
    tiny=[(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
)
def zoom_blur(x: Tensor, stop: float, step: float) -> Tensor:
    """A camera rushing forward: the mean of the picture and of its zooms by 1, 1 + step, ... below stop.

    >>> zoom_blur(torch.ones(1, 1, 8, 8), 1.11, 0.01).mean().round(decimals=4)
    tensor(1.)
    """
    height, width = x.shape[-2:]
    count = math.ceil((stop - 1) / step)  # the length of NumPy's arange, rounding errors included
    step = (1 + step) - 1  # also as arange computes it: the last bit decides how 32 pixels are rounded
    total = x * 2  # the picture, and its zoom by 1
    for k in range(1, count):
        multiply(x, zoom_blocks(height, 1 + k * step), zoom_blocks(width, 1 + k * step), add_to=total)
    return total.div_(count + 1)
