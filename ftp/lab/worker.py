"""One job about a run in a process of its own, for the dashboard: `python -m ftp.lab.worker --store FILE`.

It imports torch, says "ready", and waits for one line of JSON on its standard input, an order of `ftp.lab.jobs`:

    {"job": "run", "run_id": "..."}                          fine-tune a run that is in the store
    {"job": "microscope", "run_id": "...", "layer": "..."}   or another row of the table `JOBS`

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
from queue import SimpleQueue
from typing import Any

from ftp.lab.jobs import Order, do
from ftp.lab.record import LabError
from ftp.lab.store import Store

POLITE = 10  # nice: the page stays quick while a run has the rest of the core


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ftp.lab.worker", description="Run one job for the dashboard.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args(argv)
    if hasattr(os, "nice"):
        os.nice(POLITE)
    orders: SimpleQueue[bytes] = SimpleQueue()
    stop, over = threading.Event(), threading.Event()
    threading.Thread(target=listen, args=(orders, stop, over), daemon=True).start()
    import torch

    from ftp.lab import train  # noqa: F401  before "ready", so that a job starts at once

    torch.set_num_threads(1)  # two threads on a busy machine are slower than one
    say(status="ready")
    warm(orders)
    message = json.loads(orders.get())
    try:
        with Store(arguments.store) as store:
            order = Order.from_message(message)
            answer = {"status": do(order, store, device=arguments.device, stop=stop.is_set)}
    except LabError as error:
        answer = {"error": str(error)}
    over.set()  # from here on the exit code is that of the job, even if the parent closes the pipe now
    say(**answer)
    return 2 if "error" in answer else 0


def warm(orders: "SimpleQueue[bytes]") -> None:
    """While nobody asks for anything, read and compute what the first run would wait seconds for."""
    from ftp.lab import evaluate, worlds
    from ftp.lab.train import finetune

    for name in worlds.names():
        if worlds.world(name).offline and not worlds.load(name).missing():
            with contextlib.suppress(Exception):  # whoever asks for this world will be told
                run = finetune(name, device="cpu", watches=0, evaluate_at_end=False)
                for part in (run.advance, run.provenance, functools.partial(evaluate.prepare, worlds.load(name))):
                    if orders.empty():
                        part()


def listen(orders: "SimpleQueue[bytes]", stop: threading.Event, over: threading.Event) -> None:
    """Hand on the order, wait for "stop", or for the end of the parent: that is the end of a job that is not over."""
    with open(0, "rb", buffering=0, closefd=False) as lines:  # no buffer, so no lock is held at the exit
        for line in lines:
            if line.strip() == b"stop":
                stop.set()
            else:
                orders.put(line)
    if not over.is_set():
        os._exit(3)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    sys.exit(main())
