"""Captions: a tiny model that has seen emoji with their captions names them, as it is, or fine-tuned on one artist.

The same 150 things drawn by six artists. The model has seen all of them by five artists, with captions, in scenes
(`data_scripts/pretrain_captions.py`). Its head is made of words: "a picture of a tiger" and the like, through the text
tower. So it can name things before any fine-tuning (zero-shot), and the head is anchored like every other layer.

    noto             what fine-tuning sees, in fresh scenes: the home set
    twemoji, openmoji, openmoji_black, fluent_flat     other artists, known from the pre-training
    fluent_3d        an artist whom nobody has shown it

A scene turns, scales and moves a thing on a pale ground, often with another one in a corner. The scenes of the six test
sets are the same, so a shift is the artist's hand and nothing else. Validation has scenes of its own, by Noto alone.

    pretrained=first, second     which of two pre-trainings, with two seeds
    pretrained=none              random weights: a model that sees nothing but Noto, to hold robustness against
    mixup, cutmix, smoothing, drop_path     the regularisers of the paper's Table 3; 0 is none
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.emoji import HOME as SHEETS
from ftp.lab.emoji import Thing, artists, classes, picture, things
from ftp.lab.options import Option
from ftp.lab.record import Value
from ftp.lab.worlds._base import TILES
from ftp.lab.worlds._classification import Classification

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

    from ftp.lab.models.caption_model import CaptionModel
    from ftp.lab.worlds._emoji import Poses

MODELS = Path(__file__).resolve().parent.parent / "models"
HOME_ARTIST, *OTHERS = artists()
EACH = 15  # things of each coarse class
SCENES_OF = {"train": 20, "val": 4, "test": 4}  # of each thing
SPLIT_SEED = 2023
SEED_OF = {"first": 0, "second": 1}  # of the pre-trainings
UNTRAINED = "none"


def weights_path(pretrained: str = "first") -> Path:
    """The file of both towers of a pre-training."""
    return MODELS / f"captions-{SEED_OF[pretrained]}.safetensors"


@functools.cache
def asked_things() -> tuple[Thing, ...]:
    """The things that the world asks for: 15 of each coarse class with short names, by a fixed lot.

    >>> len(asked_things()), len({thing.name for thing in asked_things()})
    (150, 150)
    """
    chosen: list[Thing] = []
    for kind in classes():
        short = [t for t in things() if t.coarse == kind and len(t.name.split()) <= 3]
        chosen += sorted(short, key=lambda t: hashlib.blake2b(f"{SPLIT_SEED} {t.code}".encode()).digest())[:EACH]
    return tuple(chosen)


@functools.cache
def towers(pretrained: str = "first") -> CaptionModel:
    """Both towers of a pre-training, to encode texts and pictures; read once, treat it as read-only."""
    from ftp.lab.models.caption_model import load_caption_model

    return load_caption_model(weights_path(pretrained))


class Captions(Classification):
    title = "Name that emoji"
    summary = "A tiny model of pictures and captions names emoji: zero-shot, then fine-tuned on one of six artists."
    paper = "Tab. 3; Fig. 3"
    licence = "emoji: Apache 2.0, CC BY 4.0, CC BY-SA 4.0, MIT; weights: MIT"
    size = "150 things by six artists; 2 MB of weights, twice"
    order = 30
    options = {
        "pretrained": Option("first", "which pre-training it starts from", choices=(*SEED_OF, UNTRAINED)),
        "mixup": Option(0.0, "α of mixup: pictures and labels are blended by shares from Beta(α, α)", 0.0, 10.0),
        "cutmix": Option(
            0.0, "α of cutmix: a box of another picture is pasted in; its area from Beta(α, α)", 0.0, 10.0
        ),
        "smoothing": Option(0.0, "label smoothing: this share of a label is spread over all classes", 0.0, 0.9),
        "drop_path": Option(0.0, "how often the last block is skipped in training; earlier ones less", 0.0, 0.9),
    }
    defaults = {
        "quick": {"steps": 200, "batch": 32, "optimizer": "adamw", "lr": 2e-3, "weight_decay": 0.1},
        "full": {"steps": 400, "batch": 64, "optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.1},
    }
    readout = ("head.*",)
    roles = {"train": "train", "val": "val", HOME_ARTIST: "home", **dict.fromkeys(OTHERS, "shift")}
    step_seconds = 0.05

    def __init__(self, options: Mapping[str, Value]) -> None:
        super().__init__(options)
        self.classes = tuple(thing.name for thing in asked_things())

    def data_version(self) -> str:
        return f"emoji-{_sheets_hash()} split-{SPLIT_SEED} weights-{self._weights_hash()[:12]}"

    def _weights_hash(self) -> str:
        chosen = self.option("pretrained")
        return UNTRAINED if chosen == UNTRAINED else _hash(weights_path(chosen))

    def layers(self) -> tuple[str, ...]:
        """By the header of the weights file: 8 bytes of length, then JSON; and the head."""
        path = weights_path()  # the same names whatever the weights
        if not path.exists():
            return ()
        with path.open("rb") as file:
            names = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return (*sorted(name[6:] for name in names if name.startswith("image.")), "head.weight")

    def model(self, seed: int) -> nn.Module:
        import torch

        from ftp.lab.models.caption_model import NamedPictures, zero_shot_head

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = NamedPictures(len(self.classes))
        if self.option("pretrained") != UNTRAINED:
            both = towers(self.option("pretrained"))
            head = {"head.weight": zero_shot_head(both, self.classes)}
            model.load_state_dict({**both.image.state_dict(), **head})
        model.drop_path(self.option("drop_path"))
        return model.to(memory_format=torch.channels_last)

    def split(self, name: str, labels: float = 1.0) -> Fresh | Drawn:
        if name not in self.roles:
            raise self.no_split(name)
        if name == "train":
            scenes = max(1, round(labels * SCENES_OF["train"]))
            return Fresh(scenes, labels == 1, float(self.option("mixup")), float(self.option("cutmix")))
        return _drawn(HOME_ARTIST, "val") if name == "val" else _drawn(name, "test")

    def loss(self, model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, phase: int = 0) -> Tensor:
        from torch.nn import functional as F

        return F.cross_entropy(model(inputs), targets, label_smoothing=float(self.option("smoothing")))

    def tiles(self) -> bytes:
        return _tiles()

    def inventory(self) -> list[tuple[str, str]]:
        rows = {name: len(self.classes) * SCENES_OF.get(name, SCENES_OF["test"]) for name in self.roles}
        return [(name, f"{count:,} pictures of {len(self.classes)} things") for name, count in rows.items()]

    def provenance(self) -> dict[str, Any]:
        return {"weights_sha256": self._weights_hash(), "images": {name: len(self.split(name)) for name in self.roles}}


WORLD = Captions


class Fresh:
    """The training pictures, by Noto: with a generator each in a new scene, without one in the scene of its number.

    fresh=False: as many scenes of each thing as there are, and no others; for runs with a share of the labels.
    mixup, cutmix: with a generator pictures are mixed, and targets are shares of all classes.
    """

    def __init__(self, count: int, fresh: bool, mixup: float, cutmix: float) -> None:
        import torch

        self.fresh, self.mixup, self.cutmix = fresh, mixup, cutmix
        self.poses = _poses("train")
        kept = torch.arange(len(self.poses.thing)) < count * len(asked_things())  # scene by scene, all things in each
        self.poses = type(self.poses)(*(part[kept] for part in self.poses))
        self.targets = torch.arange(len(asked_things())).repeat(count)

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        import numpy
        import torch

        from ftp.lab.worlds import _emoji
        from ftp.lab.worlds._augment import mixed

        chosen, labels = _emoji.Poses(*(part[indices] for part in self.poses)), self.targets[indices]
        if generator is not None and self.fresh:
            chosen = _emoji.poses(chosen.thing, len(things()), generator)
        pixels = _emoji.draw(HOME_ARTIST, chosen)
        if generator is None or not (self.mixup or self.cutmix):
            return pixels, labels
        rng = numpy.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
        return mixed(pixels, labels, len(asked_things()), self.mixup, self.cutmix, rng)


class Drawn:
    """Pictures held in memory as bytes (n, 3, 32, 32), and their labels."""

    def __init__(self, pixels: Tensor, targets: Tensor) -> None:
        self.pixels, self.targets = pixels, targets

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        return self.pixels[indices].float().div_(255), self.targets[indices]


def _poses(part: str) -> Poses:
    """The poses of a part, the same whoever draws them: scene by scene, every thing once in each."""
    import torch

    from ftp.lab.worlds import _emoji

    g = torch.Generator().manual_seed(SPLIT_SEED + list(SCENES_OF).index(part))
    numbers = {thing.code: number for number, thing in enumerate(things())}
    places = torch.tensor([numbers[thing.code] for thing in asked_things()])
    return _emoji.poses(places.repeat(SCENES_OF[part]), len(things()), g)


@functools.cache
def _drawn(artist: str, part: str) -> Drawn:
    """In an order in which the first pictures are a fair sample; the same one for every artist."""
    import torch

    from ftp.lab.worlds import _emoji

    pixels = _emoji.draw(artist, _poses(part)).mul(255).round().to(torch.uint8)
    targets = torch.arange(len(asked_things())).repeat(SCENES_OF[part])
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(SPLIT_SEED))
    return Drawn(pixels[order], targets[order])


@functools.cache
def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "missing"


@functools.cache
def _sheets_hash() -> str:
    files = [SHEETS / "things.json", *(SHEETS / f"{artist}.webp" for artist in artists())]
    return hashlib.sha256("".join(map(_hash, files)).encode()).hexdigest()[:12]


@functools.cache
def _tiles() -> bytes:
    """A PNG of each thing as Noto draws it, on white."""
    from PIL import Image

    side, shown = 32, asked_things()
    sheet = Image.new("RGBA", (TILES * side, -(-len(shown) // TILES) * side), "white")
    for n, thing in enumerate(shown):
        small = picture(HOME_ARTIST, thing.code).resize((side, side), Image.Resampling.LANCZOS)
        sheet.alpha_composite(small, (n % TILES * side, n // TILES * side))
    file = io.BytesIO()
    sheet.convert("RGB").quantize(128).save(file, "PNG", optimize=True)
    return file.getvalue()
