"""A tree of class folders: which pictures lie in which split, and what is odd about them. Without torch.

    PATH/id/train/<class>/*.jpg    PATH/id/val/...   PATH/id/test/...
    PATH/ood/<shift>/<class>/...

Where val or test is absent it is split off train, class by class. A picture's place follows from its name and the
seed alone, so that one more picture moves no other.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ftp.lab.record import LabError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
HOME_SPLITS = ("train", "val", "id")  # what the lab calls PATH/id/train, val and test
FOLDERS = {"train": "id/train", "val": "id/val", "id": "id/test"}
SHARES = {"val": 0.15, "id": 0.2}  # of a class, where they are split off train
NAMED = 3  # files that a sentence names before it says "and so many more"
LAYOUT = "id/train/<class>/*.jpg and, as you like, id/val, id/test and ood/<shift>, each with folders of classes"


@dataclass(frozen=True)
class Entry:
    """One picture: its name below PATH, with "/", and the class that its folder says."""

    name: str
    label: str


@dataclass(frozen=True)
class Tree:
    """What lies below PATH, by names alone. `splits` has the pictures whose class is one of `classes`, mixed."""

    root: Path
    classes: tuple[str, ...]
    splits: Mapping[str, tuple[Entry, ...]]
    split_off: tuple[str, ...]  # of val and id: those that are parts of train
    strangers: Mapping[str, tuple[str, ...]]  # split to the classes that train does not have
    foreign: tuple[str, ...]  # files that are no pictures by their ending

    @property
    def shifts(self) -> tuple[str, ...]:
        return tuple(name for name in self.splits if name not in HOME_SPLITS)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every picture of every split, once."""
        return tuple(entry for entries in self.splits.values() for entry in entries)


def shift_names(root: Path) -> tuple[str, ...]:
    """The shifts by the names of their folders; nothing else is read."""
    place = root / "ood"
    return tuple(sorted(item.name for item in _visible(place) if item.is_dir())) if place.is_dir() else ()


def check_root(root: Path) -> None:
    """Refuse a path that holds no tree, in one sentence."""
    if not root.is_dir():
        what = "is a file" if root.is_file() else "is not there"
        raise LabError(f"data is {str(root)!r}, which {what}; give a folder with {LAYOUT}")
    if not (root / "id" / "train").is_dir():
        raise LabError(f"data is {str(root)!r}, which has no id/train; arrange the pictures as {LAYOUT}")


def read_tree(root: Path, seed: int) -> Tree:
    """List a tree; no picture is opened."""
    check_root(root)
    foreign: list[str] = []
    entries_of = {name: _entries(root, folder, foreign) for name, folder in FOLDERS.items()}
    classes = tuple(sorted({entry.label for entry in entries_of["train"]}))
    if len(classes) < 2:
        which = f"one class ({classes[0]})" if classes else "no class with pictures"
        raise LabError(f"{root / 'id' / 'train'} has {which}; a task needs two or more folders of pictures in it")
    split_off = tuple(name for name in SHARES if not entries_of[name])
    parts = _divide(entries_of["train"], split_off, seed)
    splits = {name: parts.get(name, entries_of[name]) for name in HOME_SPLITS}
    for shift in shift_names(root):
        if shift in HOME_SPLITS:
            raise LabError(f"{root / 'ood' / shift} is called as a split at home; give the folder another name")
        splits[shift] = _entries(root, f"ood/{shift}", foreign)
    known = set(classes)
    strangers = {name: tuple(sorted({e.label for e in entries} - known)) for name, entries in splits.items()}
    mixed = {name: _mixed((e for e in entries if e.label in known), seed) for name, entries in splits.items()}
    for name in (name for name in mixed if not mixed[name]):
        if name in split_off:
            count, need = len(entries_of["train"]), len(split_off) + 1
            too_few = f"{root / 'id' / 'train'} has {_pictures(count)} of {len(classes)} classes"
            raise LabError(
                f"{too_few}, too few to split off val and test; put at least {need} pictures into each class"
            )
        where = root / FOLDERS.get(name, f"ood/{name}")
        raise LabError(f"{where} has no picture of a class of id/train; put some there, or remove the folder")
    return Tree(root, classes, mixed, split_off, {k: v for k, v in strangers.items() if v}, tuple(foreign))


def _visible(folder: Path) -> list[Path]:
    return sorted(item for item in folder.iterdir() if not item.name.startswith("."))


def _entries(root: Path, folder: str, foreign: list[str]) -> tuple[Entry, ...]:
    """The pictures of one split, sorted by name; folders inside a class folder belong to it."""
    place, entries = root / folder, []
    for kind in _visible(place) if place.is_dir() else ():
        if not kind.is_dir():
            foreign.append(f"{folder}/{kind.name}")
            continue
        for here, folders, files in os.walk(kind):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for file in sorted(name for name in files if not name.startswith(".")):
                name = (Path(here) / file).relative_to(root).as_posix()
                if file.lower().endswith(SUFFIXES):
                    entries.append(Entry(name, kind.name))
                else:
                    foreign.append(name)
    return tuple(entries)


def _place(name: str, seed: int) -> bytes:
    """Where a picture stands in a random order that only its name and the seed decide."""
    return hashlib.blake2b(f"{seed} {name}".encode("utf-8", "surrogateescape"), digest_size=8).digest()


def _mixed(entries: Iterable[Entry], seed: int) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: _place(entry.name, seed)))


def _divide(train: tuple[Entry, ...], names: tuple[str, ...], seed: int) -> dict[str, tuple[Entry, ...]]:
    """Train without the parts that are split off it, and those parts; a class of one stays in train."""
    if not names:
        return {"train": train}
    parts: dict[str, list[Entry]] = {"train": [], **{name: [] for name in names}}
    by_class: dict[str, list[Entry]] = {}
    for entry in _mixed(train, seed + 1):
        by_class.setdefault(entry.label, []).append(entry)
    for entries in by_class.values():
        rest = list(entries)
        for name in names:
            count = min(max(1, round(SHARES[name] * len(entries))), len(rest) - 1)
            parts[name] += rest[:count]
            rest = rest[count:]
        parts["train"] += rest
    return {name: tuple(entries) for name, entries in parts.items()}


# ---- what is odd


@dataclass(frozen=True)
class Facts:
    """What reading a picture once has told. `problem` is "" if it can be read; `digest` is that of its bytes."""

    digest: str = ""
    mode: str = "RGB"
    width: int = 0
    height: int = 0
    turned: bool = False  # the camera asks for a turn (EXIF)
    problem: str = ""


ODD_MODES = {
    "CMYK": "CMYK, colours of a printer: converted to RGB",
    "I;16": "16 bit, brought to 8",
    "I": "16 or 32 bit, brought to 8",
    "F": "floats, brought to 8 bit",
    "P": "a palette: converted to RGB, transparent places white",
    "1": "one bit, converted to RGB",
    "L": "grey, converted to RGB",
    "LA": "grey with transparency: converted to RGB, transparent places white",
    "RGBA": "RGB with transparency: transparent places become white",
}


def remarks(tree: Tree, facts: Mapping[str, Facts]) -> list[str]:
    """What a person should know before training, a sentence each, the gravest first."""
    return [*_unreadable(tree, facts), *_doubles(tree, facts), *_classes(tree, facts), *_odd(tree, facts)]


def _named(names: Iterable[str]) -> str:
    """Some of many names.

    >>> _named(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    listed = list(names)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more


def _pictures(count: int) -> str:
    return "1 picture" if count == 1 else f"{count} pictures"


def _unreadable(tree: Tree, facts: Mapping[str, Facts]) -> Iterator[str]:
    broken = [f"{e.name} ({facts[e.name].problem})" for e in tree.entries if facts[e.name].problem]
    if broken:
        yield f"{_pictures(len(broken))} cannot be read and will be left out: {_named(broken)}; replace or delete them"
    if tree.foreign:
        count = "1 file is" if len(tree.foreign) == 1 else f"{len(tree.foreign)} files are"
        yield (
            f"{count} not read, by the ending: {_named(tree.foreign)}; "
            f"pictures may end in {', '.join(SUFFIXES)}: convert them, or move them elsewhere"
        )


def _doubles(tree: Tree, facts: Mapping[str, Facts]) -> Iterator[str]:
    """Equal files in train and in a set that is tested on; equal by content, whatever their names."""
    train: dict[str, str] = {}
    for entry in tree.splits["train"]:
        train.setdefault(facts[entry.name].digest, entry.name)
    for split, entries in tree.splits.items():
        if split == "train":
            continue
        pairs = [f"{e.name} = {train[facts[e.name].digest]}" for e in entries if facts[e.name].digest in train]
        if pairs:
            verb = "is" if len(pairs) == 1 else "are"
            yield (
                f"{_pictures(len(pairs))} of {split} {verb} also in train, so {split} would look better than it is: "
                f"{_named(pairs)}; delete one of each pair"
            )


def _classes(tree: Tree, facts: Mapping[str, Facts]) -> Iterator[str]:
    counts = counted(tree, facts)
    for split, names in tree.strangers.items():
        yield (
            f"{split} has {'a class' if len(names) == 1 else 'classes'} that id/train does not have: {_named(names)}; "
            f"{'its' if len(names) == 1 else 'their'} pictures are left out: rename the folders, or add to id/train"
        )
    for split in ("val", "id"):
        absent = [name for name in tree.classes if not counts[split][name]]
        if absent:
            yield (
                f"{split} has no picture of {_named(absent)}, so nothing is measured there for "
                f"{'it' if len(absent) == 1 else 'them'}: add some to {FOLDERS[split]}"
            )
    for split in tree.shifts:
        absent = [name for name in tree.classes if not counts[split][name]]
        if absent:
            yield (
                f"the shift {split} has no picture of {_named(absent)}, so its score is of the other classes alone; "
                "nothing to do if that is meant"
            )
    single = [name for name in tree.classes if counts["train"][name] == 1]
    if single:
        which = "the class" if len(single) == 1 else "the classes"
        each = "" if len(single) == 1 else " each"
        yield f"train has one picture{each} of {which} {_named(single)}; add more, or remove the folder"


def _odd(tree: Tree, facts: Mapping[str, Facts]) -> Iterator[str]:
    readable = [e.name for e in tree.entries if not facts[e.name].problem]
    for mode, what in ODD_MODES.items():
        names = [name for name in readable if facts[name].mode == mode]
        if names:
            verb = "is" if len(names) == 1 else "are"
            yield f"{_pictures(len(names))} {verb} in {what} ({_named(names)}); nothing to do if that is meant"
    turned = [name for name in readable if facts[name].turned]
    if turned:
        yield f"{_pictures(len(turned))} will be turned as the camera asks (EXIF): {_named(turned)}; nothing to do"


def counted(tree: Tree, facts: Mapping[str, Facts]) -> dict[str, Counter[str]]:
    """Readable pictures by split and class."""
    return {
        split: Counter(entry.label for entry in entries if not facts[entry.name].problem)
        for split, entries in tree.splits.items()
    }
