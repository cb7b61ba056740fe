"""Runs that survive: kill the process at any moment, go on, and end with the same bits."""

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.runs import equal, short
from processes import PATIENCE, started
from servers import until

from ftp.lab.jobs import JOBS
from ftp.lab.models import read_weights
from ftp.lab.record import LabError, result_of
from ftp.lab.run import execute, identify, model_of
from ftp.lab.store import Store

# it makes the run once for each line that it reads, in a process forked off for it: torch and the pictures, damaged and
# whole, are loaded but once
WRITER = """
import os, sys, torch
torch.set_num_threads(1)
from ftp.lab import evaluate, worlds
from ftp.lab.record import StepEvent
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
settings = resolve("digits", "ftp", {"steps": 30, "batch": 8})
say = lambda e: print(e.step, flush=True) if isinstance(e, StepEvent) else None
evaluate.final(*[worlds.of(settings).model(0)] * 2, worlds.of(settings), 0, ["fog"])
for path in iter(sys.stdin.readline, ""):
    child = os.fork()
    if not child:
        execute(settings, Store(path.strip()), device="cpu", kinds=["fog"], on_event=say)
        os._exit(0)
    print("child", child, flush=True)
    print("code", os.waitpid(child, 0)[1], flush=True)
"""


def test_a_run_is_kept_and_not_made_twice(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    record = execute(short("ftp"), store, device="cpu", kinds=["fog"])
    assert record.status == "done"
    assert record.run_id == identify(short("ftp"))
    assert [p.step for p in record.points] == [1, 2, 3, 4, 5, 6]
    assert record.result == result_of(record)
    assert set(record.result) == {
        *("run_id", "world", "method", "seed", "settings", "metric", "id", "val", "ood", "ood_avg"),
        *("corruptions", "corruption_avg", "scores", "lipschitz", "seconds_per_step", "constraints", "provenance"),
    }
    assert record.provenance["images"]["train"] == 3000
    assert record.provenance["weights_sha256"]
    assert record.result["provenance"]["seconds"] > 0
    assert not store.checkpoint_path(record.run_id).exists()
    again = execute(short("ftp"), store, device="cpu", kinds=["fog"])  # out of the store, not made again
    assert (again.points, again.ended) == (record.points, record.ended)
    kept = read_weights(store.weights_path(record.run_id))
    assert equal(dict(model_of(record, store).state_dict()), kept)


def test_more_corruptions_are_added_to_a_finished_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    first = execute(short("ftp"), store, device="cpu", kinds=["fog"])
    more = execute(short("ftp"), store, device="cpu", kinds=["fog", "contrast"])
    assert more.status == "done"
    assert more.final is not None
    assert first.final is not None
    assert set(more.final.corruptions) == {"fog", "contrast"}
    assert more.final.corruptions["fog"] == first.final.corruptions["fog"]
    assert more.result is not None
    assert set(more.result["corruptions"]) == {"fog", "contrast"}


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    asked = iter([False] * 3 + [True])
    stopped = execute(short("ftp"), store, device="cpu", kinds=["fog"], stop=lambda: next(asked))
    assert stopped.status == "stopped"
    assert [p.step for p in stopped.points] == [1, 2, 3]
    done = execute(short("ftp"), store, device="cpu", kinds=["fog"])
    assert [p.step for p in done.points] == [1, 2, 3, 4, 5, 6]
    whole = execute(short("ftp"), Store(tmp_path / "other.db"), device="cpu", kinds=["fog"])
    same = [(p.loss, p.gamma, p.distance) for p in done.points]
    assert same == [(p.loss, p.gamma, p.distance) for p in whole.points]


def test_a_failed_run_says_why_and_can_be_tried_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    bad = short("finetune", lr=100.0, weight_decay=10.0, steps=40)
    with pytest.raises(LabError):
        execute(bad, store, device="cpu")
    record = store.load(identify(bad))
    assert record.status == "failed"
    assert record.error.startswith("the loss is ")


def test_two_processes_do_not_make_one_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    run = identify(short("ftp"))
    store.create(run, short("ftp"))
    assert store.claim(run)
    with pytest.raises(LabError) as error:
        execute(short("ftp"), Store(tmp_path / "runs.db"), device="cpu")
    assert "is being made by another process" in str(error.value)


@pytest.mark.slow
def test_25_kills_lose_nothing_and_the_bits_are_the_same(tmp_path: Path) -> None:
    """SIGKILL at 25 random moments; every step that was acknowledged is in the store, and the end is exact."""
    chance = random.Random(0)
    path, whole = tmp_path / "runs.db", tmp_path / "whole.db"
    with started([sys.executable, "-c", WRITER], stdin=subprocess.PIPE) as (process,):
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")

        def steps_and_code(store: Path, kill_after: int | None = None) -> tuple[set[int], int]:
            """The steps that a process acknowledged, killed soon after so many of them, and how it ended."""
            send(process, str(store))
            child = int(next(lines).removeprefix("child "))
            acknowledged: set[int] = set()
            for line in itertools.chain([""] if kill_after == 0 else [], lines):
                if line.startswith("code"):
                    return acknowledged, int(line.split()[1])
                acknowledged |= {int(word) for word in line.split()}
                if len(acknowledged) == kill_after:
                    time.sleep(chance.uniform(0, 0.05 if acknowledged else 0.6))
                    os.kill(child, signal.SIGKILL)  # nobody has waited for it yet, so the id is still its own
                    kill_after = None
            raise AssertionError("the writer is gone")

        assert steps_and_code(whole) == (set(range(1, 31)), 0)
        for kill in range(25):
            # at any moment of its start, between two of its checkpoints (every five steps), and at last in its end
            acknowledged, code = steps_and_code(path, chance.choice((0, 1, 2, 4, 6) if kill < 20 else (6, 11)))
            assert code in (0, signal.SIGKILL)
            with Store(path) as store:
                for run in store.runs():
                    assert acknowledged <= {p.step for p in store.load(run.run_id).points}
                store.sweep_stale(0.0)  # the next process need not wait until the heartbeat is old
        assert steps_and_code(path)[1] == 0
    with Store(path) as store, Store(whole) as other:
        (row,) = store.runs()
        run = row.run_id
        record, wanted = store.load(run), other.load(run)
        assert [(p.step, p.loss, p.gamma, p.distance) for p in record.points] == [
            (p.step, p.loss, p.gamma, p.distance) for p in wanted.points
        ]
        assert store.weights_path(run).read_bytes() == other.weights_path(run).read_bytes()


@contextlib.contextmanager
def worker(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker that has said it is ready."""
    command = [sys.executable, "-m", "ftp.lab.worker", "--store", str(path), "--device", "cpu"]
    with started(command, stdin=subprocess.PIPE) as (process,):
        assert answer(process) == {"status": "ready"}
        yield process


def answer(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the worker left without a word, with code {process.wait()}"
    words: dict[str, str] = json.loads(line)
    return words


def send(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


@pytest.mark.slow
def test_the_worker_runs_stops_and_dies_with_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    settings = short("ftp", steps=20_000, batch=2)  # minutes: it cannot end before it is stopped
    run = identify(settings)
    order = json.dumps({"job": "run", "run_id": run})
    with Store(path) as store:
        store.create(run, settings)
        with worker(path) as process:
            send(process, order)
            until(lambda: process.poll() is not None or store.tail(run, 0)["points"], what="the first point")
            send(process, "stop")
            assert answer(process) == {"status": "stopped"}
            assert process.wait(PATIENCE) == 0
        before = len(store.load(run).points)
        assert before > 0
        with worker(path) as process:  # an order that comes after the stop does not revive the run
            send(process, order)
            assert answer(process) == {"status": "stopped"}
            assert process.wait(PATIENCE) == 0
        assert len(store.load(run).points) == before
        store.finish(run, "queued")  # asked for again, as the dashboard's server says it
        with worker(path) as process:
            send(process, order)
            until(lambda: process.poll() is not None or len(store.load(run).points) > before, what="the next point")
            assert process.stdin is not None
            process.stdin.close()  # what the parent's death looks like from inside
            assert process.wait(PATIENCE) == 3


@pytest.mark.slow
def test_the_worker_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(path) as store:
        store.create("0" * 16, short("ftp"))  # the id of a run that other code would make
        with worker(path) as process:
            send(process, json.dumps({"job": "run", "run_id": "0" * 16}))
            assert answer(process) == {
                "error": "the code has changed since this run was queued; start the server again, and press Train"
            }
            assert process.wait(PATIENCE) == 2
        assert store.status("0" * 16) == "queued"
    with worker(path) as process:
        send(process, json.dumps({"job": "dance", "run_id": "0" * 16}))
        assert answer(process) == {"error": f"job is 'dance'; it must be one of {', '.join(JOBS)}"}
        assert process.wait(PATIENCE) == 2
