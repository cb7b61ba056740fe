"""Other processes for tests: killed, and their pipes closed, however the test ends."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

PATIENCE = 600.0  # a loaded machine is slow; nothing here decides by time


@contextlib.contextmanager
def started(*commands: Sequence[str], **how: Any) -> Iterator[list[subprocess.Popen[str]]]:
    """One process for each command, with a pipe from its output."""
    pipes = {"stdout": subprocess.PIPE, "text": True, **how}
    with contextlib.ExitStack() as ends:
        processes = []
        for command in commands:
            processes.append(ends.enter_context(subprocess.Popen(command, **pipes)))
            ends.callback(processes[-1].kill)  # called before the pipes are closed and the process is waited for
        yield processes
