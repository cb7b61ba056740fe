"""What is taken for what agrees with the accuracies, and the job writes it beside the weights."""

from pathlib import Path

import pytest

from ftp.lab import worlds
from ftp.lab.jobs import Order, do
from ftp.lab.mistakes import MOST
from ftp.lab.record import LabError
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store


def test_the_counts_are_the_accuracies(tmp_path: Path) -> None:
    name = next(name for name in worlds.names() if len(worlds.load(name).phases) > 2)
    with Store(tmp_path / "runs.db") as store:
        record = execute(resolve(name, "ftp", {"tasks": 2, "steps": 2, "batch": 8}), store, device="cpu")
        order = Order("mistakes", record.run_id)
        assert order.result(store) is None
        do(order, store, device="cpu")
        tasks = order.result(store)["tasks"]
    assert record.final is not None
    world = worlds.of(record.settings)
    for n, (task, rows) in enumerate(tasks.items()):
        assert [row[0] for row in rows] == list(world.labels(n))
        counts = [sum(column) for column in zip(*(row[1:3] for row in rows), strict=True)]
        assert 100 * counts[1] / counts[0] == pytest.approx(record.final.main[task])
        for label, count, right, wrong in rows:
            assert label not in [answer for answer, _ in wrong]
            assert right + sum(times for _, times in wrong) <= count
            assert len(wrong) <= MOST


def test_a_world_without_tasks_has_none() -> None:
    from torch import nn

    from ftp.lab.mistakes import of_model

    with pytest.raises(LabError, match="has no tasks with labels, so there is nothing to be mistaken for"):
        of_model(nn.Identity(), worlds.load(worlds.default()))
