"""One run from its settings to the store: what the command line, sweeps and the dashboard's worker all call."""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ftp.lab import worlds
from ftp.lab.record import CORRUPTIONS, EvalEvent, Event, LabError, RunRecord, Settings, StartEvent, run_id
from ftp.lab.store import Store, TakenError

BEAT_SECONDS = 1.0


def identify(settings: Settings) -> str:
    """The id of the run with these settings, in this world's data and with this code.

    >>> len(identify(Settings()))
    16
    """
    return run_id(settings, worlds.info(settings.world).data_version)


def processes(jobs: int, return_as: str = "generator") -> Any:
    """joblib's processes of this machine. It replaces one that has grown by 300 MB; nothing is lost then, so it
    need not warn.

    >>> list(processes(2)((abs, (n,), {}) for n in (-1, 2)))
    [1, 2]
    """
    import joblib

    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given to the executor")
    return joblib.Parallel(n_jobs=jobs, backend="loky", return_as=return_as)


def execute(
    settings: Settings,
    store: Store,
    *,
    device: str = "auto",
    kinds: Iterable[str] = CORRUPTIONS,
    on_event: Callable[[Event], None] = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
    name: str = "",
) -> RunRecord:
    """Run, or go on with, or simply return what the store already holds; every event is kept as it comes.

    Ctrl-C and `stop` keep what is done: the next call goes on from there, to the same bits.
    """
    kinds = tuple(kinds)
    run = identify(settings)
    store.create(run, settings, name=name)
    if store.status(run) == "done":
        record = store.load(run)
        missing = [kind for kind in kinds if record.final and kind not in record.final.corruptions]
        return _more_corruptions(record, store, missing, device) if missing else record
    if not store.claim(run):
        raise LabError(f"run {run} is being made by another process; wait for it, or watch it with: ftp-lab runs")
    with _ended(store, run), _beating(store, run):
        from ftp.lab.models import write_weights
        from ftp.lab.train import finetune

        training = finetune(settings, device=device, checkpoint=store.checkpoint_path(run), stop=stop, kinds=kinds)
        try:
            for event in training:
                if isinstance(event, StartEvent):
                    store.start(run, event)
                else:
                    if isinstance(event, EvalEvent) and event.final:
                        write_weights(training.model, store.weights_path(run), {"run_id": run})
                    store.append(run, event)
                on_event(event)
        except KeyboardInterrupt:
            training.save()
            raise
        if training.step < settings.steps:
            store.finish(run, "stopped")
            return store.load(run)
        store.finish(run, "done")
        store.checkpoint_path(run).unlink(missing_ok=True)
    return store.load(run)


@contextlib.contextmanager
def _ended(store: Store, run: str) -> Iterator[None]:
    """However a run ends, its row says so."""
    try:
        yield
    except TakenError:  # it is another process's run now
        raise
    except KeyboardInterrupt:
        store.finish(run, "stopped")
        raise
    except LabError as error:
        with contextlib.suppress(LabError):  # a full disk cannot take the message either
            store.finish(run, "failed", str(error))
        raise
    except Exception as error:
        with contextlib.suppress(LabError):
            store.finish(run, "failed", f"{type(error).__name__}: {error}")
        raise


@contextlib.contextmanager
def _beating(store: Store, run: str) -> Iterator[None]:
    """A heartbeat each second, also while a step or an evaluation takes long."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            with contextlib.suppress(LabError):  # the training itself will say what is wrong with the store
                store.beat(run)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def model_of(record: RunRecord, store: Store, device: str = "cpu") -> Any:
    """The network of a finished run."""
    from ftp.lab.models import read_weights
    from ftp.lab.train import trained_model

    path = store.weights_path(record.run_id)
    if not path.exists():
        raise LabError(no_weights(record))
    return trained_model(record.settings, read_weights(path), device)


def no_weights(record: RunRecord) -> str:
    """The sentence for a run whose weights are wanted and not there."""
    run = record.run_id
    if record.status == "done":  # the file was deleted, or the run came from another machine without it
        purge = f"remove it with: ftp-lab runs purge {run}, then run it again"
        return f"run {run} is done, but its weights are not here; {purge}"
    return f"run {run} is {record.status} and has no weights; run it to its end first"


def _more_corruptions(record: RunRecord, store: Store, kinds: list[str], device: str) -> RunRecord:
    """Add corruptions to a finished run that was evaluated on fewer."""
    from ftp.lab.evaluate import CORRUPTED, corruption_scores

    final = record.final
    assert final is not None
    found = corruption_scores(model_of(record, store, device), worlds.load(record.settings.world), kinds)
    counts = {**final.counts, **dict.fromkeys(kinds, min(CORRUPTED, final.counts["id"]))}
    store.append(record.run_id, replace(final, corruptions={**final.corruptions, **found}, counts=counts))
    store.finish(record.run_id, "done")
    return store.load(record.run_id)
