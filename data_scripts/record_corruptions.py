"""All 19 corruptions for every method, and what they do to a few digits: ftp/lab/recordings/digits/corruptions.json.gz.

    .venv/bin/python data_scripts/record_corruptions.py --store runs.db --seeds 0 1 2 3 4

Half a minute for each run that the store does not hold, on one core. For each kind a picture of six rows (clean,
severity 1 to 5) and eight columns (the first eight different digits of the test set, 32 pixels each), and for each
method and seed the accuracy at each severity. All runs must be made on one machine: another one rounds otherwise, and
after 300 steps its networks are others.
"""

import argparse
import base64
import io

import torch
from _finished import finished, made_by, write
from PIL import Image

from ftp.lab import methods, worlds
from ftp.lab.corruptions import KINDS, corrupt
from ftp.lab.evaluate import CORRUPTED, score
from ftp.lab.record import SEVERITIES
from ftp.lab.run import model_of
from ftp.lab.store import Store

COLUMNS, QUALITY = 8, 82
WORLD = worlds.load("digits")


def sample() -> tuple[torch.Tensor, list[str]]:
    """One image of each of eight digits."""
    images, labels = WORLD.split(WORLD.home).batch(torch.arange(200))
    places = [int((labels == digit).nonzero()[0]) for digit in range(COLUMNS)]
    return images[places], [WORLD.classes[label] for label in labels[places]]


def sheet(images: torch.Tensor, kind: str) -> str:
    """The picture of one kind, as WebP in base64."""
    rows = [images]
    for severity in SEVERITIES:
        g = torch.Generator().manual_seed(severity)
        rows.append(corrupt(images, kind, severity, generator=g, parameters=WORLD.severities))
    grid = torch.stack(rows).mul(255).round().to(torch.uint8)  # (rows, columns, 3, 32, 32)
    pixels = grid.permute(0, 3, 1, 4, 2).reshape(len(rows) * 32, COLUMNS * 32, 3)
    out = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(out, "WEBP", quality=QUALITY, method=6)
    return base64.b64encode(out.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the corruptions.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    images, labels = sample()
    runs = []
    with Store(asked.store) as store:
        records = finished(store, methods.PAPER, asked.seeds, kinds=KINDS)
        for record in records:
            clean = score(model_of(record, store), WORLD, WORLD.home, CORRUPTED).main
            assert record.final is not None
            damaged = {kind: list(record.final.corruptions[kind]) for kind in KINDS}
            about = {"run_id": record.run_id, "method": record.settings.method, "seed": record.settings.seed}
            runs.append({**about, "clean": clean, "corruptions": damaged})
    pictures = {kind: sheet(images, kind) for kind in KINDS}
    data = {"images": CORRUPTED, "labels": labels, "pictures": pictures, "runs": runs, "made_by": made_by(records)}
    write("corruptions", data)


if __name__ == "__main__":
    main()
