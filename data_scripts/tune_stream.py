"""Choose every method's settings for the stream world: three trials for each, over all ten tasks, on validation only.

    .venv/bin/python data_scripts/tune_stream.py
    .venv/bin/python data_scripts/tune_stream.py --methods ewc ftp_ewc

Writes ftp/lab/recipes/stream.json: what was tried, what each trial gave, and the choice. About 10 minutes on one core.
A trial is a whole stream with a seed that no table uses, so also an order of characters that no table uses; it is
judged by the share of the validation drawings of all 200 characters that is right after the last task. No test drawing
is looked at. Where a method has a strength of its own the trials go to it, at the learning rate in the middle of the
others; where it has none they go to the learning rate. The rates of LwF.MC were moved up once, after 0.001, 0.002 and
0.005 had read 0.8, 0.5 and 2.7 %: two hundred yes-or-no questions need a longer way. Nearest mean has nothing to
choose. Joint training is plain fine-tuning of all characters at once, for as many steps as ten tasks have: it is the
upper reference, not a recipe.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "recipes" / "stream.json"
SEED = 100  # no table uses it
JOINT = "joint"


def each(name: str, values: list[float], **fixed: Any) -> list[dict[str, Any]]:
    return [{**fixed, name: value} for value in values]


TRIALS: dict[str, list[dict[str, Any]]] = {
    "finetune": each("lr", [0.002, 0.005, 0.01], mask="seen"),
    "ft_plus": each("lr", [0.001, 0.002, 0.005]),
    "linear_probe": each("lr", [0.002, 0.005, 0.02]),
    "l2_sp": each("strength", [1.0, 3.0, 10.0], lr=0.005),
    "ewc": each("strength", [1e4, 1e5, 1e6], lr=0.005),
    "ftp": each("lr", [0.003, 0.005, 0.01]),
    "ftp_ewc": each("strength", [1e3, 1e4, 1e5], lr=0.005),
    "lwf_mc": each("lr", [0.005, 0.01, 0.02], mask="seen"),
    "l2p": each("lr", [0.003, 0.005, 0.01]),
    "dualprompt": each("lr", [0.003, 0.005, 0.01]),
    "coda_prompt": each("lr", [0.003, 0.005, 0.01]),
    JOINT: each("lr", [0.002, 0.005, 0.01], tasks=1, steps=400),
}


def trial(method: str, chosen: dict[str, Any]) -> tuple[float, float]:
    """Percent right on validation after the last task, and seconds of processor time; 0 if the run falls apart."""
    import torch

    from ftp.lab import evaluate, methods
    from ftp.lab.record import LabError
    from ftp.lab.settings import resolve
    from ftp.lab.train import finetune

    torch.set_num_threads(1)
    name = "finetune" if method == JOINT else method
    plain = {key: option.default for key, option in methods.method(name).options.items()}  # not an older recipe
    began = time.process_time()
    run = finetune(resolve("stream", name, {"mask": "new", **plain, **chosen, "seed": SEED}), watches=0,
                   evaluate_at_end=False, device="cpu")  # fmt: skip
    try:
        for _ in run:
            pass
    except LabError:
        return 0.0, time.process_time() - began
    seconds = time.process_time() - began
    return evaluate.score(run.model, run.world, "val").main, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune every method for the stream world.")
    parser.add_argument("--methods", nargs="*", default=list(TRIALS), choices=list(TRIALS))
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    for method in asked.methods:
        rows = []
        for chosen in TRIALS[method]:
            value, seconds = trial(method, chosen)
            rows.append({"settings": chosen, "val_mean": round(value, 2), "seconds": round(seconds, 1)})
            print(method, rows[-1], flush=True)
        sheets = json.loads(asked.out.read_text()) if asked.out.exists() else {}
        sheet = sheets.setdefault("quick", {"grid": {}, "outcome": {}, "recipe": {}, "reference": {}})
        best = max(rows, key=lambda row: float(row["val_mean"]))
        tried = TRIALS[method]
        if method == JOINT:
            sheet["reference"][method] = {"outcome": rows, "settings": best["settings"]}
        else:
            sheet["grid"][method] = {name: list(dict.fromkeys(row[name] for row in tried)) for name in tried[0]}
            sheet["outcome"][method], sheet["recipe"][method] = rows, best["settings"]
        sheet["budget"] = {
            "trials": 3,
            "seeds": [SEED],
            "chosen_by": "accuracy on the 600 validation drawings of all 200 characters after the last of ten tasks",
            "made_by": "data_scripts/tune_stream.py",
        }
        asked.out.write_text(json.dumps(sheets, indent=1) + "\n")


if __name__ == "__main__":
    main()
