"""The recorded controls of a world (`ftp.lab.controls`), as data_scripts/record_controls.py wrote them."""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError
from ftp.lab.registry import unknown
from ftp.lab.summary import Summary, summarise
from ftp.lab.worlds import default, load

HOME = Path(__file__).resolve().parent
CONTROLS: Mapping[str, str] = {
    "frozen": "SGD on the leashes that FTP had learned with the same seed, fixed from the first step on",
    "shuffled": "the same leashes, given to the wrong layers of the same kind",
    "untrained_ftp": "FTP from random weights, which are its anchor",
    "untrained_finetune": "fine-tuning from the same random weights",
    "zero": "every leash has length 0: the head and the statistics of the norms follow the data, nothing else",
}
_trained: dict[tuple[str, str], list["Recorded"]] = {}  # what a reader has trained, by world and control


@dataclass(frozen=True)
class Recorded:
    """How one run of a control ended: its scores in the main metric by split; gamma and distance by layer."""

    control: str
    seed: int
    scores: Mapping[str, float]
    gamma: Mapping[str, float]
    distance: Mapping[str, float]
    made: Mapping[str, str]

    world: str

    @property
    def id(self) -> float:
        return self._summary.home

    @property
    def ood_avg(self) -> float:
        """The mean over the shifts."""
        return self._summary.shift_mean

    @property
    def _summary(self) -> Summary:
        measures = load(self.world).measures
        return summarise({measures.main.name: self.scores}, measures)


def path_of(world: str | None = None) -> Path:
    """The file of a world's controls."""
    return HOME / (world or default()) / "controls.json.gz"


def recorded_control(name: str, world: str | None = None) -> list[Recorded]:
    """The recorded runs of a control, by seed.

    >>> recorded_control("forzen")
    Traceback (most recent call last):
    ftp.lab.record.LabError: control is 'forzen'; did you mean frozen?
    """
    world = world or default()
    if name not in CONTROLS:
        raise LabError(unknown("control", name, CONTROLS))
    shipped = (Recorded(**row, world=world) for row in rows(path_of(world)) if row["control"] == name)
    return sorted(_trained.get((world, name)) or shipped, key=lambda run: run.seed)


def use_controls(trained: Iterable[Mapping[str, Any]], world: str | None = None) -> None:
    """Have `recorded_control` give these instead of the recorded ones of the same names, until this process ends."""
    world = world or default()
    runs = [Recorded(**row, world=world) for row in trained]
    for name in {run.control for run in runs}:
        _trained[world, name] = [run for run in runs if run.control == name]


def rows(path: Path) -> list[dict[str, Any]]:
    """The recorded runs of a file as plain data; none if there is no file."""
    return list(json.loads(gzip.decompress(path.read_bytes()))) if path.exists() else []


def pack(runs: Iterable[Mapping[str, Any]]) -> bytes:
    """The file of the controls: the same runs give the same bytes."""
    text = json.dumps([dict(row) for row in runs], separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), 9, mtime=0)
