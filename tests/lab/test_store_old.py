"""Stores and recorded runs of the time when every score was an accuracy: they open, list, draw and go on.

`store_v2.sql` and `run_v1.json` were written by that code: short runs of digits in every status, and the export of one.
"""

import json
import math
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.cli import Call
from lab.runs import equal
from lab.stores import sound, told
from safetensors import safe_open
from safetensors.torch import save_file

from ftp.lab import worlds
from ftp.lab.__main__ import main
from ftp.lab.figures import FIGURES, draw
from ftp.lab.models import read_weights
from ftp.lab.record import LabError, RunRecord, finite, result_of
from ftp.lab.run import carry_out, execute, identify
from ftp.lab.store import Store, database
from ftp.lab.table import rows, to_csv, to_latex, to_markdown
from ftp.lab.train import finetune

HERE = Path(__file__).parent
FINETUNE, FTP, HALF = "16c53681b4564c12", "718cf5372445941f", "03476057bc3feeb9"
STATUSES = {
    FINETUNE: ("finetune", "done"),
    FTP: ("ftp", "done"),
    HALF: ("ftp", "stopped"),
    "52f938d479853891": ("finetune", "failed"),
    "9bf17de5e9a5f6fb": ("tpgm", "queued"),
    "682e39871a194c4c": ("l2_sp", "running"),
    "4ec24472977712a7": ("mars_sp", "interrupted"),
}
BINNED = "200afd032709a75e"
SHIFTS = ("optdigits", "typeset", "texture", "colour", "sketch")


@pytest.fixture
def path(path: Path) -> Path:
    """The old store, in the place of a person's own."""
    db = sqlite3.connect(path)
    db.executescript((HERE / "store_v2.sql").read_text())
    db.close()
    return path


@pytest.fixture
def before(path: Path) -> dict[str, list[dict[str, Any]]]:
    """What the old file holds of each run's evaluations, as it was written."""
    held: dict[str, list[dict[str, Any]]] = {run: [] for run in (*STATUSES, BINNED)}
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    for run, payload in db.execute("SELECT run_id, payload FROM evaluations ORDER BY run_id, step, final"):
        held[run].append(json.loads(payload))
    db.close()
    return held


@pytest.fixture
def store(path: Path, before: object) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def test_it_is_brought_up_and_lists_every_status(store: Store, tmp_path: Path) -> None:
    assert {run.run_id: (run.settings.method, run.status) for run in store.runs()} == STATUSES
    assert [run.run_id for run in store.runs(deleted=True)] == [BINNED]
    assert {run.name for run in store.runs() if run.name} == {
        "old finetune",
        "old ftp",
        "half finished",
        "in the queue",
    }
    question = "SELECT sql FROM sqlite_master UNION ALL SELECT user_version FROM pragma_user_version"
    with Store(tmp_path / "new.db") as new, store._reading() as db, new._reading() as fresh:
        old, made = ({"".join(str(row[0]).split()) for row in d.execute(question)} for d in (db, fresh))
        assert old == made
        assert db.execute("PRAGMA user_version").fetchone()[0] == database.VERSION == 3
    assert sound(store.path)


def test_every_number_is_what_it_was(store: Store, before: dict[str, list[dict[str, Any]]]) -> None:
    store.undelete(BINNED)
    for run, events in before.items():
        record = store.load(run)
        assert len(record.evals) == len(events)
        for event, old in zip(record.evals, events, strict=True):
            assert event.main == event.scores["accuracy"] == old["accuracy"]
            assert event.scores.get("ece", {}) == old["ece"]
            assert {kind: list(values) for kind, values in event.corruptions.items()} == old["corruptions"]
            assert (event.step, event.counts, event.lipschitz, event.final) == (
                *(old["step"], old["counts"], old["lipschitz"], old["final"]),
            )
            assert (event.phase, event.whole) == (0, old["final"])
            summary = record.summary(event)
            assert summary.home == old["accuracy"]["id"]
            assert summary.shift_mean == pytest.approx(math.fsum(old["accuracy"][s] for s in SHIFTS) / 5, rel=1e-15)
        if events:
            assert [metric.name for metric in record.measures.metrics] == ["accuracy", "ece"]
            assert [metric.higher_is_better for metric in record.measures.metrics] == [True, False]
            new = worlds.load("digits").measures
            assert new.metrics == record.measures.metrics
            assert {name: new.roles[name] for name in record.measures.roles} == record.measures.roles
        if record.status == "done":
            assert record.result == finite(result_of(record))


def test_the_numbers_can_be_asked_for_in_sql(store: Store, before: dict[str, list[dict[str, Any]]]) -> None:
    roles = {"id": "home", "val": "val", **dict.fromkeys(SHIFTS, "shift")}
    wanted = set()
    for run, events in before.items():
        for old in events:
            place = (run, old["step"], old["final"])
            for metric in ("accuracy", "ece"):
                wanted |= {(*place, metric, split, roles[split], None, v) for split, v in old[metric].items()}
            for kind, values in old["corruptions"].items():
                wanted |= {(*place, "accuracy", kind, "corruption", i, v) for i, v in enumerate(values, start=1)}
    with store._reading() as db:
        sql = "SELECT run_id, step, final, metric, split, role, severity, value FROM evals"
        assert {tuple(row) for row in db.execute(sql)} == wanted


def test_old_runs_are_drawn_and_make_a_table(store: Store) -> None:
    done = [store.load(run) for run in (FINETUNE, FTP)]
    for name, figure in FIGURES.items():
        if figure.needs in ("one", "many"):
            assert draw(name, done[1] if figure.needs == "one" else done).data, name
            assert figure.table(done[1] if figure.needs == "one" else done)
    for run in (HALF, "682e39871a194c4c", "4ec24472977712a7"):  # on their way, or cut off
        assert {"loss", "ID", "OOD mean"} <= {trace.name for trace in draw("training", store.load(run)).data}
    table = rows(store.runs(status="done"))  # without their evaluations, as lists are
    assert [(row.method, row.id.mean) for row in table] == [
        ("finetune", pytest.approx(79.53333333333333)),
        ("ftp", pytest.approx(74.73333333333333)),
    ]
    assert table[1].id_delta == pytest.approx(100 * (74.73333333333333 / 79.53333333333333 - 1))
    for form in (to_markdown, to_latex, to_csv):
        assert "nan" not in form(table)


def test_the_page_reads_them(store: Store) -> None:
    tail = store.tail(FTP, 0)
    assert (tail["measures"]["metrics"][0]["name"], len(tail["points"]), len(tail["evals"])) == ("accuracy", 6, 7)
    assert tail["evals"][-1]["summary"] == {"home": 74.73333333333333, "shift_mean": pytest.approx(70.06)}
    assert store.tail("9bf17de5e9a5f6fb", 0)["evals"] == []  # in the queue


def test_the_command_line_lists_and_shows_them(path: Path, lab: Call) -> None:
    code, out, err = lab("runs")
    assert (code, err) == (0, "")
    assert all(run in out for run in STATUSES)
    assert BINNED not in out


def test_a_dead_run_is_found_and_every_unfinished_one_can_be_claimed(store: Store) -> None:
    assert store.sweep_stale() == ["682e39871a194c4c"]
    for run, (_, status) in STATUSES.items():
        assert store.claim(run) is (status != "done")


def old_checkpoint(record: RunRecord, path: Path, steps: int) -> None:
    """The checkpoint of a run as the old code wrote it: it knew no phases."""
    run = finetune(record.settings, device="cpu", checkpoint=path, watches=0, evaluate_at_end=False)
    for _ in range(steps):
        run.advance()
    run.save()
    with safe_open(path, framework="pt") as file:
        note, tensors = dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert note.pop("phase") == "0"
    save_file(tensors, path, metadata=note)


def test_a_half_finished_run_is_resumed_on_the_command_line(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    half = store.load(HALF)
    old_checkpoint(half, store.checkpoint_path(HALF), steps=3)
    assert main(["runs", "resume", HALF[:8], "--store", str(store.path)]) == 0
    assert f"(run {HALF})" in capsys.readouterr().out
    assert store.status(HALF) == "done"
    assert store.load(HALF).points[:3] == half.points


def test_a_half_finished_run_goes_on_to_the_same_bits(store: Store, tmp_path: Path) -> None:
    half = store.load(HALF)
    assert identify(half.settings) != HALF  # today's code would call it otherwise
    old_checkpoint(half, store.checkpoint_path(HALF), steps=3)
    done = carry_out(HALF, store, device="cpu", kinds=["fog"])
    with Store(tmp_path / "whole.db") as other:
        whole = execute(half.settings, other, device="cpu", kinds=["fog"])
        assert equal(read_weights(store.weights_path(HALF)), read_weights(other.weights_path(whole.run_id)))
    assert (done.status, done.name, [p.step for p in done.points]) == ("done", "half finished", [1, 2, 3, 4, 5, 6])
    assert done.points[:3] == half.points  # those of the old code are kept
    for mine, theirs in zip(done.points, whole.points, strict=True):
        # the first three were made on another machine, maybe with other kernels
        same = (lambda x: x) if mine.step > 3 else (lambda x: pytest.approx(x, rel=1e-3, abs=1e-5))
        assert (mine.loss, mine.gamma, mine.distance) == (same(theirs.loss), same(theirs.gamma), same(theirs.distance))
    assert done.final is not None
    assert whole.final is not None
    assert done.final.scores == whole.final.scores
    assert done.measures == whole.measures == worlds.load("digits").measures
    assert draw("training", done).data


def test_what_it_exports_can_be_imported(store: Store, tmp_path: Path) -> None:
    with Store(tmp_path / "other.db") as other:
        for run in (FTP, HALF, "52f938d479853891", "4ec24472977712a7"):
            shipped = json.loads(json.dumps(store.export(run), allow_nan=False))
            other.import_(shipped)
            assert other.export(run) == shipped


def test_several_open_it_at_once(path: Path) -> None:
    faults: list[BaseException] = []
    gate = threading.Barrier(4)

    def look() -> None:
        try:
            gate.wait()
            with Store(path) as store:
                assert len(store.runs()) == len(STATUSES)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert sound(path)


EVENT = {
    "step": 1,
    "final": True,
    "accuracy": {"id": 90.0},
    "ece": {},
    "corruptions": {},
    "lipschitz": {},
    "counts": {},
}


def old_form() -> Any:
    form = json.loads((HERE / "run_v1.json").read_text())
    assert form["format"] == "ftp-lab run 1"
    return form


def test_an_old_recorded_run_is_what_the_old_store_holds(store: Store, tmp_path: Path) -> None:
    """Two ways up, one result."""
    form = old_form()
    with Store(tmp_path / "new.db") as new:
        assert new.import_(form) == FTP
        mine, theirs = new.load(FTP), store.load(FTP)
        assert (mine.points, mine.evals, mine.measures) == (theirs.points, theirs.evals, theirs.measures)
        assert mine.result == theirs.result
        assert mine.result is not None
        for key in ("id", "val", "ood", "ood_avg", "corruptions", "corruption_avg", "constraints", "lipschitz"):
            assert mine.result[key] == form["result"][key]
        assert mine.result["scores"]["ece"] == form["result"]["ece"]
        assert new.export(FTP)["format"] == "ftp-lab run 2"
    assert store.import_(form) == FTP  # into the store that has it
    assert store.load(FTP).evals == theirs.evals


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"evals": [{"step": 1, "final": True}]}, "an evaluation is broken"),
        ({"evals": 5}, "an evaluation is broken"),
        ({"evals": [{**EVENT, "accuracy": {"id": 101}}]}, "an evaluation with a bad accuracy"),
        ({"evals": [{**EVENT, "ece": {"id": -1}}]}, "an evaluation with a bad ece"),
        ({"evals": [{**EVENT, "accuracy": {"val": 90.0}}]}, "a final evaluation without its home score"),
        ({"evals": []}, "done without a final evaluation"),
        ({"result": 5}, "an evaluation is broken"),
    ],
)
def test_nonsense_in_the_old_form_is_one_sentence(tmp_path: Path, wrong: dict[str, Any], reason: str) -> None:
    with Store(tmp_path / "new.db") as new:
        assert told(new.import_, {**old_form(), **wrong}) == (
            f"this is no recorded run ({reason}); write one with Store.export"
        )


def test_any_data_in_the_old_form_is_taken_or_refused_with_a_sentence(tmp_path: Path) -> None:
    shipped = old_form()
    shipped["points"] = shipped["points"][:1]
    odd = st.sampled_from([10**400, -1, 2**63, math.nan, True, "\udcff", "x", [[]], [], {}, {"a": {}}, None, 5, 1.5])
    store = Store(tmp_path / "new.db")

    @settings(max_examples=150, deadline=None)
    @given(st.data(), odd)
    def try_it(pick: st.DataObject, value: Any) -> None:
        wrong = json.loads(json.dumps(shipped))
        place: Any = wrong
        while True:  # walk down to any place in the data, and put the value there
            key = pick.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or pick.draw(st.booleans()):
                break
            place = place[key]
        place[key] = value
        try:
            run = store.import_(wrong)
        except LabError:
            return
        store.load(run)
        store.tail(run, 0)
        store.delete(run)
        store.purge(-1.0)

    try_it()
    store.close()
