"""The thread that gives tasks to worker processes and minds them until they have ended.

Whatever happens to a worker ends as one sentence in its run's row; nothing here ends the server.
"""

import gc
import json
import logging
import threading
import time
from contextlib import suppress

from app import promises
from app.estimates import Estimates
from app.limits import NOBODY
from app.queueing import Queue, Task
from app.workers import Workers
from ftp.lab.jobs import Order
from ftp.lab.record import LabError
from ftp.lab.store import Store

POLITE, FIRM, HARD = 0.7, 2.0, 5.0  # seconds after a stop: the row says so, SIGTERM, SIGKILL
TICK, LOOK, COLLECT = 0.2, 2.0, 60.0  # seconds between two rounds, two looks at the store, two collections
CLOSING = 1.0  # seconds for a checkpoint when the server ends
TRIES = 2
log = logging.getLogger("app")


class Dispatcher:
    """`wake` it when there is something new in the queue; `stop` a task; `close` ends all."""

    def __init__(self, queue: Queue, store: Store, estimates: Estimates, device: str) -> None:
        self.queue, self.store, self.estimates, self.clock = queue, store, estimates, queue.clock
        self._wake, self._closing = threading.Event(), threading.Event()
        self.workers = Workers(store.path, device, self._wake.set)
        self._unsaved_ends: dict[str, tuple[str, str]] = {}  # status and error that the store could not take
        self._looked = self._collected = self.clock()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Look at the queue now; the first call starts the thread."""
        with self.queue.lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._rounds, name="dispatcher", daemon=True)
                self._thread.start()
        self._wake.set()

    def unsaved_end(self, run_id: str) -> tuple[str, str] | None:
        """The status and error of a run whose end the store could not take yet."""
        return self._unsaved_ends.get(run_id)

    def stop(self, task: Task, reason: str = "") -> None:
        """End a task: one that waits leaves the queue, one at work is told, and pressed if it does not listen."""
        with self.queue.lock:
            task.stopping, task.reason = self.clock(), reason
            if task.worker:
                task.worker.say("stop")
            else:
                self.queue.remove(task)
        if not task.worker:
            self._write_end(task, "stopped", reason)
        self._wake.set()

    def _rounds(self) -> None:
        self._look_outside()
        while not self._closing.is_set():
            try:
                self._round()
            except LabError as error:  # a locked or full store: the next round may do better
                log.warning("%s", error)
            except Exception:
                log.exception("the dispatcher goes on")
            self._wake.wait(TICK)
            self._wake.clear()

    def _round(self) -> None:
        now = self.clock()
        for task in self.queue.tasks:
            if task.worker and task.worker.ended:
                self._finished(task)
            elif task.stopping is not None:
                self._press(task, now)
            elif reason := self.queue.overdue(task):
                self.stop(task, reason)
        while (first := self.queue.next_task()) is not None:
            self.dispatch(first)
        self.workers.keep_warm(now)
        if now - self._looked > LOOK:
            self._look_outside()
        if now - self._collected > COLLECT:  # Streamlit's own collection after each rerun is switched off
            self._collected = now
            gc.collect()

    def _look_outside(self) -> None:
        """Runs without a sign of life, a store that takes ends again, stops by other servers, promises of the last."""
        self._looked = self.clock()
        with suppress(LabError):
            self.store.sweep_stale()
        with suppress(LabError):
            for run_id, (status, error) in list(self._unsaved_ends.items()):
                if not self.queue.has_run(run_id):  # else it was asked for again since
                    self.store.finish(run_id, status, error)
                del self._unsaved_ends[run_id]
        with suppress(LabError):
            for task in self.queue.tasks:
                again = len(self.queue.tasks_of(task.order)) > 1
                ours = task.is_run and not again and task.stopping is None
                if ours and self.store.status(task.run_id) == "stopped":
                    self.stop(task)
            known = {task.run_id for task in self.queue.tasks}
            for promise in promises.left_over(self.store, known):
                self._take_over(promise)

    def _take_over(self, promise: promises.Promise) -> None:
        """Go on with what another server has promised, unless nobody has looked at it for too long."""
        order, viewers = Order("run", promise.run_id), set(promise.viewers or {NOBODY})
        task = self.queue.add(order, viewers, self.estimates.of_run(promise.settings), unwatched=promise.unwatched)
        for viewer in viewers:
            self.queue.note_asker(promise.run_id, viewer)
        if reason := self.queue.overdue(task):
            self.stop(task, reason)

    def dispatch(self, task: Task) -> None:
        """Give a task to a worker, unless it is not to be done any more."""
        try:
            waits = not task.is_run or self.store.status(task.run_id) == "queued"
        except LabError:  # deleted for good, or the store is in trouble: then it is asked for again
            waits = False
        if not waits:  # another server has it, or it was ended
            self.queue.remove(task)
            return
        with self.queue.lock:
            if task not in self.queue.tasks:  # stopped this moment
                return
            task.worker, task.began = self.workers.take(self.clock()), self.clock()
            task.tries += 1
        task.worker.say(json.dumps(task.order.message))

    def _press(self, task: Task, now: float) -> None:
        """What follows a stop, if the worker takes its time."""
        if task.worker is None or task.stopping is None:  # it left the queue this moment
            return
        waited = now - task.stopping
        if waited > POLITE and not task.row_says_stopped:
            task.row_says_stopped = True  # a long evaluation may hold the worker; nobody has to wait for that
            self._write_end(task, "stopped", task.reason)
        if waited > HARD:
            task.worker.kill()
        elif waited > FIRM:
            task.worker.terminate()

    def _finished(self, task: Task) -> None:
        """A worker has ended, one way or another: its row says how, and who waits comes next."""
        assert task.worker
        worker, task.worker, task.over = task.worker, None, True
        answer = worker.answer
        if not task.is_run:
            error = answer.get("error") or ("" if answer else f"the worker ended without an answer ({worker.how()})")
            if error:
                self.queue.note_failure(task.order, error)
        elif task.stopping is not None:
            self._write_end(task, "stopped", task.reason, worker.pid)
        elif "error" in answer:
            self._write_end(task, "failed", answer["error"], worker.pid)
        elif not answer and not worker.ready and task.tries < TRIES:
            task.over = False
            return  # it never began: once more, with a new worker
        elif not answer:
            sentence = f"its worker ended without a word ({worker.how()}); press Train again, and it goes on"
            self._write_end(task, "interrupted", sentence, worker.pid)
        with self.queue.lock:
            self.queue.remove(task)
            again = self.queue.tasks_of(task.order)
        if task.is_run and again:  # it was asked for again while it was being stopped
            promises.make(self.store, task.run_id, again[0].viewers)
            self.store.finish(task.run_id, "queued")
        elif task.is_run:
            promises.clear(self.store, task.run_id)

    def _write_end(self, task: Task, status: str, error: str, pid: int | None = None) -> None:
        """Write how a run ended, unless its row says so already or belongs to another process."""
        if not task.is_run:
            return
        promises.clear(self.store, task.run_id)
        try:
            written = self.store.status(task.run_id)
            if written == "running" and pid is not None and f":{pid}:" not in self.store.owner(task.run_id):
                return
            if written in ("queued", "running") or (written == status and error):
                self.store.finish(task.run_id, status, error)
        except LabError:
            self._unsaved_ends[task.run_id] = status, error

    def drop_all(self) -> None:
        """End every task at once, without a word in the store: there is none that could take it."""
        with self.queue.lock:
            tasks = self.queue.tasks
            self.queue.clear()
        for task in tasks:
            if task.worker:
                task.worker.kill()
        self._unsaved_ends.clear()

    def close(self) -> None:
        """Stop all that runs here, with a checkpoint where a second is enough for it; what waits, waits on."""
        self._closing.set()
        self._wake.set()
        if self._thread:
            self._thread.join(10)
        active = [(task, task.worker) for task in self.queue.tasks if task.worker]
        for _, worker in active:
            worker.say("stop")
        deadline = time.monotonic() + CLOSING
        while time.monotonic() < deadline and not all(worker.ended for _, worker in active):
            time.sleep(0.02)
        for _, worker in active:
            worker.kill()
        self.workers.close()
        for task, _ in active:
            self._write_end(task, "interrupted", "the server was shut down; press Train again, and it goes on")
        self.queue.clear()
