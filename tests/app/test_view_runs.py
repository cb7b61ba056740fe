"""The Runs view: what is found, and what can be done with it."""

import json
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from app_views import bold, keep, open_view

from app.supervisor import supervisor
from app.views import runs
from ftp.lab.recordings import recorded
from ftp.lab.store import serialisation


def shown(page):
    return page.dataframe[0].value


def test_recorded_runs_are_there_from_the_start():
    page = open_view("runs")
    there = {run.run_id for run in recorded() if run.points}
    assert set(shown(page)["id"]) == there
    assert bold(page)[0].startswith(f"{len(there)} runs, {len(there)} of them done")
    page.toggle(key="recorded").set_value(False).run()
    assert bold(page)[0].startswith("No run fits")


def test_a_run_of_ones_own_is_in_the_plane_with_the_recorded_ones():
    """Older recordings do not name the split that they trained on; their scores stand on the same pictures."""
    old = recorded(method="ftp", seed=0)[0]
    roles = {"train": "train", **old.measures.roles}
    result = {**old.result, "run_id": "00000000000000aa", "seed": 77}
    measures, settings = replace(old.measures, roles=roles), replace(old.settings, seed=77)
    run = replace(old, run_id="00000000000000aa", measures=measures, settings=settings, result=result)
    supervisor().store.import_(serialisation.to_form(run, "test"))
    page = open_view("runs")
    plane = json.loads(page.get("plotly_chart")[0].proto.spec)
    assert sum(len(trace["x"]) for trace in plane["data"]) == 1 + sum(bool(run.points) for run in recorded())


def test_finding_by_name_method_and_status():
    keep("00000000000000aa", name="[my](http://x) run")
    keep("00000000000000bb", method="tpgm")
    page = open_view("runs", text="my", recorded="false")
    assert list(shown(page)["id"]) == ["00000000000000aa"]
    assert not any("http://x" in m.value.replace("\\", "") for m in page.markdown)
    page = open_view("runs", of="tpgm", recorded="false")
    assert list(shown(page)["id"]) == ["00000000000000bb"]
    page = open_view("runs", status="failed")
    assert bold(page)[0].startswith("No run fits")


@pytest.fixture
def one():
    """The view with one run ticked, by its address."""
    keep("00000000000000aa", name="mine")
    return open_view("runs", runs="00000000000000aa")


def test_a_link_ticks_the_same_runs_and_shows_the_same_picture():
    keep("00000000000000aa", name="mine")
    kept = recorded(method="tpgm", seed=0)[0].run_id
    page = open_view("runs", runs=["00000000000000aa", kept, "nonsense"], picture="training")
    assert [s.value for s in page.subheader] == ["Where their settings differ"]
    assert page.radio(key="picture").value == "curves"  # training is a picture of one run
    link = next(code.value for code in page.code if "/runs?" in code.value)
    assert parse_qs(urlsplit(link).query)["runs"] == ["00000000000000aa", kept]
    again = open_view("runs", runs=kept, picture="distance")
    assert again.radio(key="picture").value == "distance"
    assert "picture=distance" in next(code.value for code in again.code if "/runs?" in code.value)
    assert any(t.value == "without a name: TPGM, seed 0, 300 steps (done)" for t in again.text)


def test_ticks_stay_with_their_runs_when_others_arrive(one):
    keep("00000000000000bb", method="tpgm", name="newer", created=2e9)
    one.run()
    assert list(shown(one)["id"])[:2] == ["00000000000000bb", "00000000000000aa"]
    assert any(t.value == "mine: FTP, seed 0, 300 steps (done)" for t in one.text)


def test_the_bin_is_there_after_a_reload(one):
    one.button(key="delete").click().run()
    fresh = open_view("runs")
    assert [e.label for e in fresh.expander if e.label.startswith("Bin")] == ["Bin (1)"]
    fresh.button(key="back 00000000000000aa").click().run()
    assert [run.run_id for run in supervisor().store.runs()] == ["00000000000000aa"]
    assert not any(e.label.startswith("Bin") for e in fresh.expander)


def test_delete_can_be_undone(one):
    assert any(t.value == "mine: FTP, seed 0, 300 steps (done)" for t in one.text)
    one.button(key="delete").click().run()
    assert not one.error
    assert supervisor().store.runs() == []
    one.button(key="undo").click().run()
    assert [run.run_id for run in supervisor().store.runs()] == ["00000000000000aa"]


def test_rename_keeps_the_name_as_it_is(one):
    one.text_input[1].set_value("**bold**")
    next(b for b in one.button if b.label == "Rename").click().run()
    assert supervisor().store.load("00000000000000aa").name == "**bold**"
    assert any(t.value.startswith("**bold**: FTP") for t in one.text)


def test_what_is_exported_can_be_taken_in_again():
    run = keep("00000000000000aa")
    assert serialisation.from_form(json.loads(runs._json(run))).points == run.points
    kept = recorded(method="tpgm", seed=0)[0]
    assert serialisation.from_form(json.loads(runs._json(kept))).run_id == kept.run_id


def test_runs_are_filtered_by_column_and_sorted_and_the_link_says_so():
    page = open_view("runs", text="OOD > 85 seed = 0", order="best OOD first")
    there = [run for run in recorded() if run.points and run.settings.seed == 0 and run.result["ood_avg"] > 85]
    assert list(shown(page)["id"]) == [r.run_id for r in sorted(there, key=lambda r: -r.result["ood_avg"])]
    link = parse_qs(urlsplit(next(code.value for code in page.code if "/runs?" in code.value)).query)
    assert (link["text"], link["order"]) == (["OOD > 85 seed = 0"], ["best OOD first"])
    page = open_view("runs", text="tpgm lr<=1 status=done")
    assert list(shown(page)["id"]) == [run.run_id for run in recorded(method="tpgm") if run.points]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("speed > 3", "No run has a column speed; write one of world, method"),
        ("OOD > high", "OOD > high compares with no number; write one, such as OOD > 0.5."),
    ],
)
def test_a_search_that_cannot_be_meant_is_told(text, sentence):
    page = open_view("runs")
    page.text_input(key="text").set_value(text).run()
    assert page.error[0].value.replace("\\", "").startswith(sentence)


def test_what_chosen_runs_differ_in_is_shown_and_nothing_else():
    ids = [recorded(method=name, seed=0)[0].run_id for name in ("finetune", "ftp")]
    page = open_view("runs", runs=ids)
    table = next(t.value for t in page.table if "setting" in t.value)
    settings = list(table["setting"])
    assert settings[0] == "method"
    assert settings[-2:] == ["→ ID", "→ OOD"]
    assert {"lr", "k"} <= {name.replace("\\", "") for name in settings}
    assert not {"seed", "steps", "world"} & set(settings)  # they are equal
    by_setting = {row["setting"]: row for _, row in table.iterrows()}
    assert by_setting["k"]["Vanilla FT"] == "–"  # it has none
