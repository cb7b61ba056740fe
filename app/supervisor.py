"""Runs for those who watch: `submit`, `watch`, `stop`, and the rules that keep one server fair to all.

The store is the truth: a run belongs to its id, so it outlives the page, the worker and this server.
Nothing here imports torch.
"""

import atexit
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from app import promises
from app.dispatcher import Dispatcher
from app.estimates import Estimates
from app.limits import NOBODY, Limits, Viewer, class_mode, store_path
from app.limits import limits as server_limits
from app.queueing import Busy, Place, Queue
from app.tails import Tails
from ftp.lab.jobs import Order
from ftp.lab.record import LabError, Settings
from ftp.lab.run import code_of, identify
from ftp.lab.settings import resolve
from ftp.lab.store import Store

ROOM = 1_000_000  # bytes that must be free for a run to begin


class Supervisor:
    """What a view can ask for. The queue holds who waits; the dispatcher's thread does the rest."""

    def __init__(
        self,
        store: Store,
        *,
        slots: int | None = None,
        limits: Limits | None = None,
        device: str = "auto",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store, self.wall_is_on = store, True  # the class wall, where there is a class
        self.queue = Queue(slots or max(1, (os.cpu_count() or 2) - 1), limits or server_limits(), clock)
        self.estimates, self.tails = Estimates(store), Tails(store)
        self.dispatcher = Dispatcher(self.queue, store, self.estimates, device)

    @property
    def limits(self) -> Limits:
        """The limits of the moment; `change_limits` replaces them."""
        return self.queue.limits

    def change_limits(self, **changes: float) -> None:
        """Other limits from now on, until the server ends; what waits or runs is measured by them too."""
        for name, value in changes.items():
            if value < 1:
                raise LabError(f"the limit {name} is {value:g}; it must be 1 or more")
        self.queue.limits = replace(self.queue.limits, **changes)  # type: ignore[arg-type]

    def start(self) -> None:
        """Go on with what an earlier server left in the queue, and keep one worker warm: the first page comes first."""
        self.dispatcher.workers.warm_from(self.queue.clock())
        self.dispatcher.wake()

    def close(self) -> None:
        """End the thread and the workers; what waits, waits for the next server."""
        self.dispatcher.close()

    def submit(self, settings: Settings, viewer: Viewer = NOBODY) -> str:
        """The id of the run with these settings; it waits in the queue unless it is there, or under way, already."""
        return self.submit_all([settings], viewer)[0]

    def submit_all(self, several: Sequence[Settings], viewer: Viewer = NOBODY) -> list[str]:
        """The ids of several runs that are asked for together, such as a race: all are taken, or none.

        Together they are one request of the viewer's.
        """
        for settings in several:
            self._check(settings)
        self._check_disk()
        wanted = {identify(settings): settings for settings in several}
        statuses = {run: self._status(Order("run", run)) for run in wanted}
        with self.queue.lock:
            new = [run for run in wanted if self._is_new(run, statuses[run])]
            if new:
                self.queue.check_room(viewer, len(new))  # before anything is written: who is refused leaves no run
            request = secrets.token_hex(8)
            for run, settings in wanted.items():
                self._enter(run, settings, viewer, request if run in new else "")
        if new:
            self.dispatcher.wake()
        return [identify(settings) for settings in several]

    def _is_new(self, run: str, status: str) -> bool:
        """True if a run must go into the queue: it is neither there already nor done nor made elsewhere."""
        alike = self.queue.tasks_of(Order("run", run))
        elsewhere = status == "running" and not alike
        return not any(task.goes_on for task in alike) and status != "done" and not elsewhere

    def _enter(self, run: str, settings: Settings, viewer: Viewer, request: str) -> None:
        """Write the row of a run, and put it into the queue if a request is named; else the viewer joins the others."""
        order = Order("run", run)
        alike = self.queue.tasks_of(order)
        self.store.create(run, settings, code=code_of(settings))
        self.queue.note_asker(run, viewer)
        if request and not alike:  # else it is being stopped; it goes back into the queue when that is through
            self.store.finish(run, "queued")
        if request:
            self.queue.add(order, {viewer}, self.estimates.of_run(settings), request=request)
        going = next((task for task in self.queue.tasks_of(order) if task.goes_on), None)
        if going:
            going.viewers.add(viewer)
            promises.make(self.store, run, going.viewers)
            self.watch(run)

    def _check_disk(self) -> None:
        """Say at once that a disk is full: the first step would come, and fail, many seconds later."""
        with suppress(OSError):
            if shutil.disk_usage(self.store.path.parent).free >= ROOM:
                return
            raise LabError(f"the disk of {self.store.path} is full, so nothing can be trained; make room, then go on")

    def _check(self, settings: Settings) -> None:
        chosen = {k: v for k, v in settings.as_dict().items() if k not in ("world", "method")}
        resolve(settings.world, settings.method, chosen)  # ranges; widgets' limits are no border
        for name in ("steps", "batch"):
            most, value = getattr(self.limits, name), getattr(settings, name)
            if value > most:
                raise LabError(f"{name} is {value}; this server takes at most {most}: write {name}={most}")

    def _status(self, order: Order) -> str:
        """What the store says of a run; "new" if it is not in it."""
        try:
            status = self.store.status(order.run_id)
        except LabError:
            self.store.runs(limit=1)  # says so if the store itself is in trouble
            return "new"
        if status == "running" and not any(task.worker for task in self.queue.tasks_of(order)):
            self.store.sweep_stale()  # its server may have died a moment ago
            status = self.store.status(order.run_id)
        return status

    def ask(self, order: Order, viewer: Viewer = NOBODY) -> str:
        """Have a job about a run done; "queued" or "running"."""
        if order.job == "run":
            raise LabError("a run is asked for with Supervisor.submit, which checks its settings first")
        with self.queue.lock:
            task = next(iter(self.queue.tasks_of(order)), None)
            if task is None:
                self.queue.check_room(viewer)
                task = self.queue.add(order, {viewer}, self.estimates.of_order(order))
        self.dispatcher.wake()
        return task.status

    def job_status(self, order: Order) -> str:
        """ "queued", "running", "missing" (nobody asked, or it is there) or the sentence of its failure."""
        task = next(iter(self.queue.tasks_of(order)), None)
        return task.status if task else self.queue.failure(order) or "missing"

    def watch(self, run_id: str) -> bool:
        """Say that somebody looks at a run; nobody for a while ends it. False if it is not in the queue here."""
        promises.watch(self.store, run_id)
        return self.queue.watch(run_id)

    def stop(self, run_id: str, viewer: Viewer | None = None) -> None:
        """End a run after its present step; what is done is kept. In a class for who started it, or its teacher."""
        with self.queue.lock:
            tasks = [task for task in self.queue.tasks_of(Order("run", run_id)) if task.stopping is None]
            if class_mode() and viewer is not None and not viewer.is_teacher:
                if not any(viewer in task.viewers for task in tasks):
                    raise LabError("this run was started by someone else; it ends by itself when nobody watches it")
                if any(len(task.viewers) > 1 for task in tasks):
                    for task in tasks:
                        task.viewers.discard(viewer)
                    raise LabError("others watch this run too, so it goes on; it is no longer one of yours")
            for task in tasks:
                self.dispatcher.stop(task)
        if not tasks and self.store.status(run_id) in ("queued", "running"):
            self.store.finish(run_id, "stopped")  # the server that has it sees that, and stops it

    def clear_queue(self) -> None:
        """Take out all that waits; what is at work goes on."""
        for task in self.queue.tasks:
            if task.worker is None:
                self.dispatcher.stop(task, "the teacher cleared the queue; press Train again to go on")

    def move_store_aside(self) -> Path:
        """Keep a store that cannot be read under another name; all that waits or runs ends, and an empty one begins."""
        self.dispatcher.drop_all()
        return self.store.move_aside()

    def may_change(self, run_id: str, viewer: Viewer) -> bool:
        """True if a viewer may rename and delete a run: at home, as a teacher, or who alone has asked for it."""
        return not class_mode() or viewer.is_teacher or self.queue.is_only_asker(run_id, viewer)

    def delete(self, run_id: str, viewer: Viewer) -> None:
        """Put a run into the bin; one that waits is taken out of the queue first."""
        if not self.may_change(run_id, viewer):
            raise LabError("this run is not yours alone, so it stays; its teacher can delete it")
        if self.store.status(run_id) == "queued":
            self.stop(run_id)
        self.store.delete(run_id)

    def place(self, run_id: str) -> Place | None:
        """How many runs are before this one, and for how many seconds; None if it does not wait here."""
        return self.queue.place(run_id)

    def expected(self, settings: Settings) -> float:
        """About how many seconds such a run takes, from those before it."""
        return self.estimates.of_run(settings)

    def unsaved_end(self, run_id: str) -> tuple[str, str] | None:
        """The status and error of a run whose end the store could not take yet."""
        return self.dispatcher.unsaved_end(run_id)

    def busy(self) -> Busy:
        """How many runs are under way here, and how many wait."""
        return self.queue.busy()

    def pids(self) -> list[int]:
        """The process ids of the workers."""
        workers = (self.dispatcher.workers.spare, *(task.worker for task in self.queue.tasks))
        return [worker.pid for worker in workers if worker]


_of_this_process: list[Supervisor] = []  # one, or none yet
_making = threading.Lock()


def supervisor() -> Supervisor:
    """The one of this process; its store is the file in FTP_APP_STORE, or the person's own."""
    with _making:
        if not _of_this_process:
            _of_this_process.append(Supervisor(Store(store_path())))
            atexit.register(_of_this_process[0].close)
        return _of_this_process[0]


def close() -> None:
    """End the one of this process, if there is one."""
    with _making:
        if _of_this_process:
            _of_this_process.pop().close()
