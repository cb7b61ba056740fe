"""The table of jobs: every row has its function, its file, its order, and a sentence for what is no order."""

import subprocess
import sys
from pathlib import Path

import pytest
from lab.runs import short

from ftp.lab.corruptions import KINDS
from ftp.lab.jobs import JOBS, Job, Order, do
from ftp.lab.record import LabError, RunRecord
from ftp.lab.run import execute, identify
from ftp.lab.store import Store

RUN = "0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.db")


def order_of(job: Job, run: str = RUN) -> Order:
    return Order(job.name, run, "stem.weight" if job.is_about_a_layer else "")


@pytest.mark.parametrize("job", JOBS.values(), ids=lambda job: job.name)
def test_an_order_survives_the_pipe_and_knows_its_file(job: Job, store: Store) -> None:
    order = order_of(job)
    assert Order.from_message(order.message) == order
    if job.suffix:
        assert order.path(store).parent == store.weights_path(RUN).parent
        assert order.path(store).name.startswith(f"{RUN}.")  # so that `purge` removes it with its run
        assert order.result(store) is None
    else:
        with pytest.raises(LabError) as error:
            order.path(store)
        sentence = f"{job.name} has no file of its own; its result is in the run: Store.load('{RUN}')"
        assert str(error.value) == sentence


def test_no_two_orders_share_a_file(store: Store) -> None:
    paths = [order_of(job).path(store) for job in JOBS.values() if job.suffix]
    paths += [Order("microscope", RUN, "head.weight").path(store)]
    assert len(set(paths)) == len(paths) > 2


@pytest.mark.parametrize(
    ("job", "run", "layer", "sentence"),
    [
        ("dance", RUN, "", f"job is 'dance'; it must be one of {', '.join(JOBS)}"),
        ("wise", "../etc", "", "run_id is '../etc'; it must be a run's id, 16 digits of 0-9 and a-f"),
        ("microscope", RUN, "", "layer is ''; it must be the name of a layer, such as layer=stem.weight"),
        ("microscope", RUN, "../x", "layer is '../x'; it must be the name of a layer, such as layer=stem.weight"),
        ("wise", RUN, "stem.weight", "layer is 'stem.weight'; wise is about the whole run, so leave layer out"),
    ],
)
def test_what_is_no_order_is_a_sentence(job: str, run: str, layer: str, sentence: str) -> None:
    with pytest.raises(LabError) as error:
        Order(job, run, layer)
    assert str(error.value) == sentence


def test_a_new_job_is_one_row(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(record: RunRecord, store: Store, **_: object) -> list[int]:
        return [record.settings.steps]

    monkeypatch.setitem(JOBS, "steps", Job("steps", steps, 1.0, ".steps.json"))
    store.create(RUN, short("ftp"))
    order = Order("steps", RUN)
    assert do(order, store) == "queued"
    assert order.result(store) == [6]
    assert (store.weights_path(RUN).parent / f"{RUN}.steps.json").exists()


def test_the_table_is_read_without_torch() -> None:
    code = "import sys, ftp.lab.jobs; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_a_run_of_other_code_is_refused_and_stays_in_the_queue(store: Store) -> None:
    store.create(RUN, short("ftp"))  # today's code would give these settings another id
    with pytest.raises(LabError) as error:
        do(Order("run", RUN), store, device="cpu")
    sentence = "the code has changed since this run was queued; start the server again, and press Train"
    assert str(error.value) == sentence
    assert store.status(RUN) == "queued"


def test_a_run_makes_no_row_but_its_own(store: Store) -> None:
    run = identify(short("ftp"))
    with pytest.raises(LabError, match=f"^there is no run {run} in this store"):
        do(Order("run", run), store, device="cpu")
    assert store.runs() == []


def test_corruptions_are_for_a_finished_run_and_never_train_one(store: Store) -> None:
    store.create(RUN, short("ftp"))
    with pytest.raises(LabError) as error:
        do(Order("corruptions", RUN), store, device="cpu")
    assert str(error.value) == f"run {RUN} is queued and has no weights; run it to its end first"


@pytest.mark.slow
def test_all_jobs_of_a_run(store: Store) -> None:
    run = identify(short("ftp"))
    store.create(run, short("ftp"))
    jobs = [job for name, job in JOBS.items() if name not in ("mistakes", "pixels")]  # they want other worlds
    assert [do(order_of(job, run), store, device="cpu") for job in jobs] == ["done"] * len(jobs)
    final = store.load(run).final
    assert final is not None
    assert set(final.corruptions) == set(KINDS)
    for job in jobs:
        if job.suffix:
            assert order_of(job, run).result(store)
    with pytest.raises(LabError, match="has no tasks with labels"):
        do(order_of(JOBS["mistakes"], run), store, device="cpu")
    with pytest.raises(LabError, match="does not draw its pictures, so there is nothing to turn"):
        do(order_of(JOBS["pixels"], run), store, device="cpu")
    with Store(store.path.with_name("other.db")) as other:  # the same numbers as without the queue
        direct, queued = execute(short("ftp"), other, device="cpu"), store.load(run)
    assert [(p.step, p.loss, p.gamma) for p in direct.points] == [(p.step, p.loss, p.gamma) for p in queued.points]
