"""Choose every method's settings for the scenes world, for each task: eight trials each, on home validation only.

    .venv/bin/python data_scripts/tune_scenes.py --tasks semseg --jobs 2

Writes ftp/lab/recipes/scenes.json: the grid, what each trial gave, and the choice; about 22 minutes of processor time a
task. A trial that the sheet holds is not made again. No shift, no damage and no test picture is looked at. FTP is tuned
twice, with κ = 1 and with κ = 0 (`reference`), since the paper's choice differs with the task.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from ftp.lab import methods
from ftp.lab.worlds import load
from ftp.lab.worlds.scenes import SPLITS

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "recipes" / "scenes.json"
TASKS = ("semseg", "parts", "normals")
SEED = 100  # one that no table uses
KAPPA_0 = "ftp, k=0"
# by a factor of three at first; then four more for every method alike, around and beyond where the first had led
BROAD, NEAR = [3e-3, 1e-2, 3e-2, 1e-1], [5e-3, 1.5e-2, 2e-2, 5e-2]


def each(name: str, values: list[float], **same: float) -> list[dict[str, float]]:
    """A trial for each value of one setting."""
    return [{**same, name: value} for value in values]


def leashed(**same: float) -> list[dict[str, float]]:
    """The trials of FTP with either kappa."""
    rates = each("lr", [3e-3, 1e-2, 2e-2, 4e-2], gamma_lr=1e-2, **same)
    return rates + [row for mu in (3e-3, 3e-2) for row in each("lr", [1e-2, 2e-2], gamma_lr=mu, **same)]


TRIALS: dict[str, list[dict[str, float]]] = {
    "finetune": each("lr", [5e-4, 1e-3, 3e-3, 1e-2, 1.5e-3, 2e-3, 5e-3, 7e-3]),
    "ftp": leashed(),
    KAPPA_0: leashed(k=0.0),
    "linear_probe": each("lr", BROAD + NEAR),
    "llrd": [
        *each("lr", [3e-3, 1e-2], decay=0.45),
        *each("lr", [5e-3, 1e-2, 2e-2], decay=0.65),
        *each("lr", [5e-3, 1e-2], decay=0.8),
        *each("lr", [5e-3], decay=0.9),
    ],
    "l2_sp": [
        *each("lr", [3e-3, 5e-3, 1e-2], strength=1e-3),
        *each("lr", [3e-3, 5e-3, 1e-2], strength=1e-2),
        *each("lr", [3e-3, 1e-2], strength=1e-1),
    ],
    "mars_sp": [
        *each("lr", [1e-2], gamma=0.1),
        *each("lr", [3e-3, 1e-2, 2e-2], gamma=0.25),
        *each("lr", [3e-3, 1e-2, 2e-2], gamma=1.0),
        *each("lr", [1e-2], gamma=4.0),
    ],
    "bitfit": each("lr", BROAD + NEAR),
    "adapter": each("lr", BROAD + NEAR),
    "tpgm": [
        *each("lr", [3e-3, 1e-2], gamma_lr=1e-2),
        *each("lr", [1e-2, 2e-2, 4e-2], gamma_lr=3e-2),
        *each("lr", [1e-2, 2e-2, 4e-2], gamma_lr=1e-1),
    ],
}


def trial(task: str, method: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """A row of the sheet: the main score on validation (None if the run falls apart), and seconds of processor time."""
    import torch

    from ftp.lab import evaluate
    from ftp.lab.record import LabError
    from ftp.lab.settings import resolve
    from ftp.lab.train import finetune

    torch.set_num_threads(1)
    began = time.process_time()
    given = {**plain(method), **chosen, "seed": SEED, "task": task}
    run = finetune(resolve("scenes", of(method), given), watches=0, evaluate_at_end=False, device="cpu")
    try:
        for _ in run:
            pass
        value = round(evaluate.score(run.model, run.world, "val").main, 3)
    except LabError:
        value = None
    return {"settings": chosen, "val_mean": value, "seconds": round(time.process_time() - began, 1)}


def of(row: str) -> str:
    """The method of a row of TRIALS."""
    return row.partition(",")[0]


def plain(row: str) -> dict[str, Any]:
    """The options of a method as its file has them, not as an older recipe does."""
    return {name: option.default for name, option in methods.method(of(row)).options.items()}


def tune(task: str, method: str, jobs: int, out: Path) -> None:
    """The trials of a method that the sheet does not hold, and the choice; its part of the sheet is written at once."""
    metric, pictures = load("scenes", {"task": task}).metrics[0], SPLITS["val"][2]
    sheets = json.loads(out.read_text()) if out.exists() else {}
    tuning = sheets.setdefault("quick", {"divided_by": "task", "parts": {}})
    sheet = tuning["parts"].setdefault(task, {"grid": {}, "outcome": {}, "recipe": {}, "reference": {}})
    older = sheet["reference"].get(method, {}).get("outcome") or sheet["outcome"].get(method, [])
    there = [({**plain(method), **row["settings"]}, row) for row in older]
    rows = [next((row for full, row in there if full == {**plain(method), **t}), None) for t in TRIALS[method]]
    new = [chosen for chosen, row in zip(TRIALS[method], rows, strict=True) if row is None]
    made = iter(Parallel(n_jobs=jobs)(delayed(trial)(task, method, chosen) for chosen in new))
    rows = [{**(row or next(made)), "settings": t} for row, t in zip(rows, TRIALS[method], strict=True)]
    best = metric.best(row["val_mean"] for row in rows if row["val_mean"] is not None)
    choice = next(row["settings"] for row in rows if row["val_mean"] == best)
    print(
        task, method, *(f"{row['settings']}: {row['val_mean']}" for row in rows), f"-> {choice}", sep="\n  ", flush=True
    )
    if method == KAPPA_0:
        sheet["reference"][method] = {"outcome": rows, "settings": choice}
    else:
        tried = TRIALS[method]
        sheet["grid"][method] = {name: sorted({row[name] for row in tried}) for name in tried[0]}
        sheet["outcome"][method], sheet["recipe"][method] = rows, choice
    sheet["higher_is_better"] = metric.higher_is_better
    sheet["budget"] = {
        "trials": len(TRIALS[method]),
        "seeds": [SEED],
        "chosen_by": f"{metric.name} on the {pictures} validation pictures of the home look, after the last step",
        "made_by": "data_scripts/tune_scenes.py",
    }
    tuning["parts"] = {name: tuning["parts"][name] for name in TASKS if name in tuning["parts"]}
    out.write_text(json.dumps(sheets, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune every method for the scenes world.")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=TASKS)
    parser.add_argument("--methods", nargs="*", default=list(TRIALS), choices=list(TRIALS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    for task in asked.tasks:
        for method in asked.methods:
            tune(task, method, asked.jobs, asked.out)


if __name__ == "__main__":
    main()
