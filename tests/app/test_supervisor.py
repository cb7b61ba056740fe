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

from app import estimates, promises
from app.dispatcher import Dispatcher
from app.limits import CLASS, NOBODY, Limits, Viewer
from app.queueing import Place, Queue
from app.supervisor import Supervisor
from ftp.lab import worlds
from ftp.lab.jobs import Order
from ftp.lab.record import EvalEvent, LabError, StartEvent, StepEvent
from ftp.lab.run import identify
from ftp.lab.store import Store

ANNA, BEN, CLEO, DORA = (Viewer(name) for name in ("anna", "ben", "cleo", "dora"))


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(Store(tmp_path / "runs.db"), slots=1, device="cpu")
    yield supervisor
    supervisor.close()


@pytest.fixture
def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """One whose thread never runs, for what is decided before a worker comes in."""
    monkeypatch.setattr(Dispatcher, "wake", lambda self: None)
    return Supervisor(Store(tmp_path / "runs.db"), slots=1, limits=Limits(each=3, queue=5, steps=2000, batch=64))


def points(store: Store, run: str) -> int:
    return len(store.tail(run, 0)["points"])


def test_equal_settings_are_one_run(still: Supervisor) -> None:
    run = still.submit(short(), ANNA)
    assert still.submit(short(), BEN) == run == identify(short())
    assert still.store.status(run) == "queued"
    assert still.busy().waiting == 1
    assert still.queue.tasks[0].viewers == {ANNA, BEN}


def test_a_run_that_is_done_or_made_elsewhere_is_only_watched(still: Supervisor) -> None:
    done, elsewhere = short(seed=1), short(seed=2)
    for settings in (done, elsewhere):
        still.store.create(identify(settings), settings)
        assert still.store.claim(identify(settings))
    still.store.append(identify(done), EvalEvent(6, {"accuracy": {"id": 90.0, "sketch": 60.0}}, final=True))
    still.store.finish(identify(done), "done")
    assert [still.submit(done), still.submit(elsewhere)] == [identify(done), identify(elsewhere)]
    assert still.busy().waiting == 0
    assert [still.store.status(identify(s)) for s in (done, elsewhere)] == ["done", "running"]


@pytest.mark.parametrize("status", ["stopped", "interrupted", "failed"])
def test_what_ended_early_is_queued_again(still: Supervisor, status: str) -> None:
    still.store.create(identify(short()), short())
    still.store.finish(identify(short()), status, "why")
    assert still.store.status(still.submit(short())) == "queued"
    assert still.busy().waiting == 1


def test_the_queue_tells_place_and_seconds(still: Supervisor) -> None:
    runs = [still.submit(short(seed=seed, steps=1000)) for seed in range(3)]
    each = estimates.START_SECONDS + 1000 * worlds.world("digits").step_seconds
    places = [still.place(run) for run in runs]
    assert places == [Place(0, 0), Place(1, pytest.approx(each)), Place(2, pytest.approx(2 * each))]
    assert still.place("0" * 16) is None


def test_seconds_are_learned_from_the_store(still: Supervisor) -> None:
    store, run = still.store, identify(short(seed=9, steps=10))
    store.create(run, short(seed=9, steps=10))
    store._clock = iter([100.0] * 4 + [105.0] * 9).__next__  # type: ignore[method-assign]
    assert store.claim(run)
    store.start(run, StartEvent(("a",), {}, measures=worlds.load("digits").measures))
    store.append(run, StepEvent(10, 1.0, 0.1, (0.1,), (0.1,), (1.0,)))
    store.append(run, EvalEvent(10, {"accuracy": {"id": 90.0, "sketch": 60.0}}, final=True))
    store.finish(run, "done")
    record = store.load(run)
    assert record.started is not None
    assert record.ended is not None
    each = (record.ended - record.started) / 10
    assert each > 0
    assert still.expected(short(steps=40)) == pytest.approx(estimates.START_SECONDS + 40 * each)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (short(steps=2001), "steps is 2001; this server takes at most 2000: write steps=2000"),
        (short(batch=65), "batch is 65; this server takes at most 64: write batch=64"),
        (replace(short(), lr=1e9), "lr is 1000000000.0; it must be a number from 1e-08 to 100, such as lr=0.05"),
        (
            replace(short(), world="![](http://x)"),
            f"world is '![](http://x)'; it must be one of {', '.join(sorted(worlds.names()))}",
        ),
    ],
)
def test_limits_are_checked_on_the_server(still: Supervisor, settings, sentence: str) -> None:
    with pytest.raises(LabError) as error:
        still.submit(settings)
    assert str(error.value) == sentence
    assert still.store.runs() == []


def test_a_viewer_has_a_share_of_the_queue(still: Supervisor) -> None:
    for seed in range(3):
        still.submit(short(seed=seed), ANNA)
    with pytest.raises(LabError) as error:
        still.submit(short(seed=3), ANNA)
    assert str(error.value) == "you have 3 runs or races waiting or running, the most here; wait for one, or stop one"
    assert len(still.store.runs()) == 3  # who is refused leaves nothing behind
    still.submit(short(seed=1), ANNA)  # it is there already
    still.submit(short(seed=3), BEN)
    still.submit(short(seed=4), CLEO)
    with pytest.raises(LabError) as error:
        still.submit(short(seed=5), DORA)
    assert str(error.value) == "5 runs are waiting, and 5 are the most here; try again soon"
    assert CLASS.each < CLASS.queue


def test_in_a_class_only_who_started_a_run_stops_it(still: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    run = still.submit(short(), ANNA)
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    with pytest.raises(LabError) as error:
        still.stop(run, BEN)
    assert str(error.value) == "this run was started by someone else; it ends by itself when nobody watches it"
    still.stop(run, ANNA)
    assert still.store.status(run) == "stopped"
    assert still.busy().waiting == 0


def test_in_a_class_a_run_of_several_goes_on_for_the_others(still: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    run = still.submit(short(), ANNA)
    assert still.may_change(run, ANNA)
    still.submit(short(), BEN)
    with pytest.raises(LabError) as error:
        still.stop(run, BEN)
    assert str(error.value) == "others watch this run too, so it goes on; it is no longer one of yours"
    assert still.store.status(run) == "queued"
    assert not still.may_change(run, ANNA)
    with pytest.raises(LabError) as error:
        still.delete(run, CLEO)
    assert str(error.value) == "this run is not yours alone, so it stays; its teacher can delete it"
    still.stop(run, ANNA)
    assert still.store.status(run) == "stopped"


def test_a_run_that_is_deleted_while_it_waits_is_not_trained(still: Supervisor) -> None:
    first, second = still.submit(short(), ANNA), still.submit(short(seed=1), ANNA)
    still.delete(first, ANNA)
    assert [task.run_id for task in still.queue.tasks] == [second]
    assert [run.run_id for run in still.store.runs()] == [second]
    still.store.delete(second)
    still.store.purge()
    still.dispatcher.dispatch(still.queue.tasks[0])  # another program has removed it for good
    assert still.queue.tasks == []


def test_a_job_is_queued_once(still: Supervisor) -> None:
    order = Order("wise", "0" * 16)
    assert still.job_status(order) == "missing"
    assert still.ask(order) == still.ask(order) == "queued"
    assert len(still.queue.tasks) == 1
    still.queue.note_failure(order, "why")
    assert still.job_status(order) == "queued"  # it is asked for again
    still.queue.remove(still.queue.tasks[0])
    assert still.job_status(order) == "why"
    assert still.ask(order) == "queued"
    still.queue.remove(still.queue.tasks[0])
    assert still.job_status(order) == "missing"
    with pytest.raises(LabError) as error:
        still.ask(Order("run", "0" * 16))
    assert str(error.value) == "a run is asked for with Supervisor.submit, which checks its settings first"


def test_two_layers_of_a_run_are_two_jobs(still: Supervisor) -> None:
    run = still.submit(short())
    stem, head = (Order("microscope", run, layer) for layer in ("stem.weight", "head.weight"))
    still.ask(stem)
    assert [still.job_status(order) for order in (stem, head)] == ["queued", "missing"]
    still.queue.note_failure(head, "there is no such layer")
    assert [still.job_status(order) for order in (stem, head)] == ["queued", "there is no such layer"]


def test_jobs_do_not_wait_behind_runs() -> None:
    one, two = Queue(1, Limits()), Queue(2, Limits())
    orders = (Order("run", "a" * 16), Order("run", "b" * 16), Order("wise", "c" * 16), Order("wise", "d" * 16))
    for queue in (one, two):
        first, second, wise, _ = (queue.add(order, {NOBODY}, 1.0) for order in orders)
        assert queue.next_task() is first
        first.worker = object()  # type: ignore[assignment]
        assert queue.next_task() is (wise if queue is one else second)
    one.tasks[2].worker = object()  # type: ignore[assignment]
    assert one.next_task() is None


def test_who_watches_renews_the_lease_of_that_run_alone() -> None:
    now = 0.0
    queue = Queue(1, Limits(lease=600.0, seconds=300.0), clock=lambda: now)
    seen, unseen, job = (
        queue.add(order, {NOBODY}, 1.0)
        for order in (Order("run", "a" * 16), Order("run", "b" * 16), Order("wise", "a" * 16))
    )
    now = 500.0
    assert queue.watch("a" * 16)
    assert not queue.watch("c" * 16)
    now = 601.0
    assert [queue.overdue(task) for task in (seen, unseen, job)] == [
        "",
        "nobody watched for 10 minutes; press Train again to go on",
        "",
    ]
    job.began = now
    now = 902.0
    assert queue.overdue(job) == "it took more than 300 s, the most here; give fewer steps"


def test_only_promised_runs_are_taken_over(still: Supervisor) -> None:
    """A sweep of the command line queues its runs in the same store; they are not the dashboard's."""
    store = still.store
    store.create(identify(short(seed=1)), short(seed=1))
    promised = still.submit(short(seed=2))
    assert [promise.run_id for promise in promises.left_over(store, set())] == [promised]
    assert list(promises.left_over(store, {promised})) == []
    store.finish(promised, "stopped")
    assert list(promises.left_over(store, set())) == []
    assert list(promises.folder(store).iterdir()) == []


@pytest.mark.slow
def test_a_run_from_submit_to_done_and_its_jobs(supervisor: Supervisor) -> None:
    supervisor.start()
    run = supervisor.submit(short())
    until(lambda: supervisor.store.status(run) == "done", what="the run")
    assert points(supervisor.store, run) == 6
    until(lambda: supervisor.busy().running == 0)
    order = Order("wise", run)
    assert supervisor.ask(order) in ("queued", "running")
    until(lambda: supervisor.job_status(order) == "missing", what="the curve")
    assert len(order.result(supervisor.store)["alphas"]) == 21
    unknown = Order("wise", "0" * 16)
    supervisor.ask(unknown)
    until(lambda: supervisor.job_status(unknown) not in ("queued", "running"))
    assert supervisor.job_status(unknown).startswith(f"there is no run {'0' * 16} in this store")


@pytest.mark.slow
def test_stop_queue_go_on_and_a_stop_from_another_server(supervisor: Supervisor) -> None:
    first, second = supervisor.submit(long()), supervisor.submit(long(seed=1))
    until(lambda: points(supervisor.store, first) > 0, what="the first point")
    place = supervisor.place(second)
    assert place is not None
    assert place.ahead == 1
    assert supervisor.place(first) is None
    began = time.monotonic()
    supervisor.stop(first)
    until(lambda: supervisor.store.status(first) == "stopped")
    print(f"stopped after {time.monotonic() - began:.2f} s")
    assert supervisor.submit(long()) == first  # maybe while it still stops
    before = points(supervisor.store, first)
    until(lambda: supervisor.store.status(second) == "running", what="the next in the queue")
    supervisor.stop(second)
    until(lambda: points(supervisor.store, first) > before + 1, what="going on")
    supervisor.submit(long())  # another viewer: nothing new
    assert supervisor.busy().waiting == 0
    other = Supervisor(Store(supervisor.store.path), device="cpu")  # a second server on the same store
    other.stop(first)
    until(lambda: supervisor.busy().running == 0, what="the stop by another server")
    assert supervisor.store.status(first) == "stopped"


@pytest.mark.slow
def test_a_run_asked_for_while_it_stops_stays_promised(supervisor: Supervisor) -> None:
    run = supervisor.submit(long())
    until(lambda: points(supervisor.store, run) > 0, what="the first point")
    (first,) = supervisor.pids()
    os.kill(first, signal.SIGSTOP)  # it takes its time to stop
    supervisor.stop(run)
    until(lambda: supervisor.store.status(run) == "stopped", what="the row")
    assert not promises.has(supervisor.store, run)
    supervisor.submit(long())
    assert [task.goes_on for task in supervisor.queue.tasks] == [False, True]
    until(lambda: supervisor.pids() not in ([], [first]), what="the second worker")
    until(lambda: supervisor.store.status(run) == "running", what="going on")
    assert promises.has(supervisor.store, run)  # should this server die now, the next one knows of it


@pytest.mark.slow
def test_leases_time_and_a_worker_that_does_not_listen(tmp_path: Path) -> None:
    late = 0.0
    supervisor = Supervisor(Store(tmp_path / "runs.db"), slots=2, device="cpu", clock=lambda: time.monotonic() + late)
    try:
        run, other = supervisor.submit(long()), supervisor.submit(long(seed=1))
        until(
            lambda: points(supervisor.store, run) > 0 and points(supervisor.store, other) > 0, what="the first points"
        )
        late += supervisor.limits.lease - 30
        supervisor.watch(other)
        late += 40
        until(lambda: supervisor.store.load(run).error, what="the end of the lease")
        assert supervisor.store.load(run).error == "nobody watched for 10 minutes; press Train again to go on"
        assert supervisor.store.status(other) == "running"
        supervisor.watch(other)
        os.kill(next(t.worker.pid for t in supervisor.queue.tasks if t.worker and t.run_id == other), signal.SIGSTOP)
        late += supervisor.limits.seconds
        supervisor.watch(other)
        until(lambda: supervisor.busy().running == 0, what="the end of a worker that hangs")
        record = supervisor.store.load(other)
        assert (record.status, record.error) == ("stopped", "it took more than 3600 s, the most here; give fewer steps")
    finally:
        supervisor.close()


@pytest.mark.slow
def test_nan_missing_data_and_a_locked_store_are_sentences(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    nan = short("finetune", lr=100.0, weight_decay=10.0, steps=40)
    run = supervisor.submit(nan)
    until(lambda: supervisor.store.status(run) == "failed", what="the failure")
    assert supervisor.store.load(run).error.startswith("the loss is ")
    run = supervisor.submit(long())
    until(lambda: points(supervisor.store, run) > 0, what="the first point")
    monkeypatch.setattr("ftp.lab.store.database.BUSY_SECONDS", 0.2)
    lock = sqlite3.connect(supervisor.store.path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    supervisor.store._pool._drop()  # new connections wait less
    with pytest.raises(LabError) as error:
        supervisor.submit(short(seed=7))
    assert "was held by another program" in str(error.value)
    os.kill(supervisor.pids()[0], signal.SIGKILL)
    until(lambda: supervisor.unsaved_end(run), what="the end in memory")
    lock.execute("ROLLBACK")
    lock.close()
    until(lambda: supervisor.store.status(run) == "interrupted", what="the end in the store")
    until(lambda: supervisor.unsaved_end(run) is None)
    assert supervisor.store.load(run).error.endswith("(signal 9); press Train again, and it goes on")


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_a_sentence(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    run = supervisor.submit(short())
    until(lambda: supervisor.store.status(run) == "interrupted")
    assert (
        supervisor.store.load(run).error
        == "its worker ended without a word (code 1); press Train again, and it goes on"
    )
