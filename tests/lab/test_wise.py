"""WiSE: a straight line between two networks."""

from pathlib import Path

import pytest
import torch
from lab.runs import short

from ftp.lab import evaluate, worlds
from ftp.lab.record import LabError
from ftp.lab.run import execute, model_of
from ftp.lab.store import Store
from ftp.lab.wise import interpolate, wise


def test_the_line_is_straight_and_touches_both_ends() -> None:
    a = {"w": torch.randn(3, 4), "count": torch.tensor(1)}
    b = {"w": torch.randn(3, 4), "count": torch.tensor(9)}
    assert torch.equal(interpolate(a, b, 0.0)["w"], a["w"])
    assert torch.equal(interpolate(a, b, 1.0)["w"], b["w"])
    torch.testing.assert_close(interpolate(a, b, 0.3)["w"], 0.7 * a["w"] + 0.3 * b["w"])
    assert interpolate(a, b, 0.5)["count"] == 9


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


def test_what_cannot_be_interpolated_is_a_sentence(tmp_path: Path) -> None:
    a = {"w": torch.zeros(1)}
    with pytest.raises(LabError) as error:
        interpolate(a, a, 1.5)
    assert str(error.value) == "alpha is 1.5; it must be a number from 0 (pre-trained) to 1 (fine-tuned)"
    with pytest.raises(LabError) as error:
        interpolate(a, {"w": torch.zeros(1), "more": torch.zeros(1)}, 0.5)
    assert str(error.value) == ("the two networks differ: 'more' is in one of them only; WiSE needs equal networks")
    store = Store(tmp_path / "runs.db")
    asked = iter([False, True])
    stopped = execute(short("ftp"), store, device="cpu", stop=lambda: next(asked))
    with pytest.raises(LabError) as error:
        wise(stopped, store)
    assert str(error.value) == (f"run {stopped.run_id} is stopped and has no weights; run it to its end first")
