"""Which runs are shown, and in which order: words, and conditions on any column such as `OOD > 85` or `lr = 0.05`."""

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ftp.lab.record import RunRecord
from ftp.lab.table import title

HELP = (
    "Words are looked for in names, ids and methods. A condition compares a column or a setting with a value: "
    "OOD > 85, seed <= 2, lr = 0.05, status = done."
)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
CONDITION = re.compile(r"(\w+)\s*(>=|<=|!=|>|<|=)\s*(\S+)")
NEWEST = "newest first"


class Condition(NamedTuple):
    column: str
    sign: str
    value: str


def parse(text: str) -> tuple[str, list[Condition]]:
    """The words of a search, and its conditions.

    >>> parse("my run OOD > 85  lr=0.05")
    ('my run', [Condition(column='OOD', sign='>', value='85'), Condition(column='lr', sign='=', value='0.05')])
    """
    conditions = [Condition(*match) for match in CONDITION.findall(text)]
    return " ".join(CONDITION.sub(" ", text).split()), conditions


def has_words(run: RunRecord, words: str) -> bool:
    """True if the words stand, as they are, in the name, the id, the world or the method of a run, or in its title.

    >>> from ftp.lab.record import Settings
    >>> has_words(RunRecord("0123456789abcdef", Settings(method="finetune")), "vanilla")
    True
    """
    settings = run.settings
    fields = (run.name, run.run_id, settings.world, settings.method, title(settings.method))
    return any(words.casefold() in field.casefold() for field in fields)


def columns(run: RunRecord) -> dict[str, Any]:
    """All that a run can be found by."""
    result = run.result or {}
    about = {"name": run.name, "status": run.status, "id": run.run_id, "made": run.created}
    return {**run.settings.as_dict(), **about, "ID": result.get("id"), "OOD": result.get("ood_avg")}


def value_of(run: RunRecord, column: str) -> Any:
    """What a run has in a column; capitals matter only where two columns differ in nothing else."""
    fields = columns(run)
    if column in fields:
        return fields[column]
    return next((value for name, value in fields.items() if name.casefold() == column.casefold()), None)


def fits(run: RunRecord, conditions: Sequence[Condition]) -> bool:
    """True if a run fulfils all of them; a run without that column, or without a number in it, does not."""
    return all(_holds(value_of(run, condition.column), condition) for condition in conditions)


def _holds(value: Any, condition: Condition) -> bool:
    compare = COMPARE[condition.sign]
    if value is None or value == "":
        return False
    try:
        return compare(float(value), float(condition.value))
    except ValueError:
        return condition.sign in ("=", "!=") and compare(str(value).casefold(), condition.value.casefold())


def problem(conditions: Sequence[Condition], runs: Sequence[RunRecord]) -> str:
    """What is wrong with a search, in one sentence; "" if nothing is."""
    known = dict.fromkeys(name for run in runs for name in columns(run))
    folded = {name.casefold() for name in known}
    for column, sign, value in conditions:
        if runs and column.casefold() not in folded:
            return f"no run has a column {column}; write one of {', '.join(known)}"
        if sign in ("=", "!="):
            continue
        held = [other for other in (value_of(run, column) for run in runs) if other not in (None, "")]
        numbers = [number for number in held if isinstance(number, int | float)]
        if held and not numbers:
            return f"{column} holds words, which have no order; write = or !=, such as {column} = {held[0]}"
        if not _is_number(value):
            example = f"{column} {sign} {numbers[0]:.4g}" if numbers else f"{column} {sign} 0.5"
            return f"{column} holds numbers, and {value!r} is none; write one, such as {example}"
    return ""


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _number(column: str, down: bool) -> Callable[[RunRecord], Any]:
    """A key that sorts by a number; runs without one come last."""

    def key(run: RunRecord) -> tuple[bool, float]:
        value = value_of(run, column)
        missing = not isinstance(value, int | float)
        return missing, 0.0 if missing else (-value if down else value)

    return key


ORDERS: dict[str, Callable[[RunRecord], Any]] = {
    NEWEST: lambda run: 0,  # as the store gives them, then recorded ones
    "best OOD first": _number("OOD", True),
    "worst OOD first": _number("OOD", False),
    "best ID first": _number("ID", True),
    "worst ID first": _number("ID", False),
    "by method": lambda run: (title(run.settings.method), run.settings.seed),
    "by seed": _number("seed", False),
    "by learning rate": _number("lr", False),
    "by name": lambda run: (not run.name, run.name.casefold()),
}


def sort(runs: Sequence[RunRecord], order: str) -> list[RunRecord]:
    """Runs in one of the ORDERS; where lower is better, the best is the lowest."""
    ordered = sorted(runs, key=ORDERS[order])
    metric = next((run.measures.main for run in runs if run.result), None)
    if metric is None or metric.higher_is_better or not order.startswith(("best", "worst")):
        return ordered
    opposite = order.replace("best", "worst") if order.startswith("best") else order.replace("worst", "best")
    return sorted(runs, key=ORDERS[opposite])
