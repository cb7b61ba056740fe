"""What figures share about their data: curves of WiSE, thinning, kinds and blocks of layers, rank correlation."""

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ftp.lab.continual import in_tasks
from ftp.lab.record import CORRUPTIONS, EvalEvent, LabError, RunRecord, Settings, StepEvent, result_of
from ftp.lab.summary import Measures, Metric, average
from ftp.lab.table import ACCURACY, called, title

MOST_POINTS = 400  # of a line; more cannot be told apart on a screen
WEIGHT, GAIN, BIAS = "weights", "norm gains", "biases"
# by their names, or as the second part of the way around a block
NORM = re.compile(r"(norm|bn|gn|ln)(_?\d*)$|(downsample|shortcut|bridge)\.1$", re.IGNORECASE)


@dataclass(frozen=True)
class WiseCurve:
    """The main metric along W0 + alpha (W - W0) of one run, alpha from 0 (pre-trained) to 1 (fine-tuned).

    val, val_error: home validation and its standard error; shifts: the curve of each. Older recordings lack them.

    >>> WiseCurve("a run", "ftp", (0.0, 1.0), (90.0,), (80.0, 85.0))
    Traceback (most recent call last):
    ftp.lab.record.LabError: the curve of a run has 2 alphas, 1 id and 2 ood_avg; give one of each per point
    """

    run_id: str
    method: str
    alphas: tuple[float, ...]
    id: tuple[float, ...]
    ood_avg: tuple[float, ...]
    seed: int = 0
    metric: Metric = ACCURACY
    val: tuple[float, ...] = ()
    val_error: tuple[float, ...] = ()
    shifts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        counts = len(self.alphas), len(self.id), len(self.ood_avg)
        if len(set(counts)) > 1:
            have = "{} alphas, {} id and {} ood_avg".format(*counts)
            raise LabError(f"the curve of {self.run_id} has {have}; give one of each per point")
        more = {"val": self.val, "val_error": self.val_error, **self.shifts}
        for name, values in more.items():
            if values and len(values) != len(self.alphas):
                have = f"{len(self.alphas)} alphas and {len(values)} of {name}"
                raise LabError(f"the curve of {self.run_id} has {have}; give one of each per point")


def plain(text: str) -> str:
    """Text as plotly shows it letter by letter: names may come from a file and plotly reads tags and links in them.

    >>> plain("<b>stem</b>")
    '&lt;b&gt;stem&lt;/b&gt;'
    """
    return html.escape(text, quote=False)


def number(value: float | None) -> float | None:
    """The same number, or None if it is none: plotly leaves a gap there.

    >>> number(math.nan), number(1.5)
    (None, 1.5)
    """
    return None if value is None or not math.isfinite(value) else value


def steps_of(record: RunRecord) -> Sequence[StepEvent]:
    """The training steps of a run; that there are none is a sentence."""
    if not record.points:
        raise LabError(f"{called(record)} has no training steps yet; draw it when its first ones are there")
    return record.points


def in_tasks_only(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs that learned tasks in a row; that there are none is a sentence.

    >>> in_tasks_only([example()])
    Traceback (most recent call last):
    ftp.lab.record.LabError: no run learned tasks in a row; choose runs of a world with tasks
    """
    chosen = [run for run in runs if in_tasks(run)]
    if not chosen:
        raise LabError("no run learned tasks in a row; choose runs of a world with tasks")
    return chosen


def constrained(record: RunRecord) -> list[int]:
    """The places of the layers that have a gamma; that there are none is a sentence."""
    places = [i for i in range(len(record.layers)) if any(number(p.gamma[i]) is not None for p in steps_of(record))]
    if not places:
        raise LabError(f"{called(record)} has no constraint γ; choose a run of ftp, tpgm or mars_sp")
    return places


def about(record: RunRecord) -> str:
    """Which run a picture shows, for the line below its title.

    >>> about(example("ftp"))
    'FTP on made-up, seed 0'
    """
    return plain(f"{title(record.settings.method)} on {record.settings.world}, seed {record.settings.seed}")


def kind_of(layer: str) -> str:
    """What a tensor is, by its name: the weights of a layer, the gains of a norm, or biases.

    >>> [kind_of(name) for name in ("stage1.conv1.weight", "stage1.norm1.weight", "layer1.0.bn2.bias")]
    ['weights', 'norm gains', 'biases']
    """
    parent, _, last = layer.rpartition(".")
    if last == "bias":
        return BIAS
    return GAIN if NORM.search(parent) else WEIGHT


def block_of(layer: str) -> str:
    """The part of the network that a tensor belongs to.

    >>> [block_of(name) for name in ("stem_norm.weight", "stage1.conv1.weight", "blocks.3.attn.qkv.weight")]
    ['stem', 'stage1', 'blocks.3']
    """
    first, *rest = layer.split(".")
    if rest and rest[0].isdigit() and not first[-1:].isdigit():
        return f"{first}.{rest[0]}"
    return re.sub(r"_?(norm|bn)\d*$", "", first, flags=re.IGNORECASE) or first


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rank correlation, ties at their middle rank; NaN if there is nothing to correlate.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 20, 30])
    0.9486832980505138
    """
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if len(pairs) < 3:
        return math.nan
    a, b = _ranks([p[0] for p in pairs]), _ranks([p[1] for p in pairs])
    middle = (len(pairs) + 1) / 2
    products = math.fsum((i - middle) * (j - middle) for i, j in zip(a, b, strict=True))
    sizes = math.fsum((i - middle) ** 2 for i in a) * math.fsum((j - middle) ** 2 for j in b)
    return products / math.sqrt(sizes) if sizes else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    return [(order.index(v) + 1 + len(order) - order[::-1].index(v)) / 2 for v in values]


def example(method: str = "ftp", seed: int = 0) -> RunRecord:
    """A tiny finished run with made-up numbers, for trying a figure out.

    >>> example().layers
    ('stem.weight', 'norm.weight', 'norm.bias', 'body.weight')
    """
    layers = ("stem.weight", "norm.weight", "norm.bias", "body.weight")
    has_gamma = method in ("ftp", "tpgm", "mars_sp")
    points = []
    for step in (1, 2, 3):
        way = tuple(0.1 * step * (i + 1) + 0.01 * seed for i in range(4))
        gamma = way if has_gamma else (None,) * 4
        points.append(StepEvent(step, 2.0 / step, 0.05, gamma, way, (0.5,) * 4 if has_gamma else (None,) * 4, 0.06))
    scores = {"accuracy": {"val": 97.0, "id": 97.0 + 0.1 * seed, "sketch": 70.0 + 5 * has_gamma, "typeset": 90.0}}
    roles = {"val": "val", "id": "home", "sketch": "shift", "typeset": "shift"}
    corruptions = dict.fromkeys(CORRUPTIONS, (95.0, 94.0, 92.0, 89.0, 85.0 + has_gamma))
    final = EvalEvent(3, scores, corruptions, final=True)
    settings, measures = Settings("made-up", method, seed), Measures((Metric("accuracy"),), roles)
    record = RunRecord(f"{seed:016x}", settings, "done", layers, tuple(points), (final,), measures=measures)
    return replace(record, result=result_of(record))


def example_in_tasks(method: str = "ftp", seed: int = 0) -> RunRecord:
    """A tiny finished run of three tasks in a row with made-up numbers: only those of FTP fall slowly.

    >>> [round(event.main["first"]) for event in example_in_tasks().evals]
    [90, 80, 70]
    """
    names, whole = ("first", "second", "third"), example(method, seed)
    loss, points = 10.0 if method == "ftp" else 30.0, []
    evals = []
    for phase in range(3):
        points += [replace(p, step=p.step + 3 * phase, phase=phase) for p in whole.points]
        right = {name: 90.0 - loss * (phase - n) + seed for n, name in enumerate(names[: phase + 1])}
        if method != "ftp":
            right = {name: value - 5 for name, value in right.items()}
        scores = {"accuracy": {"all": average(right), **right}}
        counts = dict.fromkeys(right, 10)
        evals.append(EvalEvent(3 * phase + 3, scores, counts=counts, final=phase == 2, phase=phase, whole=True))
    measures = Measures((Metric("accuracy"),), {"all": "home", **dict.fromkeys(names, "task")})
    record = replace(whole, points=tuple(points), evals=tuple(evals), measures=measures, phases=names)
    return replace(record, result=result_of(record))
