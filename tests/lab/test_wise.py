"""WiSE: a straight line between two networks."""

import math
from pathlib import Path

import pytest
import torch
from lab.runs import short

from ftp.lab import evaluate, worlds
from ftp.lab.alpha import is_whole
from ftp.lab.record import LabError
from ftp.lab.run import execute, model_of
from ftp.lab.store import Store
from ftp.lab.wise import interpolate, validation, wise


def test_the_line_is_straight_and_touches_both_ends() -> None:
    a = {"w": torch.randn(3, 4), "count": torch.tensor(1)}
    b = {"w": torch.randn(3, 4), "count": torch.tensor(9)}
    assert torch.equal(interpolate(a, b, 0.0)["w"], a["w"])
    assert torch.equal(interpolate(a, b, 1.0)["w"], b["w"])
    torch.testing.assert_close(interpolate(a, b, 0.3)["w"], 0.7 * a["w"] + 0.3 * b["w"])
    assert [int(interpolate(a, b, alpha)["count"]) for alpha in (0.0, 0.4, 0.5, 1.0)] == [1, 1, 9, 9]
    assert interpolate(a, b, 0.5)["count"].dtype == torch.int64


def test_the_ends_are_equal_to_the_last_bit() -> None:
    a = {"w": torch.tensor([-0.0, 1e-30, 3.0, float("inf")]), "seen": torch.tensor(3), "on": torch.tensor(True)}
    b = {"w": torch.tensor([1.0, -1e30, -0.0, 2.0]), "seen": torch.tensor(7), "on": torch.tensor(False)}
    for alpha, end in ((0, a), (0.0, a), (1, b), (1.0, b)):
        made = interpolate(a, b, alpha)
        assert all(made[name].dtype == end[name].dtype for name in end)
        assert made["w"].view(torch.int32).tolist() == end["w"].view(torch.int32).tolist()
        assert (made["seen"], made["on"]) == (end["seen"], end["on"])
        assert made["w"].data_ptr() != end["w"].data_ptr()


def test_names_decide_not_places() -> None:
    a = {"one": torch.tensor([0.0]), "two": torch.tensor([10.0])}
    b = {"two": torch.tensor([20.0]), "one": torch.tensor([4.0])}
    assert {name: float(t) for name, t in interpolate(a, b, 0.25).items()} == {"one": 1.0, "two": 12.5}


@pytest.mark.parametrize("method", ["ftp", "adapter"])
def test_the_ends_of_the_curve_are_the_two_networks(method: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    record = execute(short(method), store, device="cpu", kinds=["fog"])
    seen: list[float] = []
    curve = wise(record, store, (0.0, 0.5, 1.0), device="auto", limit=200, progress=seen.append)
    assert seen == [0.0, 0.5, 1.0]
    assert (curve.run_id, curve.method, curve.alphas) == (record.run_id, method, (0.0, 0.5, 1.0))
    world = worlds.load("digits")
    end = model_of(record, store)
    assert curve.id[2] == evaluate.score(end, world, "id", 200).main
    start = world.model(0)
    with torch.no_grad():  # the pre-trained body under the fine-tuned head
        start.head.weight.copy_(end.head.weight)
        start.head.bias.copy_(end.head.bias)
    assert curve.id[0] == evaluate.score(start, world, "id", 200).main
    assert curve.val[2] == evaluate.score(end, world, "val", 200).main
    assert curve.shifts["sketch"][0] == evaluate.score(start, world, "sketch", 200).main
    assert curve.ood_avg[1] == pytest.approx(sum(values[1] for values in curve.shifts.values()) / len(curve.shifts))
    assert not is_whole(world)  # a new head: the beginning of the way is no model of its own


def test_the_standard_error_of_validation_is_that_of_a_share() -> None:
    world = worlds.load("digits")
    model = world.model(0)
    score, error = validation(model, world)
    assert score == evaluate.score(model, world, "val").main
    count = len(world.split("val"))
    share = score / 100
    # twenty parts know it to about a sixth; far from either end a share has this error
    assert error == pytest.approx(100 * math.sqrt(share * (1 - share) / count), rel=0.6)
    assert math.isnan(validation(model, world, 3)[1])  # of so few nobody knows it


def test_what_cannot_be_interpolated_is_a_sentence(tmp_path: Path) -> None:
    a = {"w": torch.zeros(1)}
    with pytest.raises(LabError) as error:
        interpolate(a, a, 1.5)
    assert str(error.value) == "alpha is 1.5; it must be a number from 0 (pre-trained) to 1 (fine-tuned)"
    with pytest.raises(LabError) as error:
        interpolate(a, {"w": torch.zeros(1), "more": torch.zeros(1)}, 0.5)
    assert str(error.value) == ("the two networks differ: 'more' is in one of them only; WiSE needs equal networks")
    with pytest.raises(LabError) as error:
        interpolate(a, {"w": torch.zeros(2)}, 0.5)
    wrong = "'w' has the shapes (1,) and (2,); WiSE needs equal networks"
    assert str(error.value) == f"the two networks differ: {wrong}"
    store = Store(tmp_path / "runs.db")
    asked = iter([False, True])
    stopped = execute(short("ftp"), store, device="cpu", stop=lambda: next(asked))
    with pytest.raises(LabError) as error:
        wise(stopped, store)
    assert str(error.value) == (f"run {stopped.run_id} is stopped and has no weights; run it to its end first")
