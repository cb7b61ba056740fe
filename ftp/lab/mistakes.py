"""What a network takes for what: of each label of a task, how many test pictures are right, and what the rest became.

For worlds with labels and tasks in a row; all labels compete, as at the end of a run.
"""

from collections import Counter
from typing import Any

import torch
from torch import nn

from ftp.lab import worlds
from ftp.lab.record import LabError, RunRecord
from ftp.lab.run import model_of
from ftp.lab.store import Store
from ftp.lab.worlds import World

MOST = 3  # wrong answers that are kept of each label


def mistakes(record: RunRecord, store: Store, device: str = "cpu") -> dict[str, Any]:
    """Every label of every task of a finished run; see `of_model`."""
    world = worlds.of(record.settings)
    about = {"run_id": record.run_id, "method": record.settings.method, "seed": record.settings.seed}
    return {**about, "tasks": of_model(model_of(record, store, device), world)}


@torch.no_grad()
def of_model(model: nn.Module, world: World) -> dict[str, list[list[Any]]]:
    """By task, for each of its labels: [label, pictures, right ones, [[wrong answer, how often], ...]]."""
    if not world.classes or len(world.phases) < 2:
        raise LabError(f"the world {world.name} has no tasks with labels, so there is nothing to be mistaken for")
    model.eval()
    device = next(model.parameters()).device
    tasks = {}
    for name in world.measures.splits("task"):
        split = world.split(name)
        answers: dict[int, Counter[int]] = {}
        for part in torch.split(torch.arange(len(split)), world.evaluated_at_once):
            inputs, targets = split.batch(part)
            said = model(inputs.to(device)).argmax(1).tolist()
            for label, answer in zip(targets.tolist(), said, strict=True):
                answers.setdefault(label, Counter())[answer] += 1
        tasks[name] = [_row(label, counted) for label, counted in sorted(answers.items())]
    return tasks


def _row(label: int, counted: Counter[int]) -> list[Any]:
    wrong = [[answer, count] for answer, count in counted.most_common() if answer != label]
    return [label, counted.total(), counted[label], wrong[:MOST]]
