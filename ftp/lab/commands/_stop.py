"""Ctrl-C while a run trains: the step is brought to its end first, so that what is kept is whole."""

import signal
import threading
from types import FrameType
from typing import Self


class Stop:
    """Called, it says whether a person wants to stop. While `gently` is on, the first Ctrl-C only asks; else, and from
    the second one on, it interrupts at once. `pressed`: there was one, whatever became of it.

    >>> with Stop() as stop:
    ...     stop()
    False
    """

    def __init__(self) -> None:
        self.wanted = self.gently = self.pressed = False
        self._main = threading.current_thread() is threading.main_thread()  # no other thread may handle signals

    def __call__(self) -> bool:
        return self.wanted

    def __enter__(self) -> Self:
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        if self.wanted or not self.gently:
            raise KeyboardInterrupt
        self.wanted = True  # nothing is printed here: the signal may have come in the middle of another print
