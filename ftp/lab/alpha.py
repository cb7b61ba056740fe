"""Which point of a WiSE curve? Rules that choose alpha, each of which says what it looks at. Without torch.

The paper took the ratio with the best mean over all of its sets, the shifts among them: a choice that nobody can make
who has not labelled pictures of the shifts. The other rules look at home validation alone. Its best point lies far to
the fine-tuned end, because home has little to lose there; one standard error and the knee step back from it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ftp.lab.figures.data import WiseCurve
from ftp.lab.record import LabError
from ftp.lab.summary import average
from ftp.lab.table import Group, Row, Spread, spread, title
from ftp.lab.worlds import World

WALKED = ("finetune", "ftp")  # the methods that have WiSE rows in a table, as in the paper's Tab. 3


def is_whole(world: World) -> bool:
    """Whether the pre-trained end is a model of its own: nothing is new in it, and there are shifts to test it on."""
    return bool(world.shifts) and not world.unanchored and len(world.phases) == 1


@dataclass(frozen=True)
class Rule:
    """A way to choose alpha. title: for a table; sees: which numbers it looks at."""

    name: str
    title: str
    sees: str
    place: Callable[[WiseCurve], int]

    def choose(self, curve: WiseCurve) -> float:
        """The alpha that the rule takes; of equals the smallest, which is nearest to the pre-trained network."""
        return curve.alphas[self.place(curve)]


def all_sets(curve: WiseCurve) -> tuple[float, ...]:
    """The mean over home and every shift at each alpha: the paper's "Ave." of Tab. 3.

    >>> curve = WiseCurve("a run", "ftp", (0.0, 1.0), (90.0, 99.0), (85.0, 60.0), shifts={"a": (80, 50), "b": (90, 70)})
    >>> [round(value, 2) for value in all_sets(curve)]
    [86.67, 73.0]
    """
    if not curve.shifts:
        raise LabError(f"the curve of {curve.run_id} has no scores of single shifts; walk again: ftp-lab wise RUN")
    sets = (curve.id, *curve.shifts.values())
    return tuple(average(at) for at in zip(*sets, strict=True))


def _best(curve: WiseCurve, values: Sequence[float]) -> int:
    top = curve.metric.best(values)
    if not math.isfinite(top):
        raise LabError(f"the curve of {curve.run_id} has no finite scores to choose by; train with a lower lr")
    return next(place for place, value in enumerate(values) if value == top)


def _validated(curve: WiseCurve) -> Sequence[float]:
    if not curve.val:
        raise LabError(f"the curve of {curve.run_id} has no validation scores; walk again: ftp-lab wise RUN")
    return curve.val


def _best_mean(curve: WiseCurve) -> int:
    return _best(curve, all_sets(curve))


def _best_val(curve: WiseCurve) -> int:
    return _best(curve, _validated(curve))


def _one_error(curve: WiseCurve) -> int:
    """The smallest alpha whose validation score is within one standard error of the best one."""
    best = _best_val(curve)
    room = curve.val_error[best] if math.isfinite(curve.val_error[best]) else 0.0
    gap = [curve.metric.gain(curve.val[best], value) for value in curve.val]
    return next(place for place, behind in enumerate(gap) if behind <= room)


def _knee(curve: WiseCurve) -> int:
    """Where validation is farthest above the chord from the first alpha to the last."""
    val, alphas = _validated(curve), curve.alphas
    gains = [curve.metric.gain(value, val[0]) for value in val]
    length = alphas[-1] - alphas[0]
    above = [gain - gains[-1] * (alpha - alphas[0]) / length for gain, alpha in zip(gains, alphas, strict=True)]
    top = max((height for height in above if math.isfinite(height)), default=math.nan)
    return next((place for place, height in enumerate(above) if height == top), 0)


HOME_ONLY = "home validation only"
_ROWS = (
    Rule("best_mean", "best mean of all sets", "the test sets of home and of every shift", _best_mean),
    Rule("best_val", "best validation", HOME_ONLY, _best_val),
    Rule("one_error", "one standard error of validation", HOME_ONLY, _one_error),
    Rule("knee", "knee of validation", HOME_ONLY, _knee),
)
RULES: Mapping[str, Rule] = {rule.name: rule for rule in _ROWS}
IN_TABLE = ("best_mean", "one_error")  # the paper's, and one that anybody can follow


def choose_all(curve: WiseCurve) -> dict[str, float]:
    """The alpha of every rule.

    >>> ends = {"val": (80.0, 94.0, 95.0), "val_error": (1.0, 1.0, 1.0), "shifts": {"a": (80.0, 75.0, 50.0)}}
    >>> choose_all(WiseCurve("a run", "ftp", (0.0, 0.5, 1.0), (81.0, 93.0, 95.0), (80.0, 75.0, 50.0), **ends))
    {'best_mean': 0.5, 'best_val': 1.0, 'one_error': 0.5, 'knee': 0.5}
    """
    return {name: rule.choose(curve) for name, rule in RULES.items()}


def row_of(curves: Sequence[WiseCurve], rule: Rule, name: str, line: Callable[[float, float], float] | None) -> Row:
    """A row of the table: each run at the alpha that the rule takes for it. line: gives the effective robustness.

    Corruptions and seconds are left open: a point on the way is not trained, and it was not tested with damage.
    """
    places = [rule.place(curve) for curve in curves]
    pairs = list(zip(curves, places, strict=True))
    alphas = sorted({curve.alphas[place] for curve, place in pairs})
    span = f"{alphas[0]:g}" if len(alphas) == 1 else f"{alphas[0]:g} to {alphas[-1]:g}"
    ood = {shift: spread(curve.shifts[shift][place] for curve, place in pairs) for shift in curves[0].shifts}
    return Row(
        "wise",
        f"{name}, α = {span} by {rule.title}",
        len(curves),
        spread(curve.id[place] for curve, place in pairs),
        ood,
        spread(curve.ood_avg[place] for curve, place in pairs),
        Spread(),
        Spread(),
        metric=curves[0].metric,
        robustness=spread(line(curve.id[place], curve.ood_avg[place]) for curve, place in pairs) if line else Spread(),
    )


def rows_of(
    group: Group, curves: Mapping[str, WiseCurve], line: Callable[[float, float], float] | None = None
) -> list[Row]:
    """The WiSE rows of runs that differ in nothing but the seed, if all of them were walked; `curves` by run.

    >>> from ftp.lab.figures.data import example
    >>> from ftp.lab.table import groups
    >>> more = {"val": (80.0, 95.0), "val_error": (1.0, 1.0), "shifts": {"sketch": (80.0, 50.0)}}
    >>> curve = WiseCurve("0" * 16, "finetune", (0.0, 1.0), (81.0, 95.0), (80.0, 50.0), **more)
    >>> [row.name for row in rows_of(groups([example("finetune")])[0], {"0" * 16: curve})]  # doctest: +ELLIPSIS
    ['WiSE-FT, α = 0 by best mean of all sets', 'WiSE-FT, α = 1 by one standard error...']
    """
    if not all(record.run_id in curves for record in group.records):
        return []
    walked = [curves[record.run_id] for record in group.records]
    name = group.name.replace(title("finetune"), "FT")
    return [row_of(walked, RULES[rule], f"WiSE-{name}", line) for rule in IN_TABLE]


def from_dict(row: Mapping[str, object]) -> WiseCurve:
    """A curve out of JSON, as `dataclasses.asdict` made it; one of older kits has fewer numbers."""
    from ftp.lab.summary import Metric
    from ftp.lab.table import ACCURACY

    def numbers(values: object) -> tuple[float, ...]:
        assert isinstance(values, Sequence)
        return tuple(float("nan") if value is None else float(value) for value in values)

    metric, shifts = row.get("metric"), row.get("shifts", {})
    assert isinstance(shifts, Mapping)
    return WiseCurve(
        str(row["run_id"]),
        str(row["method"]),
        numbers(row["alphas"]),
        numbers(row["id"]),
        numbers(row["ood_avg"]),
        int(str(row.get("seed", 0))),
        Metric(**metric) if isinstance(metric, Mapping) else ACCURACY,
        numbers(row.get("val", ())),
        numbers(row.get("val_error", ())),
        {str(name): numbers(values) for name, values in shifts.items()},
    )
