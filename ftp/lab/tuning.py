"""The same small budget of settings for every method: what is tried, in which order, and what is chosen. Without torch.

A trial changes the learning rate, and of a method that has one its main strength; the first trial is what the method
does by itself (its recipe, else its defaults), the next ones are nearest to that. Every method gets as many trials,
and the choice looks at home validation alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftp.lab.options import Option
from ftp.lab.record import LabError, Settings, Value
from ftp.lab.settings import known, options_of, resolve
from ftp.lab.summary import Metric

SEED = 1000  # of the trials: no table uses it
FACTORS = (1.0, 3.0, 1 / 3, 10.0, 0.1, 30.0, 1 / 30, 100.0)  # of the learning rate, the nearest first
# the main strength of a method: factors of it, or values where a factor makes no sense
STRENGTHS: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "l2_sp": ("strength", (1.0, 10.0, 0.1, 100.0)),
    "mars_sp": ("gamma", (1.0, 4.0, 0.25, 16.0)),
    "lp_ft": ("probe_lr", (1.0, 5.0, 0.2)),
    "tpgm": ("gamma_lr", (1.0, 10.0, 0.1)),
    "ftp": ("gamma_lr", (1.0, 10.0, 0.1)),
    "llrd": ("decay", (1.0, 0.8, 1.2)),
}
MOST = len(FACTORS)  # trials of a method: some have nothing but a learning rate


@dataclass(frozen=True)
class Trial:
    """What was tried of a method, and what it gave on home validation; NaN if the run fell apart."""

    settings: Settings
    changed: Mapping[str, Value]
    val: float = math.nan
    run_id: str = ""


def combinations(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of values, the last name changing fastest.

    >>> combinations({"lr": [0.1, 0.2], "k": [0, 1]})[1]
    {'lr': 0.1, 'k': 1}
    """
    rows: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        rows = [{**row, name: value} for row in rows for value in values]
    return rows


def trials(
    world: str, method: str, count: int, changes: Mapping[str, Any] | None = None, seed: int = SEED
) -> list[Trial]:
    """So many settings of a method, the nearest to its own first; what `changes` sets is not varied.

    >>> [trial.changed for trial in trials("digits", "ftp", 3)]
    [{'lr': 0.05, 'gamma_lr': 0.1}, {'lr': 0.15, 'gamma_lr': 0.1}, {'lr': 0.05, 'gamma_lr': 1.0}]
    """
    changes = dict(changes or {})
    values = {row.name: row.value for row in known(world, method, changes)}
    options = options_of(world, method)
    strength, factors = STRENGTHS.get(method, ("", ()))
    varied = {**({strength: factors} if strength in options else {}), "lr": FACTORS}
    ranked = {
        name: list(enumerate(_values(float(values[name]), some, options[name])))
        for name, some in varied.items()
        if name not in changes
    }
    rows: list[tuple[dict[str, Value], int]] = []
    for row in combinations(ranked):
        rows.append(({name: row[name][1] for name in reversed(row)}, sum(rank for rank, _ in row.values())))
    rows.sort(key=lambda row: row[1])  # stable: among equally near ones the learning rate changes first
    chosen = [row for row, _ in rows[:count]]
    return [Trial(resolve(world, method, {**changes, **row, "seed": seed}), row) for row in chosen]


def _values(start: float, factors: Sequence[float], option: Option) -> list[float]:
    """The start times each factor, inside what the option allows, each once."""
    products = [float(f"{min(max(start * factor, option.low), option.high):.3g}") for factor in factors]
    return list(dict.fromkeys(products))


def best(tried: Sequence[Trial], metric: Metric) -> Trial:
    """The trial with the best validation score; among equals the first, which is nearest to the method's own.

    >>> a, b = (Trial(Settings(lr=lr), {"lr": lr}, val) for lr, val in ((0.1, 90.0), (0.3, 92.0)))
    >>> best([a, b], Metric("accuracy")).changed, best([a, b], Metric("error", higher_is_better=False)).changed
    ({'lr': 0.3}, {'lr': 0.1})
    """
    top = metric.best(trial.val for trial in tried)
    if math.isnan(top):
        raise LabError(
            f"no trial of {tried[0].settings.method} came to an end with a validation score; "
            "try lower learning rates: --set lr=0.001, or --tune 1 to try nothing"
        )
    return next(trial for trial in tried if trial.val == top)
