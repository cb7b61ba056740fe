"""The queue: who waits, who is at work, who is next, for how long, and who may ask for more. All of it in memory.

Viewers take turns: who has waited longest comes next, however much anybody else has asked for.
"""

import heapq
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.limits import Limits, Viewer
from app.workers import Worker
from ftp.lab.jobs import Order
from ftp.lab.record import LabError


@dataclass(frozen=True)
class Place:
    """Where a run stands in the queue: runs before it, and about how many seconds they take."""

    ahead: int
    seconds: float


@dataclass(frozen=True)
class Busy:
    """Runs under way, runs that wait, and how many may be under way at once."""

    running: int
    waiting: int
    slots: int


@dataclass(eq=False)
class Task:
    """An order on its way: it waits, has a worker, is being stopped, is over."""

    order: Order
    viewers: set[Viewer]  # who asked for it
    expected: float  # seconds
    asked: float  # when it came
    watched: float  # when somebody looked last
    request: str = ""  # what was asked for together, such as a race, has one name; it counts once
    worker: Worker | None = None
    began: float | None = None  # when it got its worker
    stopping: float | None = None  # since when it is being stopped
    reason: str = ""  # why it is being stopped
    row_says_stopped: bool = False
    over: bool = False  # its worker has ended
    tries: int = 0

    @property
    def is_run(self) -> bool:
        """True for a run itself, False for a job about a run."""
        return self.order.job == "run"

    @property
    def run_id(self) -> str:
        return self.order.run_id

    @property
    def status(self) -> str:
        return "running" if self.worker else "queued"

    @property
    def goes_on(self) -> bool:
        """False for one that is being stopped or is over: who asks for the same now needs a new one."""
        return self.stopping is None and not self.over


class Turns:
    """Whose turn it is: of the viewers with the fewest tasks at work, that of the one who has waited longest.

    One waits from the moment one asked, or from the end of one's last task if that came later. So who asks for ten
    runs at once, or comes back under a new name, is not ahead of who asked for one before that. A task of several
    viewers comes with the first of them.
    """

    def __init__(self, at_work: Iterable[Task], rested: dict[Viewer, float]) -> None:
        self._at_work = Counter(viewer for task in at_work for viewer in task.viewers)
        self._rested = dict(rested)  # when the last task of a viewer ended

    def next_of(self, waiting: Sequence[Task]) -> Task:
        """The task whose turn it is; of several of one viewer, the first."""
        return min(waiting, key=self._rank)

    def _rank(self, task: Task) -> tuple[int, float]:
        ranks = ((self._at_work[v], max(task.asked, self._rested.get(v, -math.inf))) for v in task.viewers)
        return min(ranks, default=(0, task.asked))

    def begin(self, task: Task) -> None:
        self._at_work.update(task.viewers)

    def end(self, task: Task, now: float) -> None:
        self._at_work.subtract(task.viewers)
        self._rested.update(dict.fromkeys(task.viewers, now))


class Queue:
    """Tasks in the order in which they came. Several threads use it; hold `lock` for what must happen in one piece.

    `limits` may be replaced while it is used.
    """

    def __init__(self, slots: int, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.slots, self.limits, self.clock = slots, limits, clock
        self.lock = threading.RLock()
        self._tasks: list[Task] = []
        self._failures: dict[Order, str] = {}
        self._askers: dict[str, set[Viewer]] = {}  # who asked for a run since this server began
        # when the last run (True) and the last job (False) of a viewer ended
        self._rested: dict[bool, dict[Viewer, float]] = {True: {}, False: {}}
        self._places: tuple[object, dict[str, Place]] = None, {}

    @property
    def tasks(self) -> list[Task]:
        """All of them, as they are this moment."""
        with self.lock:
            return list(self._tasks)

    def tasks_of(self, order: Order) -> list[Task]:
        """Those with this order: none, one, or one that is being stopped and one that follows it."""
        return [task for task in self.tasks if task.order == order]

    def has_run(self, run_id: str) -> bool:
        """True if there is a task about this run."""
        return any(task.run_id == run_id for task in self.tasks)

    def add(
        self, order: Order, viewers: set[Viewer], expected: float, *, request: str = "", unwatched: float = 0.0
    ) -> Task:
        """Put an order at the end. `unwatched`: for how many seconds nobody has looked at it."""
        now = self.clock()
        task = Task(order, viewers, expected, asked=now, watched=now - unwatched, request=request)
        with self.lock:
            self._failures.pop(order, None)
            self._tasks.append(task)
        return task

    def remove(self, task: Task) -> bool:
        """Take a task out; False if it was out already."""
        with self.lock:
            if task not in self._tasks:
                return False
            self._tasks.remove(task)
            if task.began is not None:
                rested, oldest = self._rested[task.is_run], min((t.asked for t in self._tasks), default=math.inf)
                rested.update(dict.fromkeys(task.viewers, self.clock()))
                # who rested before everybody asked waits from when they asked: such an entry says nothing
                self._rested[task.is_run] = {v: ended for v, ended in rested.items() if ended > oldest}
            return True

    def clear(self) -> None:
        with self.lock:
            self._tasks.clear()

    def check_room(self, viewer: Viewer, new: int = 1) -> None:
        """Refuse a viewer, or an address, with a full share already, or anybody while the queue is full.

        new: how many tasks are asked for in one request.
        """
        with self.lock:
            share = len({task.request or task.order for task in self._tasks if viewer in task.viewers})
            if share >= self.limits.each:
                raise LabError(
                    f"you have {share} runs or races waiting or running, the most here; wait for one, or stop one"
                )
            waiting = sum(any(v.address == viewer.address for v in task.viewers) for task in self._tasks)
            if waiting + new > self.limits.address:
                raise LabError(
                    f"your network has {waiting} runs waiting or running, and {self.limits.address} are the most here "
                    "from one address; try again in a minute"
                )
            if len(self._tasks) + new > self.limits.queue:
                most = self.limits.queue
                raise LabError(f"{len(self._tasks)} runs are waiting, and {most} are the most here; try again soon")

    def watch(self, run_id: str) -> bool:
        """Renew the lease of a run: somebody looks at it. False if it neither waits nor is at work here."""
        tasks = [task for task in self.tasks if task.is_run and task.run_id == run_id]
        for task in tasks:
            task.watched = self.clock()
        return bool(tasks)

    def overdue(self, task: Task) -> str:
        """Why a task must end: nobody watches it, or it takes too long. Empty if it may go on."""
        now = self.clock()
        if task.is_run and now - task.watched > self.limits.lease:
            return f"nobody watched for {self.limits.lease / 60:g} minutes; press Train again to go on"
        if task.began is not None and now - task.began > self.limits.seconds:
            return f"it took more than {self.limits.seconds:g} s, the most here; give fewer steps"
        return ""

    def next_task(self) -> Task | None:
        """The one whose turn it is. Jobs have a slot of their own: a curve need not wait for a whole run."""
        with self.lock:
            active = [task for task in self._tasks if task.worker]
            busy = {task.run_id for task in active}
            for is_run, slots in ((True, self.slots), (False, 1)):
                waiting = [t for t in self._tasks if t.is_run is is_run and not t.worker and t.run_id not in busy]
                at_work = [task for task in active if task.is_run is is_run]
                if waiting and len(at_work) < slots:
                    return Turns(at_work, self._rested[is_run]).next_of(waiting)
        return None

    def place(self, run_id: str) -> Place | None:
        """The place of a run that waits; None for any other."""
        with self.lock:
            state = int(self.clock()), *((id(t), bool(t.worker), len(t.viewers)) for t in self._tasks)
            if state != self._places[0]:  # many ask, and the answer is the same for a second
                self._places = state, self._foresee()
            return self._places[1].get(run_id)

    def _foresee(self) -> dict[str, Place]:
        """The places of all runs that wait, if each takes as long as is expected: the turns are taken in advance."""
        now, runs = self.clock(), [task for task in self._tasks if task.is_run]
        waiting, at_work = [t for t in runs if not t.worker], [t for t in runs if t.worker]
        turns, places = Turns(at_work, self._rested[True]), {}
        left = [max(1.0, t.expected - (now - t.began if t.began is not None else 0.0)) for t in at_work]
        ends = [(seconds, number, task) for number, (seconds, task) in enumerate(zip(left, at_work, strict=True))]
        heapq.heapify(ends)
        begins = 0.0  # seconds from now
        for ahead in range(len(at_work), len(runs)):
            while len(ends) >= self.slots or (ends and ends[0][0] <= begins):
                begins, _, ended = heapq.heappop(ends)
                turns.end(ended, now + begins)
            task = turns.next_of(waiting)
            waiting.remove(task)
            turns.begin(task)
            places[task.run_id] = Place(ahead, round(begins, 1))
            heapq.heappush(ends, (begins + max(1.0, task.expected), ahead, task))
        return places

    def busy(self) -> Busy:
        """How many runs are under way, and how many wait."""
        runs = [task for task in self.tasks if task.is_run]
        active = sum(task.worker is not None for task in runs)
        return Busy(active, len(runs) - active, self.slots)

    def note_asker(self, run_id: str, viewer: Viewer) -> None:
        """Remember who asked for a run."""
        with self.lock:
            self._askers.setdefault(run_id, set()).add(viewer)

    def is_only_asker(self, run_id: str, viewer: Viewer) -> bool:
        """True if nobody else has asked for this run since the server began."""
        with self.lock:
            return self._askers.get(run_id) == {viewer}

    def note_failure(self, order: Order, sentence: str) -> None:
        """Remember why a job failed, until it is asked for again; of a run, its row in the store says so."""
        with self.lock:
            self._failures[order] = sentence

    def failure(self, order: Order) -> str:
        """Why a job failed the last time; empty if it did not."""
        with self.lock:
            return self._failures.get(order, "")
