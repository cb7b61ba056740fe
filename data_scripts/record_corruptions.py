"""All 19 corruptions for every method, and what they do to eight pictures: ftp/lab/recordings/*/corruptions.json.gz.

    .venv/bin/python data_scripts/record_corruptions.py --world WORLD --store runs.db --seeds 0 1 2 3 4

Half a minute for each run that the store does not hold, on one core. For each kind a picture of six rows (clean,
severity 1 to 5) and eight columns (pictures of eight classes of the home set, 32 pixels each), and for each
method and seed the accuracy at each severity. All runs must be made on one machine: another one rounds otherwise, and
after 300 steps its networks are others.
"""

import argparse
import base64
import io

import torch
from _finished import finished, made_by, write
from PIL import Image

from ftp.lab import methods, recordings, worlds
from ftp.lab.corruptions import KINDS, corrupt
from ftp.lab.evaluate import CORRUPTED, score
from ftp.lab.record import SEVERITIES
from ftp.lab.run import model_of
from ftp.lab.store import Store

COLUMNS, QUALITY = 8, 82


def sample(world: worlds.World) -> tuple[torch.Tensor, list[str]]:
    """One image of each of eight classes, taken from all over their list."""
    home = world.split(world.home)
    images, labels = home.batch(torch.arange(len(home)))
    apart = max(1, len(world.classes) // 10)
    places = [int((labels == apart * n).nonzero()[0]) for n in range(COLUMNS)]
    return images[places], [world.classes[label] for label in labels[places]]


def sheet(world: worlds.World, images: torch.Tensor, kind: str) -> str:
    """The picture of one kind, as WebP in base64."""
    rows = [images]
    for severity in SEVERITIES:
        g = torch.Generator().manual_seed(severity)
        rows.append(corrupt(images, kind, severity, generator=g, parameters=world.severities))
    grid = torch.stack(rows).mul(255).round().to(torch.uint8)  # (rows, columns, 3, 32, 32)
    pixels = grid.permute(0, 3, 1, 4, 2).reshape(len(rows) * 32, COLUMNS * 32, 3)
    out = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(out, "WEBP", quality=QUALITY, method=6)
    return base64.b64encode(out.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the corruptions.")
    parser.add_argument("--world", default=worlds.default(), choices=recordings.worlds())
    parser.add_argument("--store", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    world = worlds.load(asked.world)
    images, labels = sample(world)
    runs = []
    with Store(asked.store) as store:
        names = recordings.described(world.name)["methods"].methods or methods.PAPER
        records = finished(store, names, asked.seeds, world=world.name, kinds=KINDS)
        for record in records:
            clean = score(model_of(record, store), world, world.home, CORRUPTED).main
            assert record.final is not None
            damaged = {kind: list(record.final.corruptions[kind]) for kind in KINDS}
            about = {"run_id": record.run_id, "method": record.settings.method, "seed": record.settings.seed}
            runs.append({**about, "clean": clean, "corruptions": damaged})
    pictures = {kind: sheet(world, images, kind) for kind in KINDS}
    data = {"images": CORRUPTED, "labels": labels, "pictures": pictures, "runs": runs, "made_by": made_by(records)}
    write("corruptions", data, world.name)


if __name__ == "__main__":
    main()
