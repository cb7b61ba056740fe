"""What the view of dense worlds shows: test scenes turned and damaged, the truth, what networks say, and its score.

    .venv/bin/python data_scripts/record_dense.py --store runs.db

Writes ftp/lab/recordings/scenes/dense.json.gz. It needs weights: a run with equal settings that the store holds is
taken, another one is made there (about a minute each). `--tasks` records some tasks anew and keeps the others. One
seed, for this is to look at; tables have them all. Which scenes, and how they are turned: `ftp.lab.pixels`.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from _finished import made_by, write
from torch import Tensor

from ftp.lab import recipes, worlds
from ftp.lab.map_sheets import directions, sheet
from ftp.lab.pixels import AS_IT_IS, about, as_bytes, chosen, drawn, said_by, states, targets_of
from ftp.lab.record import RunRecord, Settings
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.run import execute, model_of
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.worlds import World
from ftp.lab.worlds._dense import IGNORED

WORLD, METHODS = "scenes", ("finetune", "linear_probe", "llrd", "l2_sp", "ftp")


def truth_sheet(targets: Tensor) -> str:
    if targets.dim() == 3:
        return sheet(as_bytes(targets))
    ignored = (targets == IGNORED).all(1)
    return sheet(directions(torch.where(ignored[:, None], 0.0, targets).numpy(), ignored.numpy()))


def of_task(world: World, maps: Tensor, pictures: Tensor, poses: list[int], runs: list[RunRecord], store: Store) -> Any:
    """Truth and, for each run, what it says of every picture, and how good that is."""
    targets, rows = targets_of(world, maps, len(pictures)), []
    for run in runs:
        rows.append({**about(run, world), **said_by(model_of(run, store), world, pictures, targets, poses)})
        print(world.option("task"), run.settings.method, flush=True)
    plain = {"classes": list(world.classes), "metric": asdict(world.metrics[0])}
    return {**plain, "truth": [truth_sheet(part) for part in targets], "runs": rows}


def finished(wanted: list[Settings], store: Store) -> list[RunRecord]:
    """Runs with these settings, out of the store or made now."""
    done = {run.settings: run for run in store.runs(world=WORLD, status="done", limit=None)}
    held = {settings: run for settings, run in done.items() if store.weights_path(run.run_id).exists()}
    return [held[settings] if settings in held else execute(settings, store) for settings in wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what the view of dense worlds shows.")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", help=f"usually those of {', '.join(METHODS)} that are tuned for a task")
    parser.add_argument("--tasks", nargs="+", choices=worlds.world(WORLD).options["task"].choices)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    plain = worlds.load(WORLD)
    listed, dials = states(plain)
    picked = chosen(plain)
    pictures, poses, maps = drawn([scene for _, _, scene in picked], listed, plain)
    bright = as_bytes(pictures.mul(255).round()).transpose(0, 1, 3, 4, 2)
    sheets = [sheet(part, lossless=False) for part in bright]
    before = extra("dense", WORLD) if asked.tasks and has_extra("dense", WORLD) else {}
    if before and (before["pictures"], before["dials"]) != (sheets, dials):
        raise SystemExit("the scenes are other ones than those recorded; record all tasks, without --tasks")
    tasks, used = dict(before.get("tasks", {})), []
    with Store(asked.store) as store:
        for task in asked.tasks or plain.options["task"].choices or ():
            tuned = [method for method in METHODS if recipes.recipe(WORLD, method, options={"task": task})]
            methods = asked.methods or tuned
            runs = finished([resolve(WORLD, m, {"task": task, "seed": asked.seed}) for m in methods], store)
            tasks[task] = of_task(worlds.load(WORLD, {"task": task}), maps[task], pictures, poses, runs, store)
            used += runs
    place = made_by(used)
    if before and before["made_by"] != place:
        raise SystemExit(
            f"the others were made in another place, {before['made_by']}; record all tasks, without --tasks"
        )
    data = {
        "side": pictures.shape[-1],
        "scene_list": [{"split": split, "number": number} for split, number, _ in picked],
        "dials": dials,
        "poses": poses,
        "pictures": sheets,
        "thumbs": sheet(bright[:, 0], lossless=False),
        "python": AS_IT_IS,
        "tasks": tasks,
        "made_by": place,
    }
    write("dense", data, WORLD)


if __name__ == "__main__":
    main()
