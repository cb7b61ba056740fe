"""Toy: in which direction does every pixel of a picture climb? The smallest world that is not like the others.

Its targets are maps, its error is an angle in degrees (lower is better), it has no shifts, one option, two phases and
a head that has an anchor. It keeps the lab honest: whatever knows a task by name breaks here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ftp.lab.options import Option
from ftp.lab.summary import Metric
from ftp.lab.worlds import Meter, Phase, World

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

SIZES = {"steep": 48, "gentle": 48, "val": 16, "id": 24}
SIDE = 12


class Toy(World):
    title = "Toy slopes"
    summary = "A tiny network says in which direction every pixel of a picture climbs."
    licence, size = "MIT", "drawn on the spot"
    options = {"noise": Option(0.02, "how rough the pictures are", 0.0, 1.0)}
    defaults = {"quick": {"steps": 4, "batch": 8, "lr": 0.1}, "full": {"steps": 16, "batch": 8, "lr": 0.1}}
    metrics = (Metric("angle", "°", higher_is_better=False, digits=1, high=180.0),)
    corruptions = ("fog", "zoom_blur")  # the second moves pixels, so it has to be left out
    dense = True
    readout = ("head.*",)
    roles = {"steep": "train", "gentle": "train", "val": "val", "id": "home"}
    phases = (Phase("steep", "steep", ("id",)), Phase("gentle", "gentle"))
    step_seconds = 0.01

    def data_version(self) -> str:
        return "toy 1"

    def layers(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.model(0).named_parameters())

    def model(self, seed: int) -> nn.Module:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)  # all of it is "pre-trained", so the seed decides nothing here
            return _network()

    def split(self, name: str, labels: float = 1.0) -> Slopes:
        if name not in self.roles:
            raise self.no_split(name)
        images, targets = _slopes(name, float(self.option("noise")))
        kept = max(2, round(labels * len(images)))
        return Slopes(images[:kept], targets[:kept])

    def loss(self, model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, phase: int = 0) -> Tensor:
        return 1 - _cosine(model(inputs), targets).mean()

    def meter(self) -> Meter:
        return AngleMeter()


class Slopes:
    """Pictures (n, 3, 12, 12) and at every pixel the direction of the slope, (n, 2, 12, 12)."""

    def __init__(self, images: Tensor, targets: Tensor) -> None:
        self.images, self.targets = images, targets

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        return self.images[indices], self.targets[indices]


class AngleMeter:
    """The mean angle between two directions, over all pixels."""

    def __init__(self) -> None:
        self.total, self.pixels = 0.0, 0

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        angles = _cosine(outputs.cpu(), targets).clamp(-1, 1).acos()
        self.total += angles.double().sum().item()
        self.pixels += angles.numel()

    def values(self) -> dict[str, float]:
        return {"angle": math.degrees(self.total / self.pixels)}


def _cosine(outputs: Tensor, targets: Tensor) -> Tensor:
    from torch.nn import functional as F

    return F.cosine_similarity(outputs, targets, dim=1)


def _network() -> nn.Module:
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.norm = nn.Conv2d(6, 6, 3, padding=1), nn.GroupNorm(2, 6)
            self.conv2 = nn.Conv2d(6, 6, 1)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.conv2(self.norm(self.conv1(x)).relu())  # type: ignore[no-any-return]

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 6, 3, padding=1)
            self.blocks = nn.Sequential(Block(), Block())
            self.head = nn.Conv2d(6, 2, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.blocks(self.stem(8 * (x - 0.5))))  # type: ignore[no-any-return]

    return Network()


@functools.cache
def _slopes(name: str, noise: float) -> tuple[Tensor, Tensor]:
    import torch

    g = torch.Generator().manual_seed(1 + list(SIZES).index(name))
    n = SIZES[name]
    turn = 2 * math.pi * torch.rand(n, generator=g)
    steep = 1.0 if name != "gentle" else 0.4
    direction = torch.stack([turn.cos(), turn.sin()], 1)
    grid = torch.stack(torch.meshgrid(*[torch.linspace(-0.5, 0.5, SIDE)] * 2, indexing="ij"))
    height = 0.5 + steep * 0.6 * torch.einsum("nk,khw->nhw", direction, grid)
    images = height.unsqueeze(1).expand(-1, 3, -1, -1) + noise * torch.randn((n, 3, SIDE, SIDE), generator=g)
    return images.clamp(0, 1), direction[:, :, None, None].expand(-1, -1, SIDE, SIDE).contiguous()


WORLD = Toy
