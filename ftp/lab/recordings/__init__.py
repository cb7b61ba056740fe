"""Recorded runs that ship with the kit, so that every figure is there in seconds. Without torch.

A world has a folder: `groups.json` says which groups of runs it has and what they are, `<group>.json.gz` holds their
runs, and other files what was recorded beside them (`extras`, `controls`). The scripts in data_scripts write all of
them. The numbers of `points` are rounded to four digits, and to save room only some seeds have points; every run has
all evaluations. Another machine rounds otherwise and ends with other numbers, so runs of different ones are never in
one mean: `methods` was recorded on one, `live` and the extras `wise` and `corruptions` together on another.
"""

import functools
import gzip
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftp.lab.formats import rounded
from ftp.lab.record import LabError, RunRecord
from ftp.lab.registry import unknown
from ftp.lab.store import serialisation
from ftp.lab.worlds import default
from ftp.lab.worlds import world as load

HOME = Path(__file__).resolve().parent
SEEDS = range(10)
POINT_DIGITS, DIGITS = 4, 6  # of the points, and of evaluations and results
_trained: dict[tuple[str, str], tuple[RunRecord, ...]] = {}  # what a reader has trained, by world and group


@dataclass(frozen=True)
class Group:
    """What the runs of a group have in common; `methods` empty means all of the paper's tables.

    points: the methods whose every seed keeps its points; of the others the first seed does.
    """

    title: str
    methods: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    points: tuple[str, ...] = ()
    seeds: tuple[int, ...] = tuple(SEEDS)


def worlds() -> tuple[str, ...]:
    """The worlds of which something is recorded."""
    return tuple(sorted(path.parent.name for path in HOME.glob("*/groups.json")))


def described(world: str | None = None) -> dict[str, Group]:
    """Every group of a world, also one whose runs are still to be recorded; empty for a world without recordings.

    >>> described("digits")["gentle"].title
    'fine-tuning at half its learning rate'
    """
    path = HOME / (world or default()) / "groups.json"
    return dict(_described(path)) if path.exists() else {}


@functools.cache
def _described(path: Path) -> dict[str, Group]:
    return {name: Group(**about) for name, about in json.loads(path.read_text(encoding="utf-8")).items()}


def groups(world: str | None = None) -> tuple[str, ...]:
    """The groups that are recorded of a world."""
    return tuple(name for name in described(world) if _path(world, name).exists())


def recorded(
    world: str | None = None, method: str | None = None, seed: int | None = None, group: str = "methods"
) -> list[RunRecord]:
    """The recorded runs of a group, by seed and then by method; of one method or one seed if asked.

    >>> [run.settings.seed for run in recorded(method="ftp")]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    >>> recorded(group="method")
    Traceback (most recent call last):
    ftp.lab.record.LabError: group is 'method'; did you mean methods?
    """
    world = world or default()
    if world not in worlds():
        raise LabError(unknown("world", world, worlds()))
    if group not in groups(world):
        raise LabError(unknown("group", group, groups(world)))
    trained = _trained.get((world, group), ())
    replaced = {run.settings.method for run in trained}
    runs = (*trained, *(run for run in _read(_path(world, group)) if run.settings.method not in replaced))
    methods = dict.fromkeys(run.settings.method for run in runs)
    if method is not None and method not in methods:
        raise LabError(unknown(f"the method of the recordings {group!r}", method, methods))
    seeds = sorted({run.settings.seed for run in runs})
    if seed is not None and seed not in seeds:
        raise LabError(f"seed is {seed!r}; the recordings {group!r} have the seeds {', '.join(map(str, seeds))}")
    chosen = (run for run in runs if method in (None, run.settings.method) and seed in (None, run.settings.seed))
    return list(chosen)


def typical_seed(world: str | None = None) -> int:
    """The recorded seed whose results are nearest to the means, over all methods: a fair one to look at alone.

    >>> typical_seed("digits")
    5
    """
    distances: dict[int, float] = {}
    for runs in by_method(recorded(world)).values():
        for name in ("id", "ood_avg"):
            values = {run.settings.seed: float(run.result[name]) for run in runs if run.result and run.result[name]}
            if len(values) < 3 or (spread := statistics.stdev(values.values())) == 0:
                continue
            mean = statistics.fmean(values.values())
            for seed, value in values.items():
                distances[seed] = distances.get(seed, 0.0) + ((value - mean) / spread) ** 2
    return min(distances, key=distances.__getitem__, default=0)


def tuned(world: str | None = None) -> tuple[str, ...]:
    """The groups of the tables: `methods`, and those that differ from it in an option of the world alone.

    >>> tuned("digits"), tuned("scenes")
    (('methods',), ('methods', 'parts', 'normals'))
    """
    options, about = set(load(world or default()).options), described(world)
    divided = (g for g in groups(world) if about[g].given and set(about[g].given) <= options and not is_live(g))
    return ("methods", *(g for g in divided if g != "methods")) if "methods" in groups(world) else tuple(divided)


def is_live(group: str) -> bool:
    """True for a group whose runs Live opens with: they have what the network said on the way.

    >>> is_live("live"), is_live("live_parts"), is_live("methods")
    (True, True, False)
    """
    return group.partition("_")[0] == "live"


def replays(world: str | None = None) -> list[RunRecord]:
    """The recorded runs that can be watched step by step: first those with a network's answers, where there are some.

    >>> replays("digits")[0].settings.seed == typical_seed("digits")
    True
    """
    names = (*(name for name in groups(world) if is_live(name)), *tuned(world))
    return [run for name in names for run in recorded(world, group=name) if run.points]


def use(trained: Sequence[RunRecord], group: str, world: str | None = None) -> None:
    """Have `recorded` give these runs instead of the recorded ones of the same methods, until this process ends."""
    if group not in groups(world):
        raise LabError(unknown("group", group, groups(world)))
    _trained[world or default(), group] = tuple(trained)


def by_method(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """The runs of each method, in the order in which they come.

    >>> {method: len(runs) for method, runs in by_method(recorded(group="gentle")).items()}
    {'finetune': 10}
    """
    runs_of: dict[str, list[RunRecord]] = {}
    for run in runs:
        runs_of.setdefault(run.settings.method, []).append(run)
    return runs_of


def find(run_id: str) -> RunRecord | None:
    """The recorded run of that id, whatever its world and group; None if it is not recorded.

    >>> find(recorded()[0].run_id).status, find("0" * 16)
    ('done', None)
    """
    # one run may be in two groups; those that Live opens with know what the network says on the way
    in_order = (
        (world, group) for world in worlds() for group in sorted(groups(world), key=lambda name: not is_live(name))
    )
    every = (run for world, group in in_order for run in _read(_path(world, group)))
    return next((run for run in every if run.run_id == run_id), None)


def pack(runs: Iterable[RunRecord], keeps_points: Iterable[str] = (), keeps_maps: bool = False) -> bytes:
    """The file of a group: the same runs give the same bytes.

    keeps_points: ids of the runs that keep their points. keeps_maps: what they said of every pixel, which is large
    """
    ids = set(keeps_points)
    forms = []
    for run in runs:
        form = serialisation.to_form(run, str(run.provenance.get("code", "")))
        form["points"] = rounded(form["points"], POINT_DIGITS) if run.run_id in ids else []
        if not keeps_maps:
            form["evals"] = [{**event, "maps": {}} if event.get("maps") else event for event in form["evals"]]
        form |= {"evals": rounded(form["evals"], DIGITS), "result": rounded(form["result"], DIGITS)}
        forms.append(form)
    return gzip.compress(serialisation.dump(forms).encode(), 9, mtime=0)


def _path(world: str | None, group: str) -> Path:
    return HOME / (world or default()) / f"{group}.json.gz"


@functools.cache
def _read(path: Path) -> tuple[RunRecord, ...]:
    try:
        forms = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError):
        raise LabError(f"{path.parent.name}/{path.name} is damaged; install the kit again") from None
    return tuple(map(serialisation.from_form, forms))
