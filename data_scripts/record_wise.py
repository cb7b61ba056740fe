"""WiSE curves of recorded runs, for the dashboard and the lessons: ftp/lab/recordings/WORLD/wise.json.gz.

    .venv/bin/python data_scripts/record_wise.py --store runs.db --seeds 0 1 2 3 4
    .venv/bin/python data_scripts/record_wise.py --world WORLD --store runs.db --images 0

A quarter of a minute for each run on one core; runs that the store does not hold are made first, and all must be made
on one machine. `--images 0` takes every picture of each set, as the table does. `--strangers pretrained=second` adds
the control: walks that begin at the pre-trained model of another option.
"""

import argparse
from dataclasses import asdict
from typing import Any

import torch
from _finished import finished, made_by, write

from ftp.lab import worlds
from ftp.lab.evaluate import score
from ftp.lab.record import RunRecord
from ftp.lab.run import model_of
from ftp.lab.store import Store
from ftp.lab.wise import interpolate, wise
from ftp.lab.worlds import default

METHODS = ("finetune", "ftp")
POINTS, IMAGES = 21, 500


def strangers(records: list[RunRecord], store: Store, change: str, alphas: list[float]) -> list[dict[str, Any]]:
    """The control: walks that begin at the pre-trained model of another option, such as another pre-training."""
    name, _, value = change.partition("=")
    curves = []
    for record in records:
        world, model = worlds.of(record.settings), model_of(record, store)
        other = worlds.load(world.name, {**world.chosen, name: value}).model(record.settings.seed)
        first, last = other.state_dict(), {key: tensor.clone() for key, tensor in model.state_dict().items()}
        home: list[float] = []
        shifts: dict[str, list[float]] = {shift: [] for shift in world.shifts}
        for alpha in alphas:
            model.load_state_dict(interpolate(first, last, alpha))
            home.append(score(model, world, world.home).main)
            for shift, values in shifts.items():
                values.append(score(model, world, shift).main)
        ood = [sum(at) / len(at) for at in zip(*shifts.values(), strict=True)]
        about = {"run_id": record.run_id, "method": record.settings.method, "seed": record.settings.seed}
        curves.append({**about, "alphas": alphas, "id": home, "ood_avg": ood, "shifts": shifts})
    return curves


def main() -> None:
    parser = argparse.ArgumentParser(description="Record WiSE curves.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--world", default=default())
    parser.add_argument("--images", type=int, default=IMAGES, help="of each set; 0 for all")
    parser.add_argument("--strangers", metavar="NAME=VALUE", help="walk from another option's pre-trained model too")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    alphas = [round(i / (asked.points - 1), 2) for i in range(asked.points)]
    with Store(asked.store) as store:
        records = finished(store, METHODS, asked.seeds, asked.world)
        curves = [wise(record, store, alphas, limit=asked.images or None) for record in records]
        place = worlds.of(records[0].settings)
        images = asked.images or len(place.split(place.home))
        plain = [record for record in records if record.settings.method == METHODS[0]][:3]
        control = strangers(plain, store, asked.strangers, alphas) if asked.strangers else []
    about = {"images": images, "curves": [asdict(curve) for curve in curves], "made_by": made_by(records)}
    write("wise", {**about, "strangers": control} if control else about, asked.world)


if __name__ == "__main__":
    main()
