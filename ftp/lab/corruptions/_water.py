"""How a film of water on a lens looks: bright and dark along the rims of its drops."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from ftp.lab.corruptions._filters import Blocks, band, correlate3, multiply, split

FAR = 20  # pixels; farther from a rim, the film is flat


@lru_cache(maxsize=16)
def mean3_blocks(size: int) -> Blocks:
    """The mean of three neighbours in a line of `size` pixels.

    >>> mean3_blocks(2)[0][2]
    tensor([[0.3333, 0.6667],
            [0.6667, 0.3333]])
    """
    return split(band(size, [1 / 3] * 3, "mirror"))


def rims(levels: Tensor) -> Tensor:
    """Canny's edges, as booleans: where the slope is steep (> 150) and the steepest across the edge.

    The weak edges (> 50) that Canny keeps next to strong ones are left out: a drop's rim is always strong.

    >>> rims(torch.tensor([0.0, 0.0, 200.0, 200.0]).expand(1, 1, 4, 4))[0, 0, 0]
    tensor([False,  True, False, False])
    """
    height, width = levels.shape[-2:]
    edge = F.pad(levels, (1, 1, 1, 1), mode="replicate")
    # with a margin of one pixel, a neighbour is a fixed step away; few pixels are steep: look at those only
    right, down = levels.new_zeros(2, len(levels), 1, height + 2, width + 2)
    rows = edge[..., :-2, :] + edge[..., 2:, :]
    rows.add_(edge[..., 1:-1, :], alpha=2)
    torch.sub(rows[..., 2:], rows[..., :-2], out=right[..., 1:-1, 1:-1])
    columns = edge[..., :-2] + edge[..., 2:]
    columns.add_(edge[..., 1:-1], alpha=2)
    torch.sub(columns[..., 2:, :], columns[..., :-2, :], out=down[..., 1:-1, 1:-1])
    wide = width + 2
    slopes = right.abs().add_(down.abs()).flatten()
    steep_places = (slopes > 150).nonzero().flatten()
    slope, right, down = (values.flatten().index_select(0, steep_places) for values in (slopes, right, down))
    diagonal = wide + (right * down).sign().long()
    flat = down.abs() < math.tan(math.pi / 8) * right.abs()
    steep = down.abs() > math.tan(3 * math.pi / 8) * right.abs()
    step = torch.where(flat, 1, torch.where(steep, wide, diagonal))
    before, after = slopes.index_select(0, steep_places - step), slopes.index_select(0, steep_places + step)
    # on a plateau of two the first counts; across a diagonal only a true peak
    peak = (slope > before) & ((slope > after) | ((slope == after) & (flat | steep)))
    edges = torch.zeros(slopes.shape, dtype=torch.bool, device=levels.device)
    edges[steep_places[peak]] = True
    return edges.view(len(levels), 1, -1, wide)[..., 1:-1, 1:-1]


def distance(edges: Tensor) -> Tensor:
    """The distance of each pixel to the nearest edge, at most FAR: along the rows, then across them.

        d(y, x)^2 = min_k  row(y + k, x)^2 + k^2

    >>> distance(torch.tensor([[[[True, False, False], [False, False, False]]]])).flatten()
    tensor([0.0000, 1.0000, 2.0000, 1.0000, 1.4142, 2.2361])
    """
    height, width = edges.shape[-2:]
    # squares up to 2 FAR^2 fit into 16 bits, half the memory to move
    row = torch.full(edges.shape, FAR, dtype=torch.int16, device=edges.device).masked_fill_(edges, 0)
    for step in (1, 2, 4, 8, 16):  # every distance up to 31 is a sum of some of these
        if step < width:
            right = torch.minimum(row[..., step:], row[..., :-step] + step)
            torch.minimum(row[..., :-step], row[..., step:] + step, out=row[..., :-step])
            torch.minimum(row[..., step:], right, out=row[..., step:])
    row = row * row
    square = row.clone()
    for k in range(1, min(FAR, height)):
        torch.minimum(square[..., k:, :], row[..., :-k, :] + k * k, out=square[..., k:, :])
        torch.minimum(square[..., :-k, :], row[..., k:, :] + k * k, out=square[..., :-k, :])
    return square.clamp_(max=FAR * FAR).float().sqrt_()


def equalised(steps: Tensor) -> Tensor:
    """Whole numbers 0 ... FAR as 0 ... 255, so that all brightnesses are equally frequent in each image.

    >>> equalised(torch.tensor([[[[0.0, 1.0, 1.0, 7.0]]]])).flatten()
    tensor([  0., 170., 170., 255.])
    """
    count, pixels = len(steps), steps[0].numel()
    bins = steps.long().flatten(1)
    times = torch.zeros(count, FAR + 1, device=steps.device)
    times.scatter_add_(1, bins, torch.ones((), device=steps.device).expand(count, pixels))
    below = times.cumsum(1)
    least = times.gather(1, steps.flatten(1).amin(1, keepdim=True).long())
    level = (below - least).mul_(255).div_((pixels - least).clamp_(min=1)).round_().clamp_(min=0)
    return level.gather(1, bins).view_as(steps)


def relief(levels: Tensor) -> Tensor:
    """The light on a film whose thickness is `levels`, 0 to 255: rim distance, equalised, embossed, smoothed."""
    rows, columns = mean3_blocks(levels.shape[-2]), mean3_blocks(levels.shape[-1])
    # a mean of equal whole numbers must not fall below them by a rounding error
    steps = multiply(distance(rims(levels)), rows, columns).add_(1e-3).floor_()
    light = correlate3(equalised(steps), [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], "reflect").clamp_(0, 255)
    return multiply(light, rows, columns).round_()
