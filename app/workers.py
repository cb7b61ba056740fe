"""A worker process as the server sees it: a pipe to speak into, a thread that hears the answer, an end."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Worker:
    """One `ftp.lab.worker`. It is gone when this process is: its standard input closes then."""

    def __init__(self, store: Path, device: str, changed: Callable[[], None]) -> None:
        self.ready = self.ended = False
        self.answer: dict[str, Any] = {}
        self._changed = changed
        command = [sys.executable, "-m", "ftp.lab.worker", "--store", str(store), "--device", device]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C in the terminal is for the server, which ends its workers in order
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with contextlib.suppress(ValueError):  # a library may print
                    self._hear(json.loads(line))
        self.process.wait()
        self._close()
        self.ended = True
        self._changed()

    def _hear(self, said: Any) -> None:
        if said == {"status": "ready"}:
            self.ready = True
        elif isinstance(said, dict):
            self.answer = said
        self._changed()

    def say(self, line: str) -> None:
        """Send a line; to a process that has ended it is lost, and `ended` says so."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        """End it now, and wait for that."""
        self._close()
        self.process.kill()
        self._thread.join(5)

    def _close(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.close()

    def how(self) -> str:
        """How it ended, for a sentence."""
        code = self.process.returncode
        return f"signal {-code}" if code is not None and code < 0 else f"code {code}"
