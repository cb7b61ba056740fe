"""Many runs: a grid of settings, through joblib's processes here, or the same call on a Ray or Dask cluster.

    sweep(grid(["finetune", "ftp"], seeds=range(5)), store)

What is in the store already is not run again, so a sweep that was stopped goes on where it was. A run that fails
is reported; the others go on.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib

from ftp.lab.record import LabError, Settings
from ftp.lab.run import code_of, execute, identify, missing_kinds, processes
from ftp.lab.settings import resolve
from ftp.lab.store import Store, write_atomic

BACKENDS = ("processes", "ray", "dask")
Kinds = tuple[str, ...] | None  # of damage; None: those of the world


@dataclass(frozen=True)
class Outcome:
    """How one run of a sweep ended: its id, and the error in words if it failed."""

    run_id: str
    settings: Settings
    error: str = ""


def grid(
    methods: Sequence[str],
    *,
    world: str | None = None,
    seeds: Iterable[int] = (0,),
    over: Mapping[str, Sequence[Any]] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> list[Settings]:
    """Every combination of methods, values of `over`, and seeds; `changes` are set in all of them.

    >>> [s.seed for s in grid(["ftp"], seeds=range(3))]
    [0, 1, 2]
    >>> [s.lr for s in grid(["ftp"], over={"lr": [0.1, 0.2]})]
    [0.1, 0.2]
    """
    rows: list[dict[str, Any]] = [dict(changes or {})]
    for name, values in (over or {}).items():
        rows = [{**row, name: value} for row in rows for value in values]
    return [resolve(world, m, {**row, "seed": seed}) for seed in seeds for m in methods for row in rows]


def sweep(
    wanted: Iterable[Settings],
    store: Store,
    *,
    jobs: int | None = None,
    backend: str = "processes",
    device: str = "auto",
    kinds: Iterable[str] | None = None,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run all settings that the store does not hold yet; outcomes in the order in which they end.

    jobs: runs at a time, one torch thread each; None means one for each core.
    """
    if backend not in BACKENDS:
        raise LabError(f"backend is {backend!r}; it must be one of {', '.join(BACKENDS)}")
    kinds = None if kinds is None else tuple(kinds)
    unique = list(dict.fromkeys(wanted))
    done = {identify(s) for s in unique if _is_done(store, s, kinds)}
    outcomes = [Outcome(identify(s), s) for s in unique if identify(s) in done]
    for outcome in outcomes:
        on_outcome(outcome)
    rest = [s for s in unique if identify(s) not in done]
    if rest:
        run = _on_this_machine if backend == "processes" else _on_cluster
        jobs = min(jobs or os.cpu_count() or 1, len(rest))
        for outcome in run(rest, store, jobs, backend, device, kinds):
            outcomes.append(outcome)
            on_outcome(outcome)
    return outcomes


def _is_done(store: Store, settings: Settings, kinds: Kinds) -> bool:
    run = identify(settings)
    store.create(run, settings, code=code_of(settings))
    if store.status(run) != "done":
        return False
    record = store.load(run)
    return record.final is not None and not missing_kinds(record, kinds)


def _on_this_machine(
    rest: list[Settings], store: Store, jobs: int, backend: str, device: str, kinds: Kinds
) -> Iterator[Outcome]:
    """Processes of this machine; all write into the one store."""
    yield from processes(jobs, "generator_unordered")(
        joblib.delayed(_one)(s, str(store.path), device, kinds) for s in rest
    )


def _one(settings: Settings, path: str, device: str, kinds: Kinds) -> Outcome:
    import torch

    torch.set_num_threads(1)
    with Store(path) as store:
        try:
            execute(settings, store, device=device, kinds=kinds)
        except Exception as error:  # one run that fails must not end the others
            return Outcome(identify(settings), settings, str(error) or type(error).__name__)
    return Outcome(identify(settings), settings)


def _on_cluster(
    rest: list[Settings], store: Store, jobs: int, backend: str, device: str, kinds: Kinds
) -> Iterator[Outcome]:
    """A cluster: each run has a store of its own over there, and comes home as plain data and weights.

    A round at a time, since these backends answer only at the end of a call: Ctrl-C loses one round.
    """
    _connect(backend)
    for start in range(0, len(rest), jobs):
        with joblib.parallel_config(backend=backend, n_jobs=jobs):
            calls = (joblib.delayed(_abroad)(s, device, kinds) for s in rest[start : start + jobs])
            results = joblib.Parallel()(calls)
        for outcome, data, weights in results:
            if data is not None:
                store.import_(data)
                write_atomic(store.weights_path(outcome.run_id), weights)
            else:
                store.finish(outcome.run_id, "failed", outcome.error)
            yield outcome


def _abroad(settings: Settings, device: str, kinds: Kinds) -> tuple[Outcome, dict[str, Any] | None, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        outcome = _one(settings, str(path), device, kinds)
        if outcome.error:
            return outcome, None, b""
        with Store(path) as store:
            return outcome, store.export(outcome.run_id), store.weights_path(outcome.run_id).read_bytes()


_clients: list[Any] = []  # a client that nobody holds is collected, and its cluster with it


def _connect(backend: str) -> None:
    """Make joblib know the cluster; a local one is started if there is none."""
    try:
        if backend == "ray":
            import ray
            from ray.util.joblib import register_ray

            if not ray.is_initialized():
                ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False, include_dashboard=False)
            register_ray()  # type: ignore[no-untyped-call]
        else:
            from distributed import Client, get_client

            try:
                get_client()
            except ValueError:
                address = os.environ.get("DASK_SCHEDULER")
                _clients.append(Client(address, processes=True, dashboard_address=None))  # type: ignore[no-untyped-call]
    except ImportError:
        raise LabError(f"{backend} is not installed; write: pip install 'ftp-kit[cluster]'") from None
