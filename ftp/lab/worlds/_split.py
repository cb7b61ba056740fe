"""A split of pictures that are read when a batch is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ftp.lab.worlds._augment import DRAWS, augmented, centre, mixed
from ftp.lab.worlds._pictures import Source, each

if TYPE_CHECKING:
    from torch import Generator, Tensor


class Pictures:
    """Pictures by name and their labels; with a generator, augmented as for training.

    All random numbers of a batch come from one seed that the generator gives, before the work is divided.
    """

    takes_time = True  # a batch is worth preparing while the last one is computed

    def __init__(
        self,
        source: Source,
        names: Sequence[str],
        labels: Sequence[int],
        *,
        size: int,
        classes: int,
        augment: str = "light",
        mixup: float = 0.0,
        cutmix: float = 0.0,
        workers: int = 1,
    ) -> None:
        import torch

        self.source, self.names, self.labels = source, tuple(names), torch.tensor(labels)
        self.size, self.classes, self.augment = size, classes, augment
        self.mixup, self.cutmix, self.workers = mixup, cutmix, workers

    def __len__(self) -> int:
        return len(self.names)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        import numpy as np
        import torch

        rows = indices.tolist()
        pixels = np.empty((len(rows), self.size, self.size, 3), np.uint8)
        if generator is None:

            def fill(place: int) -> None:
                pixels[place] = centre(self.source.read(self.names[rows[place]]), self.size)

        else:
            rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
            draws = rng.random((len(rows), DRAWS))
            interpolation = self.source.interpolation

            def fill(place: int) -> None:
                picture = self.source.read(self.names[rows[place]])
                pixels[place] = augmented(picture, self.size, self.augment, interpolation, draws[place])

        for _ in each(fill, range(len(rows)), self.workers):
            pass
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div_(255)  # channels last, as they lie
        labels = self.labels[indices]
        if generator is not None and (self.mixup or self.cutmix):
            return mixed(images, labels, self.classes, self.mixup, self.cutmix, rng)
        return images, labels
