"""Threads and processes at one store: nothing is lost, one claims, kills do no harm."""

import os
import pickle
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab.stores import RUN, output, outputs, point, sound, told, writer
from processes import started

from ftp.lab.record import Settings
from ftp.lab.store import Store, database


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "runs.db") as opened:
        opened.create(RUN, Settings(), name="first")
        yield opened


def test_threads_share_a_store(store: Store) -> None:
    faults: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(number * 100 + 1, number * 100 + 31):
                store.append(RUN, point(step))
                store.tail(RUN, step - 1)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(store.load(RUN).points) == 180
    assert len(store._pool._idle) <= 6


def test_a_store_goes_to_other_processes_and_closes(store: Store) -> None:
    with pickle.loads(pickle.dumps(store)) as again:
        assert again.load(RUN).name == "first"
    assert told(again.load, RUN) == f"the store {store.path} is closed; open it again with Store({str(store.path)!r})"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_store_survives_a_fork(tmp_path: Path) -> None:
    assert outputs(writer("fork", tmp_path / "runs.db")) == ["0 200"]
    assert sound(tmp_path / "runs.db")


def test_processes_write_at_once(store: Store) -> None:
    own = [f"{number:016x}" for number in (2, 3, 4)]
    for number, run in enumerate(own):
        store.create(run, Settings(seed=number + 1))
    said = outputs(*(writer("steps", store.path, 1 + 1000 * n, 100, run, RUN) for n, run in enumerate(own)))
    assert [len(lines.splitlines()) for lines in said] == [100] * 3
    for number, run in enumerate(own):
        assert [e.step for e in store.load(run).points] == list(range(1 + 1000 * number, 101 + 1000 * number))
    assert len(store.load(RUN).points) == 300
    assert sound(store.path)


@pytest.mark.parametrize("what", ["claim", "create"])
def test_of_several_processes_one_wins(tmp_path: Path, what: str) -> None:
    path, go = tmp_path / "runs.db", tmp_path / "go"
    if what == "claim":
        with Store(path) as store:
            store.create(RUN, Settings())
    with started(*[writer(what, path, go)] * 3, stderr=subprocess.PIPE) as processes:
        assert [process.stdout.readline() for process in processes if process.stdout] == ["ready\n"] * 3
        go.touch()
        said = [process.stdout.readline().strip() for process in processes if process.stdout]
        assert sorted(said) == ["False", "False", "True"]
        go.unlink()
        assert [output(process) for process in processes] == [""] * 3
    with Store(path) as store:  # who had it is gone, so nobody has to wait for a missing sign of life
        assert store.claim(RUN)


@pytest.mark.slow
def test_25_kills_lose_nothing_that_was_acknowledged(store: Store) -> None:
    chance = random.Random(0)
    acknowledged: set[int] = set()
    for kill in range(25):
        with started(writer("steps", store.path, kill * 10_000 + 1, 9_999, RUN)) as (process,):
            assert process.stdout is not None
            # some at any moment of its start, most in the midst of writing
            seen = [process.stdout.readline() for _ in range(chance.choice((0, 1, 20, 40, 60)))]
            time.sleep(chance.uniform(0, 0.02 if seen else 0.4))
            process.kill()
            seen += process.stdout.readlines()
        acknowledged |= {int(line) for line in seen if line.endswith("\n")}
        assert sound(store.path)
        weights = store.weights_path(RUN)
        assert not weights.exists() or len(set(weights.read_bytes())) == 1
        assert not weights.exists() or weights.stat().st_size == 100_000
        with store._reading() as db:
            kept = {row["step"] for row in db.execute("SELECT step FROM points WHERE run_id = ?", (RUN,))}
        assert acknowledged - kept == set()
    assert len(acknowledged) > 500


def test_wal_where_possible(store: Store) -> None:
    with store._reading() as db:
        asked = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "busy_timeout")]
    assert asked == ["wal", 1, 5000]


def test_opening_waits_for_who_holds_the_file(tmp_path: Path) -> None:
    Store(tmp_path / "runs.db").close()
    holder = sqlite3.connect(tmp_path / "runs.db", isolation_level=None, check_same_thread=False)
    assert holder.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    holder.execute("BEGIN IMMEDIATE")  # as another process does that makes the file at the same moment
    release = threading.Timer(0.2, holder.close)
    release.start()
    Store(tmp_path / "runs.db").close()
    release.join()


def test_a_locked_store(store: Store, monkeypatch: Any) -> None:
    holder = sqlite3.connect(store.path)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    with Store(store.path) as second:
        assert told(second.append, RUN, point(1)) == (
            f"{store.path} was held by another program for 0.1 s (database is locked); close that one, or try again"
        )
        assert second.load(RUN).points == ()  # reading goes on
        holder.close()
        second.append(RUN, point(1))


def test_the_store_needs_no_torch() -> None:
    code = "import sys, ftp.lab.store; print(sorted({'torch', 'numpy', 'plotly', 'streamlit'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
