"""Where runs live: one SQLite file that several threads and processes use at once, and that survives their death.

What `append` has returned for is kept when the process is killed. A run that fails or stops keeps its curves.
"""

import json
import os
import platform
import secrets
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Self

from ftp.lab.record import (
    STATUSES,
    EvalEvent,
    LabError,
    RunRecord,
    Settings,
    StartEvent,
    StepEvent,
    finite,
)
from ftp.lab.store import queries, serialisation
from ftp.lab.store.database import DamagedError, Pool, default_path, write_atomic
from ftp.lab.summary import Measures, Scores, measures_from_dict, summarise

__all__ = ["STALE_SECONDS", "DamagedError", "Store", "TakenError", "default_path", "write_atomic"]

STALE_SECONDS = 10.0  # ten missed beats of one a second, and twice the wait for a lock: who waits for it is not dead
CLAIMABLE = ("queued", "interrupted", "stopped", "failed")
NO_NEWS = (("interrupted", "stopped"), ("interrupted", "failed"))  # nobody knows, against the run's own word
ENDS = ("done", "stopped", "failed", "interrupted", "queued")
# abs, for a clock may be set back
STALE = "(status = 'running' AND abs(? - coalesce(heartbeat, 0)) > ?)"
WORLD, METHOD = "json_extract(settings_json, '$.world')", "json_extract(settings_json, '$.method')"
_PROCESS = secrets.token_hex(4)  # pids are used again, and containers share them


class TakenError(LabError):
    """Another process has claimed the run meanwhile; who gets this leaves the run alone."""


class Store:
    """All runs in one file. Every error that a person can mend is a `LabError`.

    A run goes create -> claim -> start -> append ... -> finish; `load` gives it back at any time.

    >>> import tempfile
    >>> from ftp.lab.summary import Measures, Metric
    >>> folder, run = tempfile.TemporaryDirectory(), "0123456789abcdef"
    >>> with folder as place, Store(Path(place) / "runs.db") as store:
    ...     measures = Measures((Metric("accuracy"),), {"id": "home", "sketch": "shift"})
    ...     created, again = store.create(run, Settings()), store.create(run, Settings())
    ...     claimed, taken = store.claim(run), store.claim(run)
    ...     store.start(run, StartEvent(("stem.weight",), {"device": "cpu"}, measures=measures))
    ...     store.append(run, StepEvent(1, 2.3, 0.05, (0.1,), (0.1,), (1.0,)))
    ...     store.append(run, EvalEvent(1, {"accuracy": {"id": 90.0, "sketch": 60.0}}, final=True))
    ...     store.finish(run, "done")
    ...     record = store.load(run)
    >>> created, again, claimed, taken, record.status, record.points[0].loss, record.result["ood_avg"]
    (True, False, True, False, 'done', 2.3, 60.0)
    """

    def __init__(self, path: Path | str | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path or default_path()).expanduser().absolute()
        self._clock = clock
        self._claimed: set[str] = set()
        self._pool = Pool(self.path)
        weakref.finalize(self, self._pool.close)

    def close(self) -> None:
        """Close the file; afterwards every call is refused."""
        self._pool.close()

    def move_aside(self) -> Path:
        """Keep a damaged file under another name and begin with an empty one; returns where it is kept."""
        return self._pool.move_aside()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:  # a sweep sends it to other processes
        return Store, (self.path,)

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._pool.transaction()

    def _writing(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._pool.transaction("BEGIN IMMEDIATE")

    def create(self, run_id: str, settings: Settings, *, name: str = "", code: str = "") -> bool:
        """Put a run in the queue. True if it is new; an equal one is left as it is, but taken out of the bin.

        code: the version of the code that decides it.
        """
        record = RunRecord(
            serialisation.checked(run_id), settings, name=serialisation.named(name), created=self._clock()
        )
        row = queries.row_from(record, code)
        with self._writing() as db:
            new = queries.insert_run(db, row)
            if not new:
                queries.update(db, run_id, deleted=None)
            return new

    def claim(self, run_id: str) -> bool:
        """Take a run that nobody works on for this process. Of several that ask at once, one gets True."""
        with self._writing() as db:
            now = self._clock()
            owner = queries.row_of(db, run_id)["owner"] or ""
            dead = owner if _is_gone(owner) else ""
            changed = db.execute(
                "UPDATE runs SET status = 'running', owner = ?, heartbeat = ?, started = coalesce(started, ?), "
                f"ended = NULL, error = '' WHERE run_id = ? AND deleted IS NULL AND (status IN {CLAIMABLE} OR {STALE} "
                "OR (status = 'running' AND owner = ?))",
                (_owner(), now, now, run_id, now, STALE_SECONDS, dead),
            )
        if changed.rowcount:
            self._claimed.add(run_id)
        return changed.rowcount == 1

    def start(self, run_id: str, event: StartEvent) -> None:
        """Note the layers and where the run is made. Rows of an earlier try stay until they are written again."""
        facts: dict[str, Any] = {"layers": event.layers, "phases": event.phases, "provenance": event.provenance}
        facts["measures"] = event.measures.as_dict()
        columns = {f"{name}_json": serialisation.dump(fact) for name, fact in facts.items()}
        with self._writing() as db:
            self._alive(db, run_id)
            row = queries.row_of(db, run_id)
            if row["status"] in ("done", "stopped", "failed"):  # stopped, maybe, while it was getting ready
                raise LabError(f"run {run_id} is {row['status']}; claim it before you start it")
            started = row["started"] or self._clock()
            queries.update(db, run_id, status="running", started=started, ended=None, error="", **columns)

    def append(self, run_id: str, events: StepEvent | EvalEvent | Iterable[StepEvent | EvalEvent]) -> None:
        """Store events, all or none. Writing a step again replaces it, so a resumed run may repeat itself."""
        events = [events] if isinstance(events, StepEvent | EvalEvent) else list(events)
        rows = [queries.event_row(run_id, event, self._clock()) for event in events]
        with self._writing() as db:
            self._alive(db, run_id)
            for table, row in rows:
                queries.insert_event(db, table, row)

    def beat(self, run_id: str) -> bool:
        """Say that the run is alive. False: another process has it, or it was ended; so leave it."""
        with self._writing() as db:
            with suppress(TakenError):
                self._alive(db, run_id)
                return bool(queries.row_of(db, run_id)["status"] == "running")
            return False

    def _alive(self, db: sqlite3.Connection, run_id: str) -> None:
        """Set the heartbeat. A run that was only thought dead (ended is empty) is running again."""
        row = queries.row_of(db, run_id)
        _untaken(row)
        back = row["status"] == "interrupted" and row["ended"] is None and row["owner"] == _owner()
        queries.update(db, run_id, heartbeat=self._clock(), status="running" if back else row["status"])

    def finish(self, run_id: str, status: str, error: str = "") -> None:
        """Say how a run ended; with "done" its result is stored, with "queued" it goes back into the queue.

        What is done stays done, and "interrupted" does not replace "stopped" or "failed".
        """
        if status not in ENDS:
            raise LabError(f"a run cannot end as {status!r}; write one of {', '.join(ENDS)}")
        with self._writing() as db:
            row = queries.row_of(db, run_id)
            if run_id in self._claimed:  # it may have lost the run since; who never had it is its supervisor
                _untaken(row)
            if status != "done" and (row["status"] == "done" or (status, row["status"]) in NO_NEWS):
                return
            result = queries.result_json(db, run_id) if status == "done" else None
            ended = row["ended"] if row["status"] == "done" else None if status == "queued" else self._clock()
            queries.update(
                db, run_id, status=status, error=serialisation.storable(error), ended=ended, result_json=result
            )

    def sweep_stale(self, seconds: float = STALE_SECONDS) -> list[str]:
        """Mark running runs without a sign of life as interrupted, curves kept; returns their ids."""
        with self._writing() as db:
            rows = db.execute(f"SELECT run_id FROM runs WHERE {STALE}", (self._clock(), seconds)).fetchall()
            ids = [row["run_id"] for row in rows]
            for run_id in ids:  # ended stays empty, so the process can come back (see _alive)
                queries.update(db, run_id, status="interrupted")
        return ids

    def status(self, run_id: str) -> str:
        """One of `ftp.lab.record.STATUSES`."""
        with self._reading() as db:
            return str(queries.row_of(db, run_id)["status"])

    def owner(self, run_id: str) -> str:
        """The process that claimed a run last, as host:pid:token; empty if none did."""
        with self._reading() as db:
            return str(queries.row_of(db, run_id)["owner"] or "")

    def load(self, run_id: str) -> RunRecord:
        """All that is known of a run."""
        with self._reading() as db:
            return queries.record_of(db, queries.row_of(db, run_id, binned=False))

    def tail(self, run_id: str, since: int) -> dict[str, Any]:
        """What a live chart lacks that has all points up to step `since`, as plain JSON data.

        Evaluations from `since` on, as that of a step comes after its point: the last ones may come twice; each with
        its summary. The layers and the measures come until there are points.
        """
        since = max(-1, min(since, 2**62))  # it comes from a web address
        with self._reading() as db:
            row = queries.row_of(db, run_id, binned=False)
            points = queries.payloads(db, "points", run_id, since)
            evals = queries.payloads(db, "evaluations", run_id, since - 1)
        measures = measures_from_dict(json.loads(row["measures_json"]))
        for event in evals:
            event["summary"] = summarised(event["scores"], measures)
        layers = {"layers": json.loads(row["layers_json"]), "measures": measures.as_dict()} if since < 1 else {}
        same = {key: row[key] for key in ("run_id", "status", "name", "error", "started", "heartbeat")}
        return {**same, **layers, "step": points[-1]["step"] if points else since, "points": points, "evals": evals}

    def runs(
        self,
        *,
        world: str | None = None,
        method: str | None = None,
        status: str | None = None,
        text: str | None = None,
        ended_after: float | None = None,
        limit: int | None = 200,
        deleted: bool = False,
        evals: bool = False,
    ) -> list[RunRecord]:
        """Runs without their points, newest first; `text` is looked for in name, id, world and method.

        `ended_after`: in seconds since 1970. `deleted` lists the bin instead; `evals` adds the evaluations, the result
        has the final one anyhow.
        """
        if status not in (None, *STATUSES):
            raise LabError(f"there is no status {status!r}; write one of {', '.join(STATUSES)}")
        words = f"name || char(10) || run_id || char(10) || {WORLD} || char(10) || {METHOD}"
        filters = {f"{WORLD} = ?": world, f"{METHOD} = ?": method, "status = ?": status, "ended > ?": ended_after}
        filters[f"instr(casefold({words}), casefold(?))"] = text or None
        chosen = {sql: value for sql, value in filters.items() if value is not None}
        where = " AND ".join((f"deleted IS {'NOT ' if deleted else ''}NULL", *chosen))
        with self._reading() as db:
            sql = f"SELECT * FROM runs WHERE {where} ORDER BY created DESC, rowid DESC LIMIT ?"
            rows = db.execute(sql, (*chosen.values(), -1 if limit is None else max(0, limit))).fetchall()
            return [queries.record_of(db, row, points=False, evals=evals) for row in rows]

    def rename(self, run_id: str, name: str) -> None:
        """Give a run the person's own name; it is kept as it is, markdown and all: show it as plain text."""
        self._set(run_id, "name", serialisation.named(name))

    def delete(self, run_id: str) -> None:
        """Put a run into the bin; `undelete` takes it out again, `purge` empties the bin."""
        self._set(run_id, "deleted", self._clock(), while_running=False)

    def undelete(self, run_id: str) -> None:
        """Take a run out of the bin."""
        self._set(run_id, "deleted", None)

    def _set(self, run_id: str, column: str, value: Any, *, while_running: bool = True) -> None:
        with self._writing() as db:
            if queries.row_of(db, run_id)["status"] == "running" and not while_running:
                raise LabError(f"run {run_id} is running; stop it first, then delete it")
            queries.update(db, run_id, **{column: value})

    def purge(self, seconds: float = 0.0, run_id: str | None = None) -> list[str]:
        """Remove for good, files included, what has been in the bin for so many seconds; returns the ids.

        With `run_id` only that run.
        """
        with self._writing() as db:
            rows = db.execute("SELECT run_id FROM runs WHERE deleted <= ?", (self._clock() - seconds,)).fetchall()
            ids = [row["run_id"] for row in rows if run_id in (None, row["run_id"])]
            for run_id in ids:  # files first: after a crash in between, purging again does the rest
                for path in self.weights_path(run_id).parent.glob(f"{run_id}.*"):
                    path.unlink(missing_ok=True)
                db.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
        return ids

    def weights_path(self, run_id: str) -> Path:
        """Where the weights of a finished run belong; write them with `write_atomic`."""
        return self.path.with_name(f"{self.path.stem}-weights") / f"{serialisation.checked(run_id)}.safetensors"

    def checkpoint_path(self, run_id: str) -> Path:
        """Where a run keeps what it needs to go on."""
        return self.weights_path(run_id).with_suffix(".checkpoint")

    def export(self, run_id: str) -> dict[str, Any]:
        """A run with its points and evaluations as plain JSON data, for `import_`."""
        with self._reading() as db:
            row = queries.row_of(db, run_id, binned=False)
            return serialisation.to_form(queries.record_of(db, row), row["code_version"])

    def import_(self, data: Any) -> str:
        """Take in what `export` gave and return its id. To a run that is there only a finished one adds something."""
        run = serialisation.from_form(data)
        with self._writing() as db:
            queries.take_in(db, run, data["code_version"], self._clock())
        return run.run_id


def summarised(scores: Scores, measures: Measures) -> dict[str, float | None]:
    """What a chart in the browser needs of an evaluation: it knows no metric and no split by name.

    >>> summarised({"accuracy": {"id": 90.0}}, measures_from_dict({"metrics": [], "roles": {}}))
    {'home': None, 'shift_mean': None}
    """
    summary = summarise(scores, measures)
    return dict(finite({"home": summary.home, "shift_mean": summary.shift_mean}))


def _owner() -> str:
    return f"{platform.node()}:{os.getpid()}:{_PROCESS}"


def _is_gone(owner: str) -> bool:
    """True if a process of this machine owned a run and is no more; of another machine nobody here can tell."""
    host, pid, _ = (*owner.rsplit(":", 2), "", "")[:3]
    if os.name != "posix" or host != platform.node() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():  # the number was given again, to this process
        return owner != _owner()
    try:
        os.kill(int(pid), 0)  # asks only
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _untaken(row: sqlite3.Row) -> None:
    if row["status"] == "running" and row["owner"] not in (None, _owner()):
        raise TakenError(f"run {row['run_id']} is now made by another process ({row['owner']}); this one leaves it")
