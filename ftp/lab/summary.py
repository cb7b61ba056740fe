"""What a world measures, and the one place that says what an evaluation amounts to. Plain data, without torch.

A world declares its metrics (the first is the main one) and gives every split a role:

    train   what is trained on             val    what settings are chosen by
    home    the task's own test set        shift  the same task in another look
    task    one of several in a row

Tables, figures, the command line, the store's queries, the page and its JavaScript ask `summarise` and `Metric`;
none of them knows a metric or a split by name.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

ROLES = ("train", "val", "home", "shift", "task")
Scores = Mapping[str, Mapping[str, float]]  # metric -> split -> value


@dataclass(frozen=True)
class Metric:
    """One number that a world measures: its unit, which direction is better, how it is written, where it can lie.

    >>> Metric("angle", "°", higher_is_better=False, digits=1).text(12.34)
    '12.3'
    """

    name: str
    unit: str = "%"
    higher_is_better: bool = True
    digits: int = 2
    low: float = 0.0
    high: float = 100.0
    per_picture: bool = True  # the mean of a score that every picture has, such as right or wrong

    @property
    def title(self) -> str:
        """The name at the beginning of a heading.

        >>> Metric("accuracy").title, Metric("mIoU").title
        ('Accuracy', 'mIoU')
        """
        return self.name[:1].upper() + self.name[1:] if self.name[1:2].islower() else self.name

    @property
    def axis(self) -> str:
        """The title of an axis.

        >>> Metric("accuracy").axis, Metric("angle", "°", higher_is_better=False).axis
        ('accuracy (%)', 'angle (°, lower is better)')
        """
        parts = [part for part in (self.unit, "" if self.higher_is_better else "lower is better") if part]
        return f"{self.name} ({', '.join(parts)})" if parts else self.name

    def text(self, value: float | None, digits: int | None = None) -> str:
        """A value as text, with the metric's own digits or so many; "-" where there is none."""
        shown = self.digits if digits is None else digits
        return "-" if value is None or not math.isfinite(value) else f"{value:.{shown}f}"

    def with_unit(self, value: float | None, digits: int | None = None) -> str:
        """A value with its unit, for sentences.

        >>> Metric("accuracy").with_unit(97.249), Metric("angle", "°").with_unit(3.0)
        ('97.25 %', '3.00°')
        """
        space = "" if self.unit == "°" or not self.unit else " "
        return f"{self.text(value, digits)}{space}{self.unit}"

    def gain(self, value: float, other: float) -> float:
        """How much better a value is than another, in the metric's unit: positive is better, whatever its direction.

        >>> Metric("accuracy").gain(90.0, 88.0), Metric("angle", "°", higher_is_better=False).gain(12.0, 10.0)
        (2.0, -2.0)
        """
        return value - other if self.higher_is_better else other - value

    def relative_gain(self, value: float, other: float) -> float:
        """The same in percent of the other value, as the paper's Δ.

        >>> round(Metric("accuracy").relative_gain(90.0, 80.0), 3)
        12.5
        """
        return 100 * self.gain(value, other) / other if other else math.nan

    def best(self, values: Iterable[float]) -> float:
        """The best of some values; NaN if there is none.

        >>> Metric("angle", "°", higher_is_better=False).best([12.0, 9.0])
        9.0
        """
        numbers = [value for value in values if math.isfinite(value)]
        return (max if self.higher_is_better else min)(numbers, default=math.nan)


@dataclass(frozen=True)
class Measures:
    """The metrics of a world, the main one first, and the role of each of its splits, in the order of tables.

    Kept with every run, so that a run says by itself what its numbers mean.
    """

    metrics: tuple[Metric, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.metrics)

    @property
    def main(self) -> Metric:
        return self.metrics[0] if self.metrics else Metric("score", "")

    def splits(self, *roles: str) -> tuple[str, ...]:
        """The names of the splits with one of these roles.

        >>> Measures((Metric("accuracy"),), {"id": "home", "sketch": "shift"}).splits("shift")
        ('sketch',)
        """
        return tuple(name for name, role in self.roles.items() if role in roles)

    @property
    def home(self) -> str:
        """The name of the home split."""
        return self.splits("home")[0] if "home" in self.roles.values() else ""

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data; `measures_from_dict` is the way back."""
        return {"metrics": [asdict(metric) for metric in self.metrics], "roles": dict(self.roles)}


def measures_from_dict(data: Mapping[str, Any]) -> Measures:
    """The measures out of `as_dict`; nothing is nothing."""
    metrics = tuple(Metric(**metric) for metric in data.get("metrics", ()))
    return Measures(metrics, dict(data.get("roles", {})))


@dataclass(frozen=True)
class Summary:
    """What an evaluation amounts to, in the main metric. A mean over nothing is NaN."""

    home: float
    val: float
    shifts: Mapping[str, float]
    tasks: Mapping[str, float]

    @property
    def shift_mean(self) -> float:
        return average(self.shifts)

    @property
    def task_mean(self) -> float:
        return average(self.tasks)


def summarise(scores: Scores, measures: Measures) -> Summary:
    """The home score, the validation score, and those of each shift and task, in the main metric.

    >>> measures = Measures((Metric("accuracy"),), {"id": "home", "sketch": "shift", "typeset": "shift"})
    >>> summary = summarise({"accuracy": {"id": 97.0, "sketch": 70.0, "typeset": 90.0}}, measures)
    >>> summary.home, summary.shift_mean, summary.val
    (97.0, 80.0, nan)
    """
    main = scores.get(measures.main.name, {})

    def of(role: str) -> dict[str, float]:
        return {name: main[name] for name in measures.splits(role) if name in main}

    home, val = (next(iter(of(role).values()), math.nan) for role in ("home", "val"))
    return Summary(home, val, of("shift"), of("task"))


def average(values: Mapping[str, float] | Iterable[float]) -> float:
    """The plain mean; of a mapping, over its values; NaN of nothing.

    >>> average({"sketch": 70.0, "typeset": 90.0})
    80.0
    """
    numbers = list(values.values()) if isinstance(values, Mapping) else list(values)
    return math.fsum(numbers) / len(numbers) if numbers else math.nan
