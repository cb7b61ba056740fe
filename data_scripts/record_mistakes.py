"""What recorded runs of a world with tasks take for what: ftp/lab/recordings/WORLD/mistakes.json.gz.

    .venv/bin/python data_scripts/record_mistakes.py WORLD --store runs.db

It needs the weights: a run with equal settings that the store holds is taken, another one is made there. Seed 0 alone.
"""

import argparse
import gzip
import json
from pathlib import Path

from ftp.lab import recordings
from ftp.lab.mistakes import mistakes
from ftp.lab.run import execute
from ftp.lab.store import Store, write_atomic


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what is mistaken for what after tasks in a row.")
    parser.add_argument("world", choices=recordings.worlds())
    parser.add_argument("--store", type=Path, required=True)
    asked = parser.parse_args()
    rows = []
    with Store(asked.store) as store:
        done = {run.settings: run for run in store.runs(world=asked.world, status="done", limit=None)}
        for recorded in recordings.recorded(asked.world, seed=0):
            run = done.get(recorded.settings)
            if run is None or not store.weights_path(run.run_id).exists():
                run = execute(recorded.settings, store)
            rows.append({**mistakes(run, store), "run_id": recorded.run_id})
            print(recorded.settings.method, flush=True)
    text = json.dumps({"runs": rows}, separators=(",", ":"))
    write_atomic(recordings.HOME / asked.world / "mistakes.json.gz", gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
