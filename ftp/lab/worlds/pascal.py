"""PASCAL-Context in three dense tasks: the paper's Tables 4, 7, 8 at their own size, for a machine with a GPU.

    ftp-lab run pascal --method ftp --set data=PATH --set task=parts

PATH is the unpacked folder PASCAL_MT, which the code of MTI-Net and ASTMT loads:

    JPEGImages/*.jpg                       ImageSets/Context/{train,val}.txt     ImageSets/Parts/{train,val}.txt
    semseg/VOC12/*.png, or else semseg/pascal-context/*.png: 0 background, 1 to 20 the things of VOC, 255 ignored
    human_parts/*.mat: parts of the body   normals_distill/*.png                 pascal-context/trainval/*.mat

Human parts: pictures without people are left out. Normals: a network made them, and they count only where what is
there (one of 459 classes) is one of 170 that NYU has too. Swin-T with weights of ImageNet-22k, a new decoder, Adam,
rate and decay 1e-4, 60 epochs (the paper). The paper says no more; `ASSUMED` is what was taken instead.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.options import Option
from ftp.lab.record import LabError, Value
from ftp.lab.store.database import write_atomic
from ftp.lab.worlds._dense import IGNORED, TASK, DenseWorld
from ftp.lab.worlds._pictures import cache_folder, cores, each

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Generator, Tensor, nn

THINGS = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)
PERSON = 15  # the number of people among the things of human_parts
# the number of every named part of a person; l and r are left and right, u and l upper and lower
PART_NUMBERS = {
    **dict.fromkeys(("hair", "head", "lear", "lebrow", "leye", "mouth", "nose", "rear", "rebrow", "reye"), 1),
    **dict.fromkeys(("neck", "torso"), 2),
    **dict.fromkeys(("luarm", "ruarm"), 3),
    **dict.fromkeys(("llarm", "rlarm", "lhand", "rhand"), 4),
    **dict.fromkeys(("luleg", "ruleg"), 5),
    **dict.fromkeys(("llleg", "rlleg", "lfoot", "rfoot"), 6),
}
# the classes of PASCAL-Context whose names NYU has too, and tvmonitor: elsewhere no normal is known
# fmt: off
WITH_NORMALS = frozenset((
    3, 4, 6, 9, 10, 11, 13, 15, 17, 18, 22, 23, 29, 30, 33, 34, 36, 37, 38, 39, 41, 43, 46, 49, 50, 51, 53, 55, 56, 59,
    61, 62, 65, 66, 68, 69, 72, 73, 78, 83, 84, 85, 87, 88, 95, 96, 101, 104, 105, 107, 111, 113, 115, 122, 124, 135,
    141, 142, 143, 146, 150, 154, 157, 158, 159, 165, 172, 174, 181, 183, 184, 191, 193, 195, 197, 199, 202, 213, 215,
    216, 219, 220, 223, 225, 228, 230, 232, 233, 238, 239, 242, 243, 246, 250, 251, 252, 255, 260, 261, 263, 269, 272,
    273, 275, 281, 283, 284, 285, 286, 287, 288, 290, 291, 292, 293, 295, 304, 307, 309, 310, 314, 315, 319, 323, 329,
    330, 331, 336, 342, 345, 349, 350, 351, 352, 355, 357, 368, 370, 371, 374, 379, 380, 383, 384, 397, 401, 403, 405,
    407, 408, 411, 412, 413, 414, 417, 419, 421, 423, 427, 429, 430, 432, 440, 441, 442, 443, 444, 446, 454, 457,
))
# fmt: on
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
TURN, ZOOM = 20.0, (0.75, 1.25)  # degrees to either side; the scale
VALIDATED = 10  # one in so many of train.txt
EPOCHS, BATCH = 60, 8
STEPS = EPOCHS * (4_998 * (VALIDATED - 1) // VALIDATED // BATCH)  # of the 4,998 pictures of train.txt
RECIPE: dict[str, Value] = {"steps": STEPS, "batch": BATCH, "optimizer": "adamw", "lr": 1e-4, "weight_decay": 1e-4}
ASSUMED = (
    "batches of 8, flips, turns of up to 20°, scales of 0.75 to 1.25 and 512 x 512 pixels are MTI-Net's",
    "the rate falls along a cosine (MTI-Net: by the power 0.9); the decay is decoupled, as in the authors' AdamP",
    "one in ten pictures of train.txt is kept for choosing settings; val.txt is the test set",
    "scores are taken at the size of the network's pictures, and damage is done after resizing",
    "the decoder is 256 wide, with a norm before each map",
)


class Pascal(DenseWorld):
    title = "PASCAL-Context"
    summary = "A Swin-T says of every pixel of a photograph which thing, body part or surface normal is there."
    paper = "Tab. 4, 7, 8, 9; Fig. 6, at full scale"
    licence = "photographs as their owners on Flickr say; labels for research; weights: MIT (timm), BSD 3 (torchvision)"
    size = "10,103 pictures, 3 GB; 110 MB of weights"
    offline = False
    order = 91
    options = {
        "task": TASK,
        "data": Option("", "the unpacked folder PASCAL_MT", path=True, private=True),
        "model": Option(
            "timm:swin_tiny_patch4_window7_224.ms_in22k", "timm:NAME or torchvision:NAME, a Swin", private=True
        ),
        "weights": Option("pretrained", "downloaded, or random for a try", choices=("pretrained", "none")),
        "size": Option(512, "pixels of a side", 32, 2048),
        "decoder_width": Option(256, "channels of the decoder", 4, 4096),
    }
    defaults = {"quick": RECIPE, "full": RECIPE}
    kinds = THINGS
    roles = {"train": "train", "val": "val", "id": "home"}
    severities = "imagenet"
    lipschitz = False
    step_seconds = 20.0
    evaluated_at_once = BATCH

    @property
    def root(self) -> Path:
        return Path(str(self.option("data"))).expanduser()

    def missing(self) -> str:
        """What a person has to give before a run can begin; "" if nothing."""
        if not self.option("data"):
            return f"the world {self.name} needs its pictures; write --set data=PATH, the unpacked folder PASCAL_MT"
        if not self.root.is_dir():
            return f"data is {str(self.root)!r}, and no folder is there; give the unpacked folder PASCAL_MT"
        for part in ("train", "val"):
            if not _list_file(self.root, part).is_file():
                listed = _list_file(self.root, part).relative_to(self.root)
                return f"data is {str(self.root)!r}, and it has no {listed}; give the unpacked folder PASCAL_MT"
        return ""

    def _ready(self) -> None:
        if problem := self.missing():
            raise LabError(problem)

    def pictures(self, name: str) -> tuple[str, ...]:
        """The names of the pictures of a split."""
        if name not in self.roles:
            raise self.no_split(name)
        self._ready()
        listed = _people(self.root, _file_of(name)) if self.task == "parts" else _listed(self.root, _file_of(name))
        return tuple(picture for picture in listed if name == "id" or _is_validated(picture) == (name == "val"))

    def remarks(self) -> list[str]:
        """What is assumed has to be seen before a run begins."""
        count = len(self.pictures("train"))
        epochs = EPOCHS * (count // BATCH)
        steps = (
            f"{EPOCHS} epochs of the {count} pictures for {self.task} in batches of {BATCH} are {epochs} steps: "
            f"write --set steps={epochs}"
        )
        return [f"assumed, since the paper does not say it: {what}" for what in ASSUMED] + [steps]

    def inventory(self) -> list[tuple[str, str]]:
        return [(name, f"{len(self.pictures(name))} pictures for {self.task}") for name in self.roles]

    def data_version(self) -> str:
        if self.missing():
            return "no data"
        files = [file for name in self.roles for picture in self.pictures(name) for file in self._files(picture)]
        listed = "\n".join(f"{file.relative_to(self.root)} {file.stat().st_size}" for file in files)
        return f"PASCAL_MT {hashlib.sha256(listed.encode()).hexdigest()[:12]}"

    def _files(self, picture: str) -> list[Path]:
        """The picture and what its target is made of; one that is not there is told."""
        files = [self.root / "JPEGImages" / f"{picture}.jpg"]
        if self.task == "semseg":
            of_voc = self.root / "semseg" / "VOC12" / f"{picture}.png"
            files.append(of_voc if of_voc.is_file() else self.root / "semseg" / "pascal-context" / f"{picture}.png")
        elif self.task == "parts":
            files.append(_parts_file(self.root, picture))
        else:
            files.append(self.root / "normals_distill" / f"{picture}.png")
            files.append(self.root / "pascal-context" / "trainval" / f"{picture}.mat")
        for file in files:
            if not file.is_file():
                raise LabError(f"{file} is not there, and {picture} is on a list; unpack the whole archive PASCAL_MT")
        return files

    def model(self, seed: int) -> nn.Module:
        import torch

        from ftp.lab.models.dense_network import DenseNetwork
        from ftp.lab.models.swin import swin_maps

        self._ready()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # of random weights, in a try; the seed of the run makes the decoder
            pretrained = self.option("weights") == "pretrained"
            encoder = swin_maps(str(self.option("model")), int(self.option("size")), pretrained)
            torch.manual_seed(seed)
            return DenseNetwork(encoder, self.outputs, int(self.option("decoder_width")), MEAN, STD)

    def split(self, name: str, labels: float = 1.0) -> Photographs:
        names = self.pictures(name)
        if name == "train":
            names = names[: max(2, round(labels * len(names)))]
        return Photographs(self, names, int(self.option("size")))

    def target(self, picture: str, shape: tuple[int, int]) -> NDArray[Any]:
        """(height, width), labels, or (height, width, 3), normals with 0 where none is known; as the files say."""
        files = self._files(picture)[1:]
        if self.task == "semseg":
            return _pixels(files[0])
        return _parts(files[0], shape) if self.task == "parts" else _normals(*files)

    def provenance(self) -> dict[str, Any]:
        return {"images": {name: len(self.pictures(name)) for name in self.roles}, "assumed": list(ASSUMED)}


WORLD = Pascal


class Photographs:
    """Pictures and their maps, read when they are asked for. Training: flipped, turned and scaled; else as they are."""

    takes_time = True

    def __init__(self, world: Pascal, names: Sequence[str], size: int) -> None:
        self.world, self.names, self.size = world, tuple(names), size

    def __len__(self) -> int:
        return len(self.names)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        import torch

        if generator is None:
            moves = [Move()] * len(indices)
        else:
            draws = torch.rand((len(indices), 3), generator=generator).tolist()
            moves = [_drawn(*row) for row in draws]
        jobs = list(zip([self.names[n] for n in indices.tolist()], moves, strict=True))
        rows = list(each(lambda job: self._read(*job), jobs, min(BATCH, cores())))
        return torch.stack([picture for picture, _ in rows]), torch.stack([target for _, target in rows])

    def _read(self, name: str, move: Move) -> tuple[Tensor, Tensor]:
        import torch

        pixels = _pixels(self.world.root / "JPEGImages" / f"{name}.jpg", "RGB")
        target = torch.from_numpy(self.world.target(name, pixels.shape[:2]).astype("float32"))
        picture = moved(torch.from_numpy(pixels).permute(2, 0, 1).float(), move, self.size, "bicubic")
        picture = picture.round().clamp(0, 255) / 255  # bytes, as a picture on disk
        if target.dim() == 3:
            return picture, moved_normals(target.permute(2, 0, 1), move, self.size)
        labels = moved(target.unsqueeze(0), move, self.size, "nearest")[0].long()
        if self.world.task == "parts" and not labels.any():
            labels.fill_(IGNORED)  # nobody is there, or nobody's parts are known
        return picture, labels


class Move:
    """Flip, then turn by degrees against the clock and scale, about the middle of a picture."""

    def __init__(self, flip: bool = False, degrees: float = 0.0, scale: float = 1.0) -> None:
        self.flip, self.degrees, self.scale = flip, degrees, scale


def _drawn(coin: float, turn: float, zoom: float) -> Move:
    return Move(coin < 0.5, TURN * (2 * turn - 1), ZOOM[0] + zoom * (ZOOM[1] - ZOOM[0]))


def moved(maps: Tensor, move: Move, size: int, mode: str) -> Tensor:
    """A picture or map of (channels, height, width), moved and made (channels, size, size); 0 where nothing was.

    >>> import torch
    >>> moved(torch.arange(4.0).view(1, 2, 2), Move(flip=True), 2, "nearest").tolist()
    [[[1.0, 0.0], [3.0, 2.0]]]
    """
    import torch
    from torch.nn import functional as F

    height, width = maps.shape[-2:]
    cos, sin = (f(math.radians(move.degrees)) / move.scale for f in (math.cos, math.sin))
    side = -1.0 if move.flip else 1.0
    # from a place in the result to the place in the source, both from -1 to 1
    back = torch.tensor([[side * cos, -side * sin * height / width, 0.0], [sin * width / height, cos, 0.0]])
    grid = F.affine_grid(back.unsqueeze(0), [1, 1, size, size], align_corners=False)
    return F.grid_sample(maps.unsqueeze(0), grid, mode=mode, align_corners=False)[0]


def moved_normals(normals: Tensor, move: Move, size: int) -> Tensor:
    """Normals of (3, height, width), 0 where none is known, moved along with their directions; 255 where none is known.

    x points to the right and y down. Cubic resizing leaves no unit vectors, and smears over the edge of what is known:
    so they are made unit again, and the edge is that of the nearest pixel.
    """
    import torch
    from torch.nn import functional as F

    x, y, z = normals
    x = -x if move.flip else x
    cos, sin = (f(math.radians(move.degrees)) for f in (math.cos, math.sin))
    turned = torch.stack([cos * x + sin * y, cos * y - sin * x, z])
    is_known = moved((normals != 0).any(0, keepdim=True).float(), move, size, "nearest") > 0
    resized = moved(turned, move, size, "bicubic")
    is_known = is_known & (resized.norm(dim=0, keepdim=True) > 1e-3)
    return torch.where(is_known, F.normalize(resized, dim=0), torch.full_like(resized, IGNORED))


def _pixels(path: Path, mode: str = "") -> NDArray[Any]:
    import numpy as np
    from PIL import Image

    with Image.open(path) as file:
        return np.array(file.convert(mode) if mode else file)


def _normals(normals_file: Path, context_file: Path) -> NDArray[Any]:
    """Vectors where the class of a pixel is one of those with normals, 0 elsewhere."""
    import numpy as np

    vectors = 2 * _pixels(normals_file, "RGB").astype("float32") / 255 - 1
    classes = _mat(context_file)["LabelMap"]
    return np.where(np.isin(classes, list(WITH_NORMALS))[..., None], vectors, np.float32(0))


def _parts(file: Path, shape: tuple[int, int]) -> NDArray[Any]:
    """The parts of all people in a picture; 0 where there is none."""
    import numpy as np

    labels = np.zeros(shape, "uint8")
    for thing in _things(file):
        if int(thing[1][0][0]) == PERSON and len(thing[3]):
            for part in thing[3][0]:
                labels[part[1].astype(bool)] = PART_NUMBERS[str(part[0][0])]
    return labels


def _things(file: Path) -> Any:
    """What human_parts says of a picture: of each thing its class, the number of that, a mask, and its parts."""
    return _mat(file)["anno"][0][0][1][0]


def _mat(file: Path) -> dict[str, Any]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content: dict[str, Any] = loadmat(file)
    except (OSError, ValueError, NotImplementedError, TypeError, MatReadError) as error:
        raise LabError(f"{file} cannot be read ({error}); unpack it anew from the archive PASCAL_MT") from None
    return content


def _parts_file(root: Path, picture: str) -> Path:
    return root / "human_parts" / f"{picture}.mat"


def _list_file(root: Path, part: str) -> Path:
    return root / "ImageSets" / "Context" / f"{part}.txt"


def _file_of(split: str) -> str:
    return "val" if split == "id" else "train"


@functools.cache
def _listed(root: Path, part: str) -> tuple[str, ...]:
    return tuple(_list_file(root, part).read_text(encoding="utf-8").split())


@functools.cache
def _people(root: Path, part: str) -> tuple[str, ...]:
    """The pictures of a list that have people in them: by the archive's own index, else by their files, once."""
    listed = _listed(root, part)
    digest = hashlib.sha256("\n".join([str(root.absolute()), *listed]).encode()).hexdigest()[:16]
    made_here = cache_folder().with_name("people") / f"{digest}.json"
    for file in (root / "ImageSets" / "Parts" / f"{part}.txt", made_here):
        if file.is_file():
            things = json.loads(file.read_text(encoding="utf-8"))
            if all(picture in things for picture in listed):
                return tuple(picture for picture in listed if PERSON in things[picture])
    things = {picture: [int(thing[1][0][0]) for thing in _things(_parts_file(root, picture))] for picture in listed}
    write_atomic(made_here, json.dumps(things).encode())
    return tuple(picture for picture in listed if PERSON in things[picture])


def _is_validated(picture: str) -> bool:
    """By the hash of its name: what a picture is for does not depend on which others there are."""
    return int(hashlib.sha256(picture.encode()).hexdigest()[:8], 16) % VALIDATED == 0
