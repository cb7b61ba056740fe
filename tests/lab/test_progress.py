"""Bars, plain lines, and what Ctrl-C does while a run trains."""

import fcntl
import os
import select
import signal
import struct
import termios

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


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_what_is_left_can_be_read_on_a_narrow_terminal(columns: int) -> None:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(slave, "w", encoding="utf-8") as stream:
        with Progress(300, "steps", stream=stream, clock=iter([0.0, 30.0]).__next__) as progress:
            progress.at(150)
        written = b""
        while select.select([master], [], [], 0.3 if b"150/300" in written else 60)[0]:
            written += os.read(master, 100_000)  # the system hands it over in parts
        lines = written.decode().split("\r")
    os.close(master)
    shown = next(line for line in lines if line.startswith("150/300"))
    assert "about 30 s" in shown
    assert len(shown) < columns  # a line that is too long would leave its first part standing


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
