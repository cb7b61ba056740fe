"""Runs that survive: kill the process at any moment, go on, and end with the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from lab.runs import equal, short

from ftp.lab.models import read_weights
from ftp.lab.record import LabError, StepEvent, result_of
from ftp.lab.run import execute, identify, model_of
from ftp.lab.store import Store

WRITER = """
import sys, torch
torch.set_num_threads(1)
from ftp.lab.record import StepEvent
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
settings = resolve("digits", "ftp", {"steps": 30, "batch": 8})
print("ready", flush=True)
say = lambda e: print(e.step, flush=True) if isinstance(e, StepEvent) else None
execute(settings, Store(sys.argv[1]), device="cpu", kinds=["fog"], on_event=say)
print("end", flush=True)
"""


def test_a_run_is_kept_and_not_made_twice(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    record = execute(short("ftp"), store, device="cpu", kinds=["fog"])
    assert record.status == "done"
    assert record.run_id == identify(short("ftp"))
    assert [p.step for p in record.points] == [1, 2, 3, 4, 5, 6]
    assert record.result == result_of(record)
    assert set(record.result) == {
        *("run_id", "world", "method", "seed", "settings", "id", "val", "ood", "ood_avg", "corruptions"),
        *("corruption_avg", "ece", "lipschitz", "seconds_per_step", "constraints", "provenance"),
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
    g = torch.Generator().manual_seed(0)
    path = tmp_path / "runs.db"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path / "whole.db")], env=environment, capture_output=True, text=True
    )
    assert whole.stdout.split()[-1] == "end", whole.stderr
    run = ""
    kills, ended = 0, False
    while kills < 25:
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        wait = 3.0 * float(torch.rand((), generator=g)) ** 2
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in process.communicate()[0].split() if line.isdigit()]
        kills += 1
        with Store(path) as store:
            rows = store.runs()
            if not rows:
                continue
            run = rows[0].run_id
            steps = {p.step for p in store.load(run).points}
            assert set(acknowledged) <= steps
            ended = store.status(run) == "done"
            # the next process need not wait until the heartbeat is old
            if not ended:
                store.sweep_stale(0.0)
    last = subprocess.run([sys.executable, "-c", WRITER, str(path)], env=environment, capture_output=True, text=True)
    assert last.stdout.split()[-1] == "end", last.stderr
    with Store(path) as store, Store(tmp_path / "whole.db") as other:
        record, wanted = store.load(run), other.load(run)
        assert [(p.step, p.loss, p.gamma, p.distance) for p in record.points] == [
            (p.step, p.loss, p.gamma, p.distance) for p in wanted.points
        ]
        assert store.weights_path(run).read_bytes() == other.weights_path(run).read_bytes()


@pytest.mark.slow
def test_the_worker_runs_stops_and_dies_with_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    def begin() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "ftp.lab.worker", "--store", str(path), "--device", "cpu"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"status": "ready"}
        return process

    def send(process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()

    settings = short("ftp", steps=2000)
    run = identify(settings)
    worker = begin()
    send(worker, json.dumps({"job": "run", "settings": settings.as_dict()}))
    store = Store(path)
    deadline = time.time() + 300
    while time.time() < deadline and not (store.runs() and store.tail(run, 0)["points"]):
        time.sleep(0.1)
    send(worker, "stop")
    assert worker.stdout is not None
    assert json.loads(worker.stdout.readline()) == {"status": "stopped"}
    worker.communicate(timeout=300)
    kept = len(store.load(run).points)
    assert kept > 0
    worker = begin()
    send(worker, json.dumps({"job": "run", "settings": settings.as_dict()}))
    deadline = time.time() + 300
    while time.time() < deadline and len(store.load(run).points) <= kept:
        time.sleep(0.1)
    assert worker.stdin is not None
    worker.stdin.close()  # what the parent's death looks like from inside
    assert worker.wait(timeout=300) == 3
    assert worker.stdout is not None
    worker.stdout.close()
    worker = begin()
    send(worker, json.dumps({"job": "run", "run_id": "0" * 16, "settings": settings.as_dict()}))
    assert worker.stdout is not None
    assert json.loads(worker.stdout.readline())["error"].startswith("the code has changed since the server was started")
    worker.communicate(timeout=300)
    assert worker.returncode == 2
    worker = begin()
    send(worker, json.dumps({"job": "dance", "run_id": run}))
    assert worker.stdout is not None
    assert json.loads(worker.stdout.readline()) == {
        "error": "job is 'dance'; it must be run, wise, corruptions or microscope"
    }
    worker.communicate(timeout=300)
    assert worker.returncode == 2


def test_step_events_are_what_the_store_gives_back(tmp_path: Path) -> None:
    seen: list[StepEvent] = []
    store = Store(tmp_path / "runs.db")
    record = execute(
        short("tpgm"),
        store,
        device="cpu",
        kinds=["fog"],
        on_event=lambda e: seen.append(e),  # type: ignore[arg-type]
    )
    assert tuple(e for e in seen if isinstance(e, StepEvent)) == record.points
