"""What a worker can do about a run: one row of `JOBS` each. A new job is a function and its row.

Without torch, for the dashboard's server reads the table too; the functions import what they need in the worker.
"""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ftp.lab.record import RUN_ID, LabError, RunRecord
from ftp.lab.store import Store, write_atomic

LAYER = re.compile(r"[A-Za-z0-9_.]{1,100}")  # it becomes part of a file's name


@dataclass(frozen=True)
class Job:
    """One row: what a worker does, where its result is kept, and about how long it takes."""

    name: str
    function: Callable[..., Any]  # (record, store, *, device, stop, layer): its result as JSON data
    seconds: float | None  # on one ordinary core; None: as long as the run itself
    suffix: str = ""  # of the result's file beside the run's weights; none: the function writes into the store

    @property
    def is_about_a_layer(self) -> bool:
        return "{layer}" in self.suffix


@dataclass(frozen=True)
class Order:
    """A job about one run, and about one layer of it where the job wants that.

    >>> Order("microscope", "0123456789abcdef", "stem.weight").message
    {'job': 'microscope', 'run_id': '0123456789abcdef', 'layer': 'stem.weight'}
    >>> Order("dance", "0123456789abcdef")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ftp.lab.record.LabError: job is 'dance'; it must be one of run, wise, corruptions, ...
    """

    job: str
    run_id: str
    layer: str = ""

    def __post_init__(self) -> None:
        if self.job not in JOBS:
            raise LabError(f"job is {self.job!r}; it must be one of {', '.join(JOBS)}")
        if not RUN_ID.fullmatch(self.run_id):
            raise LabError(f"run_id is {self.run_id!r:.80}; it must be a run's id, 16 digits of 0-9 and a-f")
        if JOBS[self.job].is_about_a_layer and not LAYER.fullmatch(self.layer):
            raise LabError(f"layer is {self.layer!r:.80}; it must be the name of a layer, such as layer=stem.weight")
        if self.layer and not JOBS[self.job].is_about_a_layer:
            raise LabError(f"layer is {self.layer!r:.80}; {self.job} is about the whole run, so leave layer out")

    @property
    def message(self) -> dict[str, str]:
        """The order as a worker reads it."""
        return {"job": self.job, "run_id": self.run_id, **({"layer": self.layer} if self.layer else {})}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Self:
        """The order out of `message`.

        >>> Order.from_message({"job": "wise", "run_id": "0123456789abcdef"})
        Order(job='wise', run_id='0123456789abcdef', layer='')
        """
        return cls(*(str(message.get(key, "")) for key in ("job", "run_id", "layer")))

    def path(self, store: Store) -> Path:
        """Where the result is kept."""
        suffix = JOBS[self.job].suffix
        if not suffix:
            raise LabError(f"{self.job} has no file of its own; its result is in the run: Store.load({self.run_id!r})")
        return store.weights_path(self.run_id).with_suffix(suffix.format(layer=self.layer))

    def result(self, store: Store) -> Any:
        """The result as JSON data; None as long as there is none."""
        path = self.path(store)
        return json.loads(path.read_bytes()) if path.exists() else None


def do(order: Order, store: Store, *, device: str = "auto", stop: Callable[[], bool] = lambda: False) -> str:
    """Do what was ordered, in a worker; the status of the run afterwards."""
    job = JOBS[order.job]
    result = job.function(store.load(order.run_id), store, device=device, stop=stop, layer=order.layer)
    if job.suffix:
        write_atomic(order.path(store), json.dumps(result).encode())
    return store.status(order.run_id)


def _run(record: RunRecord, store: Store, *, device: str, stop: Callable[[], bool], **_: Any) -> None:
    """Fine-tune, every event into the store."""
    from ftp.lab.run import carry_out, identify

    if record.status == "stopped":  # by another server, while this worker was getting ready: claiming would revive it
        return
    if identify(record.settings) != record.run_id:  # else today's code would be kept under the id of another
        raise LabError("the code has changed since this run was queued; start the server again, and press Train")
    carry_out(record.run_id, store, device=device, stop=stop)


def _wise(record: RunRecord, store: Store, *, device: str, **_: Any) -> dict[str, Any]:
    """The line from W0 to W."""
    from ftp.lab.wise import wise

    return asdict(wise(record, store, [round(0.05 * i, 2) for i in range(21)], device=device))


def _corruptions(record: RunRecord, store: Store, *, device: str, **_: Any) -> None:
    """Every kind of damage that fits its world, added to the result of a finished run."""
    from ftp.lab import worlds
    from ftp.lab.catalogue import all_kinds
    from ftp.lab.run import carry_out, no_weights

    if record.status != "done":
        raise LabError(no_weights(record))
    carry_out(record.run_id, store, device=device, kinds=all_kinds(worlds.of(record.settings)))


def _damage(record: RunRecord, store: Store, **how: Any) -> dict[str, Any]:
    """All kinds of damage for a finished run, and what they do to the first pictures of its world."""
    from ftp.lab import worlds
    from ftp.lab.damage import sheets

    _corruptions(record, store, **how)
    return sheets(worlds.of(record.settings))


def _microscope(record: RunRecord, _: Store, *, device: str, stop: Callable[[], bool], layer: str) -> dict[str, Any]:
    """Single steps of one layer, in a run made once more."""
    from ftp.lab.microscope import trace

    return trace(record.settings, layer, device=device, stop=stop)


def _mistakes(record: RunRecord, store: Store, *, device: str, **_: Any) -> dict[str, Any]:
    """What is taken for what after the last task."""
    from ftp.lab.mistakes import mistakes

    return mistakes(record, store, device)


def _pixels(record: RunRecord, store: Store, **_: Any) -> dict[str, Any]:
    """What it says of every pixel of some scenes, turned and damaged."""
    from ftp.lab.pixels import pixels

    return pixels(record, store)


_ROWS = (
    Job("run", _run, None),
    Job("wise", _wise, 10.0, ".wise.json"),
    Job("corruptions", _corruptions, 10.0),
    Job("damage", _damage, 60.0, ".damage.json"),
    Job("microscope", _microscope, None, ".{layer}.microscope.json"),
    Job("mistakes", _mistakes, 5.0, ".mistakes.json"),
    Job("pixels", _pixels, 20.0, ".pixels.json"),
)
JOBS = {job.name: job for job in _ROWS}
