"""Linear filters as banded matrices: rows @ image @ columns.T, for all channels of all images at once.

The border rule is folded into the matrix, so no picture is ever padded. A matrix is cut into blocks
along its diagonal; on one thread that is ten times faster than a convolution of the same width.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

Blocks = tuple[tuple[slice, slice, Tensor], ...]
BLOCK = 32  # rows of one block: small enough to skip most zeros, large enough for a fast product; divides 224


def fold(index: Tensor, size: int, border: str) -> Tensor:
    """Where a position outside a line of `size` pixels is read: "nearest", "reflect" (edge twice) or "mirror".

    >>> [fold(torch.arange(-2, 5), 3, border).tolist() for border in ("nearest", "reflect", "mirror")]
    [[0, 0, 0, 1, 2, 2, 2], [1, 0, 0, 1, 2, 2, 1], [2, 1, 0, 1, 2, 1, 0]]
    """
    if border == "nearest":
        return index.clamp(0, size - 1)
    if border == "reflect":
        index = index % (2 * size)
        return torch.minimum(index, 2 * size - 1 - index)
    index = index % max(1, 2 * size - 2)
    return torch.minimum(index, (2 * size - 2 - index).abs())


def band(size: int, weights: Sequence[float], border: str) -> Tensor:
    """The matrix of a correlation with `weights`, an odd number of them: shape (size, size).

    >>> band(3, [0.25, 0.5, 0.25], "nearest")
    tensor([[0.7500, 0.2500, 0.0000],
            [0.2500, 0.5000, 0.2500],
            [0.0000, 0.2500, 0.7500]])
    """
    reach = len(weights) // 2
    index = torch.arange(size)[:, None] + torch.arange(-reach, reach + 1)
    values = torch.tensor(weights, dtype=torch.float32).expand(size, -1)
    return torch.zeros(size, size).scatter_add_(1, fold(index, size, border), values)


def split(matrix: Tensor) -> Blocks:
    """Cut a matrix into blocks of rows, each without the columns that are zero on its left and right.

    >>> [(rows, columns) for rows, columns, _ in split(torch.eye(50))]
    [(slice(0, 32, None), slice(0, 32, None)), (slice(32, 50, None), slice(32, 50, None))]
    """
    blocks = []
    for start in range(0, len(matrix), BLOCK):
        part = matrix[start : start + BLOCK]
        used = part.ne(0).any(0).nonzero()
        first, last = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
        blocks.append((slice(start, start + len(part)), slice(first, last), part[:, first:last].contiguous()))
    return tuple(blocks)


def across(x: Tensor, columns: Blocks) -> Tensor:
    """x @ columns.T: filter along each row of the last dimension.

    >>> across(torch.tensor([[1.0, 2.0]]), split(torch.tensor([[0.0, 1.0], [0.5, 0.5]])))
    tensor([[2.0000, 1.5000]])
    """
    flat = x.reshape(-1, x.shape[-1])
    out = x.new_empty(len(flat), columns[-1][0].stop)
    for target, source, part in columns:
        torch.mm(flat[:, source], part.to(x.device).T, out=out[:, target])
    return out.view(*x.shape[:-1], out.shape[-1])


def down(x: Tensor, rows: Blocks, add_to: Tensor | None = None) -> Tensor:
    """rows @ x: filter along each column, the last dimension but one; added to `add_to`, if given.

    >>> down(torch.tensor([[1.0], [2.0]]), split(torch.tensor([[0.0, 1.0], [0.5, 0.5]])))
    tensor([[2.0000],
            [1.5000]])
    """
    pile = x.reshape(-1, *x.shape[-2:])
    shape = (*x.shape[:-2], rows[-1][0].stop, x.shape[-1])
    out = (x.new_empty(shape) if add_to is None else add_to).view(-1, *shape[-2:])
    for target, source, part in rows:
        left = part.to(x.device).expand(len(pile), -1, -1)
        torch.baddbmm(out[:, target], left, pile[:, source], beta=float(add_to is not None), out=out[:, target])
    return out.view(shape)


def multiply(x: Tensor, rows: Blocks, columns: Blocks, add_to: Tensor | None = None) -> Tensor:
    """rows @ x @ columns.T over the last two dimensions of x; added to `add_to`, if given.

    >>> shift = split(torch.tensor([[0.0, 1.0], [0.0, 1.0]]))
    >>> multiply(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), rows=shift, columns=split(torch.eye(2)))
    tensor([[3., 4.],
            [3., 4.]])
    """
    return down(across(x, columns), rows, add_to)


def gaussian_weights(sigma: float, reach: int) -> list[float]:
    """exp(-k^2 / 2 sigma^2) for k = -reach ... reach, with sum 1.

    >>> [round(w, 3) for w in gaussian_weights(1.0, 1)]
    [0.274, 0.452, 0.274]
    """
    values = [math.exp(-0.5 * (k / sigma) ** 2) if sigma else float(k == 0) for k in range(-reach, reach + 1)]
    return [value / sum(values) for value in values]


@lru_cache(maxsize=128)
def gaussian_blocks(size: int, sigma: float, border: str = "nearest", truncate: float = 4.0) -> Blocks:
    """The blocks of a Gaussian of width sigma, cut off at `truncate` sigmas as scikit-image does.

    >>> gaussian_blocks(2, 0.1)[0][2]
    tensor([[1., 0.],
            [0., 1.]])
    """
    return split(band(size, gaussian_weights(sigma, int(truncate * sigma + 0.5)), border))


def gaussian(x: Tensor, sigma: float, border: str = "nearest", truncate: float = 4.0) -> Tensor:
    """A Gaussian blur of the last two dimensions.

    >>> gaussian(torch.eye(3), 0.5)[1]
    tensor([0.1791, 0.6415, 0.1791])
    """
    height, width = x.shape[-2:]
    return multiply(
        x, gaussian_blocks(height, sigma, border, truncate), gaussian_blocks(width, sigma, border, truncate)
    )


@lru_cache(maxsize=128)
def zoom_blocks(size: int, factor: float, crop: bool = True) -> Blocks:
    """Enlarge the middle of a line by `factor`, linearly, to `size` pixels; without `crop` the line is that middle.

        out[i] = line[(size - m) // 2 + i (m - 1) / (round(m factor) - 1)]        m = ceil(size / factor)

    >>> zoom_blocks(4, 2.0)[0][2] @ torch.tensor([1.0, 2.0])
    tensor([1.0000, 1.3333, 1.6667, 2.0000])
    """
    middle = math.ceil(size / factor)
    position = torch.arange(size, dtype=torch.float64) * ((middle - 1) / max(1, round(middle * factor) - 1))
    low = position.floor().long().clamp(max=middle - 1)
    share = (position - low).float()
    matrix = torch.zeros(size, middle)
    matrix.scatter_add_(1, low[:, None], (1 - share)[:, None])
    matrix.scatter_add_(1, (low + 1).clamp(max=middle - 1)[:, None], share[:, None])
    if crop:
        start = (size - middle) // 2
        matrix = F.pad(matrix, (start, size - middle - start))
    return split(matrix)


def correlate3(x: Tensor, kernel: Sequence[Sequence[float]], border: str) -> Tensor:
    """Correlate (batch, 1, height, width) with a 3 x 3 kernel; border as in torch.nn.functional.pad.

    >>> correlate3(torch.ones(1, 1, 2, 2), [[0, 1, 0], [1, 0, 0], [0, 0, 0]], "replicate").flatten()
    tensor([2., 2., 2., 2.])
    """
    height, width = x.shape[-2:]
    padded = F.pad(x, (1, 1, 1, 1), mode=border)
    out = torch.zeros_like(x)
    for dy, row in enumerate(kernel):
        for dx, weight in enumerate(row):
            if weight:
                out.add_(padded[..., dy : dy + height, dx : dx + width], alpha=weight)
    return out


def fast_size(size: int) -> int:
    """The next size that a Fourier transform likes: a multiple of 16 without prime factors above 5.

    >>> fast_size(254), fast_size(258), fast_size(30)
    (256, 288, 32)
    """
    size = math.ceil(size / 16) * 16
    rest = size
    for prime in (2, 3, 5):
        while rest % prime == 0:
            rest //= prime
    return size if rest == 1 else fast_size(size + 1)


def streak(x: Tensor, radius: int, sigma: float, low: float, high: float, generator: Generator | None) -> Tensor:
    """Motion blur: each image is smeared along its own direction, drawn between `low` and `high` degrees.

        out = sum_i k_i shift(x, i steps along the direction)        k_i ~ exp(-i^2 / 2 sigma^2), i = 0 ... 2 radius

    Every image has another kernel, so the sum is a product of Fourier transforms. The transform wraps
    around: whatever lies beyond the last row is also before the first one. So one margin serves both
    sides, filled with the edge that this image's streak runs over.

    >>> streak(torch.ones(1, 1, 8, 8), 2, 1.0, -45, 45, None).mean().round(decimals=4)
    tensor(1.)
    """
    count, _, height, width = x.shape
    steps = torch.arange(2 * radius + 1, device=x.device)
    weights = torch.tensor(gaussian_weights(sigma, 2 * radius)[2 * radius :], device=x.device)
    angle = torch.rand(count, 1, generator=generator, device=x.device) * (high - low) + low
    angle = angle.deg2rad()
    # the pixel that is read at step i, relative to the pixel that is written
    down = torch.ceil(steps * angle.sin() - 0.5).long()
    right = torch.ceil(steps * angle.cos() - 0.5).long()
    degrees = [math.radians(low + (high - low) * k / 90) for k in range(91)]
    tall = fast_size(height + math.ceil(2 * radius * max(abs(math.sin(a)) for a in degrees)))
    wide = fast_size(width + math.ceil(2 * radius * max(abs(math.cos(a)) for a in degrees)))
    padded = x.new_empty(count, x.shape[1], tall, wide)
    padded[..., :height, :width] = x
    sign = (slice(None), -1, None, None, None)
    padded[..., height:, :width] = torch.where(down[sign] > 0, x[..., -1:, :], x[..., :1, :])
    padded[..., width:] = torch.where(right[sign] > 0, padded[..., width - 1 : width], padded[..., :1])
    # reading to the right is a convolution with a kernel that reaches to the left
    place = (-down % tall) * wide + (-right % wide)
    kernel = x.new_zeros(count, tall * wide).scatter_add_(1, place, (weights / weights.sum()).expand(count, -1))
    spectrum = torch.fft.rfft2(padded).mul_(torch.fft.rfft2(kernel.view(count, 1, tall, wide)))
    smeared: Tensor = torch.fft.irfft2(spectrum, s=(tall, wide))
    return smeared[..., :height, :width]
