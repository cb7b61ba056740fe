"""Scenes: a network that has learned to undo the drawing of pictures says what is at every pixel. Offline.

A small Swin transformer, pre-trained on a broad drawn world (`data_scripts/pretrain_scenes.py`), and a new decoder are
trained together on 256 pictures of a narrow one: three palettes, clean air, one sun. One network for each task:

    task=semseg    the kind of thing: sphere, box, cone, capsule, torus, cylinder, figure, or background
    task=parts     six parts of a figure's body, or background; a picture without a figure counts nothing
    task=normals   which way the surface faces: right, up, toward the camera; the sky has no such thing

Everything is drawn by `_rendering` from `_scenery`, so labels are exact. Pixels at the rim and behind a band of glass
are ignored. The same task in another look:

    palette   other colours, and patterns on things and floors
    night     a lamp in the dark instead of the sun
    camera    from high above, tilted
    clutter   seven to ten things instead of two to four
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.record import LabError
from ftp.lab.worlds._dense import IGNORED, TASK, DenseWorld
from ftp.lab.worlds._pictures import cache_folder
from ftp.lab.worlds._scenery import KINDS, Scene, scene

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

WEIGHTS = Path(__file__).resolve().parent.parent / "models" / "scenes.safetensors"
SHIFTS = ("palette", "night", "camera", "clutter")
# the look, the first seed and the number of the scenes of each split; no two share a scene
SPLITS = {
    "train": ("home", 0, 256),
    "val": ("home", 10_000, 64),
    "id": ("home", 20_000, 96),
    **{name: (name, 0, 48) for name in SHIFTS},
}
TOGETHER = 32  # scenes that are drawn at once: part of what decides the last bit
LEVELS = 32767  # of a normal's parts in the cache
WIDTH = 48  # of the decoder
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


class Scenes(DenseWorld):
    title = "Small scenes"
    summary = "A small Swin says of every pixel of a drawn scene which thing, body part or surface normal is there."
    paper = "Tab. 4, 7, 8, 9; Fig. 6"
    licence = "drawn by the kit; weights: MIT"
    size = "608 pictures, drawn in about 10 s and kept in the cache; 1.3 MB of weights"
    order = 30
    options = {"task": TASK}
    defaults = {
        "quick": {"steps": 170, "batch": 32, "optimizer": "adamw", "lr": 5e-3, "weight_decay": 1e-4},
        "full": {"steps": 600, "batch": 32, "optimizer": "adamw", "lr": 5e-3, "weight_decay": 1e-4},
    }
    kinds = KINDS
    severities = "tiny"  # the set that was published for 64 pixels
    lipschitz = False
    beside = {"FTP, κ = 0": ("ftp", {"k": 0.0})}
    step_seconds = 0.07
    evaluated_at_once = 64
    roles = {"train": "train", "val": "val", "id": "home", **dict.fromkeys(SHIFTS, "shift")}

    def data_version(self) -> str:
        return f"drawn-{_drawing()} weights-{_digest(WEIGHTS)}"

    def layers(self) -> tuple[str, ...]:
        """By the header of the weights file: 8 bytes of length, then JSON."""
        if not WEIGHTS.exists():
            return ()
        with WEIGHTS.open("rb") as file:
            names = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        buffers = ("relative_position_index",)
        return tuple(sorted(f"encoder.{n}" for n in names if n != "__metadata__" and not n.endswith(buffers)))

    def model(self, seed: int) -> nn.Module:
        import torch

        from ftp.lab.models import read_weights
        from ftp.lab.models.dense_network import DenseNetwork, SwinMaps

        if not WEIGHTS.exists():
            raise LabError(
                f"{WEIGHTS.name} is missing from ftp/lab/models; install the kit again, or make the weights anew with "
                "data_scripts/pretrain_scenes.py"
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = DenseNetwork(SwinMaps(small_swin()), self.outputs, WIDTH, MEAN, STD)
        missing, unexpected = model.encoder.load_state_dict(read_weights(WEIGHTS), strict=False)
        if unexpected or missing:
            raise LabError(f"{WEIGHTS.name} does not fit the model ({missing}, {unexpected}); install the kit again")
        return model

    def split(self, name: str, labels: float = 1.0) -> Drawn:
        if name not in self.roles:
            raise self.no_split(name)
        pictures, targets = _split(name, self.task)
        count = max(2, round(labels * len(pictures))) if name == "train" else len(pictures)
        return Drawn(pictures[:count], targets[:count])

    def provenance(self) -> dict[str, Any]:
        counts = {name: count for name, (_, _, count) in SPLITS.items()}
        return {"weights_sha256": hashlib.sha256(WEIGHTS.read_bytes()).hexdigest(), "images": counts}


WORLD = Scenes


class Drawn:
    """Pictures held in memory as bytes (n, 3, 64, 64), and their maps: labels as bytes, or normals as LEVELS."""

    def __init__(self, pictures: Tensor, targets: Tensor) -> None:
        self.pictures, self.targets = pictures, targets

    def __len__(self) -> int:
        return len(self.pictures)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """With a generator, half of the pictures are mirrored, and their maps with them."""
        pictures, targets = self.pictures[indices].float().div_(255), as_targets(self.targets[indices])
        return (pictures, targets) if generator is None else _mirrored(pictures, targets, generator)


def as_targets(kept: Tensor) -> Tensor:
    """Maps as losses and meters want them: labels as they are; normals as unit vectors, IGNORED where there is none."""
    import torch
    from torch.nn import functional as F

    if kept.dim() == 3:
        return kept.long()
    normals = F.normalize(kept.float(), dim=1)
    return torch.where((kept == 0).all(1, keepdim=True), float(IGNORED), normals)


def flipped(pictures: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Left and right exchanged: labels move along, and what faced right faces left."""
    import torch

    targets = targets.flip(-1)
    if targets.dim() == 4:
        known = targets[:, :1] != IGNORED
        targets = torch.cat([torch.where(known, -targets[:, :1], targets[:, :1]), targets[:, 1:]], 1)
    return pictures.flip(-1), targets


def _mirrored(pictures: Tensor, targets: Tensor, g: Generator) -> tuple[Tensor, Tensor]:
    import torch

    half = torch.rand(len(pictures), generator=g) < 0.5
    moved = flipped(pictures, targets)
    return tuple(  # type: ignore[return-value]
        torch.where(half.view(-1, *[1] * (maps.dim() - 1)), other, maps)
        for maps, other in zip((pictures, targets), moved, strict=True)
    )


def small_swin() -> nn.Module:
    """torchvision's Swin in small: three stages for 64 pixels. Nothing is dropped at random: runs are short."""
    from torchvision.models.swin_transformer import SwinTransformer

    swin: nn.Module = SwinTransformer(
        [4, 4], embed_dim=24, depths=[2, 2, 2], num_heads=[2, 4, 8], window_size=[4, 4], stochastic_depth_prob=0.0
    )
    return swin


def drawn_maps(scenes: list[Scene]) -> dict[str, Tensor]:
    """Scenes drawn, as the cache holds them: pictures and labels as bytes, normals in LEVELS, 0 where there is none."""
    import torch

    from ftp.lab.worlds._rendering import render

    drawn = render(scenes)
    return {
        "pictures": drawn.pictures.mul(255).round().to(torch.uint8),
        "semseg": drawn.kind.to(torch.uint8),
        "parts": drawn.part.to(torch.uint8),
        "normals": drawn.normal.mul(LEVELS).round().to(torch.int16),
    }


def of_split(name: str) -> list[Scene]:
    """The scenes of a split, in its order."""
    look, first, count = SPLITS[name]
    return [scene(look, seed) for seed in range(first, first + count)]


@functools.lru_cache(maxsize=32)
def _split(name: str, task: str) -> tuple[Tensor, Tensor]:
    maps = _maps(name)
    return maps["pictures"], maps[task]


@functools.cache
def _maps(name: str) -> Mapping[str, Tensor]:
    """All maps of a split, out of the cache; drawn now if they are not there, or not whole."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save

    from ftp.lab.store.database import write_atomic

    path = cache_folder().with_name("drawn") / f"{name}-{_drawing()}.safetensors"
    try:
        return load_file(path)
    except (OSError, SafetensorError):
        pass
    scenes = of_split(name)
    parts = [drawn_maps(scenes[start : start + TOGETHER]) for start in range(0, len(scenes), TOGETHER)]
    maps = {key: torch.cat([part[key] for part in parts]) for key in parts[0]}
    try:
        write_atomic(path, save(maps))
    except (OSError, LabError):
        return maps  # no room or no right to write: they are drawn again next time
    return maps


@functools.cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else "missing"


@functools.cache
def _drawing() -> str:
    """Changes when what is drawn does: the code that draws, and what the splits are."""
    from ftp.lab.code import meaning

    here = Path(__file__).resolve().parent
    text = "".join(meaning(here / name) for name in ("_scenery.py", "_rendering.py")) + repr((SPLITS, TOGETHER, LEVELS))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
