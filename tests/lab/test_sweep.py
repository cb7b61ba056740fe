"""Sweeps: many runs, one store; what is done stays done, what fails does not pull the others down."""

from pathlib import Path

import pytest

from ftp.lab.record import LabError
from ftp.lab.store import Store
from ftp.lab.sweep import Outcome, _clients, grid, sweep

SHORT = {"steps": 3, "batch": 8}
BAD = {"steps": 40, "batch": 8, "lr": 100, "weight_decay": 10}


def test_a_grid_is_every_combination() -> None:
    found = grid(["ftp", "finetune"], seeds=[0, 1], over={"lr": [0.1, 0.2]}, changes=SHORT)
    assert len(found) == len(set(found)) == 8
    assert {s.steps for s in found} == {3}
    with pytest.raises(LabError):
        grid(["ftp"], over={"lr": ["fast"]})


@pytest.mark.slow
def test_a_sweep_goes_on_where_it_was_and_a_failure_is_one_line(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    wanted = grid(["ftp", "linear_probe"], seeds=[0, 1], changes=SHORT)
    seen: list[Outcome] = []
    first = sweep(wanted[:1], store, jobs=1, device="cpu", kinds=["fog"])
    assert [o.error for o in first] == [""]
    made = store.load(first[0].run_id)
    outcomes = sweep(
        [*wanted, *grid(["finetune"], changes=BAD)], store, device="cpu", kinds=["fog"], on_outcome=seen.append
    )
    assert seen == outcomes
    assert len(outcomes) == 5
    assert outcomes[0].run_id == first[0].run_id
    assert store.load(first[0].run_id) == made  # not made again
    (failed,) = [o for o in outcomes if o.error]
    assert failed.error.startswith("the loss is ")
    assert store.status(failed.run_id) == "failed"
    assert [store.status(o.run_id) for o in outcomes if not o.error] == ["done"] * 4


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["ray", "dask"])
@pytest.mark.filterwarnings("ignore")  # the clusters warn about many things of their own
def test_the_same_call_on_a_cluster(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    store = Store(tmp_path / "runs.db")
    wanted = [*grid(["ftp"], seeds=[0, 1], changes=SHORT), *grid(["finetune"], changes=BAD)]
    here = sweep(wanted[:1], Store(tmp_path / "here.db"), jobs=1, device="cpu", kinds=["fog"])
    try:
        outcomes = sweep(wanted, store, jobs=2, backend=backend, device="cpu", kinds=["fog"])
    finally:
        _close(backend)
    assert sorted(bool(o.error) for o in outcomes) == [False, False, True]
    for outcome in outcomes:
        record = store.load(outcome.run_id)
        assert record.status == ("failed" if outcome.error else "done")
        if not outcome.error:
            assert store.weights_path(outcome.run_id).exists()
    ours = Store(tmp_path / "here.db").load(here[0].run_id)
    theirs = store.load(here[0].run_id)
    assert [(p.loss, p.gamma) for p in ours.points] == [(p.loss, p.gamma) for p in theirs.points]


def _close(backend: str) -> None:
    if backend == "ray":
        import ray

        ray.shutdown()
    else:
        client = _clients.pop()
        client.cluster.close()
        client.close()


def test_an_unknown_backend_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LabError) as error:
        sweep([], Store(tmp_path / "runs.db"), backend="slurm")
    assert str(error.value) == "backend is 'slurm'; it must be one of processes, ray, dask"
