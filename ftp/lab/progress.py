"""How far a long piece of work is: a bar on a terminal, plain lines elsewhere, always on standard error."""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Self, TextIO

from ftp.lab.formats import duration

LINES = 10  # about so many plain lines in all
QUIET_SECONDS = 30.0  # and never a longer silence than this, if there is something to say


def say(text: str = "", stream: TextIO | None = None) -> None:
    """A line on standard error; if nobody reads it (a closed pipe), the work goes on without."""
    stream = sys.stderr if stream is None else stream
    with contextlib.suppress(BrokenPipeError):
        print(text, file=stream, flush=True)


def _width(stream: TextIO) -> int:
    """The columns of a terminal; 80 if it does not say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):
        return 80


class Progress:
    """Progress of `total` pieces of work.

    >>> import io
    >>> out = io.StringIO()
    >>> with Progress(2, "runs", stream=out, clock=iter([0.0, 60.0, 120.0]).__next__) as progress:
    ...     progress.at(1, "ftp")
    ...     progress.at(2, "tpgm")
    >>> print(out.getvalue(), end="")
    1/2 runs, about 60 s left, ftp
    2/2 runs, tpgm
    """

    def __init__(
        self,
        total: int,
        unit: str,
        *,
        start: int = 0,
        every: int | None = None,
        expected: float | None = None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """start: what was done before. every: a plain line each so many pieces. expected: seconds, if known."""
        self.total, self.unit, self.start, self.expected = total, unit, start, expected
        self.every = every or max(1, total // LINES)
        self.stream = sys.stderr if stream is None else stream
        self.clock = clock
        self.began = self.said_at = clock()
        self.done = self.line = start
        self.bar: Any = None
        if self.stream.isatty():
            from tqdm import tqdm

            wide = _width(self.stream)
            form = f"{{n_fmt}}/{{total_fmt}} {{unit}} |{{bar:{max(4, min(24, wide // 5))}}}| {{desc}}"
            how: dict[str, Any] = {"bar_format": form, "leave": False, "ncols": wide - 1}
            self.bar = tqdm(total=total, initial=start, unit=unit, file=self.stream, **how)
            if expected:
                self.bar.set_description_str(f"about {duration(expected)} left")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.close()

    def left(self, now: float) -> float | None:
        """The seconds that are left, if that can be said."""
        if self.done > self.start:
            return (now - self.began) / (self.done - self.start) * (self.total - self.done)
        return self.expected

    def at(self, done: int, note: str = "") -> None:
        """So many pieces are done; `note` says more about them."""
        self.done, now = done, self.clock()
        left = self.left(now)
        rest = f"about {duration(left)} left" if left is not None and done < self.total else ""
        text = ", ".join(part for part in (rest, note) if part)
        if self.bar is not None:
            self.bar.n = done
            self.bar.set_description_str(text)
        elif done >= self.total or done - self.line >= self.every or now - self.said_at > QUIET_SECONDS:
            self.line, self.said_at = done, now
            say(", ".join(part for part in (f"{done}/{self.total} {self.unit}", text) if part), self.stream)

    def say(self, text: str) -> None:
        """A line of its own, above the bar."""
        if self.bar is not None:
            self.bar.write(text, file=self.stream)
        else:
            say(text, self.stream)
