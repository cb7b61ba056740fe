"""The Race view: recorded runs replay, missing ones are trained, the table can be taken along."""

import statistics

import pytest
from app_views import bold, keep, open_view, sent

from app.supervisor import supervisor
from app.views import race
from ftp.lab.recordings import recorded, typical_seed
from ftp.lab.settings import resolve


def test_the_means_of_the_recorded_seeds_race_at_once():
    page = open_view("race")
    runs = sent(page)["runs"]
    assert [run["name"] for run in runs] == [race._title(name) for name in race.FIRST]
    assert all(run["evals"][-1]["step"] == 300 for run in runs)
    assert len({(run["color"], run["marker"]) for run in runs}) == len(runs)
    ends = [run.result["ood_avg"] for run in recorded(method="ftp")]
    last = runs[race.FIRST.index("ftp")]["evals"][-1]
    assert last["summary"]["shift_mean"] == pytest.approx(statistics.fmean(ends))
    assert last["spread"]["shift_mean"] == pytest.approx(statistics.stdev(ends))


def test_one_seed_alone_is_the_one_nearest_to_the_mean():
    page = open_view("race", seeds=race.ONE)
    assert page.number_input(key="seed").value == typical_seed("digits") == 5
    assert [run["id"] for run in sent(page)["runs"]] == [recorded(method=name, seed=5)[0].run_id for name in race.FIRST]
    page.radio(key="winner").set_value("FTP").run()
    assert "cannot tell who is better" in bold(page)[-1]


def test_the_answer_comes_after_the_guess_and_a_difference_in_the_noise_is_no_victory():
    page = open_view("race")
    assert "Make your guess" in bold(page)[-1]
    page.radio(key="winner").set_value("Vanilla FT").run()
    scores = {name: {run.settings.seed: run.result["ood_avg"] for run in recorded(method=name)} for name in race.FIRST}
    best = max(scores, key=lambda name: statistics.fmean(scores[name].values()))
    differences = [scores[best][seed] - scores["tpgm"][seed] for seed in range(10)]
    sure = statistics.fmean(differences) > 3 * statistics.stdev(differences) / 10**0.5
    assert bold(page)[-1].startswith(f"Not as you guessed (Vanilla FT): {race._title(best)}")
    assert ("TPGM is about the same" in bold(page)[-1]) == (best != "tpgm" and not sure)


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
    supervisor().change_limits(queue=4)
    next(b for b in page.button if b.label == "Train them").click().run()
    assert [error.value.replace("\\", "") for error in page.error] == [
        "0 runs are waiting, and 4 are the most here; try again soon."
    ]
    assert supervisor().store.runs() == []  # all of a race, or nothing
    supervisor().change_limits(queue=5)
    next(b for b in page.button if b.label == "Train them").click().run()
    assert not page.error  # five runs in one request, though everybody may have three
    assert len(sent(page)["runs"]) == 5


def test_the_table_never_mixes_recorded_runs_with_ones_own():
    page = open_view("race", methods=["finetune", "ftp"], guess="no")
    table = next(m.value for m in page.markdown if m.value.startswith("| Method"))
    assert table.count("\n") == 3
    assert table.count("| 10 |") == 2  # ten seeds
    assert "| - | 10 |" not in table  # the seconds of a step are there
    assert len(page.get("download_button")) == 4  # the points of the race, and the table in three forms
    keep("00000000000000aa", settings=resolve("digits", "ftp", {"seed": 77}))
    page = open_view("race", methods=["finetune", "ftp"], guess="no")
    assert next(m.value for m in page.markdown if m.value.startswith("| Method")) == table
    page.radio(key="table_of").set_value(race.MINE).run()
    mine = next(m.value for m in page.markdown if m.value.startswith("| Method"))
    assert mine.count("\n") == 2
    assert "| 1 |" in mine


def test_a_method_that_equals_fine_tuning_is_explained():
    page = open_view("race", methods=["finetune", "mars_sp"], guess="no")
    assert any("MARS-SP equals Vanilla FT" in caption.value for caption in page.caption)
    page = open_view("race", methods=["finetune", "ftp"], guess="no")
    assert not any("MARS-SP" in caption.value for caption in page.caption)


def test_the_points_of_the_race_can_be_read():
    run = recorded(method="ftp", seed=0)[0]
    lines = race.paths([[run]])
    assert [line["step"] for line in lines] == [entry.step for entry in run.evals]
    assert lines[-1] == {
        "method": "FTP",
        "seed": 0,
        "step": 300,
        "ID": run.result["id"],
        "OOD": pytest.approx(run.result["ood_avg"]),
    }


def test_the_table_waits_for_the_guess_and_the_papers_numbers_come_on_demand():
    page = open_view("race", methods=["finetune", "bitfit", "ftp"])
    assert not any(m.value.startswith("| Method") for m in page.markdown)
    page.radio(key="winner").set_value("FTP").run()
    assert [m.value.count("\n") for m in page.markdown if m.value.startswith("| Method")] == [4]
    page.toggle(key="paper").set_value(True).run()
    tables = [m.value for m in page.markdown if m.value.startswith("| Method")]
    assert len(tables) == 3
    assert "| FTP | **84.22** (0.11) |" in tables[2]
    assert "Linear Prob." not in tables[1]
    assert any("other data, another network" in text for text in bold(page))
    said = " ".join(caption.value for caption in page.caption).replace("\\", "")
    assert "Source: Tian, Liu, Smith, Kira" in said
    assert "BitFit is not in these tables" in said
    assert "paper=true" in next(code.value for code in page.code if "/race?" in code.value)


def test_a_point_on_the_way_of_one_seed_has_the_error_of_its_images():
    page = open_view("race", seeds=race.ONE)
    run = recorded(method="ftp", seed=5)[0]
    rows = sent(page)["runs"][race.FIRST.index("ftp")]["evals"]
    right = run.evals[1].main["id"] / 100 * 200
    share = (right + 2) / 204
    assert rows[1]["spread"]["home"] == pytest.approx(100 * (share * (1 - share) / 204) ** 0.5)
    assert rows[-1]["spread"]["shift_mean"] < rows[1]["spread"]["shift_mean"]
    said = " ".join(caption.value for caption in page.caption)
    assert "On the way: 200 images at home, 100 of each shift; at the end: 1500 and 1000; bars" in said
