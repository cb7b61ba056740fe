"""Finished runs with the tuned recipes, out of a store, or made now."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ftp.lab.formats import rounded
from ftp.lab.record import RunRecord
from ftp.lab.run import carry_out, execute
from ftp.lab.store import Store
from ftp.lab.sweep import grid
from ftp.lab.worlds import default

PLACE = ("torch", "python", "machine", "device", "threads")
HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "recordings"


def finished(
    store: Store,
    methods: Iterable[str],
    seeds: Iterable[int] = (0,),
    world: str | None = None,
    kinds: Iterable[str] | None = None,
) -> list[RunRecord]:
    """One finished run for each method and seed, evaluated on these kinds of damage.

    A run with equal settings counts, whichever code version made it.
    """
    done = {record.settings: record for record in store.runs(status="done", limit=None)}
    wanted, kinds = grid(list(methods), world=world, seeds=seeds), None if kinds is None else tuple(kinds)
    records = []
    for settings in wanted:
        if settings in done and store.weights_path(done[settings].run_id).exists():
            records.append(carry_out(done[settings].run_id, store, kinds=kinds))
        else:
            records.append(execute(settings, store, kinds=kinds))
    return records


def made_by(records: Iterable[RunRecord]) -> dict[str, Any]:
    """Where these runs were made; of two places there is no mean, for another machine gives other weights."""
    places = [{name: run.provenance.get(name) for name in PLACE} for run in records]
    if any(place != places[0] for place in places):
        raise SystemExit(f"these runs were made in different places: {places}; train all of them in one store")
    return places[0]


def write(name: str, data: dict[str, Any], world: str | None = None) -> None:
    """One small file beside the recorded runs of a world; equal data give equal bytes, floats have seven digits."""
    text = json.dumps(rounded(data, 7), separators=(",", ":"), allow_nan=False, sort_keys=True)
    path = HOME / (world or default()) / f"{name}.json.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{path.name}: {path.stat().st_size:,} bytes")
