"""Noise: every value of every channel is disturbed on its own."""

import math
from functools import lru_cache

import torch
from torch import Generator, Tensor

from ftp.lab.corruptions._registry import corruption

STEEP = 1e9
FEW = 64  # photons up to which the table of counts is small and quick to make
COLUMNS = 128  # counts in the table; more than 127 of at most 64 photons come once in 10^12 pixels
SHADES = 2040  # rows of the table: 8 for each of the 255 levels, so that 8-bit images are met exactly


@lru_cache(maxsize=16)
def poisson_table(photons: float) -> tuple[Tensor, Tensor]:
    """Walker's alias table of the Poisson counts for every shade: (limits, others), flattened rows of COLUMNS.

    Every count gets a column of height 1; what a frequent count has too much fills up the columns of rare
    ones. To draw: pick a column c and a height h; below the limit the count is c, above it the other one.
    This is six times faster than torch.poisson, and as exact as float32 allows.

    >>> limits, others = poisson_table(3.0)
    >>> limits[0], others[COLUMNS - 1]  # no light: all columns give the count 0
    (tensor(1.), tensor(0.))
    """
    rate = torch.arange(SHADES + 1, dtype=torch.float64)[:, None] * (photons / SHADES)
    count = torch.arange(COLUMNS, dtype=torch.float64)
    mass = torch.exp(torch.special.xlogy(count, rate) - rate - torch.lgamma(count + 1)) * COLUMNS
    limit, other = torch.ones_like(mass), count.repeat(len(mass), 1)
    left = mass.clone()
    for _ in range(COLUMNS - 1):
        low, poor = left.min(1, keepdim=True)
        high, rich = left.nan_to_num(nan=-1.0, posinf=-1.0).max(1, keepdim=True)
        filled = low < 1
        limit.scatter_(1, poor, torch.where(filled, low, 1.0))
        other.scatter_(1, poor, torch.where(filled, rich, poor).double())
        left.scatter_(1, rich, torch.where(filled, high - (1 - low), high))
        left.scatter_(1, poor, torch.inf)  # this column is full
    return (limit + count).float().flatten(), other.float().flatten()


@corruption(
    "gaussian_noise",
    imagenet=[0.08, 0.12, 0.18, 0.26, 0.38],
    cifar=[0.04, 0.06, 0.08, 0.09, 0.10],
    tiny=[0.04, 0.08, 0.12, 0.15, 0.18],
)
def gaussian_noise(x: Tensor, sigma: float, *, generator: Generator | None) -> Tensor:
    """A sensor in low light: x + sigma n, n ~ N(0, 1).

    >>> gaussian_noise(torch.zeros(1, 3, 8, 8), 0.0, generator=None).abs().max()
    tensor(0.)
    """
    return x.add_(torch.randn(x.shape, generator=generator, device=x.device), alpha=sigma)


@corruption("shot_noise", imagenet=[60, 25, 12, 5, 3], cifar=[500, 250, 100, 75, 50], tiny=[250, 100, 50, 30, 15])
def shot_noise(x: Tensor, photons: float, *, generator: Generator | None) -> Tensor:
    """Counting single photons: Poisson(x photons) / photons; few photons, much noise.

    >>> shot_noise(torch.zeros(1, 3, 8, 8), 3.0, generator=None).abs().max()
    tensor(0.)
    """
    if photons > FEW:
        return torch.poisson(x.mul_(photons), generator=generator).div_(photons)
    level = x.mul_(SHADES).round_().mul_(COLUMNS)
    draw = torch.rand(x.shape, generator=generator, device=x.device).mul_(COLUMNS)
    column = draw.floor()
    cell = level.add_(column).to(torch.int32).flatten()
    limit, other = (table.to(x.device).index_select(0, cell).view_as(x) for table in poisson_table(photons))
    # keep the column's own count below the limit, take the other one above it
    share = limit.sub_(draw).mul_(STEEP).clamp_(0, 1)
    return other.lerp_(column, share).div_(photons)


@corruption(
    "impulse_noise",
    imagenet=[0.03, 0.06, 0.09, 0.17, 0.27],
    cifar=[0.01, 0.02, 0.03, 0.05, 0.07],
    tiny=[0.01, 0.02, 0.05, 0.08, 0.14],
)
def impulse_noise(x: Tensor, share: float, *, generator: Generator | None) -> Tensor:
    """Salt and pepper: a share of all values becomes 0 or 1, each half the time.

    >>> impulse_noise(torch.full((1, 3, 8, 8), 0.5), 1.0, generator=None).unique()
    tensor([0., 1.])
    """
    # the gaps between hits of an endless row of coin tosses are geometric: draw those, not every toss
    expected = x.numel() * share
    count = int(expected + 8 * expected**0.5) + 16  # too few once in 10^15 batches
    draw, salt = torch.rand(2, count, generator=generator, device=x.device)
    gaps = (-draw).log1p_().div_(math.log1p(-share) if share < 1 else -math.inf).floor_()
    place = gaps.long().add_(1).cumsum_(0).sub_(1)
    hits = int(torch.searchsorted(place, x.numel()))
    x.view(-1).index_copy_(0, place[:hits], salt[:hits].round_())
    return x


@corruption(
    "speckle_noise",
    imagenet=[0.15, 0.2, 0.35, 0.45, 0.6],
    cifar=[0.06, 0.1, 0.12, 0.16, 0.2],
    tiny=[0.15, 0.2, 0.25, 0.3, 0.35],
)
def speckle_noise(x: Tensor, sigma: float, *, generator: Generator | None) -> Tensor:
    """Noise that grows with the light: x + sigma x n, n ~ N(0, 1).

    >>> speckle_noise(torch.zeros(1, 3, 8, 8), 0.6, generator=None).abs().max()
    tensor(0.)
    """
    return x.addcmul_(x, torch.randn(x.shape, generator=generator, device=x.device), value=sigma)
