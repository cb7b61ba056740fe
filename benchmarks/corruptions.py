"""How fast `ftp.lab.corruptions` is against the package imagecorruptions, all in one run on one thread.

    python benchmarks/corruptions.py [--rounds 5] [--kinds fog snow] [--oracle-images 4]

Ours corrupts a batch of 32 uint8 images of 224 pixels. The other one takes an image at a time: it is timed on
a few images (`--oracle-images`), and the time is scaled to 32. Both take turns, so that a busy moment hits
both; each figure is the median over the rounds. Ratios travel between machines, milliseconds do not.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable

import cv2
import imagecorruptions
import torch

from ftp.lab.corruptions import KINDS, corrupt

BATCH, SIZE = 32, 224
SEVERITIES = (1, 3, 5)


def pictures(count: int) -> torch.Tensor:
    """Soft colour fields with a few hard-edged discs: neither flat nor noise, as photographs are."""
    generator = torch.Generator().manual_seed(0)
    field = torch.rand(count, 3, 9, 9, generator=generator)
    images = torch.nn.functional.interpolate(field, size=(SIZE, SIZE), mode="bicubic").clamp_(0, 1)
    line = torch.linspace(0, 1, SIZE)
    for _ in range(8):
        x, y, r = (torch.rand(count, 1, 1, generator=generator) for _ in range(3))
        inside = (line - x) ** 2 + (line[:, None] - y) ** 2 < (0.02 + 0.1 * r) ** 2
        colour = torch.rand(count, 3, 1, 1, generator=generator)
        images = torch.where(inside[:, None], colour, images)
    images += 0.03 * torch.randn(images.shape, generator=generator)
    return images.clamp_(0, 1).mul_(255).to(torch.uint8)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(kind: str, severity: int, rounds: int, few: int, images: torch.Tensor) -> tuple[float, float]:
    """Seconds for a batch: ours, theirs."""
    generator = torch.Generator().manual_seed(0)
    arrays = [image.permute(1, 2, 0).contiguous().numpy() for image in images[:few]]

    def ours() -> object:
        return corrupt(images, kind, severity, generator=generator)

    def theirs() -> object:
        return [imagecorruptions.corrupt(array, severity, kind) for array in arrays]

    ours(), theirs()  # the first call builds matrices and compiles
    pairs = [(seconds(ours), seconds(theirs) * BATCH / few) for _ in range(rounds)]
    mine, other = zip(*pairs, strict=True)
    return statistics.median(mine), statistics.median(other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--oracle-images", type=int, default=4)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    images = pictures(BATCH)
    print(f"torch {torch.__version__}, 1 thread, {BATCH} images of {SIZE} pixels, {arguments.rounds} rounds, medians;")
    print(f"imagecorruptions on {arguments.oracle_images} images, scaled to {BATCH}")
    print(f"{'':20}{'ours, ms':>18}{'theirs, ms':>21}{'times faster':>21}")
    print(f"{'severity':20}" + "".join(f"{'':3}" + "".join(f"{s:6}" for s in SEVERITIES) for _ in range(3)))
    ratios = []
    for kind in arguments.kinds:
        pairs = [measure(kind, s, arguments.rounds, arguments.oracle_images, images) for s in SEVERITIES]
        faster = [other / mine for mine, other in pairs]
        ratios += faster
        columns = ["".join(f"{1e3 * mine:6.0f}" for mine, _ in pairs), "".join(f"{1e3 * o:6.0f}" for _, o in pairs)]
        columns.append("".join(f"{ratio:6.1f}" for ratio in faster))
        print(f"{kind:20}" + "".join(f"{'':3}{column}" for column in columns), flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"geometric mean {mean:.2f} times faster (to reach: 5), slowest {min(ratios):.2f} (to reach: 1)")


if __name__ == "__main__":
    main()
