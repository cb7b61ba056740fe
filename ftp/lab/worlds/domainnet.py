"""DomainNet: the paper's Tables 1, 2 and 6 at their own size, for a machine with a GPU. Real at home, four shifts.

    ftp-lab run domainnet --method ftp --set data=PATH --set model=torchvision:resnet50 --set weights=moco.pth
    ftp-lab run domainnet --method ftp --set data=PATH --set model=timm:resnet50_clip.openai

    PATH/real/<class>/*.jpg  PATH/sketch/...  PATH/painting/...  PATH/infograph/...  PATH/clipart/...
    PATH/real_test.txt  PATH/sketch_test.txt  ...         the published lists: a file and its label in each line
    PATH/real_train_split.txt  PATH/real_val_split.txt    the authors' own division of Real, and its parts of 10 % as
    PATH/real_train_10_percent_split.txt  ...             percent=10; where they are absent, real_train.txt is divided:
                                                          one picture in ten, by the hash of its name, is for validation
The recipe is that of Table 1; for Table 2 and 6 see `ftp-lab recipe domainnet`. What is assumed is in `ASSUMED`, and a
run says it when it begins.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.options import Option
from ftp.lab.record import LabError, Value
from ftp.lab.worlds._classification import Classification
from ftp.lab.worlds._pictures import Source, cores
from ftp.lab.worlds._split import Pictures

if TYPE_CHECKING:
    from torch import nn

    from ftp.lab.models.zoo import Preprocessing

HOME = "real"
SHIFTS = ("sketch", "painting", "infograph", "clipart")  # quickdraw has lists too; the paper does not use them
VALIDATED = 10  # one picture in so many, where the authors' division is absent
MOST_WORKERS = 16
NORM = ((0.5964, 0.5712, 0.5336), (0.3228, 0.3165, 0.3374))  # of Real, in the released code
# 50 epochs of 430 whole batches of 256
RECIPE: dict[str, Value] = {"steps": 21_500, "batch": 256, "optimizer": "sgd", "lr": 0.01, "weight_decay": 5e-4}
ASSUMED = (
    "weight decay is 5e-4, as the paper says; its released code has 0 for FTP (write weight_decay=0 for that)",
    "assumed: the cosine falls at every step, in the released code at every epoch; the last weights count, "
    "there those of the best validation epoch",
)


class DomainNet(Classification):
    title = "DomainNet"
    summary = "A ResNet-50 is fine-tuned on photographs of 345 things and tested on sketches, paintings and clip art."
    paper = "Tab. 1, 2, 6; Fig. 5, at full scale"
    licence = "DomainNet: for research, as its owners say; weights as their publishers say"
    size = "300,000 pictures, 12 GB; 100 MB of weights"
    offline = False
    order = 92
    options = {
        "data": Option("", "the folder with real, sketch, ... and the lists", path=True, private=True),
        "model": Option("torchvision:resnet50", "torchvision:NAME or timm:NAME", private=True),
        "weights": Option("", "a file, such as MoCo's, or none; empty: published", path=True, private=True),
        "percent": Option("100", "of the labels of Real, by the authors' lists", choices=("100", "50", "20", "10")),
        "norm": Option("real", "mean and deviation of the pixels: of Real, or of the weights", choices=("real", "own")),
        "size": Option(224, "pixels of a side", 8, 1024),
        "accumulate": Option(1, "parts in which a batch is computed, if it does not fit at once", 1, 1024),
        "workers": Option(0, "threads that read pictures; 0 for one per core", 0, 256, decides=False),
    }
    defaults = {"quick": RECIPE, "full": RECIPE}
    corruptions = ()
    lipschitz = False
    evaluated_at_once = 128
    step_seconds = 40.0
    roles = {"train": "train", "val": "val", HOME: "home", **dict.fromkeys(SHIFTS, "shift")}
    # the true names follow from the network: `model` sets them
    unanchored: tuple[str, ...] = ("fc.*",)
    readout: tuple[str, ...] = ("fc.*",)

    @property
    def root(self) -> Path:
        return Path(str(self.option("data"))).expanduser()

    @property
    def accumulate(self) -> int:  # type: ignore[override]
        return int(self.option("accumulate"))

    def missing(self) -> str:
        """What a person has to give before a run can begin; "" if nothing."""
        if not self.option("data"):
            return (
                f"the world {self.name} needs its pictures; write --set data=PATH, the folder with real and the lists"
            )
        if not self.root.is_dir():
            return f"data is {str(self.root)!r}, and no folder is there; give the folder with real and the lists"
        lists = [f"{name}_test.txt" for name in (HOME, *SHIFTS)]
        if absent := [name for name in lists if not (self.root / name).is_file()]:
            return f"{self.root} has no {absent[0]}; put the published lists beside the pictures"
        if not self._divided and self.option("percent") != "100":
            wanted = self._list("train").name
            return f"{self.root} has no {wanted}; put the authors' list there, or write percent=100"
        if not self._divided and not (self.root / "real_train.txt").is_file():
            return f"{self.root} has neither {self._list('train').name} nor real_train.txt; put one of them there"
        return ""

    def _list(self, part: str) -> Path:
        percent = self.option("percent")
        return self.root / f"{HOME}_{part}{'' if percent == '100' else f'_{percent}_percent'}_split.txt"

    @property
    def _divided(self) -> bool:
        """Whether the authors' own division is there."""
        return self._list("train").is_file() and self._list("val").is_file()

    def _rows(self, name: str) -> tuple[tuple[str, int], ...]:
        """The files of a split below PATH, and their labels."""
        if name not in ("train", "val"):
            return _read(self.root / f"{name}_test.txt")
        if self._divided:
            return _read(self._list(name))
        every = _read(self.root / f"{HOME}_train.txt")
        return tuple(row for row in every if _is_validated(row[0]) == (name == "val"))

    def _ready(self) -> None:
        if problem := self.missing():
            raise LabError(problem)

    @property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        if not self.option("data") or self.missing():
            return ()
        named = {label: Path(file).parent.name for name in ("train", HOME) for file, label in self._rows(name)}
        return tuple(named.get(label, f"class {label}") for label in range(max(named) + 1))

    def remarks(self) -> list[str]:
        other = (
            f"assumed: one in {VALIDATED} of real_train.txt is for validation, for the authors' division is not there"
        )
        return [*ASSUMED, *([] if self._divided else [other])]

    def inventory(self) -> list[tuple[str, str]]:
        self._ready()
        return [(name, f"{len(self._rows(name)):,} pictures of {len(self.classes)} classes") for name in self.roles]

    def data_version(self) -> str:
        if self.missing():
            return "no data"
        digest = hashlib.sha256()
        for name in self.roles:
            digest.update(f"{name} {self._rows(name)}\n".encode())
        weights = Path(str(self.option("weights")))
        of_file = f" weights {_digest(weights)}" if weights.is_file() else ""
        return f"lists {digest.hexdigest()[:16]}{of_file}"

    @functools.cached_property
    def preprocessing(self) -> Preprocessing:
        """The shorter side to 256 for 224, as in the released code; the filter is that of the weights."""
        from ftp.lab.models.zoo import preprocessing

        transforms = preprocessing(str(self.option("model")), str(self.option("weights")))
        return transforms.at(int(self.option("size")), 224 / 256)

    def model(self, seed: int) -> nn.Module:
        from ftp.lab.models.zoo import _Normalise, build

        self._ready()
        network = build(
            *(str(self.option("model")), str(self.option("weights")), len(self.classes), seed),
            self.preprocessing.size,
        )
        self.unanchored = self.readout = network.head
        if self.option("norm") == "real":
            for hook in network.model._forward_pre_hooks.values():
                if isinstance(hook, _Normalise):
                    hook.mean, hook.std = NORM
        return network.model

    def split(self, name: str, labels: float = 1.0) -> Pictures:
        if name not in self.roles:
            raise self.no_split(name)
        self._ready()
        # a fair order: the first pictures of a set are looked at on the way
        rows = sorted(self._rows(name), key=lambda row: hashlib.blake2b(row[0].encode(), digest_size=8).digest())
        if name == "train" and labels < 1:
            rows = rows[: max(2, round(labels * len(rows)))]
        made_for = self.preprocessing
        return Pictures(
            Source(self.root, made_for.resize, made_for.interpolation, {}),
            [file for file, _ in rows],
            [label for _, label in rows],
            size=made_for.size,
            classes=len(self.classes),
            workers=int(self.option("workers")) or min(MOST_WORKERS, cores()),
        )

    def provenance(self) -> dict[str, Any]:
        counts = {name: len(self._rows(name)) for name in self.roles}
        return {"images": counts, "authors_division": self._divided, "assumed": self.remarks()}


WORLD = DomainNet


@functools.cache
def _read(path: Path) -> tuple[tuple[str, int], ...]:
    """A list: in each line a file below the data folder, a space, and its label."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        file, _, label = line.strip().rpartition(" ")
        if not file or not label.isdecimal():
            raise LabError(
                f"{path}, line {number} is {line!r:.80}; it must be a file and its label, such as real/a.jpg 0"
            )
        rows.append((file, int(label)))
    return tuple(rows)


def _is_validated(file: str) -> bool:
    return int(hashlib.sha256(file.encode()).hexdigest()[:8], 16) % VALIDATED == 0


@functools.cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
