"""`ftp-lab run`: one run, from its settings to its numbers."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from ftp.lab.commands._parser import add_device, add_settings, add_store, add_threads, choice, given, no_wise
from ftp.lab.commands._shared import check_target, columns, percent, put, store_path
from ftp.lab.commands._stop import Stop
from ftp.lab.progress import Progress, duration, say
from ftp.lab.record import (
    CORRUPTIONS,
    EvalEvent,
    Event,
    LabError,
    RunRecord,
    Settings,
    StartEvent,
    average,
    finite,
    result_of,
)
from ftp.lab.store import Store

HELP = "fine-tune once, and see what it gives at home and under shifts"
EXAMPLE = "ftp-lab run digits --method ftp --seed 0"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("world", metavar="WORLD", help="such as digits")
    parser.add_argument("--method", metavar="M", default="ftp", help="one that `ftp-lab list methods` shows (ftp)")
    parser.add_argument("--seed", metavar="S", help="of the head and of the order of the data (0)")
    add_settings(parser)
    kinds = choice("--corruptions", ("four", "all"))
    parser.add_argument(
        "--corruptions", metavar="K", type=kinds, default="four", help="the paper's four, or all of them (four)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the result there; - for standard output, and only that")
    add_device(parser)
    add_threads(parser)
    add_store(parser)


def main(options: Namespace) -> int:
    from ftp.lab.run import identify
    from ftp.lab.settings import resolve

    no_wise(options.method)
    settings = resolve(options.world, options.method, given(options, seed=options.seed))
    if options.json not in (None, "-"):
        check_target(options.json)
    kinds = CORRUPTIONS if options.corruptions == "four" else _all_kinds()
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


def _all_kinds() -> tuple[str, ...]:
    from ftp.lab.commands.list import corruptions

    return tuple(corruptions())


def _complete(store: Store, run: str, kinds: Sequence[str]) -> RunRecord | None:
    """The run, if the store has it to its end and with all these corruptions."""
    found = [r for r in store.runs(text=run, status="done") if r.run_id == run]
    record = store.load(run) if found else None
    final = record.final if record else None
    return record if final is not None and all(kind in final.corruptions for kind in kinds) else None


def _make(settings: Settings, store: Store, options: Namespace, kinds: Sequence[str]) -> RunRecord:
    from ftp.lab.methods import method
    from ftp.lab.settings import scale

    if options.device != "auto":
        _device(options.device)  # one that is not there is told before anything else
    title = method(settings.method).title
    what = f"{title} on {settings.world}, seed {settings.seed}: {settings.steps} steps of {settings.batch} images"
    say(f"{what}, scale {scale()}; loading")
    import torch

    from ftp.lab.commands._timing import measure
    from ftp.lab.run import execute

    torch.set_num_threads(options.threads)
    device = _device(options.device)
    seconds = measure(settings, device, kinds).run(settings.steps)
    threads = f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    say(f"device {device}, {threads}; about {duration(seconds)} (Ctrl-C keeps what is done)")
    with Stop() as stop, _Watch(settings, stop) as watch:
        return execute(settings, store, device=device, kinds=kinds, on_event=watch, stop=stop)


def _device(asked: str) -> str:
    from ftp.lab.train import pick_device

    return str(pick_device(asked))


class _Watch:
    """Shows a run's events."""

    def __init__(self, settings: Settings, stop: Stop) -> None:
        self.settings, self.stop = settings, stop
        self.progress: Progress | None = None
        self.accuracy = ""

    def __enter__(self) -> "_Watch":
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress is not None:
            self.progress.close()

    def __call__(self, event: Event) -> None:
        if isinstance(event, StartEvent):
            if event.step:
                say(f"going on from step {event.step}")
            self.progress = Progress(self.settings.steps, "steps", start=event.step)
            self.stop.gently = event.step < self.settings.steps
        elif isinstance(event, EvalEvent):
            ood = average({k: v for k, v in event.accuracy.items() if k not in ("id", "val")})
            self.accuracy = f", ID {event.accuracy['id']:.1f}, OOD {ood:.1f}"
        elif self.progress is not None:
            self.progress.at(event.step, f"loss {event.loss:.3f}{self.accuracy}")
            if event.step == self.settings.steps:
                self.stop.gently = False  # nothing is half done in the evaluation that follows
                self.progress.say("evaluating")


def _stopped(store: Store, settings: Settings, options: Namespace) -> int:
    from ftp.lab.run import identify

    try:
        points = store.load(identify(settings)).points
    except LabError:  # it had not begun
        points = ()
    at = f"after step {points[-1].step} of {settings.steps}" if points else "before its first step"
    say(f"stopped {at}; what is done is kept, and the same command goes on: {options.command}")
    return 130


def summary(record: RunRecord, seconds: float | None = None) -> str:
    """A finished run for people."""
    from ftp.lab.table import title

    result, settings = result_of(record), record.settings
    head = f"{title(settings.method)} on {settings.world}, seed {settings.seed} (run {record.run_id})"
    rows = [("ID", percent(result["id"]), "")]
    rows += [(name, percent(value), "") for name, value in result["ood"].items()]
    rows += [("OOD avg.", percent(result["ood_avg"]), "")]
    for kind, values in result["corruptions"].items():
        rows.append((kind, percent(average(values)), "severity 1 to 5: " + " ".join(f"{v:.1f}" for v in values)))
    rows += [("corruption avg.", percent(result["corruption_avg"]), f"over {', '.join(CORRUPTIONS)}")]
    per_step = result["seconds_per_step"]
    times = [f"{per_step:.3f} s a step"] if per_step else []
    times += [f"{seconds:.0f} s in all"] if seconds is not None else []
    return "\n".join([head, columns(rows, right=[1], indent="  "), ", ".join(times)])
