"""The recorded runs of the digits world: ftp/lab/recordings/digits-*.json.gz.

    .venv/bin/python data_scripts/record_digits.py --store runs.db --groups low_label kappa

What the store holds is not run again, so a recording that was stopped goes on where it was. `--take FILE` takes
finished runs with equal settings from another store, or from the same one, whatever the version of their code; the
provenance of each run says which code made it. Each group is written as soon as it is whole.
"""

import argparse
from pathlib import Path

from ftp.lab import recordings
from ftp.lab.lesson import plan
from ftp.lab.progress import Progress
from ftp.lab.record import RunRecord, Settings
from ftp.lab.store import Store, write_atomic
from ftp.lab.sweep import sweep


def take(path: Path, wanted: set[Settings]) -> dict[Settings, RunRecord]:
    """The finished runs of a store that have these settings, with their points; of equal ones the newest."""
    with Store(path) as store:
        found = {r.settings: r.run_id for r in reversed(store.runs(status="done", limit=None)) if r.settings in wanted}
        return {settings: store.load(run) for settings, run in found.items()}


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
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--take", type=Path, nargs="*", default=[])
    parser.add_argument("--groups", nargs="+", choices=list(recordings.GROUPS), default=list(recordings.GROUPS))
    parser.add_argument("--seeds", type=int, default=len(recordings.SEEDS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=recordings.HOME)
    asked = parser.parse_args()
    for group in asked.groups:
        wanted = [settings for settings in plan(group) if settings.seed < asked.seeds]
        runs: dict[Settings, RunRecord] = {}
        for path in asked.take:
            runs |= take(path, set(wanted) - set(runs))
        with Store(asked.store) as store:
            runs |= make([s for s in wanted if s not in runs], store, asked.jobs)
        pointed = [runs[s].run_id for s in wanted if s.seed == 0 or s.method in recordings.GROUPS[group].points]
        packed = recordings.pack([runs[s] for s in wanted], pointed)
        write_atomic(asked.out / f"digits-{group}.json.gz", packed)
        print(f"{group}: {len(wanted)} runs, {len(packed) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
