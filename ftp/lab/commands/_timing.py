"""How long runs will take here: a few real training steps and one small evaluation, multiplied."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ftp.lab.catalogue import fitting_kinds
from ftp.lab.record import SEVERITIES, Settings

EXTRA = 1.3  # making the corrupted images and the Lipschitz report, as a factor on the evaluations


@dataclass(frozen=True)
class Cost:
    """Seconds of one training step and of all evaluations of a run."""

    step: float
    evaluation: float

    def run(self, steps: int) -> float:
        """Seconds of a run of so many steps.

        >>> Cost(0.1, 5.0).run(300)
        35.0
        """
        return self.step * steps + self.evaluation


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def at_a_time(jobs: int | None, runs: int) -> int:
    """How many runs are made side by side: as asked, else one for each core, but no more than there are.

    >>> at_a_time(4, 10), at_a_time(4, 2)
    (4, 2)
    """
    return max(1, min(jobs or cores(), runs))


def measure(settings: Settings, device: str = "auto", kinds: Sequence[str] | None = None) -> Cost:
    """Train for some steps at the start and at the end of a run, which may differ, and evaluate a little."""
    from ftp.lab import evaluate, worlds
    from ftp.lab.train import WATCHES, finetune

    world = worlds.of(settings)
    sizes = {name: len(world.split(name)) for name in world.measures.splits("val", "home", "shift", "task")}
    steps = max(8, settings.steps)
    run = finetune(replace(settings, steps=steps), device=device, watches=0, evaluate_at_end=False)
    seconds = []
    for first in (0, steps - 3):
        run.step = first
        run.advance()[0].item()  # the first one warms up; item() waits for the device
        began = time.perf_counter()
        for _ in range(2):
            run.advance()[0].item()
        seconds.append((time.perf_counter() - began) / 2)
    began = time.perf_counter()
    watched = sum(evaluate.watch(run.model, world, 0).counts.values())
    per_image = (time.perf_counter() - began) / watched
    damaged = len(fitting_kinds(world, kinds)) * len(SEVERITIES) * min(evaluate.CORRUPTED, sizes[world.home])
    images = sum(sizes.values()) + damaged + watched * WATCHES
    return Cost(sum(seconds) / 2, EXTRA * per_image * images)


def expected(wanted: Iterable[Settings], device: str, jobs: int) -> float:
    """Seconds of many runs, so many at a time; runs that do the same work are measured once."""
    from ftp.lab import worlds

    costs: dict[tuple[object, ...], Cost] = {}
    total = 0.0
    for settings in wanted:
        sizes = (value for value in settings.options.values() if isinstance(value, int))  # such as turns of a loop
        key = (settings.method, settings.batch, settings.optimizer, *sizes)
        if key not in costs:
            costs[key] = measure(settings, device)
        total += costs[key].run(settings.steps * len(worlds.of(settings).phases))
    return total / jobs
