"""Bars, plain lines, and what Ctrl-C does while a run trains."""

import signal

import pytest

from ftp.lab.commands._stop import Stop
from ftp.lab.progress import Progress


class Terminal(list[str]):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.append(text)

    def flush(self) -> None: ...


def test_a_terminal_gets_a_bar() -> None:
    stream, clock = Terminal(), iter([0.0, 30.0])
    with Progress(4, "steps", stream=stream, clock=lambda: next(clock)) as progress:  # type: ignore[arg-type]
        progress.at(1, "loss 0.5")
        progress.say("a line")
    shown = "".join(stream)
    assert "1/4 steps |" in shown
    assert "about 90 s left, loss 0.5" in shown
    assert "a line\n" in shown


def test_the_first_ctrl_c_asks_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Stop() as stop:
        with pytest.raises(KeyboardInterrupt):  # nothing is half done yet
            signal.raise_signal(signal.SIGINT)
        stop.gently = True
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
