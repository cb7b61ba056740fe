"""Choose every method's settings for the captions world: four trials for each, on home validation only.

    .venv/bin/python data_scripts/tune_captions.py
    .venv/bin/python data_scripts/tune_captions.py --methods ftp
    .venv/bin/python data_scripts/tune_captions.py --methods --regularisers

Writes ftp/lab/recipes/captions.json: what was tried, what each trial gave, and the choice. A quarter of a minute a
trial on one core. A trial is a whole run with a seed that no table uses, judged by the 600 validation pictures, which
Noto drew; among equal accuracies the lower loss decides. No other artist is looked at. Where a method has a strength of
its own the trials go to it, at the learning rate in the middle of the others. Zero-shot has nothing to choose.
What was looked at before the trials were fixed stands in the same file, under "before".

The regularisers of the paper's Table 3 are tried before, on plain fine-tuning, one at a time and all together: that
decides the world's defaults. A linear probe never has them, as in the paper.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from ftp.lab.tuning import combinations

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "recipes" / "captions.json"
SEED = 100  # no table uses it
PLAIN = {"mixup": 0.0, "cutmix": 0.0, "smoothing": 0.0, "drop_path": 0.0}
PAPER = {"mixup": 0.8, "cutmix": 1.0, "smoothing": 0.1, "drop_path": 0.2}

GRID: dict[str, dict[str, list[float]]] = {
    "finetune": {"lr": [0.001, 0.002, 0.004, 0.008]},
    "linear_probe": {"lr": [0.03, 0.1, 0.3, 1.0]},
    "lp_ft": {"lr": [0.002], "probe_lr": [0.03, 0.1, 0.3, 1.0]},
    "l2_sp": {"lr": [0.002], "strength": [1e-4, 1e-3, 1e-2, 1e-1]},
    "ftp": {"lr": [0.002], "gamma_lr": [0.03, 0.1, 0.3, 1.0]},
}
TRIALS = 4  # for each
FIXED = {"linear_probe": PLAIN}  # part of its recipe, not tried


def trial(method: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Percent right and loss on home validation, and seconds of processor time; 0 if the run falls apart."""
    import torch
    from torch.nn import functional as F

    from ftp.lab import methods
    from ftp.lab.record import LabError
    from ftp.lab.settings import resolve
    from ftp.lab.train import finetune

    torch.set_num_threads(1)
    plain = {key: option.default for key, option in methods.method(method).options.items()}  # not an older recipe
    began = time.process_time()
    settings = resolve("captions", method, {**plain, **chosen, "seed": SEED})
    run = finetune(settings, watches=0, evaluate_at_end=False, device="cpu")
    row: dict[str, Any] = {"settings": chosen, "val_mean": 0.0, "val_loss": None}
    try:
        for _ in run:
            pass
        val = run.world.split("val")
        with torch.no_grad():
            pixels, labels = val.batch(torch.arange(len(val)))
            outputs = run.model.eval()(pixels)
        row["val_mean"] = round(100 * (outputs.argmax(1) == labels).double().mean().item(), 2)
        row["val_loss"] = round(F.cross_entropy(outputs, labels).item(), 4)
    except LabError as error:
        print(error)
    row["seconds"] = round(time.process_time() - began, 1)
    print(method, row, flush=True)
    return row


def best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return max(rows, key=lambda row: (row["val_mean"], -1e6 if row["val_loss"] is None else -row["val_loss"]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune every method for the captions world.")
    parser.add_argument("--methods", nargs="*", default=list(GRID), choices=list(GRID))
    parser.add_argument("--regularisers", action="store_true", help="try those of Table 3 on plain fine-tuning")
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    sheets = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    sheet = sheets.setdefault("quick", {"grid": {}, "outcome": {}, "recipe": {}})
    sheet["recipe"]["zero_shot"] = {"steps": 1}
    if asked.regularisers:
        one_by_one = [{**PLAIN, name: value} for name, value in PAPER.items()]
        tried = [PLAIN, *one_by_one, {**PLAIN, "mixup": 0.8, "cutmix": 1.0}, PAPER]
        sheet["regularisers"] = [trial("finetune", {"lr": 0.001, **row}) for row in tried]
        asked.out.write_text(json.dumps(sheets, indent=1) + "\n")
    for method in asked.methods:
        fixed = FIXED.get(method, {})
        rows = [trial(method, {**fixed, **row}) for row in combinations(GRID[method])]
        sheet["grid"][method], sheet["outcome"][method] = GRID[method], rows
        sheet["recipe"][method] = best(rows)["settings"]
        sheet["budget"] = {
            "trials": TRIALS,
            "seeds": [SEED],
            "chosen_by": "accuracy on the 600 home validation pictures (Noto's); among equals the lower loss",
            "made_by": "data_scripts/tune_captions.py",
        }
        asked.out.write_text(json.dumps(sheets, indent=1) + "\n")


if __name__ == "__main__":
    main()
