"""The Race view: recorded runs replay, missing ones are trained, the table can be taken along."""

import pytest
from app_views import bold, open_view, sent

from app.supervisor import supervisor
from app.views import race
from ftp.lab.recordings import recorded
from ftp.lab.settings import resolve
from ftp.lab.table import rows, to_csv


def test_recorded_runs_race_at_once():
    page = open_view("race")
    runs = sent(page)["runs"]
    assert [run["id"] for run in runs] == [recorded(method=name, seed=0)[0].run_id for name in race.FIRST]
    assert all(run["evals"][-1]["step"] == 300 for run in runs)
    assert len({(run["color"], run["marker"]) for run in runs}) == len(runs)


def test_the_answer_comes_after_the_guess_and_names_the_best():
    page = open_view("race")
    assert "Make your guess" in bold(page)[-1]
    page.radio(key="winner").set_value("Vanilla FT").run()
    found = {run.settings.method: run.result["ood_avg"] for run in recorded(seed=0)}
    best = max(race.FIRST, key=found.__getitem__)
    assert bold(page)[-1].startswith(f"Not as you guessed (Vanilla FT). {race._title(best)} keeps most.")


def test_a_link_chooses_the_methods_and_what_is_missing_can_be_trained():
    page = open_view("race", methods=["linear_probe", "ftp"], seed="77")
    assert page.info[0].value.startswith("None of these is recorded")
    next(b for b in page.button if b.label == "Train them").click().run()
    assert not page.error
    queued = {run.settings for run in supervisor().store.runs()}
    assert queued == {resolve("digits", name, {"seed": 77}) for name in ("linear_probe", "ftp")}
    assert [run["evals"] for run in sent(page)["runs"]] == [[], []]


def test_what_is_refused_is_said_beside_the_chart(monkeypatch):
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    page = open_view("race", methods=["finetune", "bitfit", "adapter", "llrd", "ftp"], seed="0")
    assert not page.error
    page.number_input(key="seed").set_value(77).run()
    next(b for b in page.button if b.label == "Train them").click().run()
    assert [error.value.replace("\\", "")[:30] for error in page.error] == ["you have 3 runs waiting or run"]
    page.run()
    assert len(sent(page)["runs"]) == 3  # those that were taken are followed


def test_the_table_is_the_papers():
    page = open_view("race", methods=["finetune", "ftp"])
    runs = [run for name in ("finetune", "ftp") for run in recorded(method=name)]
    table = next(m.value for m in page.markdown if m.value.startswith("| Method"))
    assert table.count("\n") == 3
    assert to_csv(rows(runs)).splitlines()[1].split(",")[2] == "10"  # ten seeds
    assert "| 10 |" in table
    assert "| - | 10 |" not in table  # the seconds of a step are there
    page.radio(key="table_of").set_value(race.THIS).run()
    assert "| 1 |" in next(m.value for m in page.markdown if m.value.startswith("| Method"))
    assert len(page.get("download_button")) == 4  # the points of the race, and the table in three forms


def test_the_points_of_the_race_can_be_read():
    run = recorded(method="ftp", seed=0)[0]
    lines = race.paths([run])
    assert [line["step"] for line in lines] == [entry.step for entry in run.evals]
    assert lines[-1] == {
        "method": "FTP",
        "step": 300,
        "ID": run.result["id"],
        "OOD": pytest.approx(run.result["ood_avg"]),
    }
