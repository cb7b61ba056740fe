"""Worker processes as the server sees them: a pipe to speak into, a thread that hears the answer, an end."""

import contextlib
import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

REST = 4.0  # seconds after the start, and after a task has begun, before a spare one starts: it would slow both
TRIES = 3  # spare workers that may die before one is ready


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


class Workers:
    """New workers, and one to spare that has imported torch already: that takes seconds."""

    def __init__(self, store: Path, device: str, changed: Callable[[], None]) -> None:
        self._new = functools.partial(Worker, store, device, changed)
        self._spare: Worker | None = None
        self._warm_from: float | None = None  # None: keep no spare worker
        self._stillborn = 0  # spare workers that died before they were ready

    def warm_from(self, now: float) -> None:
        """From a while after now on, keep a spare worker."""
        self._warm_from = now + REST

    def take(self, now: float) -> Worker:
        """The spare one, or else a new one."""
        worker, self._spare = self._spare, None
        if self._warm_from is not None:
            self.warm_from(now)
        return worker if worker and not worker.ended else self._new()

    def keep_warm(self, now: float) -> None:
        """Start a spare worker if it is time for one; not again and again where none can start."""
        if self._spare and self._spare.ended:
            self._stillborn, self._spare = self._stillborn + (not self._spare.ready), None
        if self._spare is None and self._warm_from is not None and now >= self._warm_from and self._stillborn < TRIES:
            self._spare = self._new()

    @property
    def spare(self) -> Worker | None:
        """The worker that waits for something to do."""
        return self._spare

    def close(self) -> None:
        """End the spare one."""
        if self._spare:
            self._spare.kill()
        self._spare = self._warm_from = None
