"""The emoji as a tree of class folders, the form in which the world of your own pictures reads it.

    PATH/id/train, id/val, id/test     drawn by Noto
    PATH/ood/<artist>                  the things of id/test, drawn by five others

Every picture is a small scene: the emoji turned, scaled and moved on a pale ground, all by a seed. A scene of a test
picture is the same for every artist, so that a shift is the artist's hand and nothing else.

    form "kinds":   ten coarse classes (animal, food, ...). No thing is in two of train, val and test: what is asked is
                    whether a network knows an animal that it was not trained on.
    form "things":  a class for each of 60 things, six of each coarse class. The same drawing is in train and test, in
                    other scenes: what is asked is "which emoji is it", at home as drawn, elsewhere by another hand.
"""

import contextlib
import hashlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from ftp.lab.emoji import Thing, artists, classes, picture, things
from ftp.lab.record import LabError
from ftp.lab.registry import unknown

SIDE = 64
SHARES = {"val": 0.1, "test": 0.25}  # of the things of a class, in the form "kinds"
THINGS_PER_KIND = 6  # in the form "things"
SCENES = {"kinds": {"train": 4, "val": 1, "test": 1}, "things": {"train": 12, "val": 3, "test": 4}}
FORMS = ("things", "kinds")
VERSION = 1  # of what `write` draws: a new one is unpacked anew


def write(folder: Path, form: str = "things", seed: int = 2023) -> dict[str, int]:
    """Write the tree into a folder that is empty or not there yet; how many pictures each part has."""
    if folder.is_file():
        raise LabError(f"{folder} is a file; name a folder, such as {folder}-emoji")
    if folder.is_dir() and any(folder.iterdir()):
        raise LabError(f"{folder} is not empty; name a new folder, such as {folder / 'emoji'}")
    counts: dict[str, int] = {}
    for part, artist, label, thing, scene in plan(form, seed):
        target = folder / part / label / f"{thing.code}-{scene}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        drawn(artist, thing, f"{seed} {part.split('/')[-1] if part.startswith('id') else 'test'} {scene}").save(target)
        counts[part] = counts.get(part, 0) + 1
    licences = Path(__file__).parent / "LICENCES.md"
    (folder / "LICENCES.md").write_bytes(licences.read_bytes())
    return counts


def unpacked(folder: Path, name: str) -> Path:
    """The tree of a name such as "emoji" or "emoji-kinds" below a folder, written there the first time.

    >>> unpacked(Path("nowhere"), "cats")
    Traceback (most recent call last):
    ftp.lab.record.LabError: example is 'cats'; it must be one of emoji, emoji-kinds
    """
    forms = {"emoji": FORMS[0], "emoji-kinds": FORMS[1]}
    if name not in forms:
        raise LabError(unknown("example", name, forms))
    target = folder / f"{name}-{VERSION}"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:  # whoever stops halfway leaves no half a tree
            write(Path(scratch) / "tree", forms[name])
            with contextlib.suppress(OSError):  # another process was faster
                (Path(scratch) / "tree").rename(target)
    return target


def plan(form: str, seed: int) -> Iterator[tuple[str, str, str, Thing, int]]:
    """Every picture of the tree: its part, artist, class, thing and the number of its scene."""
    if form not in FORMS:
        raise LabError(f"form is {form!r}; it must be {' or '.join(FORMS)}")
    home, *others = artists()
    for part, rows in _parts(form, seed).items():
        for label, thing in rows:
            for scene in range(SCENES[form][part]):
                yield f"id/{part}", home, label, thing, scene
                if part == "test":
                    for artist in others:
                        yield f"ood/{artist}", artist, label, thing, scene


def _parts(form: str, seed: int) -> dict[str, list[tuple[str, Thing]]]:
    """Which things are in which part, under which label; the order of the things follows from seed and code alone."""
    parts: dict[str, list[tuple[str, Thing]]] = {"train": [], "val": [], "test": []}
    for kind in classes():
        members = sorted((t for t in things() if t.coarse == kind), key=lambda t: _digest(f"{seed} {t.code}"))
        if form == "things":
            for part in parts.values():
                part += [(t.short.replace(" ", "_"), t) for t in members[:THINGS_PER_KIND]]
            continue
        rest = members
        for name, share in SHARES.items():
            count = round(share * len(members))
            parts[name] += [(kind, t) for t in rest[:count]]
            rest = rest[count:]
        parts["train"] += [(kind, t) for t in rest]
    return parts


def drawn(artist: str, thing: Thing, scene: str) -> Image.Image:
    """An emoji in a scene: on a pale ground, 70 to 100 % of the side wide, turned by up to 20 degrees."""
    dice = random.Random(_digest(f"{scene} {thing.code}"))
    ground = tuple(dice.randint(200, 255) for _ in "RGB")
    side = dice.randint(round(0.7 * SIDE), SIDE)
    angle = dice.uniform(-20, 20)
    place = tuple(dice.randint(0, SIDE - side) for _ in "xy")
    small = picture(artist, thing.code).resize((side, side), Image.Resampling.LANCZOS)
    small = small.rotate(angle, Image.Resampling.BICUBIC)
    canvas = Image.new("RGBA", (SIDE, SIDE), (*ground, 255))
    canvas.alpha_composite(small, place)
    return canvas.convert("RGB")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
