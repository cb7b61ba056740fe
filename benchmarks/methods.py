"""What one training step of each method costs on the digits world, as ratios to plain fine-tuning, in one run.

The methods take turns, step by step, so that a busy moment hits all of them alike; the median counts.
"""

import argparse
import statistics
import time

import torch

from ftp.lab import methods
from ftp.lab.settings import resolve
from ftp.lab.train import FineTuning, finetune

PAPER = {"ftp": "1.17-1.46", "tpgm": "2.29 in Tab. 1"}  # seconds per step over those of fine-tuning


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds per step of every method, against fine-tuning.")
    parser.add_argument("--steps", type=int, default=40)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    runs: dict[str, FineTuning] = {}
    for name in methods.names():
        # so many steps that the learning rate hardly falls; LP-FT is past its probe
        given = {"steps": 100_000, **({"probe": 0.0} if name == "lp_ft" else {})}
        runs[name] = finetune(resolve("digits", name, given), device="cpu", watches=0)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for step in range(asked.steps + 5):
        for name, run in runs.items():
            begin = time.perf_counter()
            run.advance()
            if step >= 5:  # the first ones make their state
                seconds[name].append(time.perf_counter() - begin)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"one step on digits, batch 64, one thread, median of {asked.steps}; fine-tuning takes 1")
    for name, value in median.items():
        paper = f"   (the paper: {PAPER[name]})" if name in PAPER else ""
        print(f"  {name:15s} {1e3 * value:7.1f} ms   {value / median['finetune']:5.2f}{paper}")
    print(f"  FTP against TPGM: {median['ftp'] / median['tpgm']:.2f} (the paper: 0.64)")


if __name__ == "__main__":
    main()
