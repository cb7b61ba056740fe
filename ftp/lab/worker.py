"""One run in a process of its own, for the dashboard: `python -m ftp.lab.worker --store FILE`.

It imports torch, says "ready", and waits for one line of JSON on its standard input:

    {"job": "run", "settings": {...}}            fine-tune, every event into the store
    {"job": "wise", "run_id": "..."}             the line from W0 to W, kept beside the run's weights
    {"job": "corruptions", "run_id": "..."}      add all 19 kinds to a finished run

Later lines: "stop" ends the run after its present step. When the standard input closes, the parent is gone, and the
worker is gone too: no orphan keeps a core busy. It answers in lines of JSON: {"status": ...} or {"error": sentence}.
"""

import argparse
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError, RunRecord, settings_from_dict
from ftp.lab.store import Store, write_atomic

POLITE = 10  # nice: the page stays quick while a run has the rest of the core


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ftp.lab.worker", description="Run one job for the dashboard.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args(argv)
    if hasattr(os, "nice"):
        os.nice(POLITE)
    import torch

    from ftp.lab import train  # noqa: F401  before "ready", so that a job starts at once

    torch.set_num_threads(1)  # two threads on a busy machine are slower than one
    say(status="ready")
    first = sys.stdin.readline()
    if not first:
        return 0
    stop = threading.Event()
    threading.Thread(target=listen, args=(stop,), daemon=True).start()
    try:
        with Store(asked.store) as store:
            say(status=work(json.loads(first), store, asked.device, stop))
    except LabError as error:
        say(error=str(error))
        return 2
    return 0


def listen(stop: threading.Event) -> None:
    """Wait for "stop", or for the end of the parent, which is the end of this process."""
    for line in sys.stdin:
        if line.strip() == "stop":
            stop.set()
    os._exit(3)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def work(job: dict[str, Any], store: Store, device: str, stop: threading.Event) -> str:
    """Do one job; the status of the run afterwards."""
    from ftp.lab.run import execute

    if job.get("job") == "run":
        return execute(settings_from_dict(job["settings"]), store, device=device, stop=stop.is_set).status
    record = store.load(job.get("run_id", ""))
    if job.get("job") == "wise":
        from ftp.lab.wise import ALPHAS, wise

        finer = sorted({*ALPHAS, *(round(0.05 * i, 2) for i in range(21))})
        curve = wise(record, store, finer, device=device)
        write_atomic(wise_path(store, record), json.dumps(curve.__dict__).encode())
        return "done"
    if job.get("job") == "corruptions":
        from ftp.lab.corruptions import KINDS

        return execute(record.settings, store, device=device, kinds=KINDS).status
    raise LabError(f"job is {job.get('job')!r}; it must be run, wise or corruptions")


def wise_path(store: Store, record: RunRecord) -> Path:
    """Where the WiSE curve of a run is kept."""
    return store.weights_path(record.run_id).with_suffix(".wise.json")


if __name__ == "__main__":
    sys.exit(main())
