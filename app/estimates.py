"""About how many seconds a run or a job takes."""

import statistics
import time
from contextlib import suppress

from ftp.lab import worlds
from ftp.lab.jobs import JOBS, Order
from ftp.lab.record import LabError, Settings
from ftp.lab.store import Store

START_SECONDS = 3.0  # before the first step
FRESH_SECONDS = 30.0  # so long a number from the store is used again
RECENT = 20  # runs whose middle is taken


class Estimates:
    """The middle of the runs in the store, by their steps; a guess as long as there are none."""

    def __init__(self, store: Store) -> None:
        self.store = store
        # world, method: when it was read, its value
        self._step_seconds: dict[tuple[str, str], tuple[float, float]] = {}

    def of_run(self, settings: Settings) -> float:
        """Of a whole run with these settings."""
        key = settings.world, settings.method
        read, seconds = self._step_seconds.get(key, (-FRESH_SECONDS, 0.0))
        if time.monotonic() - read > FRESH_SECONDS:
            seconds = self._read(*key)
            self._step_seconds[key] = time.monotonic(), seconds
        return round(START_SECONDS + settings.steps * phases(settings) * seconds, 1)

    def of_order(self, order: Order) -> float:
        """Of a job: its row in the table says it, or that it takes as long as its run."""
        seconds = JOBS[order.job].seconds
        return self.of_run(self.store.load(order.run_id).settings) if seconds is None else seconds

    def _read(self, world: str, method: str) -> float:
        with suppress(LabError):
            runs = self.store.runs(world=world, method=method, status="done", limit=RECENT)
            seconds = [
                (run.ended - run.started) / (run.settings.steps * len(run.phases))
                for run in runs
                if run.ended and run.started
            ]
            if seconds:
                return statistics.median(seconds)
        return worlds.world(world).step_seconds


def phases(settings: Settings) -> int:
    """How many phases a run has, without loading anything."""
    return len(worlds.of(settings).phases)
