"""What `from ftp import SGDP, AdamP` adds to `import torch`, in fresh processes that take turns.

python benchmarks/imports.py [--rounds 9]
"""

import argparse
import statistics
import subprocess
import sys
import time

CANDIDATES = {"import torch": "import torch", "and ftp": "import torch; from ftp import SGDP, AdamP, HyperSGD"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    for _ in range(rounds + 1):
        for name, code in CANDIDATES.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times[name].append(time.perf_counter() - start)
    base = statistics.median(times["import torch"][1:])  # the first round warms the disk
    print(f"\nimports, {rounds} rounds, medians")
    for name, record in times.items():
        print(f"{name:16}{statistics.median(record[1:]):9.3f} s{statistics.median(record[1:]) / base:8.3f}")


if __name__ == "__main__":
    main()
