"""The rows of the store: how runs and events are put into its tables, and read from them."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ftp.lab.record import EvalEvent, LabError, RunRecord, StepEvent, result_of, settings_from_dict
from ftp.lab.store.serialisation import checked, dump, eval_event, step_event, storable
from ftp.lab.summary import measures_from_dict


def row_of(db: sqlite3.Connection, run_id: str, *, binned: bool = True) -> sqlite3.Row:
    """The row of a run in the table `runs`; the id is checked before anything is asked."""
    row: sqlite3.Row | None = db.execute("SELECT * FROM runs WHERE run_id = ?", (checked(run_id),)).fetchone()
    if row is None:
        raise LabError(f"there is no run {run_id} in this store; `ftp-lab runs` shows the ones there are")
    if row["deleted"] is not None and not binned:
        raise LabError(f"run {run_id} was deleted; take it out of the bin first, with Store.undelete")
    return row


def payloads(db: sqlite3.Connection, table: str, run_id: str, since: int = -1) -> list[dict[str, Any]]:
    """The events of a run in the table "points" or "evaluations" after a step, in their order, as plain data."""
    order = {"points": "step", "evaluations": "step, final"}[table]
    sql = f"SELECT payload FROM {table} WHERE run_id = ? AND step > ? ORDER BY {order}"
    return [json.loads(row["payload"]) for row in db.execute(sql, (run_id, since))]


def record_of(db: sqlite3.Connection, row: sqlite3.Row, *, points: bool = True, evals: bool = True) -> RunRecord:
    """The record of a row, with or without its events."""
    run_id = row["run_id"]
    return RunRecord(
        settings=settings_from_dict(json.loads(row["settings_json"])),
        layers=tuple(json.loads(row["layers_json"])),
        measures=measures_from_dict(json.loads(row["measures_json"])),
        phases=tuple(json.loads(row["phases_json"])),
        points=tuple(map(step_event, payloads(db, "points", run_id))) if points else (),
        evals=tuple(map(eval_event, payloads(db, "evaluations", run_id))) if evals else (),
        provenance=json.loads(row["provenance_json"]),
        result=row["result_json"] and json.loads(row["result_json"]),
        **{key: row[key] for key in ("run_id", "status", "name", "error", "created", "started", "ended", "heartbeat")},
    )


def insert_run(db: sqlite3.Connection, row: Mapping[str, Any]) -> bool:
    """Insert the row of a run; False if that run is there already, which is left as it is."""
    if _insert(db, "IGNORE", "runs", row):
        return True
    if row_of(db, row["run_id"])["settings_hash"] != row["settings_hash"]:
        raise LabError(f"run {row['run_id']} is there with other settings; make ids with ftp.lab.record.run_id")
    return False


def insert_event(db: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    """Insert the row of an event, in place of the one of the same step."""
    _insert(db, "REPLACE", table, row)


def _insert(db: sqlite3.Connection, or_else: str, table: str, row: Mapping[str, Any]) -> bool:
    sql = f"INSERT OR {or_else} INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
    return db.execute(sql, tuple(row.values())).rowcount == 1


def update(db: sqlite3.Connection, run_id: str, **columns: Any) -> None:
    """Set columns of a run."""
    sql = f"UPDATE runs SET {', '.join(f'{column} = ?' for column in columns)} WHERE run_id = ?"
    db.execute(sql, (*columns.values(), run_id))


def row_from(record: RunRecord, code_version: str) -> dict[str, Any]:
    """The row of a record in the table `runs`, by column."""
    settings = record.settings.as_dict()
    return {
        **{key: getattr(record, key) for key in ("run_id", "status", "name", "created", "started", "ended")},
        "settings_json": dump(settings),
        "settings_hash": hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16],
        "code_version": code_version,
        "layers_json": dump(record.layers),
        "measures_json": dump(record.measures.as_dict()),
        "phases_json": dump(record.phases),
        "provenance_json": dump(record.provenance),
        "result_json": None if record.result is None else dump(record.result),
        "error": storable(record.error),
    }


def event_row(run_id: str, event: StepEvent | EvalEvent, wall: float) -> tuple[str, dict[str, Any]]:
    """The table an event belongs to, and its row by column."""
    row = {"run_id": run_id, "step": event.step, "wall": wall, "payload": dump(vars(event))}
    return ("evaluations", {**row, "final": event.final}) if isinstance(event, EvalEvent) else ("points", row)


def result_json(db: sqlite3.Connection, run_id: str) -> str:
    """The result of a run that has its final evaluation."""
    return dump(result_of(record_of(db, row_of(db, run_id))))


def take_in(db: sqlite3.Connection, run: RunRecord, code_version: str, now: float) -> None:
    """Write a run that was made elsewhere; to one that is there, only a finished one adds something."""
    row = row_from(run, code_version)
    events: list[StepEvent | EvalEvent] = [*run.points, *run.evals]
    if insert_run(db, row):
        if run.status == "running":  # its process is not here
            update(db, run.run_id, status="interrupted")
    else:
        existing = record_of(db, row_of(db, run.run_id), points=False)
        if run.status != "done" or existing.status == "running":
            return
        if existing.status == "done" and existing.final and run.final:
            events = [joined(existing.final, run.final)]
        else:
            for table in ("points", "evaluations"):
                db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run.run_id,))
            columns: tuple[str, ...] = ("status", "error", "started", "ended", "provenance_json", "code_version")
            columns += ("layers_json", "measures_json", "phases_json")
            update(db, run.run_id, **{column: row[column] for column in columns})
    for event in events:
        insert_event(db, *event_row(run.run_id, event, now))
    if run.status == "done":
        update(db, run.run_id, result_json=result_json(db, run.run_id))


def joined(final: EvalEvent, more: EvalEvent) -> EvalEvent:
    """A final evaluation, with the corruptions that another one of the same run has besides.

    >>> joined(EvalEvent(9, {}, {"fog": (1.0,)}), EvalEvent(9, {}, {"fog": (3.0,), "snow": (2.0,)})).corruptions
    {'fog': (1.0,), 'snow': (2.0,)}
    """
    corruptions, counts = {**more.corruptions, **final.corruptions}, {**more.counts, **final.counts}
    return replace(final, corruptions=corruptions, counts=counts)
