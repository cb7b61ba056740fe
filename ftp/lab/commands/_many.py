"""Many runs with progress: what `table` and `sweep` share."""

import time
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING

from ftp.lab.commands._parser import written_settings
from ftp.lab.commands._shared import number
from ftp.lab.commands._stop import Stop
from ftp.lab.commands._timing import at_a_time, expected
from ftp.lab.formats import counted, duration
from ftp.lab.progress import Progress, say
from ftp.lab.record import LabError, RunRecord, Settings
from ftp.lab.store import Store

DEAD_SECONDS = 2.0  # without a sign of life; a run gives one each second
KILLED = "its process was killed, maybe for lack of memory; the same command goes on, with --jobs 1 if need be"

if TYPE_CHECKING:
    from ftp.lab.sweep import Outcome


def shared_settings(options: Namespace) -> dict[str, str]:
    """What --set and --labels give to all runs; the seeds have an option of their own."""
    changes = written_settings(options)
    if "seed" in changes:
        raise LabError("seed is given by --set; it must be given by --seeds, such as --seeds 3 for 0, 1 and 2")
    return changes


def finished(store: Store, world: str, kinds: tuple[str, ...] | None = None) -> dict[str, RunRecord]:
    """The runs of a world that are done and were tested with these kinds of damage, by id, without their points.

    kinds: None means all those of the world.
    """
    runs = store.runs(world=world, status="done", limit=None)
    return {r.run_id: r for r in runs if r.result and not lacking(r, kinds)}


def lacking(record: RunRecord, kinds: tuple[str, ...] | None = None) -> list[str]:
    """The kinds of damage, of its world or of those named, that a finished run was not tested with."""
    from ftp.lab import worlds
    from ftp.lab.catalogue import fitting_kinds

    wanted = fitting_kinds(worlds.of(record.settings), kinds)
    return [kind for kind in wanted if kind not in (record.result or {}).get("corruptions", {})]


def run_all(
    wanted: Sequence[Settings], store: Store, options: Namespace, kinds: tuple[str, ...] | None = None
) -> list["Outcome"]:
    """Make the runs that the store lacks; the outcomes of all, in the order in which they were wanted.

    kinds: of damage that they are tested with after training; None means those of the world.
    """
    from ftp.lab.run import identify
    from ftp.lab.sweep import Outcome, sweep

    wanted = list(dict.fromkeys(wanted))
    done = finished(store, options.world, kinds)
    rest = [settings for settings in wanted if identify(settings) not in done]
    old = len(wanted) - len(rest)
    if old:
        say(f"{old} of {len(wanted)} runs are in the store already")
    seconds = _announce(rest, options) if rest else None
    ended = 0

    def show(outcome: "Outcome") -> None:
        nonlocal ended
        ended += 1
        if ended > old:  # the first ones come from the store
            progress.at(ended, _note(outcome, store))

    with Stop() as stop, Progress(len(wanted), "runs", start=old, every=1, expected=seconds) as progress:
        try:
            jobs = at_a_time(options.jobs, len(rest))
            how = {"jobs": jobs, "backend": options.backend, "device": options.device, "kinds": kinds}
            outcomes = sweep(wanted, store, on_outcome=show, **how)
        except (KeyboardInterrupt, BrokenExecutor):  # a process that dies makes joblib end the others too
            left = _bury(store, options.world, kinds)
            if stop.pressed:  # which ends the processes as well
                done_ids = left.keys() & {identify(settings) for settings in wanted}
                done_so_far = f"stopped with {len(done_ids)} of {len(wanted)} runs done; what is done is kept"
                raise KeyboardInterrupt(f"{done_so_far}, and the same command goes on: {options.command}") from None
            outcomes = [Outcome(run, s, "" if run in left else KILLED) for s in wanted for run in [identify(s)]]
    by_id = {outcome.run_id: outcome for outcome in outcomes}
    return [by_id[identify(settings)] for settings in wanted]


def _bury(store: Store, world: str, kinds: tuple[str, ...] | None) -> dict[str, RunRecord]:
    """After processes were ended in the middle of their runs: see who is silent, so that nobody waits for them."""
    say("stopping")
    time.sleep(DEAD_SECONDS + 0.5)
    store.sweep_stale(DEAD_SECONDS)
    return finished(store, world, kinds)


def _announce(rest: Sequence[Settings], options: Namespace) -> float:
    """Say what begins and how long it will take."""
    from ftp.lab.settings import scale

    say(f"{counted(len(rest), 'run')} to make on {options.world}, scale {scale()}; loading")
    import torch

    from ftp.lab.train import pick_device

    torch.set_num_threads(1)
    device = str(pick_device(options.device))
    jobs = at_a_time(options.jobs, len(rest))
    seconds = expected(rest, device, jobs)
    say(f"device {device}, {jobs} at a time, 1 thread each; about {duration(seconds)} (Ctrl-C keeps what is done)")
    return seconds


def named(settings: Settings) -> str:
    """A run in a line: its method, or the row of the world's table that it is for, and its seed.

    >>> from ftp.lab.settings import resolve
    >>> named(resolve("scenes", "ftp", {"seed": 2})), named(resolve("scenes", "ftp", {"k": 0}))
    ('ftp, seed 2', 'FTP, κ = 0, seed 0')
    """
    from ftp.lab import worlds

    values, rows = settings.as_dict(), worlds.world(settings.world).beside
    titles = (t for t, (method, differs) in rows.items() if values.items() >= {"method": method, **differs}.items())
    return f"{next(titles, settings.method)}, seed {settings.seed}"


def _note(outcome: "Outcome", store: Store) -> str:
    run = named(outcome.settings)
    if outcome.error:
        return f"{run}: failed"
    result = next((r.result for r in store.runs(text=outcome.run_id) if r.result), None) or {}
    shifted = f", OOD {number(result['ood_avg'])}" if result.get("ood_avg") is not None else ""
    return f"{run}: ID {number(result.get('id'))}{shifted}"


def tell_failures(outcomes: Sequence["Outcome"]) -> int:
    """Name the runs that failed; the exit code."""
    failed = [outcome for outcome in outcomes if outcome.error]
    if failed:
        say(f"{len(failed)} of {len(outcomes)} runs failed:")
    for outcome in failed:
        say(f"  {named(outcome.settings)} (run {outcome.run_id}): {outcome.error}")
    return 1 if failed else 0
