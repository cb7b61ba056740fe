"""Runs in worker processes: shared, queued, stopped, gone on with, and told in one sentence when they fail."""

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from servers import long, short, until

from app import queueing
from app.limits import CLASS, Limits
from app.queueing import Place, Task
from app.supervisor import Supervisor
from ftp.lab.record import EvalEvent, LabError, StartEvent, StepEvent
from ftp.lab.run import identify
from ftp.lab.store import Store


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(Store(tmp_path / "runs.db"), slots=1, device="cpu")
    yield made
    made.close()


class Still(Supervisor):
    """One whose thread never runs, for what is decided before a worker comes in."""

    def _begin(self) -> None:
        pass


@pytest.fixture
def still(tmp_path: Path) -> Still:
    return Still(Store(tmp_path / "runs.db"), slots=1, bounds=Limits(each=3, queue=5, steps=2000, batch=64))


def points(store: Store, run: str) -> int:
    return len(store.tail(run, 0)["points"])


def test_equal_settings_are_one_run(still: Still) -> None:
    run = still.submit(short(), "anna")
    assert still.submit(short(), "ben") == run == identify(short())
    assert still.store.status(run) == "queued"
    assert still.busy().waiting == 1
    assert still._tasks[0].viewers == {"anna", "ben"}


def test_a_run_that_is_done_or_made_elsewhere_is_only_watched(still: Still) -> None:
    done, elsewhere = short(seed=1), short(seed=2)
    for settings in (done, elsewhere):
        still.store.create(identify(settings), settings)
        assert still.store.claim(identify(settings))
    still.store.append(identify(done), EvalEvent(6, {"id": 90.0, "sketch": 60.0}, final=True))
    still.store.finish(identify(done), "done")
    assert [still.submit(done), still.submit(elsewhere)] == [identify(done), identify(elsewhere)]
    assert still.busy().waiting == 0
    assert [still.store.status(identify(s)) for s in (done, elsewhere)] == ["done", "running"]


@pytest.mark.parametrize("status", ["stopped", "interrupted", "failed"])
def test_what_ended_early_is_queued_again(still: Still, status: str) -> None:
    still.store.create(identify(short()), short())
    still.store.finish(identify(short()), status, "why")
    assert still.store.status(still.submit(short())) == "queued"
    assert still.busy().waiting == 1


def test_the_queue_tells_place_and_seconds(still: Still) -> None:
    runs = [still.submit(short(seed=seed, steps=1000)) for seed in range(3)]
    each = queueing.START_SECONDS + 1000 * queueing.STEP_SECONDS
    places = [still.place(run) for run in runs]
    assert places == [Place(0, 0), Place(1, pytest.approx(each)), Place(2, pytest.approx(2 * each))]
    assert still.place("0" * 16) is None


def test_seconds_are_learned_from_the_store(still: Still) -> None:
    store, run = still.store, identify(short(seed=9, steps=10))
    store.create(run, short(seed=9, steps=10))
    store._clock = iter([100.0] * 4 + [105.0] * 9).__next__  # type: ignore[method-assign]
    assert store.claim(run)
    store.start(run, StartEvent(("a",), {}))
    store.append(run, StepEvent(10, 1.0, 0.1, (0.1,), (0.1,), (1.0,)))
    store.append(run, EvalEvent(10, {"id": 90.0, "sketch": 60.0}, final=True))
    store.finish(run, "done")
    record = store.load(run)
    assert record.started is not None
    assert record.ended is not None
    each = (record.ended - record.started) / 10
    assert each > 0
    assert still.expected(short(steps=40)) == pytest.approx(queueing.START_SECONDS + 40 * each)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (short(steps=2001), "steps is 2001; this server takes at most 2000: write steps=2000"),
        (short(batch=65), "batch is 65; this server takes at most 64: write batch=64"),
        (replace(short(), lr=1e9), "lr is 1000000000.0; it must be a number from 1e-08 to 100, such as lr=0.05"),
        (replace(short(), world="![](http://x)"), "world is '![](http://x)'; it must be one of digits"),
    ],
)
def test_limits_are_checked_on_the_server(still: Still, settings, sentence: str) -> None:
    with pytest.raises(LabError) as error:
        still.submit(settings)
    assert str(error.value) == sentence
    assert still.store.runs() == []


def test_a_viewer_has_a_share_of_the_queue(still: Still) -> None:
    for seed in range(3):
        still.submit(short(seed=seed), "anna")
    with pytest.raises(LabError) as error:
        still.submit(short(seed=3), "anna")
    assert str(error.value) == "you have 3 runs waiting or running, the most here; wait for one, or stop one"
    assert len(still.store.runs()) == 3  # who is refused leaves nothing behind
    still.submit(short(seed=1), "anna")  # it is there already
    still.submit(short(seed=3), "ben")
    still.submit(short(seed=4), "cleo")
    with pytest.raises(LabError) as error:
        still.submit(short(seed=5), "dora")
    assert str(error.value) == "5 runs are waiting, the most here; try again in a minute"
    assert CLASS.each < CLASS.queue


def test_in_a_class_only_who_started_a_run_stops_it(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    run = still.submit(short(), "anna")
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    with pytest.raises(LabError) as error:
        still.stop(run, "ben")
    assert str(error.value) == "this run was started by someone else; it ends by itself when nobody watches it"
    still.stop(run, "anna")
    assert still.store.status(run) == "stopped"
    assert still.busy().waiting == 0


def test_in_a_class_a_run_of_several_goes_on_for_the_others(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    run = still.submit(short(), "anna")
    assert still.may_change(run, "anna")
    still.submit(short(), "ben")
    with pytest.raises(LabError) as error:
        still.stop(run, "ben")
    assert str(error.value) == "others watch this run too, so it goes on; it is no longer one of yours"
    assert still.store.status(run) == "queued"
    assert not still.may_change(run, "anna")
    with pytest.raises(LabError) as error:
        still.delete(run, "cleo")
    assert str(error.value) == "this run is not yours alone, so it stays; its teacher can delete it"
    still.stop(run, "anna")
    assert still.store.status(run) == "stopped"


def test_a_run_that_is_deleted_while_it_waits_is_not_trained(still: Still) -> None:
    first, second = still.submit(short(), "anna"), still.submit(short(seed=1), "anna")
    still.delete(first, "anna")
    assert [task.run_id for task in still._tasks] == [second]
    assert [run.run_id for run in still.store.runs()] == [second]
    still.store.delete(second)
    still.store.purge()
    still._dispatch(still._tasks[0])  # another program has removed it for good
    assert still._tasks == []


def test_a_job_is_one_of_the_known_and_of_a_run(still: Still) -> None:
    for kind, run in (("dance", "0" * 16), ("wise", "../etc")):
        with pytest.raises(LabError):
            still.job(kind, run)
    assert still.job_status("wise", "0" * 16) == "missing"
    assert still.job("wise", "0" * 16) == still.job("wise", "0" * 16) == "queued"
    assert len(still._tasks) == 1


def test_jobs_do_not_wait_behind_runs() -> None:
    def task(kind: str, run: str) -> Task:
        return Task(kind, run, {}, 0.0, {""})

    a, b, wise, more = task("run", "a"), task("run", "b"), task("wise", "c"), task("wise", "d")
    tasks = [a, b, wise, more]
    assert queueing.next_task(tasks, 1) is a
    a.worker = object()  # type: ignore[assignment]
    assert queueing.next_task(tasks, 1) is wise
    assert queueing.next_task(tasks, 2) is b
    wise.worker = object()  # type: ignore[assignment]
    assert queueing.next_task(tasks, 1) is None


def test_only_promised_runs_are_taken_over(tmp_path: Path) -> None:
    """A sweep of the command line queues its runs in the same store; they are not the dashboard's."""
    store = Store(tmp_path / "runs.db")
    store.create(identify(short(seed=1)), short(seed=1))
    promised = Still(store).submit(short(seed=2))
    assert [run for run, _ in queueing.left_over(store, set())] == [promised]
    assert list(queueing.left_over(store, {promised})) == []
    store.finish(promised, "stopped")
    assert list(queueing.left_over(store, set())) == []
    assert list(queueing.folder(store).iterdir()) == []


@pytest.mark.slow
def test_a_run_from_submit_to_done_and_its_jobs(own: Supervisor) -> None:
    own.start()
    run = own.submit(short())
    until(lambda: own.store.status(run) == "done", what="the run")
    assert points(own.store, run) == 6
    until(lambda: own.busy().running == 0)
    assert own.job("wise", run) in ("queued", "running")
    until(lambda: own.job_status("wise", run) == "missing", what="the curve")
    assert own.store.weights_path(run).with_suffix(".wise.json").exists()
    other = "0" * 16
    own.job("wise", other)
    until(lambda: own.job_status("wise", other) not in ("queued", "running"))
    assert other in own.job_status("wise", other)


@pytest.mark.slow
def test_stop_queue_go_on_and_a_stop_from_another_server(own: Supervisor) -> None:
    first, second = own.submit(long()), own.submit(long(seed=1))
    until(lambda: points(own.store, first) > 0, what="the first point")
    place = own.place(second)
    assert place is not None
    assert place.ahead == 1
    assert own.place(first) is None
    began = time.monotonic()
    own.stop(first)
    until(lambda: own.store.status(first) == "stopped")
    print(f"stopped after {time.monotonic() - began:.2f} s")
    assert own.submit(long()) == first  # maybe while it still stops
    kept = points(own.store, first)
    until(lambda: own.store.status(second) == "running", what="the next in the queue")
    own.stop(second)
    until(lambda: points(own.store, first) > kept + 1, what="going on")
    own.submit(long())  # another viewer: nothing new
    assert own.busy().waiting == 0
    other = Supervisor(Store(own.store.path), device="cpu")  # a second server on the same store
    other.stop(first)
    until(lambda: own.busy().running == 0, what="the stop by another server")
    assert own.store.status(first) == "stopped"


@pytest.mark.slow
def test_leases_time_and_a_worker_that_does_not_listen(tmp_path: Path) -> None:
    late = 0.0
    own = Supervisor(Store(tmp_path / "runs.db"), slots=2, device="cpu", clock=lambda: time.monotonic() + late)
    try:
        run, other = own.submit(long()), own.submit(long(seed=1))
        until(lambda: points(own.store, run) > 0 and points(own.store, other) > 0, what="the first points")
        late += own.limits.lease - 30
        own.watch(other)
        late += 40
        until(lambda: own.store.load(run).error, what="the end of the lease")
        assert own.store.load(run).error == "nobody watched for 10 minutes; press Train again to go on"
        assert own.store.status(other) == "running"
        own.watch(other)
        os.kill(next(t.worker.pid for t in own._tasks if t.worker and t.run_id == other), signal.SIGSTOP)
        late += own.limits.seconds
        own.watch(other)
        until(lambda: own.busy().running == 0, what="the end of a worker that hangs")
        record = own.store.load(other)
        assert (record.status, record.error) == ("stopped", "it took more than 3600 s, the most here; give fewer steps")
    finally:
        own.close()


@pytest.mark.slow
def test_nan_missing_data_and_a_locked_store_are_sentences(own: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    nan = short("finetune", lr=100.0, weight_decay=10.0, steps=40)
    run = own.submit(nan)
    until(lambda: own.store.status(run) == "failed", what="the failure")
    assert own.store.load(run).error.startswith("the loss is ")
    run = own.submit(long())
    until(lambda: points(own.store, run) > 0, what="the first point")
    monkeypatch.setattr("ftp.lab._schema.BUSY_SECONDS", 0.2)
    lock = sqlite3.connect(own.store.path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    own.store._pool._drop()  # new connections wait less
    with pytest.raises(LabError) as error:
        own.submit(short(seed=7))
    assert "was held by another program" in str(error.value)
    os.kill(own.pids()[0], signal.SIGKILL)
    until(lambda: own.ended(run), what="the end in memory")
    lock.execute("ROLLBACK")
    lock.close()
    until(lambda: own.store.status(run) == "interrupted", what="the end in the store")
    until(lambda: own.ended(run) is None)
    assert own.store.load(run).error.endswith("(signal 9); press Train again, and it goes on")


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_a_sentence(own: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    run = own.submit(short())
    until(lambda: own.store.status(run) == "interrupted")
    assert own.store.load(run).error == "its worker ended without a word (code 1); press Train again, and it goes on"
