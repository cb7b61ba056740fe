"""Finished runs with the tuned recipes, out of a store, or made now."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ftp.lab.record import RunRecord
from ftp.lab.run import execute
from ftp.lab.store import Store
from ftp.lab.sweep import grid

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "recordings"


def finished(store: Store, methods: Iterable[str], seed: int = 0) -> list[RunRecord]:
    """One finished run for each method; a run with equal settings counts, whichever code version made it."""
    kept = {record.settings: record for record in store.runs() if record.status == "done"}
    wanted = grid(list(methods), seeds=[seed])
    return [kept[s] if s in kept and store.weights_path(kept[s].run_id).exists() else execute(s, store) for s in wanted]


def short(value: Any) -> Any:
    """Floats with seven digits: 90.6 instead of 90.60000000000001."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: short(entry) for key, entry in value.items()}
    return [short(entry) for entry in value] if isinstance(value, list | tuple) else value


def write(name: str, data: dict[str, Any]) -> None:
    """One small file beside the recorded runs; equal data give equal bytes."""
    text = json.dumps(short(data), separators=(",", ":"), allow_nan=False, sort_keys=True)
    HOME.mkdir(exist_ok=True)
    path = HOME / f"{name}.json.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{path.name}: {path.stat().st_size:,} bytes")
