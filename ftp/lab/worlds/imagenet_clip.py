"""CLIP ViT-B/16 on ImageNet: the paper's Table 3 and Figure 3 at their own size, for a machine with GPUs.

    ftp-lab run imagenet_clip --method ftp --set data=PATH
    ftp-lab table imagenet_clip --seeds 1 --set data=PATH

    PATH/train/<wnid>/*.JPEG        1.28 million pictures; one in a hundred, by the hash of its name, is for validation
    PATH/val/<wnid>/*.JPEG          the 50,000 of the validation set, sorted into folders: the home set, as in the paper
    PATH/imagenetv2-matched-frequency-format-val/<number>/     V2: its folders are numbers, not names
    PATH/imagenet-a/<wnid>/   PATH/imagenet-r/<wnid>/          200 classes each, of two different lists
    PATH/sketch/<wnid>/                                        a shift that is not there is left out

The classes are the folders of train, sorted; 17 in V2 is the eighteenth of them. A and R are scored among all 1,000
classes, as in Table 3 (zero-shot 30.60 and 56.77); `ways=200` cuts the scores to the folders of each set, as WiSE-FT's
code does. The sets have other names then, so that no table can mix the two.

The head comes from CLIP's text encoder (`head=text`, which needs open_clip), or from a file of class embeddings
(`head=FILE`). It has an anchor like every layer. Fields of the recipe that the paper leaves open are in `ASSUMED`; a
run says them when it begins.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.options import Option
from ftp.lab.progress import Progress
from ftp.lab.record import LabError, Value
from ftp.lab.worlds._augment import KINDS
from ftp.lab.worlds._classification import Classification, LabelMeter
from ftp.lab.worlds._pictures import Source, cache_folder, cores
from ftp.lab.worlds._split import Pictures
from ftp.lab.worlds._tree import SUFFIXES

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

HOME = "im"
SHIFTS = {"v2": "imagenetv2-matched-frequency-format-val", "a": "imagenet-a", "r": "imagenet-r", "sketch": "sketch"}
CUT = ("a", "r")  # sets with 200 of the classes
VALIDATED = 100  # one training picture in so many
MOST_WORKERS = 16
SCALE = 100.0  # exp(t) of CLIP
# 30 epochs of 5,004 whole batches of 256
RECIPE: dict[str, Value] = {"steps": 150_120, "batch": 256, "optimizer": "adamw", "lr": 2e-5, "weight_decay": 0.1}
ASSUMED = (
    "the paper's code for this table is not public; assumed are: no warm-up, a cosine to 0 at every step, "
    "a random crop of 8 to 100 % and a flip (no RandAugment, erasing, repeated augmentation or averaged weights), "
    "the learning rate as printed (not times batch / 512), no layer decay, weight decay on every tensor",
    "assumed: CLIP's own mean and deviation (norm=photographs for ImageNet's), bicubic, the shorter side to 224",
    "assumed: 1 % of the training pictures are kept for validation; the paper does not say by what it chose",
)


class ImageNetClip(Classification):
    title = "CLIP on ImageNet"
    summary = "CLIP ViT-B/16 with a head made of words is fine-tuned on ImageNet and tested on V2, A, R and Sketch."
    paper = "Tab. 3; Fig. 3, at full scale"
    licence = "ImageNet: for research, as its owners say; V2, A, R: MIT for the lists; CLIP: MIT"
    size = "1.4 million pictures, 160 GB; 350 MB of weights"
    offline = False
    order = 91
    options = {
        "data": Option("", "the folder with train, val and the shifts", path=True, private=True),
        "model": Option(
            "timm:vit_base_patch16_clip_quickgelu_224.openai", "timm:NAME or open_clip:NAME/TAG", private=True
        ),
        "weights": Option("", "a file of your own, or none for random ones; empty: published", path=True, private=True),
        "head": Option(
            "text", "text: from CLIP's text encoder; or a FILE of class embeddings", path=True, private=True
        ),
        "text": Option("ViT-B-16-quickgelu/openai", "open_clip's NAME/TAG of that text encoder", private=True),
        "ways": Option("1000", "of A and R: among all classes, or cut to the 200 of each", choices=("1000", "200")),
        "norm": Option("clip", "mean and deviation of the pixels", choices=("clip", "photographs")),
        "size": Option(224, "pixels of a side", 8, 1024),
        "augment": Option("light", "light: a random crop and a flip", choices=KINDS),
        "drop_path": Option(0.2, "of the last block; earlier ones less", 0.0, 0.9),
        "smoothing": Option(0.1, "of the labels in the loss", 0.0, 0.9),
        "mixup": Option(0.8, "alpha of mixup; 0 for none", 0.0, 10.0),
        "cutmix": Option(1.0, "alpha of cutmix; 0 for none", 0.0, 10.0),
        "accumulate": Option(1, "parts in which a batch is computed, if it does not fit at once", 1, 1024),
        "workers": Option(0, "threads that read pictures; 0 for one per core", 0, 256, decides=False),
    }
    defaults = {"quick": RECIPE, "full": RECIPE}
    readout = ("head.*",)
    corruptions = ()
    lipschitz = False
    evaluated_at_once = 128
    step_seconds = 60.0

    @property
    def root(self) -> Path:
        return Path(str(self.option("data"))).expanduser()

    @property
    def accumulate(self) -> int:  # type: ignore[override]
        return int(self.option("accumulate"))

    @property
    def _sets(self) -> dict[str, str]:
        """The shifts that are there, by their name in tables; those that are cut to 200 classes are called so."""
        folders = {
            name: folder for name, folder in SHIFTS.items() if not self._has_root or (self.root / folder).is_dir()
        }
        cut = self.option("ways") == "200"
        return {f"{name}-200" if cut and name in CUT else name: folder for name, folder in folders.items()}

    @property
    def _has_root(self) -> bool:
        return bool(self.option("data")) and self.root.is_dir()

    @property
    def roles(self) -> dict[str, str]:  # type: ignore[override]
        return {"train": "train", "val": "val", HOME: "home", **dict.fromkeys(self._sets, "shift")}

    @property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(_listed(self.root / "train")) if self._has_root and (self.root / "train").is_dir() else ()

    def missing(self) -> str:
        """What a person has to give before a run can begin; "" if nothing."""
        if not self.option("data"):
            return (
                f"the world {self.name} needs its pictures; write --set data=PATH, a folder with train, val and shifts"
            )
        if not self.root.is_dir():
            return f"data is {str(self.root)!r}, and no folder is there; give the folder that holds train and val"
        for part in ("train", "val"):
            if not (self.root / part).is_dir() or not _listed(self.root / part):
                what = "sort its pictures into folders by class" if (self.root / part).is_dir() else "put it there"
                return f"{self.root / part} has no folders of classes; {what}"
        return ""

    def _ready(self) -> None:
        if problem := self.missing():
            raise LabError(problem)

    def remarks(self) -> list[str]:
        absent = [folder for name, folder in SHIFTS.items() if self._has_root and not (self.root / folder).is_dir()]
        gone = [f"not there, so not tested: {', '.join(absent)}"] if absent else []
        return [*gone, *ASSUMED]

    def inventory(self) -> list[tuple[str, str]]:
        self._ready()
        counts = {name: len(self._rows(name)) for name in self.roles}
        return [(name, f"{count:,} pictures of {len(self.classes)} classes") for name, count in counts.items()]

    def data_version(self) -> str:
        if self.missing():
            return "no data"
        digest = hashlib.sha256()
        for folder in ("train", "val", *(self._sets.values())):
            for label, files in _listed(self.root / folder).items():
                digest.update(f"{folder}/{label} {' '.join(files)}\n".encode("utf-8", "surrogateescape"))
        weights, head = (str(self.option(name)) for name in ("weights", "head"))
        made_of = [
            f"{what} {_digest(Path(file))}" for what, file in (("weights", weights), ("head", head)) if _file(file)
        ]
        return " ".join([f"pictures {digest.hexdigest()[:16]}", *made_of])

    def model(self, seed: int) -> nn.Module:
        """Everything is pre-trained, so the seed decides nothing here."""
        import torch

        from ftp.lab.models.clip_network import ClipNetwork, image_tower

        self._ready()
        name, weights = str(self.option("model")), str(self.option("weights"))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # of random weights, in a try
            body = image_tower(name, weights, int(self.option("size")), float(self.option("drop_path")))
        head = self._head()
        with torch.no_grad():
            width = body.eval()(torch.zeros(1, 3, int(self.option("size")), int(self.option("size")))).shape[1]
        if head.shape[1] != width:
            raise LabError(f"the head has {head.shape[1]} columns and {name} gives {width} numbers; take one that fits")
        return ClipNetwork(body.train(), head, str(self.option("norm")))

    def _head(self) -> Tensor:
        from safetensors.torch import load_file, save

        from ftp.lab.models.clip_network import head_from_file, open_clip_head
        from ftp.lab.store.database import write_atomic

        chosen, count = str(self.option("head")), len(self.classes)
        if chosen != "text":
            return head_from_file(Path(chosen), count, SCALE)
        name = str(self.option("text"))
        head_file = cache_folder().with_name("heads") / f"{name.replace('/', '-')}-{count}.safetensors"
        if not head_file.exists():  # 80,000 texts: minutes, once
            with Progress(count, "classes named") as progress:
                head = open_clip_head(name, count, lambda done: progress.at(done, ""))
            head_file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(head_file, save({"head": head}))
        return load_file(head_file)["head"]

    def _rows(self, name: str) -> list[tuple[str, int]]:
        """The pictures of a split by their names below PATH, and their labels."""
        number = {label: place for place, label in enumerate(self.classes)}
        folder = {"train": "train", "val": "train", HOME: "val", **self._sets}[name]
        rows = []
        for label, files in _listed(self.root / folder).items():
            place = _number(label, len(number)) if folder == SHIFTS["v2"] else number.get(label)
            if place is None:
                given = f"{self.root / folder} has the folder {label!r}"
                wanted = f"a number below {len(number)}" if folder == SHIFTS["v2"] else "a class of train"
                raise LabError(f"{given}, which is not {wanted}; check that it is the set that its name says")
            rows += [(f"{folder}/{label}/{file}", place) for file in files]
        if folder == "train":
            rows = [row for row in rows if _is_validated(row[0]) == (name == "val")]
        return rows

    def split(self, name: str, labels: float = 1.0) -> Pictures:
        if name not in self.roles:
            raise self.no_split(name)
        self._ready()
        rows = self._rows(name)
        if name == "train" and labels < 1:
            rows = _share(rows, labels)
        # a fair order: the first pictures of a set are looked at on the way
        rows.sort(key=lambda row: hashlib.blake2b(row[0].encode("utf-8", "surrogateescape"), digest_size=8).digest())
        size = int(self.option("size"))
        how: dict[str, Any] = {
            "size": size,
            "classes": len(self.classes),
            "augment": str(self.option("augment")),
            "mixup": float(self.option("mixup")),
            "cutmix": float(self.option("cutmix")),
            "workers": int(self.option("workers")) or min(MOST_WORKERS, cores()),
        }
        kind = CutPictures if name.endswith("-200") else Pictures
        source = Source(self.root, size, "bicubic", {})
        return kind(source, [file for file, _ in rows], [label for _, label in rows], **how)

    def loss(self, model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, phase: int = 0) -> Tensor:
        from torch.nn import functional as F

        return F.cross_entropy(model(inputs), targets, label_smoothing=float(self.option("smoothing")))

    def meter(self) -> LabelMeter:
        return CutMeter()

    def provenance(self) -> dict[str, Any]:
        counts = {name: len(self._rows(name)) for name in self.roles}
        return {"images": counts, "ways": str(self.option("ways")), "assumed": list(ASSUMED)}


WORLD = ImageNetClip


class CutPictures(Pictures):
    """Pictures of a set with some of the classes only; the targets carry these classes along for `CutMeter`."""

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        import torch

        images, labels = super().batch(indices, generator)
        labels.among = torch.tensor(sorted(set(self.labels.tolist())))  # type: ignore[attr-defined]
        return images, labels


class CutMeter(LabelMeter):
    """Scores targets that say among which classes they are after the scores of all others were cut off.

    >>> import torch
    >>> meter, targets = CutMeter(), torch.tensor([0, 2])
    >>> targets.among = torch.tensor([0, 2])
    >>> meter.add(torch.tensor([[1.0, 5.0, 0.0], [1.0, 5.0, 0.0]]), targets)
    >>> meter.values()["accuracy"]
    50.0
    """

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        among = getattr(targets, "among", None)
        if among is not None:
            import torch

            outputs = outputs[:, among.to(outputs.device)]
            targets = torch.searchsorted(among, targets)
        super().add(outputs, targets)


@functools.cache
def _listed(folder: Path) -> dict[str, tuple[str, ...]]:
    """The pictures of each class folder, by names alone: a million files are not opened."""
    by_class = {}
    for kind in sorted(item.name for item in os.scandir(folder) if item.is_dir() and not item.name.startswith(".")):
        files = [file.name for file in os.scandir(folder / kind) if file.name.lower().endswith(SUFFIXES)]
        if files:
            by_class[kind] = tuple(sorted(files))
    return by_class


def _number(label: str, classes: int) -> int | None:
    """A folder of V2 as the number of its class: "10" comes after "9", whatever the alphabet says.

    >>> _number("10", 1000), _number("1000", 1000), _number("n01440764", 1000)
    (10, None, None)
    """
    return int(label) if label.isdecimal() and int(label) < classes else None


def _is_validated(name: str) -> bool:
    """By the hash of class and file, so that it does not depend on which other pictures are there."""
    return int(hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8], 16) % VALIDATED == 0


def _share(rows: list[tuple[str, int]], share: float) -> list[tuple[str, int]]:
    """The same share of every class, at least one picture."""
    by_class: dict[int, list[tuple[str, int]]] = {}
    for row in rows:
        by_class.setdefault(row[1], []).append(row)
    return [row for part in by_class.values() for row in part[: max(1, round(share * len(part)))]]


def _file(name: str) -> bool:
    return Path(name).is_file()


@functools.cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
