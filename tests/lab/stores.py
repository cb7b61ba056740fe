"""Runs in a store, for the tests of the store: events, a whole run, and processes that write."""

import math
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import PATIENCE, started

from ftp.lab.record import EvalEvent, LabError, RunRecord, Settings, StartEvent, StepEvent
from ftp.lab.store import Store
from ftp.lab.summary import Measures, Metric

WRITER = Path(__file__).with_name("store_writer.py")
RUN, OTHER, ABSENT = "0" * 16, "1" * 16, "f" * 16
LAYERS = ("stem.weight", "stage1.conv1.weight")
MEASURES = Measures(
    (Metric("accuracy"), Metric("ece", higher_is_better=False)),
    {"val": "val", "id": "home", "sketch": "shift", "typeset": "shift"},
)
START = StartEvent(LAYERS, {"device": "cpu", "torch": "2.15"}, measures=MEASURES)
SMALL = EvalEvent(
    2, {"accuracy": {"val": 80.0, "id": 81.0, "sketch": 60.0}}, counts={"val": 500, "id": 1000, "sketch": 300}
)
FINAL = EvalEvent(
    4,
    {"accuracy": {"val": 90.0, "id": 91.5, "sketch": 70.0, "typeset": 80.0}, "ece": {"id": 3.5}},
    {"fog": (90.0, 80.0, 70.0, 60.0, 50.0)},
    {"l_d": [1.0, None], "worst": "stem.weight"},
    {"id": 1000, "sketch": 300},
    final=True,
    whole=True,
)


def point(step: int, loss: float = 1.0) -> StepEvent:
    return StepEvent(step, loss, 0.05, (0.1, None), (0.2 * step, 0.0), (0.5, None), seconds=0.01)


def finished(store: Store, run_id: str = RUN, **given: Any) -> RunRecord:
    """A small run from its queue to its end."""
    store.create(run_id, Settings(**given))
    assert store.claim(run_id)
    store.start(run_id, START)
    store.append(run_id, [point(2), SMALL, point(4, math.nan), FINAL])
    store.finish(run_id, "done")
    return store.load(run_id)


def told(call: Any, *arguments: Any, **named: Any) -> str:
    """The sentence of the LabError that the call raises."""
    with pytest.raises(LabError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def writer(*arguments: object, before: tuple[str, ...] = ()) -> list[str]:
    """The command of a process that writes into a store."""
    return [*before, sys.executable, str(WRITER), *map(str, arguments)]


def outputs(*commands: list[str]) -> list[str]:
    """What these processes, all started at once, say in the end."""
    with started(*commands, stderr=subprocess.PIPE) as processes:
        return [output(process) for process in processes]


def output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return out.strip()


def sound(path: Path) -> bool:
    db = sqlite3.connect(path)
    try:
        return (
            db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            and not db.execute("PRAGMA foreign_key_check").fetchall()
        )
    finally:
        db.close()
