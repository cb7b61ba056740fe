"""The recorded runs of a world: ftp/lab/recordings/WORLD/*.json.gz, as its groups.json describes them.

    .venv/bin/python data_scripts/record_runs.py WORLD --store runs.db --groups low_label kappa

What the store holds is not run again, so a recording that was stopped goes on where it was. `--take FILE` takes
finished runs with equal settings from another store, or from the same one, whatever the version of their code; the
provenance of each run says which code made it. `--shipped` takes those that the kit ships already, of whatever group,
if this code would make them again: for a machine that gives the same bits. Each group is written as soon as it is
whole.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from ftp.lab import recordings
from ftp.lab.lesson import plan
from ftp.lab.progress import Progress
from ftp.lab.record import RunRecord, Settings, result_of
from ftp.lab.run import code_of
from ftp.lab.settings import deciding
from ftp.lab.store import Store, write_atomic
from ftp.lab.sweep import sweep


def take(path: Path, wanted: set[Settings]) -> dict[Settings, RunRecord]:
    """The finished runs of a store that have these settings, with their points; of equal ones the newest.

    Where a tree of pictures lies decides nothing: a recording names it as its group does, not as this machine does.
    """
    keys = {str(deciding(settings)): settings for settings in wanted}
    with Store(path) as store:
        done = reversed(store.runs(status="done", limit=None))
        ids = {keys[key]: r.run_id for r in done if (key := str(deciding(r.settings))) in keys}
        runs = {settings: replace(store.load(run), settings=settings) for settings, run in ids.items()}
    return {settings: replace(run, result=result_of(run)) for settings, run in runs.items()}


def shipped(world: str, wanted: set[Settings], pointed: set[Settings]) -> dict[Settings, RunRecord]:
    """The recorded runs that have these settings and this code, with points where a group keeps them."""
    every = (run for group in recordings.groups(world) for run in recordings.recorded(world, group=group))
    return {
        run.settings: run
        for run in every
        if run.settings in wanted
        and run.provenance["code"] == code_of(run.settings)
        and (run.points or run.settings not in pointed)
    }


def make(wanted: list[Settings], store: Store, jobs: int) -> dict[Settings, RunRecord]:
    """Run what the store does not hold; a run that fails ends the recording."""
    with Progress(len(wanted), "runs", every=1) as progress:
        done: list[str] = []

        def tell(outcome: object) -> None:
            done.append("")
            progress.at(len(done))

        outcomes = sweep(wanted, store, jobs=jobs, on_outcome=tell)
    failed = [f"{o.settings.method} seed {o.settings.seed}: {o.error}" for o in outcomes if o.error]
    if failed:
        raise SystemExit("\n".join(failed))
    return {o.settings: store.load(o.run_id) for o in outcomes}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the recorded runs that ship with the kit.")
    parser.add_argument("world", choices=recordings.worlds())
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--take", type=Path, nargs="*", default=[])
    parser.add_argument("--shipped", action="store_true")
    parser.add_argument("--groups", nargs="+")
    parser.add_argument("--seeds", type=int, help="of each group only those below this one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=recordings.HOME)
    asked = parser.parse_args()
    described = recordings.described(asked.world)
    for group in asked.groups or described:
        seeds = described[group].seeds[: asked.seeds]
        wanted = [settings for settings in plan(group, world=asked.world) if settings.seed in seeds]
        pointed = {s for s in wanted if s.seed == seeds[0] or s.method in described[group].points}
        runs = shipped(asked.world, set(wanted), pointed) if asked.shipped else {}
        for path in asked.take:
            runs |= take(path, set(wanted) - set(runs))
        with Store(asked.store) as store:
            runs |= make([s for s in wanted if s not in runs], store, asked.jobs)
        ids = [runs[s].run_id for s in pointed]
        packed = recordings.pack([runs[s] for s in wanted], ids, keeps_maps=recordings.is_live(group))
        write_atomic(asked.out / asked.world / f"{group}.json.gz", packed)
        print(f"{group}: {len(wanted)} runs, {len(packed) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
