"""The view of dense worlds: where it fits, what it gives to its drawing, its words, and what a browser may send."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from app_views import bold, open_view, sent

from app import links
from app.components.dense import YOURS, Place, ShownDense, checked
from app.supervisor import supervisor
from app.views import dense as view
from ftp.lab import worlds
from ftp.lab.figures.data import example
from ftp.lab.jobs import Order
from ftp.lab.recordings import recorded as shipped
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.store import serialisation
from ftp.lab.summary import Metric

WORLD = next(name for name in worlds.names() if worlds.load(name).dense and has_extra("dense", name))
DATA = extra("dense", WORLD)
ANGLE = Metric("angle", "°", higher_is_better=False, high=180.0)


def shown(task: str = "semseg") -> ShownDense:
    return view._shown(worlds.load(WORLD, {"task": task}), DATA)


def told(page):
    return [warning.value.replace("\\", "") for warning in page.warning]


def address(page):
    return {key: value if isinstance(value, str) else value[-1] for key, value in dict(page.query_params).items()}


def test_where_there_is_one_answer_for_a_picture_it_says_so_and_leads_on():
    page = open_view("dense", world=worlds.default())
    assert "one answer for a whole picture" in page.info[0].value.replace("\\", "")
    page.button[0].click().run()
    assert page.query_params["world"] in (WORLD, [WORLD])


def test_where_nothing_is_recorded_it_says_so():
    others = [name for name in worlds.names() if worlds.load(name).dense and name != WORLD]
    assert others
    for name in others:
        assert view.misfit(worlds.load(name)) == f"No pictures of {worlds.load(name).title} come with the kit"


def test_it_opens_in_its_world_and_the_three_tasks_can_be_chosen():
    page = open_view("dense")
    assert page.selectbox(key="world").value == WORLD
    data = sent(page)
    assert data["classes"][0] == "background"
    assert len(data["colors"]) == len(data["classes"])
    for task in ("parts", "normals"):
        page.segmented_control(key="option task").set_value(task).run()
        assert not page.exception
        data = sent(page)
        assert (data["task"], data["metric"]["higher_is_better"]) == (task, task == "parts")
        assert page.query_params["task"] in (task, [task])
    assert data["classes"] == []
    assert {run["method"] for run in data["runs"]} >= {"finetune", "linear_probe", "llrd", "ftp"}


def test_the_link_says_where_the_hands_are():
    page = open_view("dense", world=WORLD, task="normals", scene="2", method="ftp", dial="fog", at="4", guess="no")
    data = sent(page)
    assert data["start"] == {"scene": 2, "method": "ftp", "dial": "fog", "place": 4}
    assert (data["task"], data["hold"]) == ("normals", False)
    camera = open_view("dense", world=WORLD, dial="azimuth", at="-59", guess="no")
    assert sent(camera)["start"]["place"] == 0
    assert not camera.warning


@pytest.mark.parametrize(
    "query", [{}, {"scene": "2", "dial": "fog", "at": "5"}, {"task": "normals", "method": "ftp", "at": "20"}]
)
def test_opening_the_view_leaves_the_address_as_it_is(query):
    page = open_view("dense", world=WORLD, **query)
    assert address(page) == {"world": WORLD, **query}
    if query.get("dial") == "fog":  # the browser holds it back until there is a guess, then shows it
        assert (sent(page)["hold"], sent(page)["start"]["dial"], sent(page)["start"]["place"]) == (True, "fog", 5)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"dial": "fogg"}, "did you mean fog?"),
        ({"dial": "snow"}, "it may be azimuth"),
        ({"at": "north"}, "must be a number from -60 to 60"),
        ({"dial": "fog", "at": "40"}, "must be a number from 0 to 5"),
        ({"scene": "-1"}, "must be a number from 0 to 8"),
        ({"scene": "99"}, "must be a number from 0 to 8"),
        ({"method": "mars_sp"}, "it may be finetune"),
        ({"task": "depth"}, "semseg"),
        ({"run": "00000000000000ab"}, view.LOST),
        ({"run": "../../x"}, view.LOST),
    ],
)
def test_a_link_that_makes_no_sense_is_told(query, problem):
    page = open_view("dense", world=WORLD, **query)
    assert problem in told(page)[0]
    assert list(query)[-1] not in page.query_params


def test_a_link_to_a_deleted_run_is_told_beside_other_mistakes():
    run = own_run(computed=True)
    supervisor().store.weights_path(run.run_id).unlink()
    page = open_view("dense", world=WORLD, run=run.run_id, dial="snow")
    assert "snow" in told(page)[0]
    assert view.LOST in told(page)[0]
    assert "run" not in page.query_params


@pytest.mark.parametrize("world", [worlds.default(), "nowhere"])
def test_in_a_world_without_scenes_a_link_is_judged_by_those_that_are_recorded(world):
    assert set(links.mistakes(view, {"world": [world], "scene": ["8"], "dial": ["fog"]})) <= {"world"}
    assert "scene" in links.mistakes(view, {"world": [world], "scene": ["9"]})


def test_the_address_has_what_differs_from_the_usual_place():
    from streamlit.testing.v1 import AppTest

    def script(world):
        import streamlit as st

        from app.components.dense import Place
        from app.views import dense as view
        from ftp.lab import worlds
        from ftp.lab.recordings.extras import extra

        shown = view._shown(worlds.load(world), extra("dense", world))
        usual = Place(3, "finetune", "azimuth", 6)
        rests = {
            "method": Place(3, "ftp", "azimuth", 6),
            "damage": Place(3, "finetune", "fog", 5),
            "clean": Place(3, "finetune", "fog", 0),
            "camera": Place(1, "finetune", "azimuth", 12),
            "usual": usual,
        }
        if st.session_state.get("rest"):
            view._keep(rests[st.session_state["rest"]], usual, shown)

    page = AppTest.from_function(script, args=(WORLD,), default_timeout=300)
    foreign = {"world": WORLD, "task": "parts", "run": "ab", "guess": "no"}
    for key, value in {**foreign, "scene": "5"}.items():
        page.query_params[key] = value
    for rest, wanted in {
        "method": {"method": "ftp"},
        "damage": {"dial": "fog", "at": "5"},
        "clean": {"dial": "fog"},
        "camera": {"scene": "1", "at": "60"},
        "usual": {},
    }.items():
        page.session_state["rest"] = rest
        page.run()
        assert not page.exception
        assert address(page) == {**foreign, **wanted}, rest


@pytest.mark.parametrize("task", ["semseg", "parts", "normals"])
def test_it_opens_with_the_home_scene_that_is_most_like_the_mean(task):
    runs = view.recorded_of(WORLD, task)
    plain = next(run for run in DATA["tasks"][task]["runs"] if run["method"] == "finetune")
    seed = next(run for run in runs if (run.settings.method, run.settings.seed) == ("finetune", plain["seed"]))
    scores = [scores[0] for scores in plain["scores"]]
    home = [n for n, scene in enumerate(DATA["scene_list"]) if scene["split"] == "id" and scores[n] is not None]
    first = sent(open_view("dense", world=WORLD, task=task))["start"]["scene"]
    assert first in home
    away = {n: abs(scores[n] - seed.result["id"]) for n in home}
    assert away[first] == min(away.values())


def test_the_typical_scene_follows_the_scores():
    data = {**DATA, "tasks": {"semseg": {**DATA["tasks"]["semseg"]}}}
    plain = next(run for run in DATA["tasks"]["semseg"]["runs"] if run["method"] == "finetune")
    runs = [replace(run, settings=replace(run.settings, seed=plain["seed"])) for run in recorded("finetune", [(1, 2)])]
    made = [[value] for value in (None, 90.0, 57.0, 64.0, 20.0, 60.0, 60.0, 60.0, 60.0)]  # the last four are shifts
    data["tasks"]["semseg"]["runs"] = [{**plain, "scores": made}]
    there = view._shown(worlds.load(WORLD), data)
    assert view.typical(there, "id", runs) == 2
    assert view.typical(there, "id", []) == 0  # nothing is recorded


def test_what_a_browser_sends_is_checked():
    task, start = shown(), Place(1, "ftp", "fog", 2)
    good = {"scene": 3, "method": "llrd", "dial": "roll", "place": 6}
    assert checked(good, task, start) == Place(3, "llrd", "roll", 6)
    changes = ({"scene": 99}, {"scene": "0"}, {"scene": True}, {"method": "x"}, {"method": ["ftp"]}, {"dial": {}})
    for bad in (None, [], "x", *({**good, **change} for change in (*changes, {"place": -1}, {"place": 99}))):
        assert checked(bad, task, start) == start


def test_every_thumbnail_and_what_is_not_counted_are_explained():
    for task in ("semseg", "parts", "normals"):
        data = sent(open_view("dense", world=WORLD, task=task))
        about = {scene["name"]: scene["about"] for scene in data["scene_list"]}
        assert "fine-tuning" in about["home 1"]
        assert {name for name in about if not name.startswith("home")} == set(view.LOOKS)
        assert "lamp" in about["night"]
        assert "glass" in data["not_counted"]
        assert ("sky" in data["not_counted"]) == (task == "normals")
        assert "typical" in data["standing"]


def test_a_picture_without_a_figure_has_no_score_in_the_task_of_parts():
    rows = view.rows(shown("parts"))
    empty = [row for row in rows if row["scene"] == "home 5"]
    assert empty
    assert all(row["FTP (%)"] is None for row in empty)
    assert all(row["FTP (%)"] is not None for row in view.rows(shown("semseg")))


def recorded(method, values, home=60.0):
    """Runs of three seeds with the scores of fog and snow at severity 5."""
    runs = []
    for seed, (fog, snow) in enumerate(values):
        run = example(method, seed)
        result = {**run.result, "id": home, "corruptions": {"fog": [50.0, fog], "snow": [50.0, snow]}}
        runs.append(replace(run, settings=replace(run.settings, method=method, seed=seed), result=result))
    return runs


def test_the_answer_says_what_hurts_most():
    world = worlds.load(WORLD)
    runs = recorded("finetune", [(20, 40), (21, 42), (22, 41)]) + recorded("ftp", [(30, 45)] * 3)
    said = view.answer(runs, world, "Fog")
    assert said.startswith("Right: fog. Vanilla FT's mIoU drops from 60 % to 21 %, FTP's to 30 %.")
    assert said.endswith("Vanilla FT with the others: snow 41 %. Mean of 3 seeds, on the whole home test set.")
    assert view.answer(runs, world, "Snow").startswith("Look again: fog")
    level = recorded("finetune", [(20, 22), (22, 20), (21, 21.5)])
    assert view.answer(level, world, "Snow").startswith("Right: fog, with snow about as bad. ")


def test_where_lower_is_better_the_largest_angle_hurts_most():
    world = worlds.load(WORLD, {"task": "normals"})
    runs = recorded("finetune", [(20, 40), (21, 42), (22, 41)], home=12.0)
    assert view.answer(runs, world, "Snow").startswith(
        "Right: snow. Vanilla FT's mean angle rises from 12° to 41°. Vanilla FT with the others: fog 21°."
    )
    assert view.worst(view.damaged(runs, "finetune"), ANGLE) == ["snow"]


def test_damage_waits_for_a_guess_where_runs_are_recorded():
    page = open_view("dense", world=WORLD)
    if not view.recorded_of(WORLD, "semseg"):
        pytest.skip("no runs of this task are recorded yet")
    assert sent(page)["hold"] is True
    page.radio(key="dense_guess semseg").set_value("Fog").run()
    assert sent(page)["hold"] is False
    assert any("whole home test set" in text for text in bold(page))


def test_each_task_asks_anew_and_remembers_its_guess():
    page = open_view("dense", world=WORLD)
    page.radio(key="dense_guess semseg").set_value("Fog").run()
    page.segmented_control(key="option task").set_value("parts").run()
    assert sent(page)["hold"] is True
    assert bold(page) == []
    page.segmented_control(key="option task").set_value("semseg").run()
    assert sent(page)["hold"] is False
    assert page.radio(key="dense_guess semseg").value == "Fog"


@pytest.mark.parametrize("dial", DATA["dials"], ids=lambda dial: dial["name"])
def test_the_copied_python_gives_the_recorded_truth(dial):
    """All but the training is done: pictures and truth come as they are shown."""
    import torch

    world = worlds.load(WORLD, {"task": "semseg"})
    place = len(dial["values"]) - 1
    code = view.python_of(world, DATA, Place(0, "ftp", dial["name"], place))
    compile(code, "cell", "exec")
    before, after = code.index("with Store"), code.index("meter =")
    names: dict = {}
    lines = code[:before] + "\n".join(
        line for line in code[before:after].splitlines()[1:] if not line.startswith("    ")
    )
    exec(lines, names)
    from ftp.lab.map_sheets import tiles_of

    pose = DATA["poses"][dial["states"][place]]
    wanted = tiles_of(DATA["tasks"]["semseg"]["truth"][0], DATA["side"], pose + 1)[pose, ..., 0]
    assert names["pictures"].shape == (1, 3, 64, 64)
    assert torch.equal(names["truth"][0], torch.from_numpy(wanted).long())


def own_run(computed):
    """A finished run of things in the server's store; with what it says of every pixel, or without."""
    run = replace(shipped(WORLD, "ftp")[0], run_id="00000000000000d" + "ef"[computed])
    store = supervisor().store
    store.import_(serialisation.to_form(run, "test"))
    path = store.weights_path(run.run_id)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    if computed:
        row = next(row for row in DATA["tasks"]["semseg"]["runs"] if row["method"] == "ftp")
        Order("pixels", run.run_id).path(store).write_text(json.dumps({**row, "run_id": run.run_id}))
    return run


def test_a_run_of_ones_own_stands_beside_the_recorded_ones():
    run = own_run(computed=True)
    page = open_view("dense", world=WORLD, run=run.run_id, guess="no")
    data = sent(page)
    assert [row["method"] for row in data["runs"]][-1] == data["start"]["method"] == YOURS
    assert (data["runs"][-1]["name"], data["runs"][-1]["run_id"]) == ("Yours: FTP", run.run_id)
    assert "method" not in page.query_params
    assert page.query_params["run"] in (run.run_id, [run.run_id])
    assert not page.warning
    other = open_view("dense", world=WORLD, run=run.run_id, task="parts", guess="no")
    assert YOURS not in [row["method"] for row in sent(other)["runs"]]  # a run of things says nothing of parts


def test_who_chooses_a_run_sees_it_whatever_method_was_chosen_before():
    run = own_run(computed=True)
    page = open_view("dense", world=WORLD, method="llrd", guess="no")
    before = sent(page)
    assert before["start"]["method"] == "llrd"
    box = next(box for box in page.selectbox if box.label.startswith("A finished run"))
    box.set_value(run.run_id).run()
    assert sent(page)["start"]["method"] == YOURS
    assert sent(page)["turn"] == before["turn"] + 1
    assert "method" not in page.query_params


def test_the_hand_follows_the_address_where_something_else_has_changed_it():
    page = open_view("dense", world=WORLD, scene="1", dial="fog", at="5", guess="no")
    first = sent(page)
    page.run()
    assert sent(page)["turn"] == first["turn"]  # nothing has changed: the hand stays where it is
    page.query_params["at"] = "2"  # as the browser's Back does
    page.run()
    assert (sent(page)["turn"], sent(page)["start"]["place"]) == (first["turn"] + 1, 2)


def test_what_a_run_of_ones_own_says_is_computed_on_demand():
    run = own_run(computed=False)
    page = open_view("dense", world=WORLD, run=run.run_id, guess="no")
    assert "Show what this run says" in [button.label for button in page.button]
    assert YOURS not in [row["method"] for row in sent(page)["runs"]]


def test_the_python_of_a_run_of_ones_own_has_its_settings():
    run = own_run(computed=True)
    world = worlds.load(WORLD, {"task": "semseg"})
    code = view.python_of(world, DATA, Place(0, YOURS, DATA["dials"][0]["name"], 0), run)
    compile(code, "cell", "exec")
    assert f'resolve("{WORLD}", "ftp"' in code


def test_the_view_is_made_without_torch():
    code = f"""
import sys
import app.views.dense as view
from ftp.lab import worlds
from ftp.lab.recordings.extras import extra
shown = view._shown(worlds.load({WORLD!r}), extra("dense", {WORLD!r}))
assert view.rows(shown)
view.recorded_of({WORLD!r}, "semseg")
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_recording_is_small():
    from ftp.lab.recordings.extras import HOME

    assert (HOME / WORLD / "dense.json.gz").stat().st_size < 2_500_000
