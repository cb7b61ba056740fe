"""Preparing the batches of the next steps while the present one is computed."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Batch = TypeVar("Batch")
DEPTH = 2  # batches that are prepared ahead


class Ahead(Generic[Batch]):
    """Batches by the number of their step. What is prepared does not depend on when: only the time to wait does.

    >>> batches = Ahead(lambda step: step * step)
    >>> batches.take(3, last=4), batches.take(4, last=4)
    (9, 16)
    """

    def __init__(self, prepare: Callable[[int], Batch]) -> None:
        self.prepare = prepare
        self.waited = 0.0  # seconds, in all, until a batch was there
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ahead")
        self._coming: dict[int, Future[Batch]] = {}

    def take(self, step: int, last: int) -> Batch:
        """The batch of a step; those of the steps after it, up to `last`, are begun."""
        wanted = range(step, min(step + DEPTH, last) + 1)
        for other in [number for number in self._coming if number not in wanted]:
            self._coming.pop(other).cancel()
        for number in wanted:
            if number not in self._coming:
                self._coming[number] = self._thread.submit(self.prepare, number)
        began = time.perf_counter()
        batch = self._coming.pop(step).result()
        self.waited += time.perf_counter() - began
        return batch
