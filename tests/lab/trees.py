"""Trees of pictures that a test draws: three shapes in files of every common format, and some odd ones."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

KINDS = ("circle", "square", "triangle")
ENDINGS = ("jpg", "png", "webp")


def shape(kind: str, rng: np.random.Generator, side: int = 48, filled: bool = True) -> Image.Image:
    """A shape in two colours, somewhere in a picture that is a little wider than high."""
    paper = tuple(int(level) for level in rng.integers(0, 256, 3))
    ink = tuple(255 - level for level in paper)
    page = Image.new("RGB", (side + 8, side), paper)
    x, y, r = (side * rng.uniform(low, high) for low, high in ((0.35, 0.65), (0.35, 0.65), (0.15, 0.3)))
    look = {"fill": ink} if filled else {"outline": ink, "width": 2}
    pen = ImageDraw.Draw(page)
    if kind == "circle":
        pen.ellipse([x - r, y - r, x + r, y + r], **look)
    elif kind == "square":
        pen.rectangle([x - r, y - r, x + r, y + r], **look)
    else:
        pen.polygon([(x, y - r), (x - r, y + r), (x + r, y + r)], **look)
    return page


def draw(root: Path, train: int = 8, shifted: int = 4, splits: tuple[str, ...] = ("id/train",)) -> Path:
    """A tree with so many pictures of each shape in each split, and as a shift their outlines."""
    rng = np.random.default_rng(0)
    counts = {**dict.fromkeys(splits, train), **({"ood/sketch": shifted} if shifted else {})}
    for place, count in counts.items():
        for kind in KINDS:
            (root / place / kind).mkdir(parents=True)
            for n in range(count):
                picture = shape(kind, rng, filled=place != "ood/sketch")
                picture.save(root / place / kind / f"{n}.{ENDINGS[n % len(ENDINGS)]}")
    return root


def add_odd_ones(folder: Path) -> dict[str, Path]:
    """Files that cameras, printers, scanners and broken disks leave."""
    rng = np.random.default_rng(1)
    base = shape("circle", rng)
    files = {
        "cmyk": folder / "cmyk.jpg",
        "deep": folder / "deep.png",
        "palette": folder / "palette.png",
        "turned": folder / "turned.jpg",
        "clear": folder / "clear.png",
        "truncated": folder / "truncated.jpg",
        "text": folder / "text.jpg",
    }
    base.convert("CMYK").save(files["cmyk"])
    Image.fromarray(np.asarray(base.convert("L")).astype(np.uint16) * 257).save(files["deep"])
    base.quantize(8).save(files["palette"])
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to see it upright
    base.save(files["turned"], exif=exif)
    Image.new("RGBA", (40, 40), (0, 0, 0, 0)).save(files["clear"])
    shape("square", rng, 200).save(files["truncated"], quality=95)
    content = files["truncated"].read_bytes()
    files["truncated"].write_bytes(content[: len(content) // 2])
    files["text"].write_text("this is no picture")
    return files
