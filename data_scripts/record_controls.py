"""The controls of lessons 08 and 10 over ten seeds: ftp/lab/recordings/WORLD/controls.json.gz.

    .venv/bin/python data_scripts/record_controls.py --runs FOLDER

FOLDER keeps one small file per finished run, so a recording that was stopped goes on where it was. About 15 s for each
run on one core.
"""

import argparse
from pathlib import Path

from ftp.lab.controls import train_controls
from ftp.lab.progress import Progress
from ftp.lab.recordings import SEEDS
from ftp.lab.recordings.controls import CONTROLS, pack, path_of
from ftp.lab.store import write_atomic


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the recorded controls of the lessons.")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=path_of())
    asked = parser.parse_args()
    made = []
    with Progress(len(CONTROLS) * len(SEEDS), "runs", every=1) as progress:
        for run in train_controls(CONTROLS, asked.runs, SEEDS, device="cpu"):
            made.append(run)
            progress.at(len(made))
    write_atomic(asked.out, pack(sorted(made, key=lambda run: (run["control"], run["seed"]))))
    print(f"{asked.out.name}: {len(made)} runs", flush=True)


if __name__ == "__main__":
    main()
