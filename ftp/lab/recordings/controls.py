"""The recorded controls of the digits world (`ftp.lab.controls`), as data_scripts/record_controls.py wrote them."""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError, average
from ftp.lab.registry import unknown

HOME = Path(__file__).resolve().parent / "controls_digits.json.gz"
CONTROLS: Mapping[str, str] = {
    "frozen": "SGD on the leashes that FTP had learned with the same seed, fixed from the first step on",
    "shuffled": "the same leashes, given to the wrong layers of the same kind",
    "untrained_ftp": "FTP from random weights, which are its anchor",
    "untrained_finetune": "fine-tuning from the same random weights",
    "zero": "every leash has length 0: the head and the statistics of the norms follow the data, nothing else",
}
_own: dict[str, list["Recorded"]] = {}  # what a reader has trained


@dataclass(frozen=True)
class Recorded:
    """How one run of a control ended. gamma and distance by layer; accuracies in percent, as in `EvalEvent`."""

    control: str
    seed: int
    accuracy: Mapping[str, float]
    gamma: Mapping[str, float]
    distance: Mapping[str, float]
    made: Mapping[str, str]

    @property
    def id(self) -> float:
        return self.accuracy["id"]

    @property
    def ood_avg(self) -> float:
        """The mean over the shifts."""
        return average({name: value for name, value in self.accuracy.items() if name not in ("id", "val")})


def recorded_control(name: str) -> list[Recorded]:
    """The recorded runs of a control of the digits world, by seed.

    >>> recorded_control("forzen")
    Traceback (most recent call last):
    ftp.lab.record.LabError: control is 'forzen'; did you mean frozen?
    """
    if name not in CONTROLS:
        raise LabError(unknown("control", name, CONTROLS))
    found = _own.get(name) or [Recorded(**row) for row in rows(HOME) if row["control"] == name]
    return sorted(found, key=lambda run: run.seed)


def use_controls(own: Iterable[Mapping[str, Any]]) -> None:
    """Have `recorded_control` give these instead of the recorded ones of the same names, until this process ends."""
    found = [Recorded(**row) for row in own]
    for name in {run.control for run in found}:
        _own[name] = [run for run in found if run.control == name]


def rows(path: Path) -> list[dict[str, Any]]:
    """The recorded runs of a file as plain data; none if there is no file."""
    return list(json.loads(gzip.decompress(path.read_bytes()))) if path.exists() else []


def pack(made: Iterable[Mapping[str, Any]]) -> bytes:
    """The file of the controls: the same runs give the same bytes.

    >>> pack([{"seed": 0}]) == pack([{"seed": 0}])
    True
    """
    text = json.dumps([dict(row) for row in made], separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), 9, mtime=0)
