"""The thread that gives tasks to worker processes and minds them until they have ended.

Whatever happens to a worker ends as one sentence in its run's row; nothing here ends the server.
"""

import gc
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from app import queueing
from app.limits import Limits, limits
from app.queueing import Task
from app.workers import Worker
from ftp.lab.record import LabError, code_version
from ftp.lab.store import Store

POLITE, FIRM, HARD = 0.7, 2.0, 5.0  # seconds after a stop: the row says so, SIGTERM, SIGKILL
TICK, LOOK, COLLECT = 0.2, 2.0, 60.0
REST = 4.0  # after the start, and after a job has begun, before a spare worker is started: its import would slow both
TRIES = 2
log = logging.getLogger("app")


class Manager:
    """Tasks in the order in which they came; those with a worker are at work."""

    def __init__(
        self,
        store: Store,
        *,
        slots: int | None = None,
        bounds: Limits | None = None,
        device: str = "auto",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store, self.device, self.clock = store, device, clock
        self.slots = slots or max(1, (os.cpu_count() or 2) - 1)
        self.limits = bounds or limits()
        self._tasks: list[Task] = []
        self._idle: Worker | None = None
        self._warm_from: float | None = None  # None: keep no spare worker
        self._cold = 0  # spare workers that died before they were ready
        self._watched: dict[str, float] = {}
        self._unsaid: dict[str, tuple[str, str]] = {}  # ends that the store could not take, tried again
        self._failed: dict[tuple[str, str], str] = {}
        self._started: dict[str, set[str]] = {}  # who asked for a run since this server began
        self._expected = queueing.Expected(store)
        self._lock, self._wake, self._over = threading.RLock(), threading.Event(), threading.Event()
        self._looked = self._collected = clock()
        self._thread: threading.Thread | None = None

    def watch(self, run_id: str) -> None:
        """Say that somebody looks at a run; nobody for a while ends it."""
        self._watched[run_id] = self.clock()

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(target=self._manage, name="supervisor", daemon=True)
                self._thread.start()
        self._wake.set()

    def _manage(self) -> None:
        code_version()  # takes a moment, and is kept: the first Train need not wait for it
        self._look()
        while not self._over.is_set():
            try:
                self._tick()
            except LabError as error:  # a locked or full store: the next round may do better
                log.warning("%s", error)
            except Exception:
                log.exception("the supervisor goes on")
            self._wake.wait(TICK)
            self._wake.clear()

    def _tick(self) -> None:
        now = self.clock()
        for task in list(self._tasks):
            if task.worker and task.worker.ended:
                self._finished(task)
            elif task.worker or task.kind == "run":
                self._mind(task, now)
        while (first := queueing.next_task(self._tasks, self.slots)) is not None:
            self._dispatch(first)
        self._keep_warm(now)
        if now - self._looked > LOOK:
            self._look()
        if now - self._collected > COLLECT:  # Streamlit's own collection after each rerun is switched off
            self._collected = now
            gc.collect()

    def _look(self) -> None:
        """What happened outside: runs without a sign of life, stops by another server, a store that takes again."""
        self._looked = self.clock()
        with suppress(LabError):
            self.store.sweep_stale()
            for run, (status, error) in list(self._unsaid.items()):
                if not self._here(run):  # else it was asked for again since
                    self.store.finish(run, status, error)
                del self._unsaid[run]
            for task in list(self._tasks):
                again = any(other is not task and other.key == task.key for other in self._tasks)
                if task.kind == "run" and not (again or task.leaving) and self.store.status(task.run_id) == "stopped":
                    self._leave(task, "")
            for run, settings in queueing.left_over(self.store, {task.run_id for task in self._tasks}):
                task = Task.of_run(run, settings, self.clock(), "", self._expected.seconds(settings))
                self.watch(run)
                with self._lock:
                    self._tasks.append(task)
        old = self.clock() - self.limits.lease
        for run in [run for run, seen in list(self._watched.items()) if seen < old and not self._here(run)]:
            self._watched.pop(run, None)

    def _mind(self, task: Task, now: float) -> None:
        """Leases, the limit on time, and what follows a stop."""
        if task.leaving is not None:
            self._press(task, now)
        elif task.kind == "run" and now - self._watched.get(task.run_id, task.came) > self.limits.lease:
            self._leave(task, f"nobody watched for {self.limits.lease / 60:g} minutes; press Train again to go on")
        elif task.began is not None and now - task.began > self.limits.seconds:
            self._leave(task, f"it took more than {self.limits.seconds:g} s, the most here; give fewer steps")

    def _leave(self, task: Task, reason: str) -> None:
        with self._lock:
            task.leaving, task.reason = self.clock(), reason
            if task.worker:
                task.worker.say("stop")
            elif task in self._tasks:
                self._tasks.remove(task)
        if not task.worker:
            self._settle(task, "stopped", reason)
        self._wake.set()

    def _press(self, task: Task, now: float) -> None:
        if task.worker is None or task.leaving is None:  # it left the queue this moment
            return
        waited = now - task.leaving
        if waited > POLITE and not task.said:
            task.said = True  # a long evaluation may hold the worker; nobody has to wait for that
            self._settle(task, "stopped", task.reason)
        if waited > HARD:
            task.worker.kill()
        elif waited > FIRM:
            task.worker.terminate()

    def _dispatch(self, task: Task) -> None:
        try:
            waits = task.kind != "run" or self.store.status(task.run_id) == "queued"
        except LabError:  # deleted for good, or the store is in trouble: then it is asked for again
            waits = False
        if not waits:  # another server has it, or it was ended
            with self._lock:
                self._tasks.remove(task)
            return
        with self._lock:
            if task not in self._tasks:  # stopped this moment
                return
            worker = self._idle if self._idle and not self._idle.ended else self._new_worker()
            self._idle = None
            if self._warm_from is not None:
                self._warm_from = self.clock() + REST
            task.worker, task.began = worker, self.clock()
            task.tries += 1
        worker.say(json.dumps(task.message))

    def _new_worker(self) -> Worker:
        return Worker(self.store.path, self.device, self._wake.set)

    def _keep_warm(self, now: float) -> None:
        if self._idle and self._idle.ended:
            self._cold, self._idle = self._cold + (not self._idle.ready), None
        if self._idle is None and self._warm_from is not None and now >= self._warm_from and self._cold < 3:
            self._idle = self._new_worker()

    def _finished(self, task: Task) -> None:
        """A worker has ended, one way or another: its row says how, and who waits comes next."""
        assert task.worker
        worker, task.worker, task.over = task.worker, None, True
        answer = worker.answer
        if task.kind != "run":
            error = answer.get("error") or ("" if answer else f"the worker ended without an answer ({worker.how()})")
            if error:
                self._failed[task.key] = error
        elif task.leaving is not None:
            self._settle(task, "stopped", task.reason, worker.pid)
        elif "error" in answer:
            self._settle(task, "failed", answer["error"], worker.pid)
        elif not answer and not worker.ready and task.tries < TRIES:
            task.over = False
            return  # it never began: once more, with a new worker
        elif not answer:
            sentence = f"its worker ended without a word ({worker.how()}); press Train again, and it goes on"
            self._settle(task, "interrupted", sentence, worker.pid)
        with self._lock:
            self._tasks.remove(task)
            again = any(other.key == task.key for other in self._tasks)
        if task.kind == "run" and again:  # it was asked for again while it was being stopped
            self.store.finish(task.run_id, "queued")
        elif task.kind == "run":
            queueing.forget(self.store, task.run_id)

    def _settle(self, task: Task, status: str, error: str, pid: int | None = None) -> None:
        """Write how a run ended, unless its row says so already or belongs to another process."""
        if task.kind != "run":
            return
        queueing.forget(self.store, task.run_id)
        try:
            now = self.store.status(task.run_id)
            if now == "running" and pid is not None and f":{pid}:" not in self.store.owner(task.run_id):
                return
            if now in ("queued", "running") or (now == status and error):
                self.store.finish(task.run_id, status, error)
        except LabError:
            self._unsaid[task.run_id] = status, error

    def _here(self, run: str) -> bool:
        return any(task.run_id == run for task in list(self._tasks))

    def _at_work(self, run: str) -> bool:
        return any(task.key == ("run", run) and task.worker for task in list(self._tasks))

    def close(self) -> None:
        """Stop all that runs here, with a checkpoint where a second is enough for it; what waits, waits on."""
        self._over.set()
        self._wake.set()
        if self._thread:
            self._thread.join(10)
        active = [task for task in self._tasks if task.worker]
        for task in active:
            assert task.worker
            task.worker.say("stop")
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline and not all(t.worker.ended for t in active if t.worker):
            time.sleep(0.02)
        for worker in (self._idle, *(t.worker for t in active)):
            if worker:
                worker.kill()
        for task in active:
            self._settle(task, "interrupted", "the server was shut down; press Train again, and it goes on")
        self._tasks, self._idle = [], None
