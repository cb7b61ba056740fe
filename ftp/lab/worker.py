"""One run in a process of its own, for the dashboard: `python -m ftp.lab.worker --store FILE`.

It imports torch, says "ready", and waits for one line of JSON on its standard input:

    {"job": "run", "settings": {...}}            fine-tune, every event into the store; "run_id", if given, is checked
    {"job": "wise", "run_id": "..."}             the line from W0 to W, kept beside the run's weights
    {"job": "corruptions", "run_id": "..."}      add all 19 kinds to a finished run
    {"job": "microscope", "run_id": "...", "layer": "..."}   single steps of one layer, kept beside the weights

Later lines: "stop" ends the run after its present step. When the standard input closes, the parent is gone, and the
worker is gone too: no orphan keeps a core busy. It answers in lines of JSON: {"status": ...} or {"error": sentence}.
"""

import argparse
import contextlib
import functools
import json
import os
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
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
    jobs: SimpleQueue[bytes] = SimpleQueue()
    stop, over = threading.Event(), threading.Event()
    threading.Thread(target=listen, args=(jobs, stop, over), daemon=True).start()
    import torch

    from ftp.lab import train  # noqa: F401  before "ready", so that a job starts at once

    torch.set_num_threads(1)  # two threads on a busy machine are slower than one
    say(status="ready")
    warm(jobs)
    job = json.loads(jobs.get())
    try:
        with Store(asked.store) as store:
            answer = {"status": work(job, store, asked.device, stop)}
    except LabError as error:
        answer = {"error": str(error)}
    over.set()  # from here on the exit code is that of the job, even if the parent closes the pipe now
    say(**answer)
    return 2 if "error" in answer else 0


def warm(jobs: "SimpleQueue[bytes]") -> None:
    """While nobody asks for anything, read and compute what the first run would wait seconds for."""
    from ftp.lab import evaluate, worlds
    from ftp.lab.train import finetune

    for name in worlds.names():
        if worlds.info(name).offline:
            with contextlib.suppress(Exception):  # whoever asks for this world will be told
                run = finetune(name, device="cpu", watches=0, evaluate_at_end=False)
                for part in (run.advance, run.provenance, functools.partial(evaluate.prepare, name)):
                    if jobs.empty():
                        part()


def listen(jobs: "SimpleQueue[bytes]", stop: threading.Event, over: threading.Event) -> None:
    """Hand on a job, wait for "stop", or for the end of the parent: that is the end of a job that is not over."""
    with open(0, "rb", buffering=0, closefd=False) as lines:  # no buffer, so no lock is held at the exit
        for line in lines:
            if line.strip() == b"stop":
                stop.set()
            else:
                jobs.put(line)
    if not over.is_set():
        os._exit(3)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def work(job: dict[str, Any], store: Store, device: str, stop: threading.Event) -> str:
    """Do one job; the status of the run afterwards."""
    from ftp.lab.run import execute, identify

    if job.get("job") == "run":
        settings = settings_from_dict(job["settings"])
        if job.get("run_id") not in (None, identify(settings)):  # else it would be made under an id that nobody watches
            raise LabError("the code has changed since the server was started; start the server again")
        return execute(settings, store, device=device, stop=stop.is_set).status
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
    if job.get("job") == "microscope":
        from ftp.lab.microscope import trace

        layer = str(job.get("layer", ""))
        seen = trace(record.settings, layer, device=device, stop=stop.is_set)
        write_atomic(microscope_path(store, record.run_id, layer), json.dumps(seen).encode())
        return "done"
    raise LabError(f"job is {job.get('job')!r}; it must be run, wise, corruptions or microscope")


def wise_path(store: Store, record: RunRecord) -> Path:
    """Where the WiSE curve of a run is kept."""
    return store.weights_path(record.run_id).with_suffix(".wise.json")


def microscope_path(store: Store, run_id: str, layer: str) -> Path:
    """Where the steps of one layer of a run are kept; `layer` was found among the run's layers before."""
    return store.weights_path(run_id).with_suffix(f".{layer}.microscope.json")


if __name__ == "__main__":
    sys.exit(main())
