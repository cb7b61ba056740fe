"""What recorded networks of pictures and words answer, for the view Ask: ftp/lab/recordings/WORLD/ask.json.gz.

    .venv/bin/python data_scripts/record_ask.py WORLD --store runs.db [--seed 0]

It needs the weights: a run with equal settings that the store holds is taken, another one is made there. The seed is
the one nearest to the means of the recorded runs; one picture of each thing in each set, the same scene in all sets.
"""

import argparse
import base64
import importlib
import io
from pathlib import Path

import torch
from _finished import finished, made_by, write
from PIL import Image

from ftp.lab import recordings, worlds
from ftp.lab.ask import bytes_of, packed
from ftp.lab.ask_walk import form, pictures, sets_of, walk
from ftp.lab.emoji import TITLES, things
from ftp.lab.store import Store

METHODS = ("finetune", "ftp")
ALPHAS = tuple(round(0.1 * i, 1) for i in range(11))
FOUND_AT = ALPHAS[::2]  # where pictures can be found: their vectors are most of the file
ACROSS, QUALITY = 15, 80  # pictures in a row of a sheet
EXAMPLES = ("a drawing of a tiger", "a red car", "a black and white dog", "some kind of food", "a soft and round hat")


def sheet(pixels: torch.Tensor) -> str:
    """Pictures in rows of `ACROSS`, as WebP in base64."""
    count, _, high, wide = pixels.shape
    rows = -(-count // ACROSS)
    whole = torch.ones(rows * ACROSS, 3, high, wide)
    whole[:count] = pixels
    grid = whole.unflatten(0, (rows, ACROSS)).permute(0, 3, 1, 4, 2).reshape(rows * high, ACROSS * wide, 3)
    out = io.BytesIO()
    Image.fromarray(grid.mul(255).round().to(torch.uint8).numpy()).save(out, "WEBP", quality=QUALITY, method=6)
    return base64.b64encode(out.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what networks answer on their way from W0 to W.")
    parser.add_argument("world")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--seed", type=int, help="the one nearest to the means, unless said otherwise")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    recorded = "methods" in recordings.groups(asked.world)
    seed = asked.seed if asked.seed is not None else recordings.typical_seed(asked.world) if recorded else 0
    world, short = worlds.load(asked.world), {thing.name: thing.short for thing in things()}
    with Store(asked.store) as store:
        records = finished(store, METHODS, [seed], asked.world)
        walks = [walk(record, store, ALPHAS) for record in records]
    write(
        "ask",
        {
            "seed": seed,
            "towers": importlib.import_module(type(world).__module__).weights_path().name,
            "things": world.classes,
            "short": [short.get(name, name) for name in world.classes],
            "tiles": base64.b64encode(world.tiles()).decode(),
            "examples": EXAMPLES,
            "sets": [
                {"name": n, "title": TITLES.get(n, n), "sheet": sheet(pictures(world, n))} for n in sets_of(world)
            ],
            "across": ACROSS,
            "alphas": ALPHAS,
            "found_at": FOUND_AT,
            "vectors": packed(bytes_of(walks[0].vectors[:1].numpy())),  # of W0
            "ways": [form(walked, run, FOUND_AT[1:]) for walked, run in zip(walks, records, strict=True)],
            "made_by": made_by(records),
        },
        asked.world,
    )


if __name__ == "__main__":
    main()
