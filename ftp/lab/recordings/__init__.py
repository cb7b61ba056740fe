"""Recorded runs that ship with the kit, so that every figure is there in seconds. Without torch.

`<world>-<group>.json.gz` holds the runs of one group, as `data_scripts/record_digits.py` wrote them. The numbers of
`points` are rounded to four digits, and to save room only some seeds have points; every run has all evaluations.
"""

import functools
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftp.lab import _form
from ftp.lab.record import LabError, RunRecord
from ftp.lab.registry import unknown

HOME = Path(__file__).resolve().parent
SEEDS = range(10)
POINT_DIGITS, DIGITS = 4, 6  # of the points, and of evaluations and results
_own: dict[tuple[str, str], tuple[RunRecord, ...]] = {}  # what a reader has trained, by world and group


@dataclass(frozen=True)
class Group:
    """What the runs of a group have in common; `methods` empty means all of the paper's tables.

    points: the methods whose every seed keeps its points; of the others seed 0 does.
    """

    title: str
    methods: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    points: tuple[str, ...] = ()


GROUPS: Mapping[str, Group] = {
    "methods": Group("every method with its tuned recipe", points=("ftp",)),
    "gentle": Group("fine-tuning at half its learning rate", ("finetune",), {"lr": 0.05}),
    "low_label": Group("a tenth of the labels", ("finetune", "linear_probe", "ftp"), {"labels": 0.1}),
    "kappa": Group("FTP with a smaller κ", ("ftp",), over={"k": (0.0, 0.5)}),
    "tiny_lr": Group("a tiny learning rate", ("finetune", "ftp"), {"lr": 0.002}),
    "cold_open": Group("the short live run of lesson 00", ("finetune", "ftp"), {"steps": 60}),
    "few_steps": Group("too few steps", ("finetune", "ftp"), {"steps": 30}),
}


def groups(world: str = "digits") -> tuple[str, ...]:
    """The groups that are recorded of a world.

    >>> "methods" in groups()
    True
    """
    return tuple(name for name in GROUPS if _path(world, name).exists())


def recorded(
    world: str = "digits", method: str | None = None, seed: int | None = None, group: str = "methods"
) -> list[RunRecord]:
    """The recorded runs of a group, by seed and then by method; of one method or one seed if asked.

    >>> [run.settings.seed for run in recorded(method="ftp")]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    >>> recorded(group="method")
    Traceback (most recent call last):
    ftp.lab.record.LabError: group is 'method'; did you mean methods?
    """
    known = sorted({path.name.split("-")[0] for path in HOME.glob("*-*.json.gz")})
    if world not in known:
        raise LabError(unknown("world", world, known))
    if group not in groups(world):
        raise LabError(unknown("group", group, groups(world)))
    own = _own.get((world, group), ())
    mine = {run.settings.method for run in own}
    runs = (*own, *(run for run in _read(_path(world, group)) if run.settings.method not in mine))
    methods = dict.fromkeys(run.settings.method for run in runs)
    if method is not None and method not in methods:
        raise LabError(unknown(f"the method of the recordings {group!r}", method, methods))
    seeds = sorted({run.settings.seed for run in runs})
    if seed is not None and seed not in seeds:
        raise LabError(f"seed is {seed!r}; the recordings {group!r} have the seeds {', '.join(map(str, seeds))}")
    asked = (run for run in runs if method in (None, run.settings.method) and seed in (None, run.settings.seed))
    return list(asked)


def use(own: Sequence[RunRecord], group: str, world: str = "digits") -> None:
    """Have `recorded` give these runs instead of the recorded ones of the same methods, until this process ends.

    >>> use(recorded(group="gentle"), "gentle")  # as a reader does who has trained them
    """
    if group not in groups(world):
        raise LabError(unknown("group", group, groups(world)))
    _own[world, group] = tuple(own)


def by_method(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """The runs of each method, in the order in which they come.

    >>> {method: len(found) for method, found in by_method(recorded(group="gentle")).items()}
    {'finetune': 10}
    """
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.settings.method, []).append(run)
    return found


def find(run_id: str) -> RunRecord | None:
    """The recorded run of that id, whatever its world and group; None if it is not recorded.

    >>> find(recorded()[0].run_id).status, find("0" * 16)
    ('done', None)
    """
    usual = f"-{next(iter(GROUPS))}.json.gz"  # most are looked for there, and reading a file takes its time
    paths = sorted(HOME.glob("*-*.json.gz"), key=lambda path: (not path.name.endswith(usual), path.name))
    every = (run for path in paths for run in _read(path))
    return next((run for run in every if run.run_id == run_id), None)


def pack(runs: Iterable[RunRecord], keeps_points: Iterable[str] = ()) -> bytes:
    """The file of a group: the same runs give the same bytes. keeps_points: ids of the runs that keep their points."""
    ids = set(keeps_points)
    forms = []
    for run in runs:
        form = _form.to_form(run, str(run.provenance.get("code", "")))
        form["points"] = _rounded(form["points"], POINT_DIGITS) if run.run_id in ids else []
        form |= {"evals": _rounded(form["evals"], DIGITS), "result": _rounded(form["result"], DIGITS)}
        forms.append(form)
    return gzip.compress(_form.dump(forms).encode(), 9, mtime=0)


def _path(world: str, group: str) -> Path:
    return HOME / f"{world}-{group}.json.gz"


@functools.cache
def _read(path: Path) -> tuple[RunRecord, ...]:
    try:
        forms = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError):
        raise LabError(f"{path.name} is damaged; install the kit again, or run data_scripts/record_digits.py") from None
    return tuple(map(_form.from_form, forms))


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(entry, digits) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry, digits) for entry in value]
    return value
