"""What a network says of the first pictures of every set, and the sheet of those pictures."""

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from lab.runs import equal, short, trained, weights
from PIL import Image

from ftp.lab import answers, worlds
from ftp.lab.evaluate import score
from ftp.lab.models import read_weights
from ftp.lab.record import LabError
from ftp.lab.recordings import recorded
from ftp.lab.recordings.extras import extra
from ftp.lab.run import execute, model_of
from ftp.lab.settings import resolve
from ftp.lab.store import Store

DIGITS = worlds.load("digits")


def test_a_run_keeps_them_at_every_evaluation_and_they_change_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        record = execute(short("ftp"), store, device="cpu", kinds=())
        assert all(list(event.answers) == list(answers.shown_sets(DIGITS)) for event in record.evals)
        model = model_of(record, store)
        last = record.evals[-1].answers
        assert answers.answers(model, DIGITS, last) == last
        assert not answers.pictures_path(DIGITS, store).exists()  # the kit has this sheet
        assert equal(read_weights(store.weights_path(record.run_id)), weights(trained("ftp")))  # without looking


def test_they_are_the_answers_that_the_score_counts() -> None:
    model = DIGITS.model(0)
    said = answers.answers(model, DIGITS, ["id", "sketch", "train"])
    assert list(said) == ["id", "sketch"]  # the training set is not shown
    for name, numbers in said.items():
        labels = DIGITS.split(name).batch(torch.arange(answers.PICTURES))[1].tolist()
        right = sum(a == b for a, b in zip(numbers, labels, strict=True))
        assert score(model, DIGITS, name, answers.PICTURES).main == pytest.approx(100 * right / answers.PICTURES)


def test_the_shipped_sheet_is_that_of_todays_world() -> None:
    made, shipped = answers.pictures(DIGITS), extra("pictures")
    assert {**made, "sheet": ""} == {**shipped, "sheet": ""}
    images = [Image.open(io.BytesIO(base64.b64decode(data["sheet"]))).convert("RGB") for data in (made, shipped)]
    assert images[0].size == images[1].size == (5 * answers.SIDE, 6 * answers.SIDE)
    labels = [DIGITS.split(name).batch(torch.arange(5))[1].tolist() for name in shipped["sets"]]
    assert shipped["labels"] == labels


def test_a_world_without_a_shipped_sheet_has_it_made_once_by_its_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "has_extra", lambda name, world: False)
    with Store(tmp_path / "runs.db") as store:
        assert answers.known_pictures(DIGITS, store) is None
        answers.keep_pictures(DIGITS, store)
        path = answers.pictures_path(DIGITS, store)
        assert answers.known_pictures(DIGITS, store) == json.loads(path.read_text()) == answers.pictures(DIGITS)
        path.write_text("{")
        with pytest.raises(LabError, match="cannot be read; delete it"):
            answers.known_pictures(DIGITS, store)


@pytest.mark.parametrize("task", ["semseg", "normals"])
def test_a_dense_world_has_maps_in_colours_beside_its_pictures(task: str, tmp_path: Path) -> None:
    world = worlds.load("scenes", {"task": task})
    side, count = answers.MAP_SIDE, answers.MAPPED
    sheet = answers.pictures(world)
    assert (sheet["columns"], sheet["labels"]) == (count, [[]] * 5)
    truths = _pixels(sheet["truths"])
    assert truths.shape == (5 * side, count * side, 3) == _pixels(sheet["sheet"]).shape
    inputs, targets = world.split("night").batch(torch.arange(count))
    at = world.measures.splits("home", "shift").index("night")
    right = torch.nn.functional.interpolate(answers.coloured(targets), (side, side))
    rows = torch.cat(list(right.mul(255).round()), dim=2).permute(1, 2, 0)
    assert (truths[at * side : (at + 1) * side].float() - rows).abs().max() <= 1
    model = world.model(0)
    said = answers.maps(model, world, ["night", "train"])
    assert list(said) == ["night"]  # the training set is not shown
    with torch.no_grad():
        outputs = model.eval()(inputs)
    maps = outputs.argmax(1) if task == "semseg" else torch.nn.functional.normalize(outputs, dim=1)
    colours = torch.nn.functional.interpolate(answers.coloured(maps), (side, side))
    rows = torch.cat(list(colours.mul(255).round()), dim=2).permute(1, 2, 0)
    assert _alike(_pixels(said["night"]), rows, task)
    assert answers.answers(model, world, ["night"]) == {}
    assert answers.maps(DIGITS.model(0), DIGITS, ["id"]) == {}


def _alike(shown: torch.Tensor, wanted: torch.Tensor, task: str) -> bool:
    """Labels to the last colour; directions nearly, for their pictures are packed more tightly."""
    apart = (shown.float() - wanted).abs()
    return bool(apart.mean() < 6 if task == "normals" else apart.max() <= 1)


def _pixels(text: str) -> torch.Tensor:
    with Image.open(io.BytesIO(base64.b64decode(text))) as file:
        return torch.from_numpy(np.asarray(file.convert("RGB")).copy())


@pytest.mark.parametrize(("task", "group"), [("semseg", "live"), ("parts", "live_parts"), ("normals", "live_normals")])
def test_each_task_of_scenes_ships_its_own_sheet_and_runs(task: str, group: str, tmp_path: Path) -> None:
    world = worlds.load("scenes", {"task": task})
    made, shipped = answers.pictures(world), extra(answers.shipped_sheet(world), "scenes")
    assert {**made, "sheet": ""} == {**shipped, "sheet": ""}
    with Store(tmp_path / "runs.db") as store:
        assert answers.known_pictures(world, store) == shipped
    for run in recorded("scenes", group=group):
        assert run.settings.options["task"] == task
        assert all(list(event.maps) == list(answers.shown_sets(world)) for event in run.evals)


def test_runs_of_tables_ship_without_maps() -> None:
    assert not any(event.maps for run in recorded("scenes", group="methods") for event in run.evals)


def test_a_run_of_a_dense_world_keeps_maps_at_every_evaluation(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        record = execute(resolve("scenes", "linear_probe", {"steps": 2, "batch": 2}), store, device="cpu", kinds=())
        assert record.status == "done"
        kept = store.load(record.run_id).evals
        assert all(list(event.maps) == ["id", "palette", "night", "camera", "clutter"] for event in kept)
        world = worlds.load("scenes")
        assert answers.maps(model_of(record, store), world, ["camera"])["camera"] == kept[-1].maps["camera"]
        assert answers.known_pictures(world, store) == extra("pictures", "scenes")


def test_a_world_without_classes_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = DIGITS.model(0)
    monkeypatch.setattr(DIGITS, "classes", ())
    with Store(tmp_path / "runs.db") as store:
        assert answers.answers(model, DIGITS, ["id"]) == {}
        answers.keep_pictures(DIGITS, store)
        assert answers.known_pictures(DIGITS, store) is None
