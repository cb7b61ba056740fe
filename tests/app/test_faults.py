"""What happens when processes die and disks fill up: no step that was told is lost, and the rest goes on."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from servers import Server, folder, long, serving, short, until

from app.supervisor import Supervisor
from ftp.lab.record import LabError
from ftp.lab.run import identify
from ftp.lab.store import Store

pytestmark = pytest.mark.slow
SUBMIT = """
import json, sys
from app.supervisor import Supervisor
from ftp.lab.store import Store
from ftp.lab.record import settings_from_dict
supervisor = Supervisor(Store(sys.argv[1]), device="cpu")
supervisor.dispatcher.wake = lambda: None
print(supervisor.submit(settings_from_dict(json.loads(sys.argv[2]))))
"""


def points(store: Store, run: str) -> int:
    return len(store.tail(run, 0)["points"])


def promise(store: Path, settings) -> str:
    """Queue a run as a viewer of a server does; whichever server has the store takes it up."""
    command = [sys.executable, "-c", SUBMIT, str(store), json.dumps(settings.as_dict())]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def place() -> Iterator[Path]:
    with folder() as made:
        yield made


def test_ten_kills_of_a_worker_lose_nothing(tmp_path: Path) -> None:
    """SIGKILL while steps come in: all that a viewer was told of is there, and "interrupted" is told at once."""
    supervisor = Supervisor(Store(tmp_path / "runs.db"), slots=1, device="cpu")
    supervisor.start()
    settings, stored, waits = long(steps=600), 0, []  # a point every 4 steps, a checkpoint every 100
    run = identify(settings)
    try:
        for _ in range(10):
            supervisor.submit(settings)
            until(lambda: supervisor.busy().running == 1)
            until(
                lambda stored=stored: (
                    supervisor.store.status(run) == "running" and points(supervisor.store, run) > stored
                ),
                what="a step",
            )
            worker = next(task.worker for task in supervisor.queue.tasks if task.worker)
            seen = {point["step"] for point in supervisor.store.tail(run, 0)["points"]}
            os.kill(worker.pid, signal.SIGKILL)
            began = time.monotonic()
            until(lambda: supervisor.store.status(run) == "interrupted", what="interrupted")
            waits.append(time.monotonic() - began)
            steps = {point["step"] for point in supervisor.store.tail(run, 0)["points"]}
            assert seen <= steps
            stored = len(steps)
            assert supervisor.store.load(run).error.startswith("its worker ended without a word (signal 9)")
        print(f"interrupted was told after {max(waits):.2f} s at most")
        assert max(waits) < 30  # 5 on a machine of its supervisor
    finally:
        supervisor.close()


def test_a_killed_server_takes_its_workers_along_and_the_next_one_goes_on(place: Path) -> None:
    path = place / "runs.db"
    store = Store(path)
    with serving(path) as first:
        run = promise(path, long())
        waiting = promise(path, short(seed=5))
        until(lambda: points(store, run) > 0, what="the first point")
        assert first.json(f"/api/run/{waiting}/tail")["place"]["ahead"] == 1
        workers = first.workers()
        assert workers
        before = first.json(f"/api/run/{run}/tail")
        first.process.kill()
        began = time.monotonic()
        until(lambda: not any(_alive(worker) for worker in workers), what="the end of the workers")
        print(f"the workers were gone after {time.monotonic() - began:.2f} s")
    with serving(path) as second:
        after = second.json(f"/api/run/{run}/tail")
        assert after["points"][: len(before["points"])] == before["points"]
        until(lambda: second.json(f"/api/run/{run}/tail")["status"] == "interrupted", what="interrupted")
        until(lambda: second.json(f"/api/run/{waiting}/tail")["points"], what="the run that waited")


def _alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_two_servers_on_one_store(place: Path) -> None:
    path = place / "runs.db"
    store = Store(path)
    with serving(path) as one, serving(path) as two:
        runs = [promise(path, short(seed=seed)) for seed in range(3)]
        until(lambda: all(store.status(run) in ("done", "failed") for run in runs), what="all runs")
        assert [store.status(run) for run in runs] == ["done"] * 3
        tails = [[server.json(f"/api/run/{run}/tail") for run in runs] for server in (one, two)]
        for a, b in zip(*tails, strict=True):
            assert (a["points"], a["evals"], a["status"]) == (b["points"], b["evals"], b["status"])
            assert [point["step"] for point in a["points"]] == [1, 2, 3, 4, 5, 6]
        run = promise(path, long(steps=10_000, batch=64))  # minutes, on a fast machine too
        until(lambda: points(store, run) > 0, what="the first point")
        Supervisor(Store(path)).stop(run)
        until(lambda: one.json("/api/health")["running"] + two.json("/api/health")["running"] == 0, what="the stop")
        assert store.status(run) == "stopped"
        for server in (one, two):
            assert "Traceback" not in server.log()


@pytest.fixture
def small_disk(place: Path) -> Iterator[Path]:
    disk = place / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    done = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True)
    if not done or done.returncode:
        pytest.skip("NOT TESTED: a full disk; it needs the right to mount a small tmpfs")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_is_full_before_the_first_step_says_so_at_once(small_disk: Path) -> None:
    store = Store(small_disk / "runs.db")
    fill(small_disk / "filler")
    with pytest.raises(LabError) as error:
        Supervisor(store, device="cpu").submit(short())
    assert "is full" in str(error.value)
    (small_disk / "filler").unlink()
    assert store.runs() == []


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def test_a_full_disk_is_a_sentence_and_the_server_goes_on(small_disk: Path) -> None:
    path = small_disk / "runs.db"
    with serving(path) as server:
        run = promise(path, long())
        until(lambda: server.json(f"/api/run/{run}/tail")["points"], what="the first point")
        filler = small_disk / "filler"
        fill(filler)
        failed = until(lambda: _failed(server, run), what="the failure")
        assert "is full" in failed["error"] or "does not take" in failed["error"], failed["error"]
        assert failed["points"]
        assert server.json("/api/health")["status"] == "ok"
        filler.unlink()
        with Store(path) as store:
            until(lambda: store.status(run) == "failed", what="the failure in the store")
        assert "Traceback" not in server.log()


def _failed(server: Server, run: str) -> dict | None:
    tail = server.json(f"/api/run/{run}/tail")
    return tail if tail.get("status") == "failed" else None
