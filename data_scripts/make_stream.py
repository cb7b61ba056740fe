"""Make the drawings of the stream world again from Omniglot's two small background sets.

    .venv/bin/python data_scripts/make_stream.py images_background_small1.zip images_background_small2.zip

Writes ftp/lab/worlds/omniglot/drawings.bin.gz: eight alphabets, 242 characters, 20 drawings of each, 32 x 32 pixels in
four levels of ink. The zips are at github.com/brendenlake/omniglot (python/); their licence is MIT and lies beside.
The format: one line of JSON (side, levels, drawings, characters), then two bits a pixel, character by character, drawer
by drawer, row by row.
"""

import argparse
import gzip
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "worlds" / "omniglot"
SIDE, LEVELS, DRAWINGS = 32, 4, 20
NAME = re.compile(r"[^/]+/(?P<alphabet>[^/]+)/character(?P<character>\d+)/\d+_(?P<drawer>\d+)\.png")


def read(paths: list[Path]) -> dict[tuple[str, int], dict[int, bytes]]:
    """The PNG files of all zips: (alphabet, character) -> drawer -> bytes; the second zip repeats some of the first."""
    drawings: dict[tuple[str, int], dict[int, bytes]] = {}
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if match := NAME.fullmatch(name):
                    alphabet = match["alphabet"].replace("_", " ")
                    key = alphabet, int(match["character"])
                    drawings.setdefault(key, {})[int(match["drawer"])] = archive.read(name)
    return dict(sorted(drawings.items()))


def shrink(png: bytes) -> np.ndarray:
    """105 x 105 black on white -> 32 x 32 levels of ink, 0 to 3; a stroke that fills half a pixel is full."""
    with Image.open(io.BytesIO(png)) as image:
        grey = np.asarray(image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX), dtype=np.float32)
    ink = np.clip((1 - grey / 255) * 2, 0, 1)
    return np.rint(ink * (LEVELS - 1)).astype(np.uint8)


def packed(levels: np.ndarray) -> bytes:
    """Four pixels a byte, the first in the highest bits."""
    quads = levels.reshape(-1, 4)
    return bytes(quads[:, 0] << 6 | quads[:, 1] << 4 | quads[:, 2] << 2 | quads[:, 3])


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the drawings of the stream world from Omniglot's zips.")
    parser.add_argument("zips", type=Path, nargs=2)
    parser.add_argument("--out", type=Path, default=HOME / "drawings.bin.gz")
    asked = parser.parse_args()
    drawings = read(asked.zips)
    for key, by_drawer in drawings.items():
        if sorted(by_drawer) != list(range(1, DRAWINGS + 1)):
            raise SystemExit(f"{key} has the drawers {sorted(by_drawer)}; it must have 1 to {DRAWINGS}")
    note = {"side": SIDE, "levels": LEVELS, "drawings": DRAWINGS, "characters": [list(key) for key in drawings]}
    pixels = np.stack([shrink(by_drawer[n]) for by_drawer in drawings.values() for n in sorted(by_drawer)])
    content = json.dumps(note).encode() + b"\n" + packed(pixels)
    asked.out.write_bytes(gzip.compress(content, 9, mtime=0))
    print(f"{len(drawings)} characters, {len(pixels)} drawings, {asked.out.stat().st_size} bytes in {asked.out}")


if __name__ == "__main__":
    main()
