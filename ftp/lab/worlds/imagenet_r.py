"""ImageNet-R in ten tasks of twenty classes: the paper's Table 5 at its own size, for a machine with a GPU.

    ftp-lab run imagenet_r --method ftp --set data=PATH

PATH is the unpacked imagenet-r folder: one folder of pictures for each of 200 classes. A ViT-B/16 of timm or
torchvision; AdamW without decay, which is Adam; batch 128; 25 epochs a task; rate 5e-4 along a cosine (the paper).

Assumed, because the paper does not say it and the lists are not here:
  the split    a picture is for testing, one in five, by the hash of its name; GT-RIPL/CODA-Prompt has fixed lists of
               24,000 and 6,000. One in ten of the others is for validation
  the steps    450 a task: 25 epochs of 18 whole batches, for tasks of equal size
  the cosine   falls at every step, to 0; there at every epoch, to 1.6 % of the rate
  the weights  timm's vit_base_patch16_224.augreg_in21k_ft_in1k; pictures are not normalised, as in CODA-Prompt
"""

from __future__ import annotations

import functools
import hashlib
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.options import Option
from ftp.lab.record import LabError, Value
from ftp.lab.worlds._base import World
from ftp.lab.worlds._tasks import MASK, TRAINED, TaskWorld, equal_parts

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

CLASSES = 200  # until a folder says otherwise
ENDINGS = (".jpg", ".jpeg", ".png")
TESTED, VALIDATED = 5, 10  # one in so many
RECIPE: dict[str, Value] = {"steps": 450, "batch": 128, "optimizer": "adamw", "lr": 5e-4, "weight_decay": 0.0}


class ImageNetR(TaskWorld):
    title = "ImageNet-R in ten tasks"
    summary = "A ViT-B/16 learns renditions of 200 things, twenty at a time, and should not forget the old."
    paper = "Tab. 5; Fig. 4, at full scale"
    licence = "ImageNet-R: MIT for the list, pictures as their owners say; weights: Apache 2.0 (timm)"
    size = "30,000 pictures, 2 GB; 340 MB of weights"
    offline = False
    order = 90
    options = {
        "data": Option("", "the unpacked folder imagenet-r, with a folder for each class"),
        "model": Option("timm:vit_base_patch16_224.augreg_in21k_ft_in1k", "timm:NAME or torchvision:NAME"),
        "weights": Option("pretrained", "downloaded, or random for a try", choices=("pretrained", "none")),
        "size": Option(224, "pixels of a side", 8, 1024),
        "tasks": Option(10, "parts in which the classes come; 1 is joint training", 1, 100),
        "trained": TRAINED,
        "mask": MASK,
    }
    defaults = {"quick": RECIPE, "full": RECIPE}
    step_seconds = 20.0

    @property
    def root(self) -> Path:
        return Path(str(self.option("data"))).expanduser()

    def missing(self) -> str:
        """What a person has to give before a run can begin; "" if nothing."""
        if not self.option("data"):
            return f"the world {self.name} needs its pictures; write --set data=PATH, the unpacked folder imagenet-r"
        if not self.root.is_dir():
            return f"data is {str(self.root)!r}, and no folder is there; give the unpacked folder imagenet-r"
        if not _folders(self.root):
            return f"data is {str(self.root)!r}, and it holds no folders of pictures; give a folder with one per class"
        return ""

    def _ready(self) -> None:
        if problem := self.missing():
            raise LabError(problem)

    @property
    def _names(self) -> tuple[str, ...]:
        return _folders(self.root) if not self.missing() else tuple(f"class {n + 1}" for n in range(CLASSES))

    def deal(self, seed: int) -> tuple[list[str], list[list[int]]]:
        """Seed 0 keeps the order of the folders, others shuffle it, as in the published code of the prompt methods."""
        numbers, tasks = list(range(len(self._names))), int(self.option("tasks"))
        if tasks > len(numbers):
            raise LabError(
                f"tasks is {tasks}, and there are {len(numbers)} classes; write tasks={len(numbers)} or fewer"
            )
        if seed:
            random.Random(f"imagenet-r {seed}").shuffle(numbers)
        return [f"task {n + 1}" for n in range(tasks)], equal_parts(numbers, tasks)

    def class_name(self, number: int) -> str:
        return self._names[number]

    def for_seed(self, seed: int) -> World:
        return self if seed == self.seed else _seeded(tuple(self.chosen.items()), seed)

    def data_version(self) -> str:
        if self.missing():
            return "no data"
        listed = "\n".join(f"{path.parent.name}/{path.name} {path.stat().st_size}" for path in _files(self.root))
        return f"imagenet-r {hashlib.sha256(listed.encode()).hexdigest()[:12]}"

    def model(self, seed: int) -> nn.Module:
        import torch

        from ftp.lab.models.tasks_network import TasksNetwork

        self._ready()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # of random weights, in a try; the seed of the run makes the head
            model = TasksNetwork(
                str(self.option("model")), int(self.option("size")), self.option("weights") == "pretrained"
            )
        self.enter(model, 0, seed)
        return model

    def split(self, name: str, labels: float = 1.0) -> Photographs:
        if name not in self.roles:
            raise self.no_split(name)
        self._ready()
        tasks, part = {**self.trains, **self.tests}, "train" if name in self.trains else "test"
        chosen = self.parts[tasks[name]] if name in tasks else range(len(self.classes))
        rows = []
        for label in chosen:
            folder = self.root / self.class_name(self.sources[label])
            files = [f for f in _pictures(folder) if _role(f) == ("val" if name == "val" else part)]
            rows += [(file, label) for file in files[: max(1, round(labels * len(files)))]]
        return Photographs(rows, int(self.option("size")))

    def provenance(self) -> dict[str, Any]:
        return {"images": {name: len(self.split(name)) for name in self.roles}, "protocol": self.about()}


WORLD = ImageNetR


class Photographs:
    """Pictures read when they are asked for. Training: a random part of 8 to 100 % and a flip; else the middle."""

    def __init__(self, rows: list[tuple[Path, int]], size: int) -> None:
        self.rows, self.size = rows, size

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        import torch

        rows = [self.rows[n] for n in indices.tolist()]
        pictures = torch.stack([self._picture(path, generator) for path, _ in rows])
        return pictures, torch.tensor([label for _, label in rows])

    def _picture(self, path: Path, g: Generator | None) -> Tensor:
        import math

        import numpy as np
        import torch
        from PIL import Image

        with Image.open(path) as file:
            picture = file.convert("RGB")
        wide, high = picture.size
        if g is None:  # the shorter side to 256 for 224, then the middle
            across = down = min(wide, high) * 224 / 256
            left, top = (wide - across) / 2, (high - down) / 2
        else:
            share, shape, x, y = torch.rand(4, generator=g).tolist()
            area, ratio = wide * high * (0.08 + 0.92 * share), math.exp(math.log(4 / 3) * (2 * shape - 1))
            across, down = min(wide, math.sqrt(area * ratio)), min(high, math.sqrt(area / ratio))
            left, top = x * (wide - across), y * (high - down)
        box = (left, top, left + across, top + down)
        shown = picture.resize((self.size, self.size), Image.Resampling.BILINEAR, box=box)
        pixels = torch.from_numpy(np.array(shown, dtype="float32")).permute(2, 0, 1) / 255
        flipped = g is not None and bool(torch.rand((), generator=g) < 0.5)
        return pixels.flip(2) if flipped else pixels


@functools.lru_cache(maxsize=32)
def _seeded(options: tuple[tuple[str, Value], ...], seed: int) -> ImageNetR:
    return ImageNetR(dict(options), seed)


@functools.cache
def _folders(root: Path) -> tuple[str, ...]:
    return tuple(sorted(folder.name for folder in root.iterdir() if folder.is_dir() and _pictures(folder)))


@functools.cache
def _pictures(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(file for file in folder.iterdir() if file.suffix.lower() in ENDINGS))


def _files(root: Path) -> list[Path]:
    return [file for name in _folders(root) for file in _pictures(root / name)]


def _role(file: Path) -> str:
    """By the hash of class and name: what a picture is for does not depend on which others there are."""
    number = int(hashlib.sha256(f"{file.parent.name}/{file.name}".encode()).hexdigest()[:8], 16)
    if number % TESTED == 0:
        return "test"
    return "val" if number // TESTED % VALIDATED == 0 else "train"
