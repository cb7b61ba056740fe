"""Reading pictures: each is decoded once into bytes on disk where they fit, else each time; threads do the work.

What a batch looks like follows from its pictures and one generator alone: all random numbers are drawn before the work
is divided, so that any number of workers gives the same bits. Memory holds the batches in flight and the names of the
files; the bytes are mapped, not read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.progress import Progress
from ftp.lab.record import LabError
from ftp.lab.store.database import write_atomic
from ftp.lab.worlds._tree import Facts, Tree, read_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    Pixels = NDArray[Any]  # uint8, (height, width, 3)

SAMPLED = 65_536  # bytes at either end of a file that stand for its content
ROOM = 0.8  # of the free space that the decoded bytes may take
FRESH_SECONDS = 5.0  # a tree is listed again after so long
MANY = 2_000  # pictures from which on reading them says how far it is
GROUP = 256  # pictures that are decoded before they are written
WHITE = (255, 255, 255)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_folder() -> Path:
    """Where decoded pictures are kept: $XDG_CACHE_HOME, or the usual place for such things."""
    home = Path.home()
    usual = {"darwin": home / "Library" / "Caches", "win32": Path(os.environ.get("LOCALAPPDATA") or home / "AppData")}
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else usual.get(sys.platform, home / ".cache")) / "ftp-kit" / "pictures"


@functools.cache
def pool(workers: int) -> ThreadPoolExecutor:
    """Threads that read; decoding and resizing let other threads run meanwhile."""
    return ThreadPoolExecutor(workers, thread_name_prefix="pictures")


def each(work: Callable[[Any], Any], items: Sequence[Any], workers: int) -> Iterator[Any]:
    """`work` of every item, in order."""
    return map(work, items) if workers <= 1 else pool(workers).map(work, items)


# ---- one picture


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Image]:
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large pictures and odd metadata; what cannot be read raises
        with Image.open(path) as image:
            yield image


def header(path: Path) -> Facts:
    """What the first bytes of a picture say, and a digest of its content: size, first and last 64 KB."""
    digest = hashlib.blake2b(digest_size=12)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(f"{size} ".encode())
            digest.update(file.read(SAMPLED))
            if size > SAMPLED:
                file.seek(max(SAMPLED, size - SAMPLED))
                digest.update(file.read(SAMPLED))
        with _opened(path) as image:
            turned = image.getexif().get(0x0112, 1) not in (0, 1)
            mode = "I;16" if image.mode.startswith("I;16") else image.mode
            return Facts(digest.hexdigest(), mode, image.width, image.height, turned)
    except Exception as error:  # Pillow raises anything on what is no picture
        return Facts(digest.hexdigest(), problem=_reason(error))


def _reason(error: Exception) -> str:
    """Why a picture cannot be read, in a few words."""
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return "no picture"
    if isinstance(error, Image.DecompressionBombError):
        return "too large"
    if isinstance(error, PermissionError | FileNotFoundError):
        return (error.strerror or "not readable").lower()
    text = str(error).lower()
    return "truncated" if "truncated" in text or "broken" in text or "eof" in text else "damaged"


def as_rgb(image: Image) -> Image:
    """Eight bits, three colours, upright; transparent places are white."""
    import numpy as np
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float64)
        top = values.max(initial=0.0)
        scale = 255.0 if top > 255 and top <= 65_535 else max(top, 1.0)
        levels = values / 257 if scale == 255.0 else (values if top <= 255 else values / scale * 255)
        image = Image.fromarray(levels.clip(0, 255).round().astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        page = Image.new("RGB", image.size, WHITE)
        page.paste(image, mask=image.getchannel("A"))
        return page
    return image if image.mode == "RGB" else image.convert("RGB")


def resample(name: str) -> int:
    """Pillow's filter by its name, such as "bicubic"."""
    from PIL import Image

    return int(Image.Resampling[name.upper()])


def decode(path: Path, side: int, interpolation: str) -> Pixels:
    """A picture whose shorter side has `side` pixels, as torchvision's Resize makes it."""
    import numpy as np

    with _opened(path) as image:
        image.load()
        upright = as_rgb(image)
    width, height = upright.size
    short = min(width, height)
    size = (max(1, int(side * width / short)), max(1, int(side * height / short)))
    if size != upright.size:
        upright = upright.resize(size, resample(interpolation))
    return np.asarray(upright)


# ---- a tree of them


class Collection:
    """The pictures of a tree: their facts, and one fingerprint of them all. Facts are kept between processes."""

    def __init__(self, tree: Tree, signature: str, workers: int) -> None:
        self.tree, self.signature, self.workers = tree, signature, workers
        key = hashlib.sha256(str(tree.root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self.index_path = cache_folder() / f"index-{key}.json"
        self.facts, self.is_decoded = self._read_facts()

    def _read_facts(self) -> tuple[dict[str, Facts], bool]:
        """From the index, and where a file is new or changed, from the file."""
        index = _read_json(self.index_path)
        stats = {entry.name: _stat(self.tree.root / entry.name) for entry in self.tree.entries}
        known = index.get("pictures", {})
        facts = {name: Facts(**known[name][2]) for name, stat in stats.items() if known.get(name, [])[:2] == stat}
        new = [name for name in stats if name not in facts]
        decoded = bool(index.get("decoded")) and not new
        if new:
            with _progress(len(new), "pictures looked at") as progress:
                parts = each(lambda name: header(self.tree.root / name), new, self.workers)
                for count, (name, fact) in enumerate(zip(new, parts, strict=True), start=1):
                    facts[name] = fact
                    progress(count)
            self._write_facts(facts, decoded)
        return facts, decoded

    def _write_facts(self, facts: Mapping[str, Facts], decoded: bool) -> None:
        """Kept if the disk allows; without it the next process looks again."""
        root = self.tree.root
        rows = {name: [*_stat(root / name), asdict(fact)] for name, fact in facts.items()}
        with contextlib.suppress(OSError):
            self.index_path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self.index_path, json.dumps({"decoded": decoded, "pictures": rows}).encode())

    def note_decoded(self, problems: Mapping[str, str]) -> None:
        """What decoding every picture has told."""
        self.facts = {name: replace(f, problem=problems.get(name, f.problem)) for name, f in self.facts.items()}
        self.is_decoded = True
        self._write_facts(self.facts, True)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Of the names of all pictures and their content; not of their dates, and not of the path."""
        digest = hashlib.sha256()
        for split, entries in self.tree.splits.items():
            for entry in entries:
                line = f"{split} {entry.name} {self.facts[entry.name].digest}\n"
                digest.update(line.encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:16]

    def decoded_bytes(self, side: int) -> int:
        """How many bytes all pictures take, decoded at this size."""
        total = 0.0
        for fact in self.facts.values():
            if not fact.problem:
                total += 3 * side * side * max(fact.width, fact.height) / min(fact.width, fact.height)
        return int(total)


def _stat(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:  # a link that leads nowhere
        return [-1, 0]
    return [status.st_size, status.st_mtime_ns]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):  # not there, or half of it
        return {}
    return content


@contextlib.contextmanager
def _progress(total: int, unit: str) -> Iterator[Callable[[int], None]]:
    if total < MANY:
        yield lambda count: None
        return
    with Progress(total, unit) as progress:
        yield lambda count: progress.at(count, "")


_listings: dict[tuple[Path, int], tuple[float, Tree, str]] = {}
_collections: dict[tuple[Path, int], Collection] = {}


def listing(root: Path, seed: int) -> tuple[Tree, str]:
    """The names below a path, and a signature that changes with them; listed again when some seconds have passed."""
    known = _listings.get((root, seed))
    if known is None or time.monotonic() - known[0] >= FRESH_SECONDS:
        tree = read_tree(root, seed)
        known = _listings[root, seed] = (time.monotonic(), tree, _signature(tree))
    return known[1:]


def collection(root: Path, seed: int, workers: int = 1) -> Collection:
    """The pictures below a path, with what their headers say; files that have not changed are not opened again."""
    tree, signature = listing(root, seed)
    current = _collections.get((root, seed))
    if current is None or current.signature != signature:
        current = _collections[root, seed] = Collection(tree, signature, workers)
    return current


def forget() -> None:
    """List every tree anew at the next question."""
    for cached in (_listings, _collections, _sources):
        cached.clear()


def _signature(tree: Tree) -> str:
    digest = hashlib.sha256()
    for entry in tree.entries:
        digest.update(f"{entry.name} {_stat(tree.root / entry.name)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


# ---- where decoded pictures come from


@dataclass
class Source:
    """Pictures with a shorter side of `side` pixels: out of the mapped file, or decoded when they are asked for.

    `remark` says why they are not kept; "" if they are.
    """

    root: Path
    side: int
    interpolation: str
    places: Mapping[str, tuple[int, int, int]]  # name to offset, height, width; empty if decoded each time
    file: Path | None = None
    remark: str = ""

    def __post_init__(self) -> None:
        import numpy as np

        self.bytes: Any = np.memmap(self.file, dtype=np.uint8, mode="r") if self.file else None

    def read(self, name: str) -> Pixels:
        """One picture: (height, width, 3), bytes."""
        if self.bytes is None:
            try:
                return decode(self.root / name, self.side, self.interpolation)
            except OSError as error:  # it could be read when training began
                why = error.strerror or "damaged"
                raise LabError(
                    f"{self.root / name} cannot be read any more ({why}); put it back, then run again"
                ) from None
        offset, height, width = self.places[name]
        pixels: Pixels = self.bytes[offset : offset + 3 * height * width].reshape(height, width, 3)
        return pixels


_sources: dict[tuple[str, int, str, str], Source] = {}


def source(pictures: Collection, side: int, interpolation: str, keep: str, workers: int) -> Source:
    """The decoded pictures of a collection, made the first time. keep: "disk", or "no" to decode each time."""
    key = (pictures.fingerprint, side, interpolation, keep)
    if key not in _sources:
        _sources[key] = _source(pictures, side, interpolation, keep, workers)
    return _sources[key]


def _source(pictures: Collection, side: int, interpolation: str, keep: str, workers: int) -> Source:
    folder = cache_folder()
    file = folder / f"{pictures.fingerprint}-{side}-{interpolation}.bin"
    root, remark = pictures.tree.root, ""
    if keep == "disk":
        table = _read_json(file.with_suffix(".json"))
        if not table:
            remark = no_room(pictures, side)
        if not table and not remark:
            table, remark = _fill(pictures, side, interpolation, file, workers)
        if table:
            if not pictures.is_decoded:
                pictures.note_decoded(table["problems"])
            places = {name: tuple(place) for name, place in table["places"].items()}
            return Source(root, side, interpolation, places, file)
    if not pictures.is_decoded:
        problems: dict[str, str] = {}
        for _ in _decoded(pictures, side, interpolation, workers, problems):
            pass
        pictures.note_decoded(problems)
    return Source(root, side, interpolation, {}, remark=remark)


def no_room(pictures: Collection, side: int) -> str:
    """The sentence for a disk that is too full for the decoded pictures; "" if they fit."""
    folder = cache_folder()
    place = next(folder for folder in (folder, *folder.parents) if folder.is_dir())
    needed, free = pictures.decoded_bytes(side), shutil.disk_usage(place).free
    if needed <= ROOM * free:
        return ""
    return (
        f"the decoded pictures need {needed / 1e9:.1f} GB and {place} has {free / 1e9:.1f} GB free, so they are "
        "decoded each time, which is slower; make room, or set XDG_CACHE_HOME to a folder on another disk"
    )


def _decoded(
    pictures: Collection, side: int, interpolation: str, workers: int, problems: dict[str, str]
) -> Iterator[tuple[str, Pixels]]:
    """Every picture that can be read; the others are noted in `problems`."""
    names = [name for name, fact in pictures.facts.items() if not fact.problem]

    def attempt(name: str) -> Pixels | str:
        try:
            return decode(pictures.tree.root / name, side, interpolation)
        except Exception as error:  # Pillow raises anything on what is damaged
            return _reason(error)

    with _progress(len(names), "pictures decoded") as progress:
        for start in range(0, len(names), GROUP):  # so that no more than a group waits to be written
            part = names[start : start + GROUP]
            for name, pixels in zip(part, each(attempt, part, workers), strict=True):
                if isinstance(pixels, str):
                    problems[name] = pixels
                else:
                    yield name, pixels
            progress(start + len(part))


def _fill(pictures: Collection, side: int, interpolation: str, file: Path, workers: int) -> tuple[dict[str, Any], str]:
    """Decode every picture into one file; its table, or why that failed. Complete or not at all."""
    places: dict[str, tuple[int, int, int]] = {}
    problems: dict[str, str] = {}
    offset = 0
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", suffix=".bin", delete=False) as target:
            try:
                for name, pixels in _decoded(pictures, side, interpolation, workers, problems):
                    places[name] = (offset, *pixels.shape[:2])
                    target.write(pixels.tobytes())
                    offset += pixels.size
                target.write(b"\0")  # a file of no bytes cannot be mapped
            except BaseException:
                target.close()
                os.unlink(target.name)
                raise
        os.replace(target.name, file)
        table = {"places": places, "problems": problems}
        write_atomic(file.with_suffix(".json"), json.dumps(table).encode())
    except OSError as error:
        why = (error.strerror or "no reason given").lower()
        sentence = (
            f"{file.parent} cannot hold the decoded pictures ({why}), so they are decoded each time, which is slower"
        )
        return {}, f"{sentence}; make room, or set XDG_CACHE_HOME to a folder on another disk"
    return table, ""
