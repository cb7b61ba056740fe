"""Digital: what image processing and image files do to a picture, and elastic stretching."""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from ftp.lab.corruptions._filters import gaussian
from ftp.lab.corruptions._jpeg import COLOUR, LIGHT, TO_YCC, doubled, libjpeg, requantise
from ftp.lab.corruptions._registry import corruption


@corruption(
    "contrast", imagenet=[0.4, 0.3, 0.2, 0.1, 0.05], cifar=[0.75, 0.5, 0.4, 0.3, 0.15], tiny=[0.4, 0.3, 0.2, 0.1, 0.05]
)
def contrast(x: Tensor, factor: float) -> Tensor:
    """A flat picture: (x - mean) factor + mean, with the mean of each channel of each image.

    >>> contrast(torch.tensor([[[[0.0, 1.0]]]]), 0.5).flatten()
    tensor([0.2500, 0.7500])
    """
    mean = x.mean((2, 3), keepdim=True)
    return x.mul_(factor).add_(mean * (1 - factor))


@corruption(
    "brightness",
    imagenet=[0.1, 0.2, 0.3, 0.4, 0.5],
    cifar=[0.05, 0.1, 0.15, 0.2, 0.3],
    tiny=[0.1, 0.2, 0.3, 0.4, 0.5],
    colour=True,
)
def brightness(x: Tensor, amount: float) -> Tensor:
    """More light: add to the value V of hue, saturation, value, with V = max(r, g, b).

    Hue and saturation do not change when all channels are scaled alike, so x V'/V is the whole way to
    HSV and back; black has no colour and becomes grey.

    >>> brightness(torch.tensor([0.5, 0.2, 0.0]).view(1, 3, 1, 1), 0.25).flatten()
    tensor([0.7500, 0.3000, 0.0000])
    """
    value = x.amax(1, keepdim=True)
    raised = (value + amount).clamp_(max=1)
    black = value == 0
    return x.mul_(raised / value.masked_fill(black, 1)).add_(raised * black)


@corruption(
    "saturate",
    imagenet=[(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)],
    cifar=[(0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)],
    tiny=[(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)],
    colour=True,
)
def saturate(x: Tensor, factor: float, offset: float) -> Tensor:
    """Paler or more garish: S' = clip(S factor + offset) with S = (max - min) / max.

    Each channel is V (1 - S f) with f in [0, 1] fixed by the hue. Grey has the hue 0, red: there f = (0, 1, 1).

    >>> saturate(torch.tensor([0.8, 0.6, 0.4]).view(1, 3, 1, 1), 2.0, 0.0).flatten()
    tensor([0.8000, 0.4000, 0.0000])
    """
    value = x.amax(1, keepdim=True)
    spread = value - x.amin(1, keepdim=True)
    grey = spread == 0
    new = (spread * factor).div_(value.clamp(min=1e-12)).add_(offset).clamp_(0, 1).mul_(value)
    # V - (V - x) S'/S, where S V = spread
    out = torch.sub(value, x).mul_(new / spread.masked_fill(grey, 1))
    if offset:
        out[:, 1:].add_(new * grey)
    return torch.sub(value, out, out=out)


@lru_cache(maxsize=64)
def boxes(size: int, small: int) -> tuple[Tensor, Tensor]:
    """The first pixel of each box, and how many there are, where Pillow shrinks a line of `size` pixels to `small`.

    A pixel belongs to the box that holds its centre.

    >>> boxes(5, 2)
    (tensor([0, 3]), tensor([3, 2]))
    """
    centre = (torch.arange(small, dtype=torch.float64)[:, None] + 0.5) * (size / small)
    offset = (torch.arange(size, dtype=torch.float64) + 0.5 - centre) * (small / size)
    inside = ((offset > -0.5) & (offset <= 0.5)).int()
    return inside.argmax(1), inside.sum(1)


def add_up(x: Tensor, first: Tensor, count: Tensor) -> Tensor:
    """The sum of the rows of each box, in whole numbers: copies of rows, which is far less work than a product.

    >>> add_up(torch.tensor([[[[1], [2], [4]]]], dtype=torch.uint8), *boxes(3, 2)).flatten()
    tensor([3, 4], dtype=torch.int16)
    """
    total = x.index_select(2, first).to(torch.int16)
    for further in range(1, int(count.max())):
        in_box = (further < count).to(x.dtype)[:, None]
        total += x.index_select(2, first + (count - 1).clamp(max=further)) * in_box
    return total


def repeated(size: int, small: int, device: torch.device) -> Tensor:
    """Which of `small` pixels each of `size` pixels shows: the nearest.

    >>> repeated(3, 2, torch.device("cpu"))
    tensor([0, 1, 1])
    """
    return (torch.arange(size, device=device) + 0.5).mul_(small / size).long()


@corruption(
    "pixelate",
    imagenet=[0.6, 0.5, 0.4, 0.3, 0.25],
    cifar=[0.95, 0.9, 0.85, 0.75, 0.65],
    tiny=[0.9, 0.8, 0.7, 0.6, 0.5],
    eight_bit=True,
)
def pixelate(x: Tensor, scale: float) -> Tensor:
    """Too few pixels: shrink to a share `scale` of each side, then enlarge by repeating pixels.

    >>> pixelate(torch.tensor([[[[0, 100, 200, 250]]]], dtype=torch.uint8), 0.5).flatten()
    tensor([ 50,  50, 225, 225], dtype=torch.uint8)
    """
    height, width = x.shape[-2:]
    low, narrow = max(1, int(height * scale)), max(1, int(width * scale))
    (top, tall), (left, wide) = (
        [part.to(x.device) for part in boxes(*pair)] for pair in ((height, low), (width, narrow))
    )
    # rows lie together in memory, so columns are turned into rows and back
    sums = add_up(add_up(x, top, tall).transpose(2, 3).contiguous(), left, wide)
    small = (sums / (wide[:, None] * tall)).round_().to(torch.uint8)
    rows = small.index_select(2, repeated(width, narrow, x.device)).transpose(2, 3).contiguous()
    return rows.index_select(2, repeated(height, low, x.device))


@corruption(
    "jpeg_compression",
    imagenet=[25, 18, 15, 10, 7],
    cifar=[80, 65, 58, 50, 40],
    tiny=[65, 58, 50, 40, 25],
    colour=True,
    eight_bit=True,
)
def jpeg_compression(x: Tensor, quality: int) -> Tensor:
    """A JPEG file of low quality, written and read: YCbCr, colour at half the size, 8 x 8 cosine transforms.

    On a CPU by libjpeg itself, where torchvision carries it, else by `jpeg_by_formula`.

    >>> jpeg_compression(torch.full((1, 3, 8, 8), 200, dtype=torch.uint8), 25)[0, :, 0, 0]
    tensor([200, 200, 200], dtype=torch.uint8)
    """
    if x.device.type != "cpu" or (codec := libjpeg()) is None:
        return jpeg_by_formula(x, quality)
    side_by_side = torch.stack(x.unbind(1), -1).permute(0, 3, 1, 2)  # the colours of a pixel, as libjpeg wants them
    return torch.stack([codec(image, quality) for image in side_by_side])


def jpeg_by_formula(x: Tensor, quality: int) -> Tensor:
    """Step by step what libjpeg does, in floating point instead of its 13-bit integers, for a whole batch.

    >>> jpeg_by_formula(torch.full((1, 3, 8, 8), 200, dtype=torch.uint8), 25)[0, :, 0, 0]
    tensor([200.5000, 200.5000, 200.5000])
    """
    height, width = x.shape[-2:]
    x = x.float()
    if height % 16 or width % 16:
        x = F.pad(x, (0, -width % 16, 0, -height % 16), mode="replicate")
    to_ycc = torch.tensor(TO_YCC, device=x.device)
    light = (to_ycc[:1] @ x.flatten(2)).view(len(x), *x.shape[2:]).sub_(128).round_()
    colours = (to_ycc[1:] @ x.flatten(2)).view(len(x), 2, *x.shape[2:]).round_()
    # the mean of four; libjpeg rounds up and down by turns
    pairs = colours[..., ::2, :] + colours[..., 1::2, :]
    small = (pairs[..., ::2] + pairs[..., 1::2]).mul_(0.25)
    small.add_(torch.tensor([0.25, 0.5], device=x.device).repeat(small.shape[-1] // 2)).floor_()

    light = requantise(light, LIGHT, quality).add_(128.5)  # the half makes cutting off the same as rounding
    small = requantise(small, COLOUR, quality)
    cb, cr = doubled(small, -(-height // 2), -(-width // 2)).unbind(1)
    torch.add(light, cr, alpha=1.402, out=x[:, 0])
    torch.add(light, cb, alpha=-0.344136, out=x[:, 1]).add_(cr, alpha=-0.714136)
    torch.add(light, cb, alpha=1.772, out=x[:, 2])
    return x[..., :height, :width]


@corruption(
    "elastic_transform",
    moves_pixels=True,
    imagenet=[(0.0625, 0.01, 0), (0.08125, 0.01, 0), (0.10625, 0.01, 0), (0.125, 0.01, 0), (0.15, 0.01, 0)],
    cifar=[(0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)],
    tiny=[(0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)],
)
def elastic_transform(x: Tensor, amount: float, sigma: float, affine: float, *, generator: Generator | None) -> Tensor:
    """A picture on rubber: a pixel is read at p + amount h blur(u), u uniform in [-1, 1], after a random affine map.

    All three numbers are shares of the height h: the displacement, the width of its blur, and how far three
    corners are moved to make the affine map. "imagenet" has the values of the package imagecorruptions
    (no affine map); ImageNet-C's own first two severities move whole objects out of the picture.

    >>> elastic_transform(torch.ones(1, 1, 8, 8), 0.1, 0.03, 0.05, generator=None).mean()
    tensor(1.)
    """
    count, _, height, width = x.shape
    rows = torch.arange(height, device=x.device, dtype=torch.float32)[:, None].expand(count, height, width)
    columns = torch.arange(width, device=x.device, dtype=torch.float32).expand(count, height, width)
    place = torch.stack([columns, rows], 1)
    if amount:
        draw = torch.rand(count, 2, height, width, generator=generator, device=x.device).mul_(2).sub_(1)
        place.add_(gaussian(draw, sigma * height, "reflect", 3.0), alpha=amount * height)
    if affine:
        place = moved(place, affine * height, generator)
    # the unit of grid_sample: -1 and 1 are the outer edges of the first and last pixel
    size = torch.tensor([width, height], device=x.device, dtype=torch.float32).view(1, 2, 1, 1)
    grid = place.mul_(2).add_(1).div_(size).sub_(1).permute(0, 2, 3, 1)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def moved(place: Tensor, distance: float, generator: Generator | None) -> Tensor:
    """Positions (batch, 2, height, width) under the affine map that sends three moved corners back.

    >>> moved(torch.zeros(1, 2, 8, 8), 0.0, None).abs().max() < 1e-5
    tensor(True)
    """
    count, _, height, width = place.shape
    reach = min(height, width) // 3
    signs = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]], device=place.device)
    corners = torch.tensor([width // 2, height // 2], device=place.device) + signs * reach
    shift = torch.rand(count, 3, 2, generator=generator, device=place.device).mul_(2).sub_(1).mul_(distance)
    ones = torch.ones(count, 3, 1, device=place.device)
    matrix = torch.linalg.solve(torch.cat([corners + shift, ones], 2), corners.expand(count, 3, 2))  # (batch, 3, 2)
    flat: Tensor = matrix[:, :2].transpose(1, 2) @ place.flatten(2) + matrix[:, 2, :, None]
    return flat.view_as(place)
