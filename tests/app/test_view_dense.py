"""The view of dense worlds: where it fits, what it gives to its drawing, its words, and what a browser may send."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from app_views import bold, open_view, sent

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
    camera = open_view("dense", world=WORLD, dial="azimuth", at="-61", guess="no")
    assert sent(camera)["start"]["place"] == 0
    assert not camera.warning


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"dial": "fogg"}, "did you mean fog?"),
        ({"at": "north"}, "must be a number from -180 to 180"),
        ({"scene": "-1"}, "must be a number from 0 to 99"),
        ({"task": "depth"}, "semseg"),
    ],
)
def test_a_link_that_makes_no_sense_is_told(query, told):
    page = open_view("dense", world=WORLD, **query)
    assert told in page.warning[0].value.replace("\\", "")


def test_what_a_browser_sends_is_checked():
    task, start = shown(), Place(1, "ftp", "fog", 2)
    good = {"scene": 3, "method": "llrd", "dial": "roll", "place": 6}
    assert checked(good, task, start) == Place(3, "llrd", "roll", 6)
    changes = ({"scene": 99}, {"scene": "0"}, {"scene": True}, {"method": "x"}, {"method": ["ftp"]}, {"dial": {}})
    for bad in (None, [], "x", *({**good, **change} for change in (*changes, {"place": -1}, {"place": 99}))):
        assert checked(bad, task, start) == start


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
    assert said.startswith("Right: fog takes Vanilla FT from 60 % mIoU to 21 %, FTP to 30 %.")
    assert said.endswith("The others leave Vanilla FT: snow 41. All home test pictures, 3 seeds.")
    assert view.answer(runs, world, "Snow").startswith("Look again: fog")
    level = recorded("finetune", [(20, 22), (22, 20), (21, 21.5)])
    assert view.answer(level, world, "Snow").startswith("Right: fog (about the same: snow)")


def test_where_lower_is_better_the_largest_angle_hurts_most():
    world = worlds.load(WORLD, {"task": "normals"})
    runs = recorded("finetune", [(20, 40), (21, 42), (22, 41)], home=12.0)
    assert view.answer(runs, world, "Snow").startswith(
        "Right: snow takes Vanilla FT from 12° mean angle to 41°. The others leave Vanilla FT: fog 21."
    )
    assert view.worst(view.damaged(runs, "finetune"), ANGLE) == ["snow"]


def test_damage_waits_for_a_guess_where_runs_are_recorded():
    page = open_view("dense", world=WORLD)
    if not view.recorded_of(WORLD, "semseg"):
        pytest.skip("no runs of this task are recorded yet")
    assert sent(page)["hold"] is True
    page.radio(key="dense_guess").set_value("Fog").run()
    assert sent(page)["hold"] is False
    assert any("All home test pictures" in text for text in bold(page))


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
    other = open_view("dense", world=WORLD, run=run.run_id, task="parts", guess="no")
    assert YOURS not in [row["method"] for row in sent(other)["runs"]]  # a run of things says nothing of parts


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
