"""What the next server must know: the runs that a dashboard has promised to train, one small file each.

A file says who asked and when; its time of change is when somebody looked last. Other programs queue runs in the same
store as well (a sweep does); those are not the dashboard's to train.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.limits import Viewer
from ftp.lab.record import RUN_ID, LabError, Settings
from ftp.lab.store import Store


@dataclass(frozen=True)
class Promise:
    """A run that still waits, who asked for it, and for how many seconds nobody has looked at it."""

    run_id: str
    settings: Settings
    viewers: frozenset[Viewer]
    unwatched: float


def folder(store: Store) -> Path:
    """Where the promises about the runs of a store are, beside it."""
    return store.path.with_name(f"{store.path.stem}-queue")


def make(store: Store, run_id: str, viewers: Iterable[Viewer] = ()) -> None:
    """Promise some viewers to train a run; who joins later does not change its place."""
    path = folder(store) / run_id
    with suppress(OSError):  # a full disk: it runs all the same
        folder(store).mkdir(parents=True, exist_ok=True)
        asked = _read(path).get("asked", time.time())
        path.write_text(json.dumps({"asked": asked, "viewers": [[v.name, v.address] for v in viewers]}))


def watch(store: Store, run_id: str) -> None:
    """Note that somebody looks at a promised run."""
    with suppress(OSError):
        os.utime(folder(store) / run_id)


def has(store: Store, run_id: str) -> bool:
    """True if a dashboard, this one or another, will train this run."""
    return (folder(store) / run_id).exists()


def clear(store: Store, run_id: str) -> None:
    """The promise was kept, or is taken back."""
    with suppress(OSError):
        (folder(store) / run_id).unlink(missing_ok=True)


def left_over(store: Store, known: set[str]) -> Iterator[Promise]:
    """Promised runs that still wait and that nobody here knows, oldest first."""
    with suppress(OSError):
        files = [path for path in folder(store).iterdir() if RUN_ID.fullmatch(path.name) and path.name not in known]
        for path in sorted(files, key=lambda path: _read(path).get("asked", path.stat().st_mtime)):
            try:
                status = store.status(path.name)
                if status == "queued":
                    viewers = frozenset(Viewer(*pair) for pair in _read(path).get("viewers", ()))
                    unwatched = max(0.0, time.time() - path.stat().st_mtime)
                    yield Promise(path.name, store.load(path.name).settings, viewers, unwatched)
            except LabError:  # deleted meanwhile
                status = "gone"
            if status not in ("queued", "running"):
                clear(store, path.name)


def _read(path: Path) -> dict[str, Any]:
    """What a file says; nothing if it is empty, or being written this moment."""
    with suppress(OSError, ValueError):
        return dict(json.loads(path.read_text()))
    return {}
