"""The queue: what waits, for how long, and what an earlier server left behind."""

import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from app.workers import Worker
from ftp.lab.record import RUN_ID, LabError, Settings
from ftp.lab.store import Store

STEP_SECONDS, START_SECONDS = 0.08, 3.0  # of a run on digits on one ordinary core, until the store knows better
FRESH = 30.0


@dataclass(frozen=True)
class Place:
    """Where a run stands in the queue: runs before it, and about how many seconds they take."""

    ahead: int
    seconds: float


@dataclass(frozen=True)
class Busy:
    """Runs under way, runs that wait, and how many may be under way at once."""

    running: int
    waiting: int
    slots: int


@dataclass(eq=False)
class Task:
    """Something for a worker: a run, or a job about a run."""

    kind: str
    run_id: str
    message: dict[str, Any]
    came: float
    viewers: set[str]
    expected: float = 0.0
    worker: Worker | None = None
    began: float | None = None
    leaving: float | None = None  # since when it is being stopped
    reason: str = ""
    said: bool = False  # its row says already that it stopped
    over: bool = False  # its worker has ended
    tries: int = 0

    @classmethod
    def of_run(cls, run_id: str, settings: Settings, came: float, viewer: str, expected: float) -> Self:
        """A run that waits."""
        message = {"job": "run", "run_id": run_id, "settings": settings.as_dict()}
        return cls("run", run_id, message, came, {viewer}, expected)

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.run_id

    @property
    def status(self) -> str:
        return "running" if self.worker else "queued"


def next_task(tasks: list[Task], slots: int) -> Task | None:
    """The first that may begin. Jobs have a slot of their own: a curve need not wait for a whole run."""
    active = [task for task in tasks if task.worker]
    busy = {task.run_id for task in active}
    runs = sum(task.kind == "run" for task in active)
    for task in tasks:
        free = runs < slots if task.kind == "run" else len(active) - runs < 1
        if task.worker is None and free and task.run_id not in busy:
            return task
    return None


def place(tasks: list[Task], run_id: str, slots: int, now: float) -> Place | None:
    """The place of a run that waits; None for any other."""
    runs = [task for task in tasks if task.kind == "run"]
    own = next((task for task in runs if task.run_id == run_id and task.worker is None), None)
    if own is None:
        return None
    before = [task for task in runs if task.worker] + [t for t in runs[: runs.index(own)] if t.worker is None]
    seconds = sum(max(1.0, t.expected - (now - t.began if t.began is not None else 0.0)) for t in before)
    return Place(len(before), round(seconds / slots, 1))


class Expected:
    """About how many seconds a run takes: the middle of those in the store, by steps; a guess before there are any."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[tuple[str, str], tuple[float, float]] = {}

    def seconds(self, settings: Settings) -> float:
        key = settings.world, settings.method
        read, each = self._known.get(key, (-FRESH, 0.0))
        if time.monotonic() - read > FRESH:
            each = self._each(*key)
            self._known[key] = time.monotonic(), each
        return round(START_SECONDS + settings.steps * each, 1)

    def _each(self, world: str, method: str) -> float:
        with suppress(LabError):
            runs = self.store.runs(world=world, method=method, status="done", limit=20)
            took = [(r.ended - r.started) / r.settings.steps for r in runs if r.ended and r.started]
            if took:
                return statistics.median(took)
        return STEP_SECONDS


def folder(store: Store) -> Path:
    """One empty file for each run that a dashboard has promised; other programs queue runs in the store as well."""
    return store.path.with_name(f"{store.path.stem}-queue")


def note(store: Store, run_id: str) -> None:
    """Promise a run, so that the next server knows of it."""
    with suppress(OSError):  # a full disk: it runs all the same
        folder(store).mkdir(parents=True, exist_ok=True)
        (folder(store) / run_id).touch()


def promised(store: Store, run_id: str) -> bool:
    """True if a dashboard, this one or another, will train this run."""
    return (folder(store) / run_id).exists()


def forget(store: Store, run_id: str) -> None:
    """The promise is kept, or taken back."""
    with suppress(OSError):
        (folder(store) / run_id).unlink(missing_ok=True)


def left_over(store: Store, known: set[str]) -> Iterator[tuple[str, Settings]]:
    """Promised runs that still wait and that nobody here knows, oldest first."""
    with suppress(OSError):
        files = [path for path in folder(store).iterdir() if RUN_ID.fullmatch(path.name)]
        for path in sorted(files, key=lambda path: path.stat().st_mtime):
            if path.name in known:
                continue
            try:
                status = store.status(path.name)
                if status == "queued":
                    yield path.name, store.load(path.name).settings
            except LabError:  # deleted meanwhile
                status = "gone"
            if status not in ("queued", "running"):
                forget(store, path.name)
