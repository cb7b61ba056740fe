"""`ftp-lab run`: one run, from its settings to its numbers."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from ftp.lab import worlds
from ftp.lab.catalogue import all_kinds
from ftp.lab.commands._parser import (
    add_device,
    add_settings,
    add_store,
    add_threads,
    add_world,
    choice,
    no_wise,
    written_settings,
)
from ftp.lab.commands._shared import check_target, columns, put, store_path
from ftp.lab.commands._stop import Stop
from ftp.lab.formats import counted, duration
from ftp.lab.progress import Progress, say
from ftp.lab.record import (
    CORRUPTIONS,
    NOTHING,
    EvalEvent,
    Event,
    LabError,
    RunRecord,
    Settings,
    StartEvent,
    finite,
    result_of,
)
from ftp.lab.store import Store
from ftp.lab.summary import average, summarise

HELP = "fine-tune once, and see what it gives at home and under shifts"
EXAMPLE = f"ftp-lab run {worlds.default()} --method ftp --seed 0"


def arguments(parser: ArgumentParser) -> None:
    add_world(parser)
    parser.add_argument("--method", metavar="M", default="ftp", help="one that `ftp-lab list methods` shows (ftp)")
    parser.add_argument("--seed", metavar="S", help="of the head and of the order of the data (0)")
    add_settings(parser)
    kinds = choice("--corruptions", ("four", "all"))
    parser.add_argument(
        "--corruptions",
        metavar="K",
        type=kinds,
        default="four",
        help="the paper's four, or all that fit the world (four)",
    )
    parser.add_argument("--json", metavar="FILE", help="write the result there; - for standard output, and only that")
    add_device(parser)
    add_threads(parser)
    add_store(parser)


def main(options: Namespace) -> int:
    from ftp.lab.run import identify
    from ftp.lab.settings import resolve

    no_wise(options.method)
    settings = resolve(options.world, options.method, written_settings(options, seed=options.seed))
    if options.json not in (None, "-"):
        check_target(options.json)
    kinds = None if options.corruptions == "four" else all_kinds(worlds.of(settings))
    seconds = None
    with Store(store_path(options.store)) as store:
        record = _complete(store, identify(settings), kinds)
        if record is None:
            began = time.monotonic()
            try:
                record = _make(settings, store, options, kinds)
            except KeyboardInterrupt:
                record = None
            if record is None or record.status != "done":
                return _stopped(store, settings, options)
            seconds = time.monotonic() - began
        else:
            say(f"run {record.run_id} is in the store already, so nothing was trained")
    if options.json:
        put(json.dumps(finite(result_of(record)), indent=2, allow_nan=False), options.json)
    if options.json != "-":
        put(summary(record, seconds))
    return 0


def _complete(store: Store, run: str, kinds: Sequence[str] | None) -> RunRecord | None:
    """The run, if the store has it to its end and with all these corruptions."""
    from ftp.lab.run import missing_kinds

    if not any(record.run_id == run for record in store.runs(text=run, status="done")):
        return None
    record = store.load(run)
    return record if record.final is not None and not missing_kinds(record, kinds) else None


def _make(settings: Settings, store: Store, options: Namespace, kinds: Sequence[str] | None) -> RunRecord:
    from ftp.lab import worlds
    from ftp.lab.methods import method
    from ftp.lab.settings import scale

    if options.device != "auto":
        _device(options.device)  # one that is not there is told before anything else
    title = method(settings.method).title
    for remark in worlds.of(settings).remarks():
        say(f"{remark}.")
    length = f"{counted(settings.steps, 'step')} of {settings.batch} images"
    say(f"{title} on {settings.world}, seed {settings.seed}: {length}, scale {scale()}; loading")
    import torch

    from ftp.lab.commands._timing import measure
    from ftp.lab.run import execute

    torch.set_num_threads(options.threads)
    device = _device(options.device)
    seconds = measure(settings, device, kinds).run(settings.steps * phases_of(settings))
    say(f"device {device}, {counted(options.threads, 'thread')}; about {duration(seconds)} (Ctrl-C keeps what is done)")
    with Stop() as stop, _Watch(settings, stop) as watch:
        return execute(settings, store, device=device, kinds=kinds, on_event=watch, stop=stop)


def resume(store: Store, run: str) -> int:
    """Go on with a run of the store to its end, under its own id, also if an older version of the code began it."""
    record = store.load(run)
    if record.status == "done":
        say(f"run {run} is done, so nothing was trained")
    else:
        import torch

        from ftp.lab.run import carry_out

        torch.set_num_threads(1)
        with Stop() as stop, _Watch(record.settings, stop) as watch:
            record = carry_out(run, store, on_event=watch, stop=stop)
    if record.status != "done":
        say(f"stopped; what is done is kept, and the same command goes on: ftp-lab runs resume {run}")
        return 130
    put(summary(record))
    return 0


def phases_of(settings: Settings) -> int:
    """The number of phases of a run."""
    from ftp.lab import worlds

    return len(worlds.of(settings).phases)


def _device(device: str) -> str:
    from ftp.lab.train import pick_device

    return str(pick_device(device))


class _Watch:
    """Shows a run's events."""

    def __init__(self, settings: Settings, stop: Stop) -> None:
        self.settings, self.stop = settings, stop
        self.progress: Progress | None = None
        self.scores = ""
        self.measures, self.steps = NOTHING, settings.steps

    def __enter__(self) -> "_Watch":
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress is not None:
            self.progress.close()

    def __call__(self, event: Event) -> None:
        if isinstance(event, StartEvent):
            if event.step:
                say(f"going on from step {event.step}")
            self.measures, self.steps = event.measures, self.settings.steps * len(event.phases)
            self.progress = Progress(self.steps, "steps", start=event.step)
            self.stop.gently = event.step < self.steps
        elif isinstance(event, EvalEvent):
            summary = summarise(event.scores, self.measures)
            shifted = f", OOD {summary.shift_mean:.1f}" if summary.shifts else ""
            self.scores = f", ID {summary.home:.1f}{shifted}"
        elif self.progress is not None:
            speed = f", {self.settings.batch / event.seconds:.0f} images/s" if event.seconds else ""
            self.progress.at(event.step, f"loss {event.loss:.3f}{self.scores}{speed}")
            if event.step == self.steps:
                self.stop.gently = False  # nothing is half done in the evaluation that follows
                self.progress.say("evaluating")


def _stopped(store: Store, settings: Settings, options: Namespace) -> int:
    from ftp.lab.run import identify

    try:
        points = store.load(identify(settings)).points
    except LabError:  # it had not begun
        points = ()
    steps = settings.steps * phases_of(settings)
    at = f"after step {points[-1].step} of {steps}" if points else "before its first step"
    say(f"stopped {at}; what is done is kept, and the same command goes on: {options.command}")
    return 130


def summary(record: RunRecord, seconds: float | None = None) -> str:
    """A finished run for people."""
    from ftp.lab.table import title

    result, settings = result_of(record), record.settings
    head = f"{title(settings.method)} on {settings.world}, seed {settings.seed} (run {record.run_id})"
    metric, summary = record.measures.main, record.summary()
    rows = [("ID", metric.text(summary.home), "" if metric.name == "accuracy" else metric.axis)]
    rows += [(name, metric.text(value), "") for name, value in {**summary.shifts, **summary.tasks}.items()]
    if summary.shifts:
        rows += [("OOD avg.", metric.text(summary.shift_mean), "")]
    for kind, values in result["corruptions"].items():
        rows.append((kind, metric.text(average(values)), "severity 1 to 5: " + " ".join(f"{v:.1f}" for v in values)))
    if result["corruption_avg"] is not None:
        kinds = ", ".join(kind for kind in CORRUPTIONS if kind in result["corruptions"])
        rows += [("corruption avg.", metric.text(result["corruption_avg"]), f"over {kinds}")]
    for other in record.measures.metrics[1:]:
        home = record.final.scores.get(other.name, {}).get(record.measures.home) if record.final else None
        rows += [(f"ID {other.name}", other.text(home), other.axis)]
    per_step = result["seconds_per_step"]
    times = [f"{per_step:.3f} s a step"] if per_step else []
    times += [f"{seconds:.0f} s in all"] if seconds is not None else []
    return "\n".join([head, columns(rows, right=[1], indent="  "), ", ".join(times)])
