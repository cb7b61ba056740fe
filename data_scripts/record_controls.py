"""The controls of lessons 08 and 10 over ten seeds: ftp/lab/recordings/controls_digits.json.gz.

    .venv/bin/python data_scripts/record_controls.py --runs FOLDER

FOLDER keeps one small file per finished run, so a recording that was stopped goes on where it was. About 15 s for each
run on one core. The file is written after every run, with all that FOLDER holds.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ftp.lab.controls import fixed_leash, shuffled, untrained
from ftp.lab.progress import Progress
from ftp.lab.record import EvalEvent, StartEvent, StepEvent, code_version
from ftp.lab.recordings import recorded
from ftp.lab.recordings.controls import HOME, pack
from ftp.lab.settings import resolve
from ftp.lab.store import write_atomic
from ftp.lab.train import FineTuning

Gammas = dict[str, float]
HOW: dict[str, Any] = {"watches": 0, "kinds": (), "device": "cpu"}


def sgd(seed: int, like: str, gammas: Gammas) -> FineTuning:
    """Plain SGD at the learning rate of another method, on given leashes."""
    lr = resolve("digits", like).lr
    return fixed_leash(resolve("digits", "finetune", {"seed": seed, "lr": lr}), gammas, **HOW)


# frozen and shuffled take FTP's own learning rate; zero that of the linear probe, from which it differs only in that
# the statistics of its norms follow the training images
MAKE: dict[str, Callable[[int, Gammas], FineTuning]] = {
    "frozen": lambda seed, gammas: sgd(seed, "ftp", gammas),
    "shuffled": lambda seed, gammas: sgd(seed, "ftp", shuffled(gammas, seed)),
    "untrained_ftp": lambda seed, _: untrained(resolve("digits", "ftp", {"seed": seed}), **HOW),
    "untrained_finetune": lambda seed, _: untrained(resolve("digits", "finetune", {"seed": seed}), **HOW),
    "zero": lambda seed, gammas: sgd(seed, "linear_probe", dict.fromkeys(gammas, 0.0)),
}


def outcome(control: str, seed: int) -> dict[str, Any]:
    """Train once, and keep what the lessons read."""
    learned = recorded("digits", "ftp", seed)[0].result
    assert learned is not None
    start, *events = MAKE[control](seed, learned["constraints"])
    assert isinstance(start, StartEvent)
    last = [event for event in events if isinstance(event, StepEvent)][-1]
    final = events[-1]
    assert isinstance(final, EvalEvent)
    assert final.final
    accuracy = {name: round(value, 4) for name, value in final.accuracy.items()}
    moved = {name: float(f"{far:.4g}") for name, far in zip(start.layers, last.distance, strict=True)}
    leash = {name: float(f"{g:.4g}") for name, g in zip(start.layers, last.gamma, strict=True) if g is not None}
    made = {"code": code_version(), "torch": torch.__version__}
    return {"control": control, "seed": seed, "accuracy": accuracy, "gamma": leash, "distance": moved, "made": made}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the recorded controls of the lessons.")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--controls", nargs="+", choices=list(MAKE), default=list(MAKE))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.runs.mkdir(parents=True, exist_ok=True)
    wanted = [(control, seed) for seed in range(asked.seeds) for control in asked.controls]
    with Progress(len(wanted), "runs", every=1) as progress:
        for done, (control, seed) in enumerate(wanted, start=1):
            path = asked.runs / f"{control}-{seed}.json"
            if not path.exists():
                write_atomic(path, json.dumps(outcome(control, seed)).encode())
            made = [json.loads(file.read_text()) for file in sorted(asked.runs.glob("*.json"))]
            write_atomic(asked.out, pack(made))
            progress.at(done)
    print(f"{asked.out.name}: {len(made)} runs", flush=True)


if __name__ == "__main__":
    main()
