"""What a run says of every pixel: the job writes it, with the pictures, the states and the scores of the view."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ftp.lab import map_sheets, pixels, worlds
from ftp.lab.jobs import Order, do
from ftp.lab.recordings.extras import extra
from ftp.lab.run import execute, model_of
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.worlds.scenes import of_split

TASKS = ("semseg", "parts", "normals")


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_job_says_what_the_network_says(task: str, tmp_path: Path) -> None:
    world = worlds.load("scenes", {"task": task})
    given = {"task": task, "steps": 2, "batch": 4, "labels": 0.1}
    with Store(tmp_path / "runs.db") as store:
        record = execute(resolve("scenes", "linear_probe", given), store, device="cpu")
        order = Order("pixels", record.run_id)
        assert order.result(store) is None
        do(order, store, device="cpu")
        result, model = order.result(store), model_of(record, store).eval()
    data = extra("dense", "scenes")
    assert (result["method"], result["run_id"]) == ("linear_probe", record.run_id)
    assert len(result["said"]) == len(result["scores"]) == len(data["scene_list"])
    assert all(len(row) == len(data["poses"]) for row in result["scores"])
    # the first scene as it is, by the world's own pictures and meter
    first = data["scene_list"][0]
    picture, truth = world.split(first["split"]).batch(torch.tensor([first["number"]]))
    with torch.no_grad():
        outputs = model(picture)
    if task == "normals":
        meter = world.meter()
        meter.add(outputs, truth)
        assert result["scores"][0][0] == pytest.approx(meter.values()["mean angle"], abs=0.3)  # of bytes and floats
    else:
        tile = map_sheets.tiles_of(result["said"][0], result["side"], 1)[0, ..., 0]
        assert np.mean(tile == outputs.argmax(1)[0].numpy()) > 0.999


def test_the_states_are_those_of_the_recording() -> None:
    data = extra("dense", "scenes")
    listed, dials = pixels.states(worlds.load("scenes"))
    assert dials == data["dials"]
    assert len(listed) == len(data["poses"])


def test_home_scenes_come_with_and_without_a_figure_and_every_shift_is_there() -> None:
    picked = pixels.chosen(worlds.load("scenes"))
    home = [scene.has_figure for split, _, scene in picked if split == "id"]
    assert home == [True] * pixels.HOME_SCENES + [False]
    assert {split for split, _, _ in picked} == {"id", *worlds.load("scenes").measures.splits("shift")}
    assert all(of_split(split)[number] == scene for split, number, scene in picked)
