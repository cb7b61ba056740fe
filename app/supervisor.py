"""Runs for those who watch: `submit`, `watch`, `stop`, and the rules that keep one server fair to all.

The store is the truth: a run belongs to its id, so it outlives the page, the worker and this server.
Nothing here imports torch.
"""

import atexit
import os
import threading
from typing import Any

from app import queueing
from app.limits import class_mode
from app.manager import REST, Manager
from app.queueing import Busy, Place, Task
from ftp.lab.record import RUN_ID, LabError, Settings
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.store import Store

JOBS = ("wise", "corruptions", "microscope")
_own: list["Supervisor"] = []
_making = threading.Lock()


class Supervisor(Manager):
    """`start` keeps a worker warm, `submit` runs, `watch` them, `stop` them; `close` ends all."""

    def start(self) -> None:
        """Go on with what an earlier server left in the queue, and keep one worker warm: the first page comes first."""
        self._warm_from = self.clock() + REST
        self._begin()

    def submit(self, settings: Settings, viewer: str = "") -> str:
        """The id of the run with these settings; it waits in the queue unless it is there, or under way, already."""
        self._check(settings)
        run = identify(settings)
        status = self._status(run)
        if status == "running" and not self._at_work(run):
            self.store.sweep_stale()  # its server may have died a moment ago
            status = self.store.status(run)
        with self._lock:
            alike = [task for task in self._tasks if task.key == ("run", run)]
            mine = next((task for task in alike if not (task.over or task.leaving is not None)), None)
            if mine is None and status != "done" and not (status == "running" and not alike):
                self._room(viewer)  # before anything is written: who is refused leaves no run behind
            self.store.create(run, settings)
            self.watch(run)
            self._started.setdefault(run, set()).add(viewer)
            if mine:
                mine.viewers.add(viewer)
            if mine or status == "done" or (status == "running" and not alike):
                return run
            task = Task.of_run(run, settings, self.clock(), viewer, self._expected.seconds(settings))
            if not alike:  # else it is being stopped; it goes back into the queue when that is through
                self.store.finish(run, "queued")
            self._tasks.append(task)
        queueing.note(self.store, run)
        self._begin()
        return run

    def _status(self, run: str) -> str:
        try:
            return self.store.status(run)
        except LabError:
            self.store.runs(limit=1)  # says so if the store itself is in trouble
            return "new"

    def job(self, kind: str, run_id: str, viewer: str = "", **more: Any) -> str:
        """Ask for something about a run, besides the run: "queued", "running", or why it failed the last time."""
        if kind not in JOBS or not RUN_ID.fullmatch(run_id):
            raise LabError(f"job is {kind!r} of run {run_id!r}; it must be one of {', '.join(JOBS)} of a run's id")
        message = {"job": kind, "run_id": run_id, **more}
        with self._lock:
            found = next((t for t in self._tasks if t.message == message), None)
            if found is None:
                self._room(viewer)
                self._failed.pop((kind, run_id), None)
                found = Task(kind, run_id, message, self.clock(), {viewer}, expected=5.0)
                self._tasks.append(found)
        self._begin()
        return found.status

    def job_status(self, kind: str, run_id: str) -> str:
        """ "queued", "running", "missing" (nobody asked, or it is there) or the sentence of its failure."""
        with self._lock:
            found = next((t for t in self._tasks if t.key == (kind, run_id)), None)
            return found.status if found else self._failed.get((kind, run_id), "missing")

    def stop(self, run_id: str, viewer: str | None = None) -> None:
        """End a run after its present step; what is done is kept. On a class's server only for who started it."""
        with self._lock:
            mine = [t for t in self._tasks if t.key == ("run", run_id) and t.leaving is None]
            if class_mode() and viewer is not None and not any(viewer in t.viewers for t in mine):
                raise LabError("this run was started by someone else; it ends by itself when nobody watches it")
            if class_mode() and viewer is not None and any(len(t.viewers) > 1 for t in mine):
                for task in mine:
                    task.viewers.discard(viewer)
                raise LabError("others watch this run too, so it goes on; it is no longer one of yours")
            for task in mine:
                self._leave(task, "")
        if not mine and self.store.status(run_id) in ("queued", "running"):
            self.store.finish(run_id, "stopped")  # the server that has it sees that, and stops it

    def may_change(self, run_id: str, viewer: str) -> bool:
        """True if a viewer may rename and delete a run: at home always, in a class for who alone has asked for it."""
        return not class_mode() or self._started.get(run_id) == {viewer}

    def delete(self, run_id: str, viewer: str) -> None:
        """Put a run into the bin; one that waits is taken out of the queue first."""
        if not self.may_change(run_id, viewer):
            raise LabError("this run is not yours alone, so it stays; its teacher can delete it")
        if self.store.status(run_id) == "queued":
            self.stop(run_id)
        self.store.delete(run_id)

    def place(self, run_id: str) -> Place | None:
        """How many runs are before this one, and for how many seconds; None if it does not wait here."""
        with self._lock:
            return queueing.place(self._tasks, run_id, self.slots, self.clock())

    def expected(self, settings: Settings) -> float:
        """About how many seconds such a run takes, from those before it."""
        return self._expected.seconds(settings)

    def ended(self, run_id: str) -> tuple[str, str] | None:
        """The status and error of a run whose end the store could not take yet."""
        return self._unsaid.get(run_id)

    def busy(self) -> Busy:
        """How many runs are under way here, and how many wait."""
        with self._lock:
            runs = [task for task in self._tasks if task.kind == "run"]
            return Busy(sum(t.worker is not None for t in runs), sum(t.worker is None for t in runs), self.slots)

    def pids(self) -> list[int]:
        """The process ids of the workers."""
        with self._lock:
            return [worker.pid for worker in (self._idle, *(t.worker for t in self._tasks)) if worker]

    def _check(self, settings: Settings) -> None:
        given = {k: v for k, v in settings.as_dict().items() if k not in ("world", "method")}
        resolve(settings.world, settings.method, given)  # ranges; widgets' limits are no border
        for name in ("steps", "batch"):
            most, value = getattr(self.limits, name), getattr(settings, name)
            if value > most:
                raise LabError(f"{name} is {value}; this server takes at most {most}: write {name}={most}")

    def _room(self, viewer: str) -> None:
        own = sum(viewer in task.viewers for task in self._tasks)
        if own >= self.limits.each:
            raise LabError(f"you have {own} runs waiting or running, the most here; wait for one, or stop one")
        if len(self._tasks) >= self.limits.queue:
            raise LabError(f"{len(self._tasks)} runs are waiting, the most here; try again in a minute")


def supervisor() -> Supervisor:
    """The one of this process; its store is the file in FTP_APP_STORE, or the person's own."""
    with _making:
        if not _own:
            _own.append(Supervisor(Store(os.environ.get("FTP_APP_STORE") or None)))
            atexit.register(_own[0].close)
        return _own[0]


def close() -> None:
    """End the one of this process, if there is one."""
    with _making:
        if _own:
            _own.pop().close()
