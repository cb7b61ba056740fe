"""Numbers and rows in other forms: rounded, thinned out, as a time for people, as a file for a spreadsheet."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")


def rounded(value: Any, digits: int) -> Any:
    """The same plain data with floats of so many significant digits.

    >>> rounded({"gamma": [0.123456, 1]}, 3)
    {'gamma': [0.123, 1]}
    """
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: rounded(entry, digits) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(entry, digits) for entry in value]
    return value


def thin(points: Sequence[T], most: int) -> list[T]:
    """At most so many points, evenly chosen, the first and the last among them.

    >>> thin(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(points) <= most:
        return list(points)
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


def counted(number: int, what: str) -> str:
    """A number with its word.

    >>> counted(1, "step"), counted(170, "step")
    ('1 step', '170 steps')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time for people, rounded as much as it is uncertain.

    >>> duration(0.4), duration(42.3), duration(540), duration(9000)
    ('1 s', '42 s', '9 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    r"""Rows for a spreadsheet, all with the same keys; text that it would take for a formula is marked as text.

    >>> to_csv([{"name": "=1+1", "id": 98.5}])
    "name,id\n'=1+1,98.5\n"
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: f"'{value}" if _is_formula(value) else value for key, value in row.items()} for row in rows)
    return out.getvalue()


def _is_formula(value: Any) -> bool:
    """Text that begins like a formula; a number with its sign is none.

    >>> _is_formula("-1+1"), _is_formula("-1.5"), _is_formula(-1.5)
    (True, False, False)
    """
    return isinstance(value, str) and value.startswith(("=", "+", "-", "@")) and not NUMBER.fullmatch(value)
