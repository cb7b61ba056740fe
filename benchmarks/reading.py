"""How fast pictures are read against how fast they are trained on, and how long training waits for them.

    python benchmarks/reading.py [--data PATH] [--model M] [--size 64] [--steps 20] [--batch 32] [--pictures 600]

Without --data a tree of JPEG photographs (512 x 384, drawn) is made in a temporary folder. Three numbers count: images
per second of reading alone (from the decoded bytes, and decoding each time), of training, and the share of the time in
which training waited for a batch. `peak` is the largest memory of a process that reads the tree once, for the whole
tree and for a quarter of it: decoded bytes are mapped, so the system may give them back at any time.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

PEAK = """
import resource, sys, torch
from ftp.lab import worlds
world = worlds.load("folder", {"data": sys.argv[1], "size": int(sys.argv[2]), "weights": "none"})
split = world.split("train")
for part in torch.split(torch.arange(len(split)), 32):
    split.batch(part, torch.Generator().manual_seed(0))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def draw(root: Path, count: int) -> Path:
    """Soft fields of colour with grain, as JPEG of the size that telephones send."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for n in range(count):
        folder = root / "id" / "train" / f"class{n % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        field = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)).resize((512, 384), 3)
        grain = np.asarray(field) + rng.normal(0, 6, (384, 512, 1))
        Image.fromarray(grain.clip(0, 255).astype(np.uint8)).save(folder / f"{n}.jpg", quality=88)
    return root


def speed(data: Path, options: argparse.Namespace, cache: str, workers: int) -> float:
    """Augmented images per second of reading alone."""
    from ftp.lab import worlds

    values = {"data": str(data), "model": options.model, "weights": "none", "size": options.size}
    split = worlds.load("folder", {**values, "cache": cache, "workers": workers}).split("train")
    rounds = [torch.randint(len(split), (options.batch,)) for _ in range(options.steps)]
    split.batch(rounds[0], torch.Generator().manual_seed(0))
    began = time.perf_counter()
    for number, indices in enumerate(rounds):
        split.batch(indices, torch.Generator().manual_seed(number))
    return options.steps * options.batch / (time.perf_counter() - began)


def training(data: Path, options: argparse.Namespace) -> tuple[float, float]:
    """Images per second of training, and the share of the time in which it waited."""
    from ftp.lab.settings import resolve
    from ftp.lab.train import FineTuning

    changes = {"data": str(data), "model": options.model, "weights": "none", "size": options.size}
    settings = resolve("folder", "ftp", {**changes, "steps": options.steps + 2, "batch": options.batch})
    run = FineTuning(settings, watches=0, evaluate_at_end=False)
    for _ in range(2):
        run.advance()[0].item()
    waited, began = run.ahead.waited, time.perf_counter()
    for _ in range(options.steps):
        loss, _ = run.advance()
    loss.item()
    seconds = time.perf_counter() - began
    return options.steps * options.batch / seconds, (run.ahead.waited - waited) / seconds


def peak(data: Path, size: int) -> float:
    """MB of a process that reads every training picture once."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(data), str(size)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--pictures", type=int, default=600)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CACHE_HOME"] = place
        data = options.data or draw(Path(place) / "tree", options.pictures)
        for workers in (1, 2):
            kept, each = (speed(data, options, cache, workers) for cache in ("disk", "no"))
            print(
                f"reading, {workers} thread(s): {kept:.0f} images/s from decoded bytes, {each:.0f} decoding each time"
            )
        trained, waited = training(data, options)
        print(
            f"training {options.model} at {options.size} pixels: {trained:.0f} images/s; "
            f"waiting {waited:.1%} of the time"
        )
        if options.data is None:
            quarter = draw(Path(place) / "quarter", options.pictures // 4)
            large, small = peak(data, options.size), peak(quarter, options.size)
            print(f"peak memory: {large:.0f} MB for {options.pictures} pictures, {small:.0f} MB for a quarter of them")
            shutil.rmtree(quarter)


if __name__ == "__main__":
    main()
