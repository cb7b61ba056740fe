"""The store with runs of two worlds: there and back, its tables for SQL, and what is asked by status."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ftp.lab.record import LabError, RunRecord
from ftp.lab.run import execute, identify, model_of
from ftp.lab.settings import resolve
from ftp.lab.store import Store


def test_there_and_back(trained: Store, runs: dict[str, RunRecord], tmp_path: Path) -> None:
    with Store(tmp_path / "other.db") as other:
        for run in trained.runs(limit=None):
            other.import_(trained.export(run.run_id))
        for run in runs.values():
            there = other.load(run.run_id)
            assert there == RunRecord(**{**vars(run), "heartbeat": there.heartbeat})
        assert other.load(runs["ftp"].run_id).measures.main.unit == "°"


def test_a_score_outside_the_metric_s_range_is_refused(trained: Store, runs: dict[str, RunRecord]) -> None:
    data = trained.export(runs["ftp"].run_id)
    data["evals"][0]["scores"]["angle"]["id"] = 179.0  # more than 100, as a percentage never is
    with Store(trained.path.with_name("ranges.db")) as other:
        other.import_(data)
        data["evals"][0]["scores"]["angle"]["id"] = 181.0
        with pytest.raises(LabError) as error:
            other.import_(data)
    assert "an evaluation with a bad angle" in str(error.value)


def test_the_view_of_evaluations_says_metric_and_role(trained: Store, runs: dict[str, RunRecord]) -> None:
    ids = [run.run_id for run in runs.values()]
    places = ", ".join("?" * len(ids))
    with closing(sqlite3.connect(trained.path)) as db:
        kinds = db.execute(
            f"SELECT DISTINCT metric, split, role FROM evals WHERE run_id IN ({places}) ORDER BY split", ids
        ).fetchall()
        best = db.execute(
            f"SELECT run_id FROM evals WHERE final AND role = 'home' AND run_id IN ({places}) ORDER BY value LIMIT 1",
            ids,
        ).fetchone()
        phases = db.execute(
            "SELECT DISTINCT phase, step FROM evals WHERE run_id = ? AND step IN (0, 4, 8) ORDER BY step",
            (runs["ftp"].run_id,),
        ).fetchall()
        both = db.execute("SELECT DISTINCT metric FROM evals WHERE role = 'home' ORDER BY metric").fetchall()
    assert kinds == [("angle", "fog", "corruption"), ("angle", "id", "home"), ("angle", "val", "val")]
    assert best[0] == min(runs.values(), key=lambda run: run.summary().home).run_id
    assert phases == [(0, 0), (0, 4), (1, 8)]
    assert [metric for (metric,) in both] == ["accuracy", "angle", "ece"]


def test_questions_about_a_world_and_a_status(trained: Store, runs: dict[str, RunRecord], tmp_path: Path) -> None:
    assert {run.settings.world for run in trained.runs(world="toy", limit=None)} == {"toy"}
    assert {run.settings.world for run in trained.runs(limit=None)} == {"toy", "digits"}
    assert [run.run_id for run in trained.runs(world="toy", method="ftp", status="done")] == [runs["ftp"].run_id]
    assert trained.runs(world="toy", status="failed") == []
    asked = iter([False] * 5 + [True])
    settings = resolve("toy", "ftp")
    with Store(tmp_path / "runs.db") as store:
        stopped = execute(settings, store, device="cpu", stop=lambda: next(asked))
        assert [run.run_id for run in store.runs(world="toy", status="stopped")] == [stopped.run_id]
        assert (stopped.points[-1].step, stopped.points[-1].phase) == (5, 1)
        done = execute(settings, store, device="cpu")  # goes on inside the second phase
        assert (done.layers, done.phases) == (runs["ftp"].layers, runs["ftp"].phases)
        assert [(p.loss, p.gamma, p.distance) for p in done.points] == [
            (p.loss, p.gamma, p.distance) for p in runs["ftp"].points
        ]
        tail = store.tail(done.run_id, 0)
        assert [event["summary"]["shift_mean"] for event in tail["evals"]] == [None] * len(done.evals)
        assert tail["evals"][-1]["summary"]["home"] == done.summary().home
        assert tail["measures"]["metrics"][0]["higher_is_better"] is False


def test_the_network_of_a_finished_run_comes_back(trained: Store, runs: dict[str, RunRecord]) -> None:
    from ftp.lab import worlds
    from ftp.lab.evaluate import score

    for method in ("adapter", "ftp"):
        run = runs[method]
        assert run.run_id == identify(run.settings)
        assert score(model_of(run, trained), worlds.load("toy"), "id").main == run.summary().home
