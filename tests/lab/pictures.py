"""Pictures and generators that the tests of the corruptions share."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ftp.lab.corruptions import KINDS
from ftp.lab.corruptions._registry import REGISTRY

EXACT = [kind for kind in KINDS if not REGISTRY[kind].random]
RANDOM = [kind for kind in KINDS if REGISTRY[kind].random]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(count: int, height: int, width: int, seed: int = 0) -> Tensor:
    """Natural-looking: colour gradients, hard-edged discs, and texture of several scales; floats in [0, 1]."""
    generator = seeded(seed)
    x = torch.zeros(count, 3, height, width)
    for cells, strength in ((2, 0.5), (5, 0.3), (max(height, width) // 3, 0.12)):
        noise = torch.rand(count, 3, cells, cells, generator=generator)
        x += strength * F.interpolate(noise, size=(height, width), mode="bilinear", align_corners=True)
    rows, columns = torch.linspace(0, 1, height)[:, None], torch.linspace(0, 1, width)
    for _ in range(6):
        cx, cy, r = (torch.rand(count, 1, 1, generator=generator) for _ in range(3))
        inside = (columns - cx) ** 2 + (rows - cy) ** 2 < (0.03 + 0.12 * r) ** 2
        x = torch.where(inside[:, None], torch.rand(count, 3, 1, 1, generator=generator), x)
    return x.clamp_(0, 1)


def levels(x: Tensor) -> Tensor:
    return x.mul(255).round().to(torch.uint8)
