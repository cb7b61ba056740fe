"""One run from its settings to the store: what the command line, sweeps and the dashboard's worker all call."""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ftp.lab import worlds
from ftp.lab.catalogue import fitting_kinds
from ftp.lab.code import code_version
from ftp.lab.record import EvalEvent, Event, LabError, RunRecord, Settings, StartEvent, run_id
from ftp.lab.settings import deciding
from ftp.lab.store import Store, TakenError

BEAT_SECONDS = 1.0


def identify(settings: Settings) -> str:
    """The id of the run with these settings, in this world's data and with the code that decides it."""
    return run_id(deciding(settings), worlds.of(settings).data_version(), code_of(settings))


def code_of(settings: Settings) -> str:
    """The version of the code that decides a run with these settings."""
    return code_version(settings.world, settings.method, bool(worlds.world(settings.world).corruptions))


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
    kinds: Iterable[str] | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
    name: str = "",
) -> RunRecord:
    """Run, or go on with, or simply return what the store already holds; every event is kept as it comes.

    Ctrl-C and `stop` keep what is done: the next call goes on from there, to the same bits.
    """
    run = identify(settings)
    store.create(run, settings, name=name, code=code_of(settings))
    return carry_out(run, store, device=device, kinds=kinds, on_event=on_event, stop=stop)


def carry_out(
    run: str,
    store: Store,
    *,
    device: str = "auto",
    kinds: Iterable[str] | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
) -> RunRecord:
    """`execute` for a run whose row is in the store; the dashboard's server has made its id and its row."""
    record = store.load(run)
    settings = record.settings
    if record.status == "done":
        missing = missing_kinds(record, kinds)
        return _more_corruptions(record, store, missing, device) if missing else record
    if not store.claim(run):
        raise LabError(f"run {run} is being made by another process; wait for it, or watch it with: ftp-lab runs")
    with _ended(store, run), _beating(store, run):
        from ftp.lab.answers import answers, keep_pictures, maps
        from ftp.lab.models import write_weights
        from ftp.lab.train import finetune

        training = finetune(settings, device=device, checkpoint=store.checkpoint_path(run), stop=stop, kinds=kinds)
        try:
            for event in training:
                if isinstance(event, StartEvent):
                    store.start(run, event)
                    keep_pictures(training.world, store)
                else:
                    if isinstance(event, EvalEvent):
                        shown = training.model, training.world, event.main
                        event = replace(event, answers=answers(*shown), maps=maps(*shown))
                    if isinstance(event, EvalEvent) and event.final:
                        write_weights(training.model, store.weights_path(run), {"run_id": run})
                    store.append(run, event)
                on_event(event)
        except KeyboardInterrupt:
            training.save()
            raise
        if training.step < training.steps:
            store.finish(run, "stopped")
            return store.load(run)
        store.finish(run, "done")
        store.checkpoint_path(run).unlink(missing_ok=True)
    return store.load(run)


def missing_kinds(record: RunRecord, kinds: Iterable[str] | None = None) -> list[str]:
    """The kinds of damage that a finished run still lacks: of the world's own, or of those asked for that fit it."""
    if record.final is None:
        return []
    tested = record.final.corruptions
    return [kind for kind in fitting_kinds(worlds.of(record.settings), kinds) if kind not in tested]


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
    world = worlds.of(record.settings)
    scores = corruption_scores(model_of(record, store, device), world, kinds)
    counts = {**final.counts, **dict.fromkeys(scores, min(CORRUPTED, final.counts[world.home]))}
    store.append(record.run_id, replace(final, corruptions={**final.corruptions, **scores}, counts=counts))
    store.finish(record.run_id, "done")
    return store.load(record.run_id)
