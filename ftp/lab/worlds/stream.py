"""Stream: a reader of print learns handwriting, a few characters after the other, and no old drawing is kept.

A small ViT that has read print of nine scripts (`data_scripts/pretrain_stream.py`) meets Omniglot: eight alphabets,
242 characters, each drawn once by 20 people. The characters come in tasks; each task is seen once. At the end, and
after every task, the network has to tell all characters seen so far apart, and nobody says from which task one comes.

    order=shuffled    200 characters, dealt to the tasks by the run's seed, as in the paper
    order=alphabets   all 242, an alphabet a task; the seed decides their order
    trained=qkv       only the fused query, key and value matrices and the head train, as in the paper
    mask=new          only the characters of the present task compete in the loss; rows of old ones stay as they are
    mask=seen         all characters seen so far compete, and all rows train

The head begins with the rows of the first task and grows by random rows, made by the seed, for each further one.
By drawer: 1 to 12 are trained on, 13 to 15 are for validation, 16 to 20 are the test. A drawer's number means another
person in each alphabet, the same one for all characters of an alphabet.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.options import Option
from ftp.lab.record import LabError, Value
from ftp.lab.worlds._base import TILES, World
from ftp.lab.worlds._tasks import MASK, TRAINED, TaskWorld, equal_parts

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

DRAWINGS = Path(__file__).resolve().parent / "omniglot" / "drawings.bin.gz"
WEIGHTS = Path(__file__).resolve().parent.parent / "models" / "stream.safetensors"
SHUFFLED = 200  # characters of order=shuffled: ten tasks of twenty
DRAWERS = {"train": range(12), "val": range(12, 15), "test": range(15, 20)}
ORDERS = ("shuffled", "alphabets")


class Stream(TaskWorld):
    title = "Ten alphabets in a row"
    summary = "A small ViT that reads print learns handwritten characters task by task and should not forget the old."
    paper = "Tab. 5; Fig. 4"
    licence = "Omniglot: MIT; weights: MIT"
    size = "4,840 drawings, 0.2 MB; 2.4 MB of weights"
    order = 20
    options = {
        "tasks": Option(10, "parts in which 200 characters come; 1 is joint training. Alphabets: eight at most", 1, 40),
        "order": Option("shuffled", "characters dealt by the seed, or an alphabet a task", choices=ORDERS),
        "trained": TRAINED,
        "mask": MASK,
    }
    defaults = {
        "quick": {"steps": 40, "batch": 32, "optimizer": "adamw", "lr": 5e-3, "weight_decay": 0.0},
        "full": {"steps": 200, "batch": 32, "optimizer": "adamw", "lr": 5e-3, "weight_decay": 0.0},
    }
    beside = {"Joint training": ("finetune", {"tasks": 1, "steps": 400, "mask": "new", "lr": 0.005})}
    prefixes = True
    step_seconds = 0.05

    def deal(self, seed: int) -> tuple[list[str], list[list[int]]]:
        characters, tasks = _header(), int(self.option("tasks"))
        g = random.Random(f"stream {seed}")
        places = list(range(len(characters)))
        if self.option("order") == "alphabets":
            alphabets = list(dict.fromkeys(alphabet for alphabet, _ in characters))
            g.shuffle(alphabets)
            return alphabets[:tasks], [[n for n in places if characters[n][0] == a] for a in alphabets[:tasks]]
        g.shuffle(places)
        return [f"task {n + 1}" for n in range(tasks)], equal_parts(places[:SHUFFLED], tasks)

    def class_name(self, number: int) -> str:
        alphabet, character = _header()[number]
        return f"{alphabet} {character}"

    def for_seed(self, seed: int) -> World:
        return self if seed == self.seed else _seeded(tuple(self.chosen.items()), seed)

    def data_version(self) -> str:
        return f"omniglot-{_digest(DRAWINGS)} weights-{_digest(WEIGHTS)}"

    def layers(self) -> tuple[str, ...]:
        """By the header of the weights file: 8 bytes of length, then JSON, in the order of the network."""
        if not WEIGHTS.exists():
            return ()
        with WEIGHTS.open("rb") as file:
            names = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = (name for name in names if name != "__metadata__" and not name.startswith("head."))
        return tuple(sorted(name for name in body if not self.holds(name, 0)))

    def model(self, seed: int) -> nn.Module:
        from ftp.lab.models import read_weights
        from ftp.lab.models.small_vit import WIDTH, GrowingHead, SmallViT

        if not WEIGHTS.exists():
            raise LabError(
                f"{WEIGHTS.name} is missing from ftp/lab/models; install the kit again, or make the weights anew with "
                "data_scripts/pretrain_stream.py"
            )
        weights = {name: w for name, w in read_weights(WEIGHTS).items() if not name.startswith("head.")}
        model = SmallViT(1)
        missing, unexpected = model.load_state_dict(weights, strict=False)
        if unexpected or set(missing) != {"head.weight", "head.bias"}:
            raise LabError(f"{WEIGHTS.name} does not fit the model ({missing}, {unexpected}); install the kit again")
        model.head = GrowingHead(WIDTH)
        self.enter(model, 0, seed)
        return model

    def split(self, name: str, labels: float = 1.0) -> Drawn:
        if name not in self.roles:
            raise self.no_split(name)
        if name in self.trains:
            drawers = DRAWERS["train"]
            return self._drawn(self.parts[self.trains[name]], drawers[: max(1, round(labels * len(drawers)))])
        if name in self.tests:
            return self._drawn(self.parts[self.tests[name]], DRAWERS["test"])
        return self._drawn(range(len(self.classes)), DRAWERS["val" if name == "val" else "test"])

    def _drawn(self, labels: range, drawers: range) -> Drawn:
        import torch

        places = torch.tensor([self.sources[label] for label in labels])
        ink = _drawings()[places][:, drawers.start : drawers.stop]  # (characters, drawers, 32, 32)
        targets = torch.tensor(labels).repeat_interleave(len(drawers))
        return Drawn(ink.flatten(0, 1).unsqueeze(1), targets)

    def tiles(self) -> bytes:
        """Of each character one drawing, of the first drawer."""
        return _tiles(tuple(self.sources))

    def provenance(self) -> dict[str, Any]:
        counts = {name: len(self.split(name)) for name in self.roles}
        sha = hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
        return {"weights_sha256": sha, "images": counts, "protocol": self.about()}


WORLD = Stream


class Drawn:
    """Drawings held in memory: levels of ink (n, 1, 32, 32) as bytes, 0 to 3, and their labels."""

    def __init__(self, ink: Tensor, labels: Tensor) -> None:
        self.ink, self.targets = ink, labels

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, indices: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        ink = self.ink[indices].float().div_(3)
        return (ink if generator is None else _moved(ink, generator)), self.targets[indices]


@functools.lru_cache(maxsize=32)
def _seeded(options: tuple[tuple[str, Value], ...], seed: int) -> Stream:
    return Stream(dict(options), seed)


@functools.cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else "missing"


@functools.cache
def _file() -> tuple[dict[str, Any], bytes]:
    try:
        note, _, pixels = gzip.decompress(DRAWINGS.read_bytes()).partition(b"\n")
    except (OSError, EOFError):
        raise LabError(f"{DRAWINGS.name} is missing or damaged; install the kit again") from None
    return json.loads(note), pixels


def _header() -> list[tuple[str, int]]:
    """Alphabet and number of each character, in the order of the file."""
    return [(alphabet, number) for alphabet, number in _file()[0]["characters"]]


@functools.cache
def _drawings() -> Tensor:
    """Levels of ink, 0 to 3: bytes of shape (242, 20, 32, 32)."""
    import torch

    note, pixels = _file()
    quads = torch.frombuffer(bytearray(pixels), dtype=torch.uint8)
    levels = torch.stack([quads >> 6, quads >> 4 & 3, quads >> 2 & 3, quads & 3], -1)
    return levels.view(len(note["characters"]), note["drawings"], note["side"], note["side"])


@functools.lru_cache(maxsize=32)
def _tiles(places: tuple[int, ...]) -> bytes:
    """A PNG of one drawing each of these characters."""
    from PIL import Image

    note, pixels = _file()
    side, each = note["side"], note["side"] ** 2 // 4  # four pixels in a byte
    gray = [bytes(255 - 85 * (quad >> shift & 3) for shift in (6, 4, 2, 0)) for quad in range(256)]
    sheet = Image.new("L", (TILES * side, -(-len(places) // TILES) * side), 255)
    for n, place in enumerate(places):
        first = place * note["drawings"] * each
        ink = b"".join(gray[quad] for quad in pixels[first : first + each])
        sheet.paste(Image.frombytes("L", (side, side), ink), (n % TILES * side, n // TILES * side))
    file = io.BytesIO()
    sheet.quantize(4).save(file, "PNG", optimize=True)
    return file.getvalue()


def _moved(ink: Tensor, g: Generator) -> Tensor:
    """Turned by up to 9 degrees, scaled by up to a tenth, shifted by up to two pixels; each drawing by itself."""
    import torch
    from torch.nn import functional as F

    angle, size, across, down = (torch.rand((4, len(ink)), generator=g) * 2 - 1) * torch.tensor(
        [[0.16], [0.1], [0.125], [0.125]]
    )
    cos, sin = angle.cos() * (1 + size), angle.sin() * (1 + size)
    theta = torch.stack([torch.stack([cos, -sin, across], -1), torch.stack([sin, cos, down], -1)], 1)
    grid = F.affine_grid(theta, list(ink.shape), align_corners=False)
    return F.grid_sample(ink, grid, align_corners=False)
