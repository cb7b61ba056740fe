"""All 19 corruptions for every method, and what they do to a few digits: ftp/lab/recordings/corruptions_digits.json.gz.

    .venv/bin/python data_scripts/record_corruptions.py --store runs.db

About five minutes on one core. For each kind a picture of six rows (clean, severity 1 to 5) and eight columns (the
first eight different digits of the test set, 32 pixels each), and for each method the accuracy at each severity.
"""

import argparse
import base64
import io

import torch
from _finished import finished, write
from PIL import Image

from ftp.lab import methods, worlds
from ftp.lab.corruptions import KINDS, corrupt
from ftp.lab.evaluate import CORRUPTED, corruption_scores, score
from ftp.lab.record import SEVERITIES
from ftp.lab.run import model_of
from ftp.lab.store import Store

COLUMNS, QUALITY = 8, 82


def sample() -> tuple[torch.Tensor, list[int]]:
    """One image of each of eight digits."""
    images, labels = worlds.load("digits").split("id").batch(torch.arange(200))
    places = [int((labels == digit).nonzero()[0]) for digit in range(COLUMNS)]
    return images[places], labels[places].tolist()


def sheet(images: torch.Tensor, kind: str) -> str:
    """The picture of one kind, as WebP in base64."""
    parameters = worlds.info("digits").severities
    rows = [images]
    for severity in SEVERITIES:
        g = torch.Generator().manual_seed(severity)
        rows.append(corrupt(images, kind, severity, generator=g, parameters=parameters))
    grid = torch.stack(rows).mul(255).round().to(torch.uint8)  # (rows, columns, 3, 32, 32)
    pixels = grid.permute(0, 3, 1, 4, 2).reshape(len(rows) * 32, COLUMNS * 32, 3)
    out = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(out, "WEBP", quality=QUALITY, method=6)
    return base64.b64encode(out.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the corruptions.")
    parser.add_argument("--store", required=True)
    torch.set_num_threads(1)
    images, labels = sample()
    world = worlds.load("digits")
    runs = []
    with Store(parser.parse_args().store) as store:
        for record in finished(store, methods.names()):
            model = model_of(record, store)
            clean = score(model, world.split("id"), CORRUPTED).accuracy
            damaged = {kind: list(values) for kind, values in corruption_scores(model, world, KINDS).items()}
            own = {"run_id": record.run_id, "method": record.settings.method, "seed": record.settings.seed}
            runs.append({**own, "clean": clean, "corruptions": damaged})
            print(record.settings.method, clean, flush=True)
    pictures = {kind: sheet(images, kind) for kind in KINDS}
    write("corruptions_digits", {"images": CORRUPTED, "digits": labels, "pictures": pictures, "runs": runs})


if __name__ == "__main__":
    main()
