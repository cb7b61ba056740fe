"""Folder: your own pictures and a real network. Any tree of class folders, any network of torchvision or timm.

    PATH/id/train/<class>/*.jpg    PATH/id/val/...   PATH/id/test/...     val and test are split off train where absent
    PATH/ood/<shift>/<class>/...   any number of shifts, also none; classes may be a subset

    ftp-lab run folder --set data=PATH --set model=torchvision:resnet50 --method ftp

The id of a run holds a fingerprint of the pictures (their names, and of each file its size and its first and last
64 KB), not the path: a tree that was moved or copied is the same tree.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.options import Option
from ftp.lab.record import LabError
from ftp.lab.worlds._augment import KINDS
from ftp.lab.worlds._classification import Classification
from ftp.lab.worlds._pictures import Collection, Source, cache_folder, collection, cores, listing, source
from ftp.lab.worlds._split import Pictures
from ftp.lab.worlds._tree import HOME_SPLITS, check_root, counted, remarks, shift_names

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ftp.lab.models.zoo import Preprocessing

MOST_WORKERS = 8
EXAMPLE = "example:"  # before the name of a tree of the kit
PIXELS_AT_ONCE = 250 * 112 * 112  # of an evaluation
SMALLEST = 8  # pixels of a side that can be damaged


def _usual(name: str, otherwise: str) -> str:
    """What the environment says in place of an option, as `make app DATA=PATH MODEL=NAME` does; read here only."""
    text = os.environ.get(f"FTP_{name}", otherwise)
    return str(Path(text).expanduser().absolute()) if name == "DATA" and text and not text.startswith(EXAMPLE) else text


class Folder(Classification):
    title = "Your own pictures"
    summary = "A network that has seen ImageNet is fine-tuned on a folder of your pictures and tested on your shifts."
    paper = "Tab. 1, 2 on data of your own"
    licence = "yours; weights of efficientnet_lite0: Apache 2.0, others as their publishers say"
    size = "as many pictures as you have; weights of 19 MB and more"
    order = 50
    own = True
    options = {
        "data": Option(
            _usual("DATA", ""),
            "the folder, with id/train/<class>/ and ood/<shift>/<class>/; or example:emoji",
            path=True,
            private=True,
        ),
        "model": Option(
            _usual("MODEL", "efficientnet_lite0"), "torchvision:NAME, timm:NAME or efficientnet_lite0", private=True
        ),
        "weights": Option(
            _usual("WEIGHTS", ""),
            "a file of your own, none, or a name of torchvision's; empty: the newest",
            path=True,
            private=True,
        ),
        "size": Option(int(_usual("SIZE", "0")), "pixels of a side; 0 for what the weights were made for", 0, 2048),
        "crop": Option(0.0, "the share of a side that is seen when testing; 0 for that of the weights", 0.0, 1.0),
        "augment": Option("light", "light: a random crop and a flip", choices=KINDS),
        "mixup": Option(0.0, "alpha of mixup; 0 for none", 0.0, 10.0),
        "cutmix": Option(0.0, "alpha of cutmix; 0 for none", 0.0, 10.0),
        "smoothing": Option(0.0, "of the labels in the loss", 0.0, 0.9),
        "accumulate": Option(1, "parts in which a batch is computed, if it does not fit at once", 1, 1024),
        "split_seed": Option(2023, "decides what is split off train where val or test is absent", 0, 2**31 - 1),
        "workers": Option(0, "threads that read pictures; 0 for one per core", 0, 256, decides=False),
        "cache": Option("disk", "where decoded pictures are kept", choices=("disk", "no"), decides=False),
    }
    defaults = {
        "quick": {"steps": 200, "batch": 32, "lr": 0.01},
        "full": {"steps": 2000, "batch": 128, "lr": 0.01},
    }
    step_seconds = 0.5
    # the true names follow from the network: `model` sets them
    unanchored: tuple[str, ...] = ("head.*",)
    readout: tuple[str, ...] = ("head.*",)

    @property
    def root(self) -> Path:
        data = str(self.option("data"))
        if data.startswith(EXAMPLE):  # a tree that comes with the kit, under a name that is the same everywhere
            from ftp.lab.emoji.tree import unpacked

            return unpacked(cache_folder().with_name("examples"), data.removeprefix(EXAMPLE))
        return Path(data).expanduser()

    @property
    def workers(self) -> int:
        return int(self.option("workers")) or min(MOST_WORKERS, cores())

    @property
    def accumulate(self) -> int:  # type: ignore[override]
        return int(self.option("accumulate"))

    @property
    def evaluated_at_once(self) -> int:  # type: ignore[override]
        return max(8, min(250, PIXELS_AT_ONCE // self.preprocessing.size**2))

    @property
    def roles(self) -> dict[str, str]:  # type: ignore[override]
        shifts = shift_names(self.root) if self.option("data") else ()
        return {"train": "train", "val": "val", "id": "home", **dict.fromkeys(shifts, "shift")}

    @property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        return listing(self.root, self._seed)[0].classes if self.option("data") else ()

    def missing(self) -> str:
        if not self.option("data"):
            how = "--set data=PATH on the command line, make app DATA=PATH for the page"
            return f"the world {self.name} needs your pictures; give a folder that has id/train/<class>/: {how}"
        if 0 < int(self.option("size")) < SMALLEST:
            return f"size is {self.option('size')}; it must be 0, for the size of the weights, or {SMALLEST} to 2048"
        try:
            check_root(self.root)
        except LabError as error:
            return str(error)
        return ""

    @property
    def _seed(self) -> int:
        return int(self.option("split_seed"))

    @property
    def pictures(self) -> Collection:
        """The pictures, with what their headers say."""
        if problem := self.missing():
            raise LabError(problem)
        return collection(self.root, self._seed, self.workers)

    @functools.cached_property
    def preprocessing(self) -> Preprocessing:
        """The size, filter and normalisation of the weights, at the chosen size."""
        from ftp.lab.models.zoo import preprocessing

        transforms = preprocessing(str(self.option("model")), str(self.option("weights")))
        return transforms.at(int(self.option("size")), float(self.option("crop")))

    def source(self) -> Source:
        """The decoded pictures, made the first time."""
        made_for, keep = self.preprocessing, str(self.option("cache"))
        return source(self.pictures, made_for.resize, made_for.interpolation, keep, self.workers)

    def inventory(self) -> list[tuple[str, str]]:
        decoded, pictures = self.source(), self.pictures
        rows = []
        for split, counts in counted(pictures.tree, pictures.facts).items():
            by_class = ", ".join(f"{label} {counts[label]}" for label in pictures.tree.classes if counts[label])
            origin = " (split off train)" if split in pictures.tree.split_off else ""
            rows.append((split, f"{sum(counts.values())} pictures{origin}: {by_class}"))
        made_for, size = self.preprocessing, pictures.decoded_bytes(decoded.side) / 1e6
        where = f"{size:.0f} MB in {cache_folder()}" if decoded.file else "decoded each time"
        rows.append(("network", f"{self.option('model')} at {made_for.size} pixels, cut from {made_for.resize}"))
        rows.append(("decoded", f"{where}; {self.workers} thread{'s' if self.workers > 1 else ''} read"))
        return rows

    def remarks(self) -> list[str]:
        decoded = self.source()
        pictures = self.pictures
        return [*remarks(pictures.tree, pictures.facts), *([decoded.remark] if decoded.remark else [])]

    def data_version(self) -> str:
        weights = Path(str(self.option("weights")))
        of_file = f" weights {_digest(weights, weights.stat().st_mtime_ns)}" if weights.is_file() else ""
        return f"pictures {self.pictures.fingerprint}{of_file}"

    def model(self, seed: int) -> nn.Module:
        from ftp.lab.models.zoo import build

        classes = len(self.pictures.tree.classes)
        network = build(str(self.option("model")), str(self.option("weights")), classes, seed, self.preprocessing.size)
        self.unanchored = self.readout = network.head
        self.weights_name = network.weights
        return network.model

    def split(self, name: str, labels: float = 1.0) -> Pictures:
        if name not in self.roles:
            raise self.no_split(name)
        decoded, pictures = self.source(), self.pictures
        entries = [e for e in pictures.tree.splits[name] if not pictures.facts[e.name].problem]
        if not entries:
            raise LabError(f"no picture of {name} can be read; ftp-lab doctor --data PATH says what is wrong with them")
        if name == "train" and labels < 1:
            entries = _share(entries, labels)
        number = {label: index for index, label in enumerate(pictures.tree.classes)}
        return Pictures(
            decoded,
            [entry.name for entry in entries],
            [number[entry.label] for entry in entries],
            size=self.preprocessing.size,
            classes=len(number),
            augment=str(self.option("augment")),
            mixup=float(self.option("mixup")),
            cutmix=float(self.option("cutmix")),
            workers=self.workers,
        )

    def loss(self, model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, phase: int = 0) -> Tensor:
        from torch.nn import functional as F

        return F.cross_entropy(model(inputs), targets, label_smoothing=float(self.option("smoothing")))

    def provenance(self) -> dict[str, Any]:
        pictures = self.pictures
        counts = {name: sum(count.values()) for name, count in counted(pictures.tree, pictures.facts).items()}
        made_for = self.preprocessing
        return {
            "images": counts,
            "pictures": pictures.fingerprint,
            "classes": len(pictures.tree.classes),
            "weights": getattr(self, "weights_name", ""),
            "pixels": made_for.size,
            "split_off": list(pictures.tree.split_off),
        }


WORLD = Folder


@functools.lru_cache(maxsize=4)
def _digest(path: Path, changed: int) -> str:
    """Of a file; `changed` is when it was, so that it is read again then."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def _share(entries: list[Any], share: float) -> list[Any]:
    """The first pictures of each class, so that every class keeps its share; their order is mixed already."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.label] = counts.get(entry.label, 0) + 1
    left = {label: max(1, round(share * count)) for label, count in counts.items()}
    chosen = []
    for entry in entries:
        if left[entry.label] > 0:
            left[entry.label] -= 1
            chosen.append(entry)
    return chosen


assert HOME_SPLITS == ("train", "val", "id")  # the names in `roles`
