"""The Runs view: what is found, and what can be done with it."""

import json
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from app_views import bold, keep, open_view

from app.supervisor import supervisor
from app.views import runs
from app.widgets import recorded_runs
from ftp.lab.recordings import recorded
from ftp.lab.store import serialisation


def shown(page):
    return page.dataframe[0].value


def plane_of(page):
    return json.loads(page.get("plotly_chart")[0].proto.spec)


def points_in(plane):
    return sum(len(trace["x"]) for trace in plane["data"])


def keep_scenes(run_id, task, **changes):
    """A recorded run of the world of scenes, which has three tasks, put into the server's store under another id."""
    group = "methods" if task == "semseg" else task
    run = replace(recorded("scenes", method="ftp", seed=0, group=group)[0], run_id=run_id, created=2e9, **changes)
    run = replace(run, settings=replace(run.settings, seed=77), result={**run.result, "run_id": run_id, "seed": 77})
    supervisor().store.import_(serialisation.to_form(run, "test"))


def of_scenes(task=None):
    return [run for run in recorded_runs("scenes") if task in (None, run.settings.options["task"])]


def different(some):
    """How many points they are: of runs with equal settings and seeds the plane shows the newest."""
    return len({str(run.settings.as_dict()) for run in some})


def test_recorded_runs_are_there_from_the_start():
    page = open_view("runs")
    there = {run.run_id for run in recorded()}  # also those that are recorded without their steps
    assert set(shown(page)["id"]) == there
    assert bold(page)[0].startswith(f"{len(there)} runs, {len(there)} of them done")
    page.toggle(key="recorded").set_value(False).run()
    assert bold(page)[0] == "Nothing has been trained here yet; train a run in Live, or show the recorded ones."


def test_a_run_of_ones_own_is_in_the_plane_with_the_recorded_ones():
    """Older recordings do not name the split that they trained on; their scores stand on the same pictures."""
    old = recorded(method="ftp", seed=0)[0]
    roles = {"train": "train", **old.measures.roles}
    result = {**old.result, "run_id": "00000000000000aa", "seed": 77}
    measures, settings = replace(old.measures, roles=roles), replace(old.settings, seed=77)
    run = replace(old, run_id="00000000000000aa", measures=measures, settings=settings, result=result)
    supervisor().store.import_(serialisation.to_form(run, "test"))
    page = open_view("runs")
    assert points_in(plane_of(page)) == 1 + len(recorded())


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
    assert any(t.value == "TPGM, seed 0, 300 steps (done)" for t in again.text)


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
    there = [run for run in recorded() if run.settings.seed == 0 and run.result["ood_avg"] > 85]
    assert list(shown(page)["id"]) == [r.run_id for r in sorted(there, key=lambda r: -r.result["ood_avg"])]
    link = parse_qs(urlsplit(next(code.value for code in page.code if "/runs?" in code.value)).query)
    assert (link["text"], link["order"]) == (["OOD > 85 seed = 0"], ["best OOD first"])
    page = open_view("runs", text="tpgm lr<=1 status=done")
    assert set(shown(page)["id"]) == {run.run_id for run in recorded(method="tpgm")}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("speed > 3", "No run has a column speed; write one of world, method"),
        ("OOD > banana", "OOD holds numbers, and 'banana' is none; write one, such as OOD > "),
        ("ood <= 1.2.3", "Ood holds numbers, and '1.2.3' is none; write one, such as ood <= "),
        ("seed < nan", "Seed holds numbers, and 'nan' is none; write one, such as seed < "),
        ("method > ftp", "Method holds words, which have no order; write = or !=, such as method = "),
    ],
)
def test_a_search_that_cannot_be_meant_is_told(text, sentence):
    page = open_view("runs")
    page.text_input(key="text").set_value(text).run()
    assert page.error[0].value.replace("\\", "").startswith(sentence)
    assert bold(page) == []  # one sentence says it


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"text": "nowhere"}, "No run fits the words 'nowhere'; clear them or try others."),
        ({"text": "OOD > 99.9"}, "No run fits OOD > 99.9; clear it or try another."),
        ({"status": "failed"}, "No run fits the status failed; clear it or try another."),
        (
            {"text": "nowhere", "of": "tpgm"},
            "No run fits the words 'nowhere' and the method TPGM together; change one of them.",
        ),
        (
            {"of": "tpgm", "recorded": "false"},
            "No run fits the method TPGM; clear it or try another, or show the recorded ones.",
        ),
    ],
)
def test_an_empty_list_says_what_would_fill_it(query, sentence):
    assert bold(open_view("runs", **query))[0] == sentence


def test_words_are_looked_for_in_the_titles_of_methods_too(monkeypatch):
    keep("00000000000000aa", method="finetune", created=1e9)
    keep("00000000000000bb", method="tpgm", name="newer", created=2e9)
    monkeypatch.setattr(runs, "MOST", 1)  # what does not fit takes no place in the list
    page = open_view("runs", text="vanilla", recorded="false")
    assert list(shown(page)["id"]) == ["00000000000000aa"]
    page = open_view("runs", text="VANILLA ft")
    assert set(shown(page)["id"]) == {"00000000000000aa", *(run.run_id for run in recorded(method="finetune"))}


def test_a_run_recorded_without_its_steps_can_be_trained_but_not_replayed():
    bare = next(run for run in recorded(method="tpgm") if not run.points)
    page = open_view("runs", runs=bare.run_id)
    assert "Train it in Live" in [button.label for button in page.button]
    assert "Replay" not in [button.label for button in page.button]
    assert list(page.radio(key="picture").options) == ["curves", "ID against OOD"]
    assert not page.info


def test_the_plane_shows_one_task_and_says_which():
    page = open_view("runs", world="scenes")
    assert list(page.selectbox(key="runs of one task in scenes").options) == ["any", "Things", "Parts", "Normals"]
    things, every = different(of_scenes("semseg")), len(of_scenes())
    assert len(shown(page)) == every
    plane = plane_of(page)
    assert points_in(plane) == things
    said = f"Things: {things} of the {every} runs listed; choose another Task to see its runs"
    assert plane["layout"]["title"]["subtitle"]["text"] == said


def test_the_plane_shows_the_task_of_the_newest_run_that_was_trained_here():
    keep_scenes("00000000000000aa", "normals", name="older")
    keep_scenes("00000000000000bb", "parts", name="newer")
    page = open_view("runs", world="scenes", order="best OOD first")
    plane, parts = plane_of(page), 1 + different(of_scenes("parts"))
    assert points_in(plane) == parts
    said = plane["layout"]["title"]["subtitle"]["text"]
    assert said.startswith(f"Parts: {parts} of the {2 + len(of_scenes())} runs listed")
    assert not any("task=" in note["text"] for note in plane["layout"]["annotations"])


def test_runs_are_filtered_by_task_and_the_address_says_so():
    keep_scenes("00000000000000aa", "semseg")
    keep_scenes("00000000000000bb", "parts")
    page = open_view("runs", world="scenes")
    page.selectbox(key="runs of one task in scenes").select("parts").run()
    assert set(shown(page)["id"]) == {"00000000000000bb", *(run.run_id for run in of_scenes("parts"))}
    assert page.query_params["task"] == "parts"
    plane = plane_of(page)
    assert points_in(plane) == 1 + different(of_scenes("parts"))
    assert "Parts" not in plane["layout"]["title"]["subtitle"]["text"]  # the viewer has said so
    link = parse_qs(urlsplit(next(code.value for code in page.code if "/runs?" in code.value)).query)
    assert (link["world"], link["task"]) == (["scenes"], ["parts"])
    again = open_view("runs", world="scenes", task="parts")
    assert list(shown(again)["id"]) == list(shown(page)["id"])
    again.selectbox(key="runs of one task in scenes").select("any").run()
    assert "task" not in again.query_params
    assert len(shown(again)) == 2 + len(of_scenes())


def test_a_task_that_is_not_there_is_told_and_left_out():
    page = open_view("runs", world="scenes", task="banana")
    assert page.warning[0].value.replace("\\", "").startswith("Task is 'banana'")
    assert page.selectbox(key="runs of one task in scenes").value == "any"
    assert len(shown(page)) == len(of_scenes())


def test_ticked_runs_of_two_tasks_have_no_common_plane():
    ids = [of_scenes(task)[0].run_id for task in ("semseg", "parts")]
    page = open_view("runs", world="scenes", runs=ids, picture="id_ood")
    assert page.info[0].value.startswith("Runs of more than one task have no common plane")
    assert not page.get("plotly_chart")


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
