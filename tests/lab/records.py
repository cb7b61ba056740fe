"""Synthetic run records for tests: nothing is trained, but the numbers look like those of the digits world.

    from lab.records import make, many

    make("ftp", seed=1)              one finished run: 27 layers, 150 points, 12 small evaluations, a final one
    make(status="running", upto=40)  a run on its way: only the first 40 steps
    many(("finetune", "ftp"))        three seeds of each

Equal arguments give the same record, made once: do not write into it.
"""

import dataclasses
import functools
import math
import random
from collections.abc import Iterable

from ftp.lab import worlds
from ftp.lab.record import (
    CORRUPTIONS,
    EvalEvent,
    RunRecord,
    Settings,
    StepEvent,
    Value,
    finite,
    result_of,
    run_id,
)

SHIFTS = ("optdigits", "typeset", "texture", "colour", "sketch")
MEASURES = worlds.load("digits").measures
# method: ID accuracy, mean of the shifts, corrupted at severity 5, spread over seeds, seconds per step
NUMBERS = {
    "finetune": (97.8, 78.2, 74.0, 2.2, 0.060),
    "linear_probe": (95.1, 86.6, 88.5, 0.4, 0.022),
    "partial_fusion": (96.9, 84.0, 86.0, 0.8, 0.041),
    "adapter": (96.4, 85.6, 87.5, 0.6, 0.048),
    "bitfit": (96.2, 86.1, 88.0, 0.5, 0.046),
    "l2_sp": (97.8, 76.6, 81.0, 3.0, 0.066),
    "mars_sp": (97.7, 77.1, 79.5, 2.6, 0.067),
    "llrd": (97.4, 83.2, 83.5, 1.0, 0.060),
    "lp_ft": (97.6, 82.5, 82.0, 1.2, 0.052),
    "tpgm": (97.5, 85.8, 87.0, 0.9, 0.118),
    "ftp": (97.2, 87.1, 89.0, 0.4, 0.069),
}
METHODS = tuple(NUMBERS)
OFFSETS = {"optdigits": 6.0, "typeset": 4.5, "texture": 2.0, "colour": 1.5, "sketch": -14.0}  # around the mean


def _layers() -> tuple[str, ...]:
    names = ["stem.weight", "stem_norm.weight", "stem_norm.bias"]
    for stage in (1, 2, 3):
        for i in (1, 2):
            names += [f"stage{stage}.{part}" for part in (f"conv{i}.weight", f"norm{i}.weight", f"norm{i}.bias")]
        if stage > 1:
            names += [f"stage{stage}.{part}" for part in ("shortcut.weight", "shortcut_norm.weight")]
            names += [f"stage{stage}.shortcut_norm.bias"]
    return tuple(names)


LAYERS = _layers()


def make(
    method: str = "ftp",
    seed: int = 0,
    *,
    world: str = "digits",
    status: str = "done",
    upto: int | None = None,
    steps: int = 300,
    every: int = 2,
    **settings: Value,
) -> RunRecord:
    """One run. `upto` cuts it after so many steps; only a run that is done has its final evaluation.

    >>> run = make("ftp", seed=1)
    >>> len(run.layers), len(run.points), len(run.evals), run.result["method"]
    (27, 150, 13, 'ftp')
    >>> make(status="running", upto=40).points[-1].step
    40
    """
    common = {name: settings.pop(name) for name in list(settings) if name in Settings.__dataclass_fields__}
    own: dict[str, Value] = {"k": 1.0} if method == "ftp" else {}
    chosen = Settings(world, method, seed, steps=steps, options={**own, **settings}, **common)  # type: ignore[arg-type]
    return _make(chosen, status, steps if upto is None else upto, every)


@functools.cache
def _make(chosen: Settings, status: str, last: int, every: int) -> RunRecord:
    method, seed, steps = chosen.method, chosen.seed, chosen.steps
    dice = random.Random(f"{chosen.as_dict()}")
    logged = [step for step in range(every, steps + 1, every) if step <= last]
    ends, slow = _ends(method, dice), [dice.uniform(180, 420) for _ in LAYERS]
    points = tuple(_point(chosen, step, ends, slow, dice) for step in logged)
    shake = dice.gauss(0, NUMBERS[method][3]) if method in NUMBERS else 0.0
    small = [round(steps * i / 12) for i in range(1, 13)]
    evals = [_evaluation(method, step, step / steps, shake, dice) for step in small if step <= last]
    if status == "done":
        evals.append(_evaluation(method, steps, 1.0, shake, dice, final=True))
    record = RunRecord(
        run_id(chosen, "synthetic", "code"),
        chosen,
        status,
        LAYERS,
        points,
        tuple(evals),
        provenance={"device": "cpu", "data": "synthetic"},
        created=1.7e9 + seed,
        started=1.7e9 + seed + 1,
        ended=1.7e9 + seed + 21 if status == "done" else None,
        heartbeat=1.7e9 + seed + 20,
        measures=MEASURES,
    )
    return dataclasses.replace(record, result=finite(result_of(record))) if status == "done" else record


def many(
    methods: Iterable[str] = METHODS, seeds: Iterable[int] = (0, 1, 2), *, world: str = "digits"
) -> list[RunRecord]:
    """Finished runs of several methods and seeds.

    >>> [(run.settings.method, run.settings.seed) for run in many(("finetune", "ftp"), (0, 1))]
    [('finetune', 0), ('finetune', 1), ('ftp', 0), ('ftp', 1)]
    """
    seeds = tuple(seeds)
    return [make(method, seed, world=world) for method in methods for seed in seeds]


def _ends(method: str, dice: random.Random) -> list[float]:
    """Where each layer's distance would end if nothing bent its way: late layers go further."""
    scale = {"ftp": 2.0, "tpgm": 1.7, "mars_sp": 4.0, "l2_sp": 3.0, "llrd": 2.2}.get(method, 5.0)
    ends = []
    for i, name in enumerate(LAYERS):
        depth = i / (len(LAYERS) - 1)
        vector = 0.8 if "norm" in name else 1.0
        ends.append(scale * vector * (0.3 + 0.9 * math.sqrt(depth)) * math.exp(dice.gauss(0, 0.18)))
    return ends


def _moves(method: str, name: str) -> bool:
    if method == "bitfit":
        return name.endswith("bias")
    if method == "partial_fusion":
        return "norm" in name
    return method not in ("linear_probe", "adapter")


def _point(settings: Settings, step: int, ends: list[float], slow: list[float], dice: random.Random) -> StepEvent:
    method, done = settings.method, step / settings.steps
    way = [end * (1 - math.exp(-step / pace)) for end, pace in zip(ends, slow, strict=True)]
    noisy = [max(1e-8, value * (1 + dice.gauss(0, 0.008))) for value in way]
    gamma: list[float | None]
    if method in ("ftp", "tpgm"):
        gamma = list(noisy)
        distance, boundary = list(noisy), [dice.uniform(0.05, 0.6) for _ in noisy]
    elif method == "mars_sp":
        gamma = [4.0] * len(noisy)
        distance = [min(4.0, value) for value in noisy]
        boundary = [float(value > 4.0) for value in noisy]
    else:
        gamma, boundary = [None] * len(noisy), []
        distance = [value if _moves(method, name) else 0.0 for name, value in zip(LAYERS, noisy, strict=True)]
    loss = 0.08 + 2.2 * math.exp(-step / 18) + 0.25 * math.exp(-step / 90)
    seconds = NUMBERS.get(method, (0, 0, 0, 0, 0.06))[4] * math.exp(dice.gauss(0, 0.05))
    return StepEvent(
        step,
        loss * math.exp(dice.gauss(0, 0.18)),
        settings.lr * 0.5 * (1 + math.cos(math.pi * done)),
        tuple(gamma),
        tuple(distance),
        tuple(boundary) if boundary else (None,) * len(LAYERS),
        seconds,
    )


def _evaluation(
    method: str, step: int, done: float, shake: float, dice: random.Random, final: bool = False
) -> EvalEvent:
    top, shifted, worst, spread, _ = NUMBERS.get(method, (97.0, 80.0, 80.0, 1.0, 0.06))
    n = 1000 if final else 250  # small sets shake more
    noise = 0.15 if final else 0.6
    id_ = top - 30 * math.exp(-12 * done) + dice.gauss(0, noise / 2)
    ood = {
        name: min(99.9, shifted + OFFSETS[name] + shake - 20 * math.exp(-8 * done) + dice.gauss(0, noise + spread / 4))
        for name in SHIFTS
    }
    accuracy = {"val": min(99.9, id_ + dice.gauss(0, 0.3)), "id": min(99.9, id_), **ood}
    if not final:
        return EvalEvent(step, {"accuracy": accuracy}, counts=dict.fromkeys(accuracy, n))
    hard = dict(zip(CORRUPTIONS, (0.9, 1.1, 1.4, 0.4), strict=True))
    corruptions = {
        kind: tuple(
            id_ - how * (id_ - worst - shake) * (severity / 5) ** 1.6 + dice.gauss(0, 0.3) for severity in range(1, 6)
        )
        for kind, how in hard.items()
    }
    ece = {name: max(0.2, (100 - value) / 4 + dice.gauss(0, 0.2)) for name, value in accuracy.items()}
    bound = {"l_d": 1.8 if method in ("ftp", "tpgm") else 5.5, "l_0": 12.0}
    scores = {"accuracy": accuracy, "ece": ece}
    return EvalEvent(step, scores, corruptions, bound, dict.fromkeys(accuracy, n), True, whole=True)
