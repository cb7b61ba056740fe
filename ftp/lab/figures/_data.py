"""What figures share about their data: curves of WiSE, thinning, kinds and blocks of layers, rank correlation."""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ftp.lab.record import CORRUPTIONS, EvalEvent, LabError, RunRecord, Settings, StepEvent, result_of
from ftp.lab.table import called, title

T = TypeVar("T")
MOST_POINTS = 400  # of a line; more cannot be told apart on a screen
WEIGHT, GAIN, BIAS = "weights", "norm gains", "biases"
# by their names, or as the second part of the way around a block
NORM = re.compile(r"(norm|bn|gn|ln)(_?\d*)$|(downsample|shortcut|bridge)\.1$", re.IGNORECASE)


@dataclass(frozen=True)
class WiseCurve:
    """Accuracies in percent along W0 + alpha (W - W0) of one run, alpha from 0 (pre-trained) to 1 (fine-tuned).

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

    def __post_init__(self) -> None:
        counts = len(self.alphas), len(self.id), len(self.ood_avg)
        if len(set(counts)) > 1:
            have = "{} alphas, {} id and {} ood_avg".format(*counts)
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


def thin(points: Sequence[T], most: int = MOST_POINTS) -> list[T]:
    """At most so many points, evenly chosen, the first and the last among them.

    >>> thin(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(points) <= most:
        return list(points)
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


def steps_of(record: RunRecord) -> Sequence[StepEvent]:
    """The training steps of a run; that there are none is a sentence."""
    if not record.points:
        raise LabError(f"{called(record)} has no training steps yet; draw it when its first ones are there")
    return record.points


def constrained(record: RunRecord) -> list[int]:
    """The places of the layers that have a gamma; that there are none is a sentence."""
    found = [i for i in range(len(record.layers)) if any(number(p.gamma[i]) is not None for p in steps_of(record))]
    if not found:
        raise LabError(f"{called(record)} has no constraint γ; choose a run of ftp, tpgm or mars_sp")
    return found


def about(record: RunRecord) -> str:
    """Which run a picture shows, for the line below its title.

    >>> about(example("ftp"))
    'FTP on digits, seed 0'
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
    leash = method in ("ftp", "tpgm", "mars_sp")
    points = []
    for step in (1, 2, 3):
        way = tuple(0.1 * step * (i + 1) + 0.01 * seed for i in range(4))
        gamma = way if leash else (None,) * 4
        points.append(StepEvent(step, 2.0 / step, 0.05, gamma, way, (0.5,) * 4 if leash else (None,) * 4, 0.06))
    accuracy = {"val": 97.0, "id": 97.0 + 0.1 * seed, "sketch": 70.0 + 5 * leash, "typeset": 90.0}
    corruptions = dict.fromkeys(CORRUPTIONS, (95.0, 94.0, 92.0, 89.0, 85.0 + leash))
    final = EvalEvent(3, accuracy, corruptions, final=True)
    record = RunRecord(f"{seed:016x}", Settings(method=method, seed=seed), "done", layers, tuple(points), (final,))
    return replace(record, result=result_of(record))
