"""What goes into the store comes out, through its rows and through shipped data; nonsense is refused."""

import json
import math
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.stores import FINAL, MEASURES, OTHER, RUN, SMALL, START, finished, point, told

from ftp.lab.record import EvalEvent, LabError, Settings, StepEvent, event_dict
from ftp.lab.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "runs.db") as opened:
        opened.create(RUN, Settings(), name="first")
        yield opened


real = st.floats(-1e300, 1e300)
any_real = st.floats()
percents = st.dictionaries(st.text(max_size=5), any_real, max_size=4)
data = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | real | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def layers(values: Any) -> Any:
    return st.tuples(values, values)


points = st.builds(
    StepEvent,
    step=st.integers(0, 2**63 - 1),
    loss=any_real,
    lr=any_real,
    gamma=layers(st.none() | real),
    distance=layers(any_real),
    boundary=layers(st.none() | real),
    seconds=any_real,
    phase=st.integers(0, 9),
)
evaluations = st.builds(
    EvalEvent,
    step=st.integers(0, 400),
    scores=st.dictionaries(st.text(max_size=5), percents, max_size=3),
    corruptions=st.dictionaries(st.text(max_size=5), st.lists(any_real, max_size=5).map(tuple), max_size=3),
    lipschitz=st.dictionaries(st.text(max_size=5), data, max_size=3),
    counts=st.dictionaries(st.text(max_size=5), st.integers(0, 10**6), max_size=3),
    final=st.booleans(),
    phase=st.integers(0, 9),
    whole=st.booleans(),
    answers=st.dictionaries(st.text(max_size=5), st.lists(st.integers(0, 999), max_size=5).map(tuple), max_size=3),
)


def as_stored(value: Any) -> Any:
    """The oracle: the same, but no infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else math.nan
    if isinstance(value, dict):
        return {key: as_stored(entry) for key, entry in value.items()}
    return tuple(map(as_stored, value)) if isinstance(value, tuple) else value


def test_load_gives_back_the_events(store: Store) -> None:
    ids = (f"{number:016x}" for number in range(1, 10**6))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(points | evaluations, max_size=6, unique_by=lambda e: (type(e), e.step, getattr(e, "final", 0))))
    def try_it(events: list[StepEvent | EvalEvent]) -> None:
        run = next(ids)
        store.create(run, Settings())
        store.append(run, events)
        record = store.load(run)
        for kind, found in ((StepEvent, record.points), (EvalEvent, record.evals)):
            sent = [kind(**{key: as_stored(v) for key, v in vars(e).items()}) for e in events if isinstance(e, kind)]
            sent.sort(key=lambda e: (e.step, getattr(e, "final", 0)))
            assert list(map(repr, found)) == list(map(repr, sent))  # repr, for NaN is not equal to itself

    try_it()


def test_numbers_of_evaluations_can_be_asked_for_in_sql(store: Store) -> None:
    store.start(RUN, START)
    store.append(RUN, [SMALL, replace(FINAL, phase=1)])
    db = sqlite3.connect(store.path)
    sql = "SELECT phase, metric, split, role, severity, value, n FROM evals WHERE run_id = ? AND final"
    rows = db.execute(sql, (RUN,)).fetchall()
    db.close()
    assert rows == [
        (1, "accuracy", "val", "val", None, 90.0, None),
        (1, "accuracy", "id", "home", None, 91.5, 1000),
        (1, "accuracy", "sketch", "shift", None, 70.0, 300),
        (1, "accuracy", "typeset", "shift", None, 80.0, None),
        (1, "ece", "id", "home", None, 3.5, 1000),
        *((1, "accuracy", "fog", "corruption", i + 1, 90.0 - 10 * i, None) for i in range(5)),
    ]


def test_export_and_import(store: Store, tmp_path: Path) -> None:
    finished(store)
    shipped = json.loads(json.dumps(store.export(RUN), allow_nan=False))
    with Store(tmp_path / "other.db") as other:
        assert other.import_(shipped) == RUN
        assert other.export(RUN) == shipped == store.export(RUN)
        assert repr(other.load(RUN).points) == repr(store.load(RUN).points)
        other.rename(RUN, "mine")
        other.delete(RUN)
        assert other.import_(shipped) == RUN
        assert other.runs() == []  # what a person put into the bin stays there
        other.undelete(RUN)
        assert other.load(RUN).name == "mine"
        other.import_({**shipped, "run_id": OTHER, "status": "running", "result": None})
        assert other.status(OTHER) == "interrupted"  # its process is not here


def test_runs_from_before_answers_were_kept_have_none(store: Store, tmp_path: Path) -> None:
    finished(store)
    shipped = store.export(RUN)
    for event in shipped["evals"]:
        del event["answers"]
    with Store(tmp_path / "other.db") as other:
        other.import_(shipped)
        assert [event.answers for event in other.load(RUN).evals] == [{} for _ in shipped["evals"]]


@pytest.mark.parametrize("status", ["queued", "stopped", "failed", "running", "done"])
def test_a_finished_run_from_elsewhere_completes_the_one_here(tmp_path: Path, status: str) -> None:
    snow = {"snow": (5.0, 4.0, 3.0, 2.0, 1.0)}
    with Store(tmp_path / "other.db") as other:
        finished(other)
        other.append(RUN, [point(3), replace(FINAL, corruptions=snow)])
        other.finish(RUN, "done")
        done = other.export(RUN)
        part = {**done, "status": "stopped", "evals": [], "result": None}
    with Store(tmp_path / "here.db") as here:
        here.create(RUN, Settings(), name="mine")
        here.append(RUN, [point(1), point(9)])
        if status == "running":
            here.claim(RUN)
        elif status == "done":
            finished(here)
        elif status != "queued":
            here.finish(RUN, status, "some error")
        before = here.export(RUN)
        here.import_(part)
        assert here.export(RUN) == before  # an unfinished one adds nothing
        here.import_(done)
        record = here.load(RUN)
        assert (record.name, record.created) == ("mine", before["created"])
        if status == "running":
            assert here.export(RUN) == before
        elif status == "done":
            assert [e.step for e in record.points] == [1, 2, 4, 9]
            assert record.final == replace(FINAL, corruptions={**snow, **FINAL.corruptions})
        else:
            assert [e.step for e in record.points] == [2, 3, 4]
            assert (record.evals[-1].corruptions, record.error) == (snow, "")
        if status != "running":
            assert record.status == "done"
            assert record.result is not None
            assert "snow" in record.result["corruptions"]
        other_settings = {**done, "settings": {**done["settings"], "seed": 7}}
        assert told(here.import_, other_settings) == (
            f"run {RUN} is there with other settings; make ids with ftp.lab.record.run_id"
        )


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"format": "ftp-lab run 9"}, "format must be 'ftp-lab run 2'"),
        ({"status": "ready"}, "status must be one of queued, running, done, stopped, failed, interrupted"),
        ({"error": 1}, "error must be text"),
        ({"created": None}, "created must be a number"),
        ({"created": 10**400}, "created must be a number"),
        ({"provenance": []}, "provenance must be a table"),
        ({"result": []}, "result must be a table"),
        ({"settings": {"lr": [1]}}, "settings must be a flat table"),
        ({"settings": {"k": None}}, "settings must be a flat table"),
        ({"settings": {"k": 10**400}}, "settings must be a flat table"),
        ({"settings": {}}, "the setting world must be text"),
        ({"layers": [1]}, "layers must be names"),
        ({"layers": ["one"]}, "a point with a bad gamma"),
        ({"points": {}}, "points must be a list of tables"),
        ({"points": [{"step": 1}]}, "a bad point"),
        ({"evals": "x"}, "evals must be a list of tables"),
        ({"evals": [{"step": 1}]}, "an evaluation without step or final"),
        ({"evals": [{"step": 1, "final": True}]}, "an evaluation without phase or whole"),
        ({"evals": [{**event_dict(FINAL), "phase": -1}]}, "an evaluation without phase or whole"),
        ({"evals": [{**event_dict(FINAL), "scores": {"accuracy": 5}}]}, "an evaluation with a bad scores"),
        ({"evals": [{**event_dict(FINAL), "scores": {"accuracy": {"id": 101}}}]}, "an evaluation with a bad accuracy"),
        ({"evals": [{**event_dict(FINAL), "scores": {"angle": {"id": 1}}}]}, "an evaluation with a bad angle"),
        (
            {"evals": [{**event_dict(FINAL), "scores": {"accuracy": {"id": 1.0, "moon": 2.0}}}]},
            "an evaluation of a split without a role",
        ),
        ({"evals": [{**event_dict(FINAL), "corruptions": {"fog": [101.0]}}]}, "an evaluation with a bad corruptions"),
        ({"evals": [{**event_dict(FINAL), "answers": {"id": [1.5]}}]}, "an evaluation with bad answers"),
        ({"evals": [{**event_dict(FINAL), "answers": {"id": 3}}]}, "an evaluation with bad answers"),
        ({"evals": [{**event_dict(FINAL), "maps": {"id": [1]}}]}, "an evaluation with bad maps"),
        ({"measures": []}, "measures must be metrics and roles"),
        ({"measures": {"metrics": [{"name": "accuracy", "colour": 1}]}}, "measures must be metrics and roles"),
        ({"measures": {"metrics": [{"name": 5}]}}, "measures must be metrics and roles"),
        ({"measures": {"metrics": [{"name": "a", "digits": 10**6}]}}, "measures must be metrics and roles"),
        ({"measures": {"metrics": [{"name": "a", "higher_is_better": 1}]}}, "measures must be metrics and roles"),
        ({"measures": {"metrics": [{"name": "a", "low": math.nan}]}}, "measures must be metrics and roles"),
        ({"measures": {**MEASURES.as_dict(), "roles": {"id": "moon"}}}, "measures must be metrics and roles"),
        ({"phases": []}, "phases must be names"),
        ({"phases": [1]}, "phases must be names"),
        ({"evals": []}, "done without a final evaluation"),
        (
            {"evals": [{**event_dict(FINAL), "scores": {"accuracy": {"val": 1.0}}}]},
            "a final evaluation without its home score",
        ),
        ({"code_version": 12}, "code_version must be plain text"),
    ],
)
def test_nonsense_is_not_imported(store: Store, wrong: dict[str, Any], reason: str) -> None:
    finished(store)
    shipped = {**store.export(RUN), "run_id": OTHER}
    assert told(store.import_, {**shipped, **wrong}) == (
        f"this is no recorded run ({reason}); write one with Store.export"
    )
    for key in shipped:
        assert told(store.import_, {k: v for k, v in shipped.items() if k != key}).startswith("this is no recorded run")
    assert told(store.import_, {**shipped, "run_id": "../x"}).startswith("'../x' is no run id")
    assert told(store.import_, {**shipped, "name": "\n"}).startswith("'\\n' is no name")
    assert [run.run_id for run in store.runs()] == [RUN]


def test_any_data_is_taken_or_refused_with_a_sentence(store: Store) -> None:
    finished(store)
    shipped = {**store.export(RUN), "run_id": OTHER}
    odd: Any = st.sampled_from([10**400, -1, 2**63, math.nan, math.inf, True, "\udcff", [[]], {"a": {}}, None])

    @settings(max_examples=100, deadline=None)
    @given(st.data(), data | odd)
    def try_it(draw: st.DataObject, value: Any) -> None:
        wrong = json.loads(json.dumps(shipped))
        place: Any = wrong
        while True:  # walk down to any place in the data, and put the value there
            key = draw.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or draw.draw(st.booleans()):
                break
            place = place[key]
        place[key] = value
        try:
            run_id = store.import_(wrong)
        except LabError:
            return
        store.load(run_id)
        store.tail(run_id, 0)
        store.runs(text="x")
        if run_id != RUN:
            store.delete(run_id)
            store.purge(-1.0)

    try_it()
