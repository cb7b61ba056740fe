"""What the recorded leashes of the first world say, one number for each seed: the quantities of lesson 08."""

import functools
import statistics
from collections.abc import Callable, Mapping

from ftp.lab.figures.data import WEIGHT, kind_of, rank_correlation
from ftp.lab.recordings import by_method, recorded

EARLY = 22  # layers of the early half


def final_gammas(per_weight: bool = False) -> list[dict[str, float]]:
    """Every layer's γ at the end, for each seed of FTP; as it is, or for each weight of a row."""
    ends = [dict(run.result["constraints"]) for run in by_method(recorded())["ftp"] if run.result is not None]
    return [{name: g / (row_length(name) if per_weight else 1) for name, g in end.items()} for end in ends]


@functools.cache
def row_length(layer: str) -> int:
    """How many weights of its model share a leash in this layer.

    >>> row_length("blocks.4.conv1.weight"), row_length("blocks.4.bridge.0.weight"), row_length("stem_norm.bias")
    (216, 24, 8)
    """
    from ftp.lab.worlds import default, load
    from ftp.projection import as_rows

    return as_rows(dict(load(default()).model(0).named_parameters())[layer]).shape[1]


def mean_of(end: Mapping[str, float], chosen: Callable[[int, bool], bool]) -> float:
    """The mean over the layers that are chosen by their place and by whether they are vectors."""
    return statistics.mean(g for i, (name, g) in enumerate(end.items()) if chosen(i, kind_of(name) != WEIGHT))


def halves(chosen: Callable[[bool], bool], per_weight: bool = False) -> list[float]:
    """The late half's mean leash minus twice the early half's."""
    ends = final_gammas(per_weight)
    early = [mean_of(end, lambda i, vector: i < EARLY and chosen(vector)) for end in ends]
    late = [mean_of(end, lambda i, vector: i >= EARLY and chosen(vector)) for end in ends]
    return [a - 2 * b for a, b in zip(late, early, strict=True)]


def wound_in() -> list[float]:
    """A third of the longest leash minus the last, mean over early gains and biases."""
    differences = []
    for run in by_method(recorded())["ftp"]:
        early = [i for i, name in enumerate(run.layers) if i < EARLY and kind_of(name) != WEIGHT]
        curves = [[float(point.gamma[i] or 0) for point in run.points] for i in early]
        differences.append(statistics.mean(max(curve) / 3 - curve[-1] for curve in curves))
    return differences


def at_home(chosen: Callable[[int, bool], bool]) -> list[float]:
    """The share of the chosen layers whose leash is shorter than 0.05."""
    return [mean_of({name: float(g < 0.05) for name, g in end.items()}, chosen) for end in final_gammas()]


def ranks(kind: str) -> list[float]:
    """Rank correlation over the convolutions: of γ with depth, with the length of rows, or per weight with depth."""
    correlations = []
    for end in final_gammas(per_weight=kind == "per weight"):
        names = [name for name in end if kind_of(name) == WEIGHT]
        places = [row_length(name) for name in names] if kind == "length" else list(range(len(names)))
        correlations.append(rank_correlation(places, [end[name] for name in names]))
    return correlations


def strayed(group: str = "methods") -> list[dict[str, float]]:
    """How far the convolutions of plain fine-tuning are from their anchors."""
    runs = by_method(recorded(group=group))["finetune"]
    layers_of_runs = [run.result["lipschitz"]["layers"] for run in runs if run.result is not None]
    return [{name: float(far) for name, (_, far) in row.items() if name != "head.weight"} for row in layers_of_runs]
