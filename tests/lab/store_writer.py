"""A process that uses the store and may be killed; started by test_store.py as `python store_writer.py DO PATH ...`."""

import json
import os
import sys
import time
from pathlib import Path

from ftp.lab.record import EvalEvent, LabError, Settings, StepEvent
from ftp.lab.store import Store, write_atomic

RUN = "0" * 16
BYTES = 100_000


def point(step: int, size: int = 2) -> StepEvent:
    return StepEvent(step, 1.0 / step, 0.1, (0.5,) * size, (0.25,) * size, (None,) * size)


def steps(path: str, first: str, count: str, *runs: str) -> None:
    """Append steps to each run, printing what is stored; now and then a whole file of equal bytes."""
    with Store(path) as store:
        for step in range(int(first), int(first) + int(count)):
            for run in runs:
                store.append(run, point(step))
            print(step, flush=True)
            if step % 20 == 0:
                write_atomic(store.weights_path(runs[0]), bytes([step % 256]) * BYTES)


def claim(path: str, go: str) -> None:
    """Wait for the sign, then claim at the same moment as the others."""
    with Store(path) as store:
        print("ready", flush=True)
        while not Path(go).exists():
            time.sleep(0.001)
        print(store.claim(RUN), flush=True)
        while Path(go).exists():  # a run whose process is gone can be claimed
            time.sleep(0.001)


def create(path: str, go: str) -> None:
    """Wait for the sign, then make the file at the same moment as the others."""
    print("ready", flush=True)
    while not Path(go).exists():
        time.sleep(0.001)
    with Store(path) as store:
        print(store.create(RUN, Settings()), flush=True)


def fork(path: str) -> None:
    """Use one Store object on both sides of a fork."""
    store = Store(path)
    store.create(RUN, Settings())
    child = os.fork()
    for step in range(1, 101):
        store.append(RUN, point(step + (1000 if child else 0)))
    if child == 0:  # it must have left the connection of its parent alone
        os._exit(0 if len(store._pool._inherited) == 1 else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(store.load(RUN).points))


def fill(path: str, how: str) -> None:
    """Write until there is no room, see what is left, make room, go on."""
    ballast = Path(path).with_name("ballast")
    with Store(path) as store:
        store.create(RUN, Settings())
        store.append(RUN, EvalEvent(0, {"accuracy": {"id": 50.0}}))
        write_atomic(store.weights_path(RUN), b"old")
        if how == "limit":
            import resource

            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        else:
            ballast.write_bytes(bytes(200_000))
        kept, told = 0, []
        try:
            while True:
                store.append(RUN, point(kept + 1, size=200))
                kept += 1
        except LabError as error:
            told.append(str(error))
        try:
            write_atomic(store.weights_path(RUN), bytes(2_000_000))
        except LabError as error:
            told.append(str(error))
        try:
            store.append(RUN, [point(step, size=200) for step in range(10_000, 10_100)])
        except LabError as error:
            told.append(str(error))
        record = store.load(RUN)
        files = sorted(entry.name for entry in store.weights_path(RUN).parent.iterdir())
        old = store.weights_path(RUN).read_text()
        if how == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        else:
            ballast.unlink()
        store.append(RUN, point(kept + 1))
        store.finish(RUN, "failed", told[0])
        later = store.load(RUN)
    found = {"told": told, "kept": kept, "points": len(record.points), "evals": len(record.evals), "files": files}
    print(json.dumps({**found, "old": old, "later": len(later.points), "error": later.error}))


def use(path: str) -> None:
    """Open a store and rename a run in it; print what a person is told."""
    try:
        with Store(path) as store:
            store.rename(RUN, "new")
        print("no word")
    except LabError as error:
        print(error)


if __name__ == "__main__":
    {f.__name__: f for f in (steps, claim, create, fork, fill, use)}[sys.argv[1]](*sys.argv[2:])
