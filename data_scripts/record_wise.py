"""WiSE curves of recorded runs, for the dashboard and the lessons: ftp/lab/recordings/WORLD/wise.json.gz.

    .venv/bin/python data_scripts/record_wise.py --store runs.db --seeds 0 1 2 3 4
    .venv/bin/python data_scripts/record_wise.py --world WORLD --store runs.db --images 0

A quarter of a minute for each run on one core; runs that the store does not hold are made first, and all must be made
on one machine. `--images 0` takes every picture of each set, as the table does.
"""

import argparse
from dataclasses import asdict

import torch
from _finished import finished, made_by, write

from ftp.lab import worlds
from ftp.lab.store import Store
from ftp.lab.wise import wise
from ftp.lab.worlds import default

METHODS = ("finetune", "ftp")
POINTS, IMAGES = 21, 500


def main() -> None:
    parser = argparse.ArgumentParser(description="Record WiSE curves.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--world", default=default())
    parser.add_argument("--images", type=int, default=IMAGES, help="of each set; 0 for all")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    alphas = [round(i / (asked.points - 1), 2) for i in range(asked.points)]
    with Store(asked.store) as store:
        records = finished(store, METHODS, asked.seeds, asked.world)
        curves = [wise(record, store, alphas, limit=asked.images or None) for record in records]
        place = worlds.of(records[0].settings)
        images = asked.images or len(place.split(place.home))
    about = {"images": images, "curves": [asdict(curve) for curve in curves], "made_by": made_by(records)}
    write("wise", about, asked.world)


if __name__ == "__main__":
    main()
