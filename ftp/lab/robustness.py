"""Effective robustness (Taori et al. 2020): how far a model is above what its home accuracy lets one expect.

Models that were trained on home alone lie near a line if both accuracies stand on logit axes: better at home is better
on the shifts. beta is that line, fitted by least squares, and rho = shift accuracy - beta(home accuracy), in points. A
method that only follows the line has rho = 0, however much better it is on the shifts. Without torch.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ftp.lab import recordings
from ftp.lab.record import LabError, RunRecord, result_of
from ftp.lab.summary import Metric

CLIP = 1e-3  # shares are kept so far off 0 and 1, where a logit has no end
FEWEST, SPAN = 3, 10.0  # models of a line; points between the best and the worst of them at home
GROUP = "ordinary"  # the recorded runs of a world through which its line goes


def logit(share: float) -> float:
    """ln(p / (1 - p)), clipped off 0 and 1.

    >>> round(logit(0.9), 3), logit(0.0) == logit(CLIP), logit(0.5)
    (2.197, True, 0.0)
    """
    p = min(max(share, CLIP), 1 - CLIP)
    return math.log(p / (1 - p))


@dataclass(frozen=True)
class Line:
    """beta on logit axes; scores in percent. low, high: home scores of the models that it was fitted through."""

    slope: float
    intercept: float
    models: int
    low: float
    high: float

    def expected(self, home: float) -> float:
        """What an ordinary model with this home accuracy reaches on the shifts.

        >>> round(Line(1.0, 0.0, 3, 50.0, 90.0).expected(80.0), 6)
        80.0
        """
        return 100 / (1 + math.exp(-(self.slope * logit(home / 100) + self.intercept)))

    def above(self, home: float, shifted: float) -> float:
        """rho, the effective robustness in points."""
        return shifted - self.expected(home)

    def covers(self, home: float) -> bool:
        """Whether an ordinary model was as good and another as bad; elsewhere the line is only continued."""
        return self.low <= home <= self.high


def fit(pairs: Iterable[tuple[float, float]]) -> Line:
    """The line through (home, shift) accuracies in percent, by least squares on logit axes.

    >>> line = fit([(50.0, 30.0), (70.0, 50.0), (90.0, 75.0)])
    >>> round(line.slope, 2), round(line.expected(80.0), 1)
    (0.88, 60.1)
    """
    points = [(home, shifted) for home, shifted in pairs if math.isfinite(home) and math.isfinite(shifted)]
    x, y = [logit(home / 100) for home, _ in points], [logit(shifted / 100) for _, shifted in points]
    homes = [home for home, _ in points]
    if len(points) < FEWEST or max(homes) - min(homes) < SPAN:
        wanted = f"{FEWEST} or more, {SPAN:g} points apart at home"
        raise LabError(f"{len(points)} models were given; a line needs {wanted}: train some for longer")
    middle, height = math.fsum(x) / len(x), math.fsum(y) / len(y)
    slope = math.fsum((a - middle) * (b - height) for a, b in zip(x, y, strict=True))
    slope /= math.fsum((a - middle) ** 2 for a in x)
    return Line(slope, height - slope * middle, len(points), min(homes), max(homes))


def line_through(records: Sequence[RunRecord]) -> Line:
    """The line through finished runs, the mean over the shifts against home."""
    for record in records:
        check(record.measures.main)
    results = [record.result or result_of(record) for record in records]
    return fit((_number(result, "id"), _number(result, "ood_avg")) for result in results)


def check(metric: Metric) -> None:
    """Refuse what is no share of right answers: a logit needs one."""
    if metric.unit != "%" or not metric.higher_is_better:
        raise LabError(f"the main metric is {metric.axis}; effective robustness needs a share of right answers in %")


def line_of(world: str) -> Line | None:
    """The line of a world's recorded ordinary models; None where there are none, or none that learned enough."""
    if world not in recordings.worlds() or GROUP not in recordings.groups(world):
        return None
    try:
        return line_through(recordings.recorded(world, group=GROUP))
    except LabError:  # they lie so near to each other that a line through them says nothing
        return None


def _number(result: Mapping[str, object], name: str) -> float:
    value = result.get(name)
    return float(value) if isinstance(value, int | float) else math.nan
