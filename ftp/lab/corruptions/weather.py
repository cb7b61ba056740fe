"""Weather: snow, frost, fog, and water or mud on the lens."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from ftp.lab.corruptions._filters import gaussian, multiply, streak, zoom_blocks
from ftp.lab.corruptions._registry import corruption
from ftp.lab.corruptions._water import relief

GREY = (0.299, 0.587, 0.114)  # how bright the eye sees red, green and blue


def plasma(count: int, size: int, decay: float, generator: Generator | None, device: torch.device) -> Tensor:
    """Clouds by the diamond-square method: (count, size, size) in [0, 1]; size is a power of two.

    Each round halves the grid: a new point is the mean of four old ones plus a random part, which shrinks
    by decay^2 from round to round. A small decay gives ragged clouds. The map repeats at its edges.

    >>> clouds = plasma(2, 8, 2.0, None, torch.device("cpu"))
    >>> clouds.shape, clouds.amin((1, 2)), clouds.amax((1, 2))
    (torch.Size([2, 8, 8]), tensor([0., 0.]), tensor([1., 1.]))
    """
    clouds = torch.zeros(count, size, size, device=device)
    step, spread = size, 1.0

    def filled(total: Tensor) -> Tensor:
        draw = torch.rand(total.shape, generator=generator, device=device)
        return draw.mul_(2 * spread).sub_(spread).add_(total, alpha=0.25)

    while step >= 2:
        half = step // 2
        corners = clouds[:, ::step, ::step].clone()
        pairs = corners + corners.roll(-1, 1)
        centres = filled(pairs + pairs.roll(-1, 2))
        clouds[:, half::step, half::step] = centres
        clouds[:, ::step, half::step] = filled(centres + centres.roll(1, 1) + corners + corners.roll(-1, 2))
        clouds[:, half::step, ::step] = filled(centres + centres.roll(1, 2) + pairs)
        step, spread = half, spread / decay**2
    clouds -= clouds.amin((1, 2), keepdim=True)
    return clouds.div_(clouds.amax((1, 2), keepdim=True))


@corruption(
    "fog",
    imagenet=[(1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
    cifar=[(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
    tiny=[(0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)],
)
def fog(x: Tensor, thickness: float, decay: float, *, generator: Generator | None) -> Tensor:
    """Fog: (x + thickness clouds) m / (m + thickness), with m the brightest value of the image.

    >>> fog(torch.zeros(1, 3, 8, 8), 1.5, 2, generator=None).max()
    tensor(0.)
    """
    count, _, height, width = x.shape
    size = 2 ** math.ceil(math.log2(max(height, width)))
    clouds = plasma(count, size, decay, generator, x.device)[:, None, :height, :width]
    brightest = x.amax((1, 2, 3), keepdim=True)
    return x.add_(clouds, alpha=thickness).mul_(brightest / (brightest + thickness))


@corruption(
    "snow",
    imagenet=[
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ],
    cifar=[
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ],
    tiny=[
        (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
    ],
    colour=True,
)
def snow(
    x: Tensor,
    mean: float,
    sigma: float,
    zoom: float,
    least: float,
    radius: int,
    length: float,
    keep: float,
    *,
    generator: Generator | None,
) -> Tensor:
    """Falling flakes: the peaks (> least) of enlarged noise N(mean, sigma), smeared by wind, on a whitened picture.

        keep x + (1 - keep) max(x, 1.5 grey + 0.5) + flakes + flakes turned by 180 degrees

    >>> snow(torch.zeros(1, 3, 32, 32), 0.1, 0.3, 1, 9.0, 10, 4, 0.8, generator=None).mean().round(decimals=3)
    tensor(0.1000)
    """
    count, _, height, width = x.shape
    shape = (count, 1, math.ceil(height / zoom), math.ceil(width / zoom))
    flakes = torch.randn(shape, generator=generator, device=x.device).mul_(sigma).add_(mean)
    flakes = multiply(flakes, zoom_blocks(height, zoom, crop=False), zoom_blocks(width, zoom, crop=False))
    flakes = streak(F.threshold(flakes, least, 0.0).clamp_(0, 1), radius, length, -135, -45, generator)
    red, green, blue = x.unbind(1)
    grey = (red * GREY[0]).add_(green, alpha=GREY[1]).add_(blue, alpha=GREY[2])
    white = torch.maximum(x, grey[:, None].mul_(1.5).add_(0.5))
    return x.mul_(keep).add_(white, alpha=1 - keep).add_(flakes + flakes.flip(2, 3))


def feathers(count: int, height: int, width: int, generator: Generator | None, device: torch.device) -> Tensor:
    """Ice feathers on a window: (count, 1, height, width) >= 0.

    A feather is a slightly bent needle with straight side needles at about 60 degrees, shorter toward the
    tip, as ice grows. All points of all needles are drawn at once and added up where they fall.

    >>> feathers(2, 16, 16, None, torch.device("cpu")).shape
    torch.Size([2, 1, 16, 16])
    """
    side = min(height, width)
    crystals = 26 * max(height, width) // side
    needles, points = max(6, side // 6), max(4, side // 8)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return torch.rand(count, crystals, *shape, generator=generator, device=device).mul_(high - low).add_(low)

    size = torch.tensor([height, width], device=device, dtype=torch.float32)
    root = uniform(-0.1, 1.1, 1, 1, 2) * size
    length = uniform(0.15, 0.6, 1, 1) * side
    angle = uniform(0, 2 * math.pi, 1, 1)
    along = (torch.arange(needles, device=device)[:, None] + uniform(0, 1, needles, 1)) / needles
    aside = torch.linspace(-1, 1, 2 * points, device=device)
    bent = angle + uniform(-0.6, 0.6, 1, 1) * along
    branch = bent + math.radians(60) * aside.sign() + uniform(-0.1, 0.1, needles, 1)
    reach = length * (0.45 * (1 - along) + 0.05) * uniform(0.4, 1, needles, 1) * aside.abs()
    y = root[..., 0] + length * along * bent.sin() + reach * branch.sin()
    x = root[..., 1] + length * along * bent.cos() + reach * branch.cos()
    light = (1.1 - aside.abs()) * (1.2 - along) * uniform(0.3, 1, 1, 1)
    # whatever leaves the picture falls on a margin of one pixel, which is cut off
    place = y.round_().clamp_(-1, height).mul_(width + 2).add_(x.round_().clamp_(-1, width)).add_(width + 3)
    ice = torch.zeros(count, (height + 2) * (width + 2), device=device)
    ice.scatter_add_(1, place.long().flatten(1), light.flatten(1))
    return ice.view(count, 1, height + 2, width + 2)[..., 1:-1, 1:-1]


@corruption(
    "frost",
    imagenet=[(1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)],
    cifar=[(1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)],
    tiny=[(1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)],
    colour=True,
)
def frost(x: Tensor, keep: float, ice: float, *, generator: Generator | None) -> Tensor:
    """A frozen window: keep x + ice picture, where the picture is drawn: a haze with feathers of ice, white on blue.

    The original blends in crops of six photographs. Ours has their mean colour, their spread of brightness
    from picture to picture and their contrast within a picture, but not their shapes.

    >>> frost(torch.zeros(1, 3, 32, 32), 1, 0.4, generator=None).max() > 0.1
    tensor(True)
    """
    count, _, height, width = x.shape
    size = 2 ** math.ceil(math.log2(max(height, width)))
    # haze is soft: clouds of a quarter of the size, enlarged
    haze = plasma(count, max(4, size // 4), 1.7, generator, x.device)[:, None]
    haze = multiply(haze, zoom_blocks(size, 4, crop=False), zoom_blocks(size, 4, crop=False))[..., :height, :width]
    lines = gaussian(feathers(count, height, width, generator, x.device), 0.6).sqrt_()
    base = torch.rand(count, 1, 1, 1, generator=generator, device=x.device)
    picture = (lines * 0.4).add_(haze, alpha=0.2).add_(base * 0.6 + 0.08)
    tint = torch.tensor([0.86, 1.0, 1.07], device=x.device).view(1, 3, 1, 1)
    return x.mul_(keep).add_((picture * tint).clamp_(max=1), alpha=ice)


@corruption(
    "spatter",
    imagenet=[
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ],
    cifar=[
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ],
    tiny=[
        (0.62, 0.1, 0.7, 0.7, 0.6, 0),
        (0.65, 0.1, 0.8, 0.7, 0.6, 0),
        (0.65, 0.3, 1, 0.69, 0.6, 0),
        (0.65, 0.1, 0.7, 0.68, 0.6, 1),
        (0.65, 0.1, 0.5, 0.67, 0.6, 1),
    ],
    colour=True,
)
def spatter(
    x: Tensor,
    mean: float,
    sigma: float,
    smooth: float,
    least: float,
    power: float,
    mud: int,
    *,
    generator: Generator | None,
) -> Tensor:
    """Drops on the lens: the peaks (> least) of smoothed noise N(mean, sigma), as pale water or as brown mud.

    Water adds its colour, with strength `power` at most; mud covers, with rims of width `power`.

    >>> spatter(torch.zeros(1, 3, 32, 32), 0.65, 0.3, 2, 9.0, 0.6, 0, generator=None).max()
    tensor(0.)
    """
    count, _, height, width = x.shape
    draw = torch.randn(count, 1, height, width, generator=generator, device=x.device)
    liquid = gaussian(draw.mul_(sigma).add_(mean), smooth)
    if mud:
        cover = F.threshold(gaussian((liquid > least).float(), power), 0.8, 0.0)
        colour = torch.tensor([63.0, 42.0, 20.0], device=x.device).div_(255).view(1, 3, 1, 1)
        return x.mul_(1 - cover).addcmul_(cover, colour)
    levels = F.threshold(liquid, least, 0.0).mul_(255).floor_()
    film = levels.mul_(relief(levels))
    film = film.div_(film.amax((1, 2, 3), keepdim=True).clamp_(min=1e-6)).mul_(power)
    colour = torch.tensor([175.0, 238.0, 238.0], device=x.device).div_(255).view(1, 3, 1, 1)  # pale turquoise
    return x.addcmul_(film, colour)
