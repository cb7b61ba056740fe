"""Choose every method's settings for the scenes world, for each task: four trials each, on home validation only.

    .venv/bin/python data_scripts/tune_scenes.py --tasks semseg

Writes ftp/lab/recipes/scenes.json: the grid, what each trial gave, and the choice; about 12 minutes a task on one core
of a quiet machine. No shift, no damage and no test picture is looked at. FTP is tuned twice, with κ = 1 and with κ = 0
(`reference`), since the paper's choice differs with the task.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "recipes" / "scenes.json"
TASKS = ("semseg", "parts", "normals")
SEED = 100  # one that no table uses
KAPPA_0 = "ftp, k=0"


def each(name: str, values: list[float], **same: float) -> list[dict[str, float]]:
    """A trial for each value of one setting."""
    return [{**same, name: value} for value in values]


TRIALS: dict[str, list[dict[str, float]]] = {
    "finetune": each("lr", [5e-4, 1e-3, 3e-3, 1e-2]),
    "ftp": each("lr", [3e-3, 1e-2, 2e-2, 4e-2]),
    KAPPA_0: each("lr", [3e-3, 1e-2, 2e-2, 4e-2], k=0.0),
    "linear_probe": each("lr", [3e-3, 1e-2, 3e-2, 1e-1]),
    "llrd": [*each("lr", [3e-3, 1e-2], decay=0.45), *each("lr", [1e-2, 2e-2], decay=0.65)],
    "l2_sp": [*each("lr", [3e-3, 1e-2], strength=0.1), *each("lr", [3e-3, 1e-2], strength=1.0)],
    "mars_sp": [*each("lr", [3e-3, 1e-2], gamma=0.25), *each("lr", [3e-3, 1e-2], gamma=1.0)],
    "bitfit": each("lr", [3e-3, 1e-2, 3e-2, 1e-1]),
    "adapter": each("lr", [3e-3, 1e-2, 3e-2, 1e-1]),
    "tpgm": [*each("lr", [3e-3, 1e-2], gamma_lr=1e-2), *each("lr", [1e-2, 2e-2], gamma_lr=3e-2)],
}


def trial(task: str, method: str, chosen: dict[str, Any]) -> tuple[float | None, float]:
    """The main score on validation, and seconds of processor time; None if the run falls apart."""
    import torch

    from ftp.lab import evaluate, methods
    from ftp.lab.record import LabError
    from ftp.lab.settings import resolve
    from ftp.lab.train import finetune

    torch.set_num_threads(1)
    name = method.partition(",")[0]
    options = methods.method(name).options
    plain = {key: option.default for key, option in options.items()}  # not an older recipe
    began = time.process_time()
    settings = resolve("scenes", name, {**plain, **chosen, "seed": SEED, "task": task})
    run = finetune(settings, watches=0, evaluate_at_end=False, device="cpu")
    try:
        for _ in run:
            pass
    except LabError:
        return None, time.process_time() - began
    return evaluate.score(run.model, run.world, "val").main, time.process_time() - began


def tune(task: str, method: str, out: Path) -> None:
    """All trials of a method; its part of the sheet is written at once."""
    from ftp.lab.worlds import load
    from ftp.lab.worlds.scenes import SPLITS

    metric, rows, pictures = load("scenes", {"task": task}).metrics[0], [], SPLITS["val"][2]
    for chosen in TRIALS[method]:
        value, seconds = trial(task, method, chosen)
        rows.append({"settings": chosen, "val_mean": value and round(value, 3), "seconds": round(seconds, 1)})
        print(task, method, rows[-1], flush=True)
    best = metric.best(row["val_mean"] for row in rows if row["val_mean"] is not None)  # type: ignore[misc]
    choice = next(row["settings"] for row in rows if row["val_mean"] == best)
    sheets = json.loads(out.read_text()) if out.exists() else {}
    tuning = sheets.setdefault("quick", {"divided_by": "task", "parts": {}})
    sheet = tuning["parts"].setdefault(task, {"grid": {}, "outcome": {}, "recipe": {}, "reference": {}})
    if method == KAPPA_0:
        sheet["reference"][method] = {"outcome": rows, "settings": choice}
    else:
        tried = TRIALS[method]
        sheet["grid"][method] = {name: list(dict.fromkeys(row[name] for row in tried)) for name in tried[0]}
        sheet["outcome"][method], sheet["recipe"][method] = rows, choice
    sheet["higher_is_better"] = metric.higher_is_better
    sheet["budget"] = {
        "trials": 4,
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
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    for task in asked.tasks:
        for method in asked.methods:
            tune(task, method, asked.out)


if __name__ == "__main__":
    main()
