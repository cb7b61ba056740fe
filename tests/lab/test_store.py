"""The store: the life of a run from its queue to the bin, and how it is found and watched."""

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab.stores import ABSENT, FINAL, LAYERS, MEASURES, OTHER, RUN, SMALL, START, finished, point, told

from ftp.lab.record import Settings, result_of
from ftp.lab.store import STALE_SECONDS, Store, TakenError, default_path, write_atomic


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    with Store(tmp_path / "runs.db", clock=clock) as opened:
        opened.create(RUN, Settings(), name="first")
        yield opened


def test_a_finished_run_comes_back_whole(store: Store, clock: Clock) -> None:
    record = finished(store)
    assert record.settings == Settings()
    assert (record.name, record.status, record.error) == ("first", "done", "")
    assert (record.layers, record.provenance) == (LAYERS, START.provenance)
    assert (record.measures, record.phases) == (MEASURES, ("",))
    assert (record.created, record.started, record.ended, record.heartbeat) == (clock.now,) * 4
    assert record.evals == (SMALL, FINAL)
    assert record.final == FINAL
    assert record.points[0] == point(2)
    assert math.isnan(record.points[1].loss)
    assert record.result == json.loads(json.dumps(result_of(record)))
    assert record.result is not None
    assert record.result["ood_avg"] == 75.0


def test_equal_runs_are_one(store: Store) -> None:
    store.append(RUN, point(1))
    assert store.create(RUN, Settings(), name="second") is False
    assert (store.load(RUN).name, len(store.load(RUN).points)) == ("first", 1)
    assert told(store.create, RUN, Settings(seed=1)) == (
        f"run {RUN} is there with other settings; make ids with ftp.lab.record.run_id"
    )


def test_a_step_written_again_replaces_itself(store: Store) -> None:
    for loss in (1.0, 2.0):
        store.append(RUN, [point(2, loss), SMALL])
        store.append(RUN, point(4, loss))
        store.append(RUN, [FINAL, replace(SMALL, step=4)])
    record = store.load(RUN)
    assert [(e.step, e.loss) for e in record.points] == [(2, 2.0), (4, 2.0)]
    assert record.evals == (SMALL, replace(SMALL, step=4), FINAL)  # a small and the final one may share a step


def test_a_list_is_stored_whole_or_not_at_all(store: Store) -> None:
    with pytest.raises(OverflowError):
        store.append(RUN, [point(1), point(2**63)])
    assert store.load(RUN).points == ()


def test_tail_returns_only_what_is_new(store: Store) -> None:
    store.start(RUN, START)
    first = store.tail(RUN, 0)
    assert (first["layers"], first["points"], first["evals"], first["step"]) == (list(LAYERS), [], [], 0)
    store.append(RUN, [point(2, math.nan), point(4)])
    second = store.tail(RUN, 0)
    assert ([e["step"] for e in second["points"]], second["points"][0]["loss"], second["step"]) == ([2, 4], None, 4)
    store.append(RUN, FINAL)  # the evaluation of step 4 comes after its point
    store.append(RUN, SMALL)  # and one that the page has
    third = store.tail(RUN, second["step"])
    assert ([e["step"] for e in third["evals"]], third["points"], third["step"]) == ([4], [], 4)
    assert "layers" not in third
    assert (first["measures"], "measures" in third) == (MEASURES.as_dict(), False)
    assert third["evals"][0]["summary"] == {"home": 91.5, "shift_mean": 75.0}  # of FINAL
    store.finish(RUN, "stopped")
    assert store.tail(RUN, 4)["status"] == "stopped"
    assert json.loads(json.dumps(third, allow_nan=False)) == third
    assert store.tail(RUN, 10**30)["points"] == []


def test_runs_are_found_newest_first_and_without_points(store: Store, clock: Clock) -> None:
    for number, other in enumerate(
        ({"world": "digits"}, {"world": "digits", "method": "l2_sp"}, {"world": "other"}), start=1
    ):
        clock.now += 1
        finished(store, f"{number:016x}", **other)
    store.rename("1".zfill(16), "Größe 5%")
    store.append(RUN, point(1))

    def ids(**given: Any) -> list[int]:
        return [int(run.run_id, 16) for run in store.runs(**given)]

    assert ids() == [3, 2, 1, 0]
    assert ids(limit=2) == [3, 2]
    assert ids(limit=None) == [3, 2, 1, 0]
    assert ids(world="digits") == [2, 1]
    assert ids(world="digits", method="l2_sp") == [2]
    assert ids(status="done") == [3, 2, 1]
    assert ids(text="GRÖSSE") == [1]
    assert ids(text="5%") == [1]  # no pattern, just text
    assert ids(text="L2_sp") == [2]
    assert ids(text="' OR 1=1 --") == []
    assert [run.points for run in store.runs()] == [()] * 4
    assert [len(run.evals) for run in store.runs()] == [0] * 4
    assert [len(run.evals) for run in store.runs(evals=True)] == [2, 2, 2, 0]
    assert store.runs()[0].result is not None
    assert told(store.runs, status="ready") == (
        "there is no status 'ready'; write one of queued, running, done, stopped, failed, interrupted"
    )


def test_names_are_text(store: Store) -> None:
    name = "![x](https://example.org/a.png) <b>'; DROP TABLE runs; --"
    store.rename(RUN, name)
    assert store.load(RUN).name == name
    assert told(store.rename, RUN, "two\nlines") == (
        "'two\\nlines' is no name for a run; write one line of up to 100 letters"
    )
    assert told(store.rename, RUN, "x" * 101).endswith("write one line of up to 100 letters")
    assert store.load(RUN).name == name


@pytest.mark.parametrize("bad", ["../../etc/passwd", "", "0" * 15, "0" * 17, "0" * 16 + "\n", "G" * 16, "A" * 16, None])
def test_ids_that_are_none(store: Store, bad: Any) -> None:
    calls: list[Any] = [store.load, store.status, store.claim, store.beat, store.delete, store.undelete, store.export]
    calls += [lambda run: store.append(run, point(1)), lambda run: store.finish(run, "done")]
    calls += [lambda run: store.start(run, START), lambda run: store.tail(run, 0), lambda run: store.rename(run, "x")]
    for call in calls:
        assert told(call, ABSENT) == f"there is no run {ABSENT} in this store; `ftp-lab runs` shows the ones there are"
    for call in (*calls, store.weights_path, store.checkpoint_path, lambda run: store.create(run, Settings())):
        assert told(call, bad) == f"{bad!r} is no run id; an id is 16 digits of 0-9 and a-f, see `ftp-lab runs`"


def test_a_run_ends_once(store: Store, clock: Clock) -> None:
    assert told(store.finish, RUN, "running") == (
        "a run cannot end as 'running'; write one of done, stopped, failed, interrupted, queued"
    )
    assert told(store.finish, RUN, "done") == (
        f"run {RUN} is queued and has no final evaluation; run it to its end first"
    )
    assert store.status(RUN) == "queued"
    store.finish(RUN, "failed", "no file \udcff")
    store.finish(RUN, "interrupted")  # the supervisor saw only that the process is gone
    assert (store.status(RUN), store.load(RUN).error) == ("failed", "no file ?")
    assert told(store.start, RUN, START) == f"run {RUN} is failed; claim it before you start it"
    finished(store)
    store.finish(RUN, "failed", "late")
    assert (store.status(RUN), store.load(RUN).error) == ("done", "")
    assert store.claim(RUN) is False
    clock.now += 60
    store.append(RUN, replace(FINAL, corruptions={**FINAL.corruptions, "snow": (1.0,) * 5}))
    store.finish(RUN, "done")  # evaluated further: a new result
    result = store.load(RUN).result
    assert result is not None
    assert store.load(RUN).ended == clock.now - 60
    assert list(result["corruptions"]) == ["fog", "snow"]


def test_a_run_without_a_sign_of_life_is_interrupted(store: Store, clock: Clock) -> None:
    assert store.claim(RUN)
    store.append(RUN, [point(2), SMALL])
    clock.now += STALE_SECONDS - 1
    assert store.beat(RUN)
    clock.now += STALE_SECONDS - 1
    assert store.sweep_stale() == []
    assert store.claim(RUN) is False
    clock.now += 2
    assert store.sweep_stale() == [RUN]
    record = store.load(RUN)
    assert (record.status, record.points, record.evals) == ("interrupted", (point(2),), (SMALL,))
    assert store.beat(RUN)  # the machine had only slept
    assert store.status(RUN) == "running"
    store.finish(RUN, "interrupted")
    assert store.beat(RUN) is False  # a last beat after the end does not bring it back
    assert store.status(RUN) == "interrupted"


def test_a_clock_that_was_set_back_does_not_keep_a_dead_run_alive(store: Store, clock: Clock) -> None:
    assert store.claim(RUN)
    clock.now -= 3600
    assert store.sweep_stale() == [RUN]


def test_a_stale_run_can_be_claimed_and_the_sleeper_is_told(store: Store, clock: Clock, monkeypatch: Any) -> None:
    assert store.claim(RUN)
    clock.now += STALE_SECONDS + 1
    monkeypatch.setattr("ftp.lab.store._owner", lambda: "elsewhere:1")
    assert store.claim(RUN)
    monkeypatch.undo()
    assert store.beat(RUN) is False
    with pytest.raises(TakenError) as caught:
        store.append(RUN, point(2))
    assert str(caught.value) == f"run {RUN} is now made by another process (elsewhere:1); this one leaves it"
    with pytest.raises(TakenError):
        store.finish(RUN, "failed", "taken over")
    with Store(store.path) as supervisor:
        supervisor.finish(RUN, "interrupted")
    assert (store.status(RUN), store.load(RUN).points) == ("interrupted", ())


def test_the_bin(store: Store, clock: Clock) -> None:
    finished(store)
    store.create(OTHER, Settings(seed=1))
    for path in (store.weights_path(RUN), store.checkpoint_path(RUN), store.weights_path(OTHER)):
        write_atomic(path, b"weights")
    assert store.weights_path(RUN) == store.path.parent / "runs-weights" / f"{RUN}.safetensors"
    store.delete(RUN)
    assert [run.run_id for run in store.runs()] == [OTHER]
    assert [run.run_id for run in store.runs(deleted=True)] == [RUN]
    sentence = f"run {RUN} was deleted; take it out of the bin first, with Store.undelete"
    assert [told(store.load, RUN), told(store.tail, RUN, 0), told(store.export, RUN)] == [sentence] * 3
    store.undelete(RUN)
    assert len(store.load(RUN).points) == 2
    store.delete(RUN)
    assert store.create(RUN, Settings()) is False  # who asks for it again takes it out of the bin
    assert store.load(RUN).status == "done"
    store.delete(RUN)
    clock.now += 60
    assert store.purge(61) == []
    assert store.purge(60) == [RUN]
    assert told(store.load, RUN).startswith("there is no run")
    assert sorted(path.name for path in store.weights_path(RUN).parent.iterdir()) == [f"{OTHER}.safetensors"]
    with store._reading() as db:
        assert [db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("points", "evaluations")] == [0, 0]


def test_a_running_run_is_not_deleted_and_a_deleted_one_not_claimed(store: Store) -> None:
    assert store.claim(RUN)
    assert told(store.delete, RUN) == f"run {RUN} is running; stop it first, then delete it"
    store.finish(RUN, "stopped")
    store.delete(RUN)
    assert store.claim(RUN) is False


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", "home/.local/share/ftp-kit/runs.db"),
        ("darwin", "home/Library/Application Support/ftp-kit/runs.db"),
        ("win32", "local/ftp-kit/runs.db"),
    ],
)
def test_default_path(tmp_path: Path, monkeypatch: Any, platform: str, expected: str) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setenv("FTP_STORE", "")
    assert default_path() == tmp_path / expected
    monkeypatch.setenv("FTP_STORE", str(tmp_path / "mine.db"))
    assert default_path() == tmp_path / "mine.db"
    with Store() as store:
        assert store.path == tmp_path / "mine.db"
