"""Is a difference more than chance? Paired by seed, and beyond three standard errors: one rule for lessons and page."""

import math
import statistics
from collections.abc import Mapping, Sequence

from ftp.lab.summary import Metric

FEWEST = 3  # seeds: of two the noise itself is not known
ERRORS = 3  # standard errors; one is passed by chance in every third comparison, two in about every twentieth


def paired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """The mean difference, paired by seed, and its standard error.

    >>> paired([3.0, 5.0], [1.0, 1.0])
    (3.0, 1.0)
    """
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    return statistics.fmean(differences), statistics.stdev(differences) / math.sqrt(len(differences))


def beyond_noise(ours: Sequence[float], theirs: Sequence[float], promise: float = 0.0) -> int:
    """1 if the difference is above the promise by three standard errors, -1 if it is below by as many, else 0.

    >>> a, b, c = [9.0, 9.1], [1.0, 1.2], [1.0, 9.0]
    >>> beyond_noise(a, b), beyond_noise(b, a), beyond_noise(c, [2.0, 3.0])
    (1, -1, 0)
    """
    mean, error = paired(ours, theirs)
    return 1 if mean - ERRORS * error > promise else -1 if mean + ERRORS * error < promise else 0


def ahead(ours: Sequence[float], theirs: Sequence[float], metric: Metric) -> int:
    """1 if ours is better beyond the noise, -1 if theirs is, 0 if they are about the same; of less than three seeds 0.

    >>> ahead([9.0, 9.1, 9.2], [1.0, 1.1, 1.3], Metric("accuracy")), ahead([9.0, 1.0], [1.0, 0.0], Metric("accuracy"))
    (1, 0)
    >>> ahead([9.0, 9.1, 9.2], [1.0, 1.1, 1.3], Metric("angle", higher_is_better=False))
    -1
    """
    if len(ours) < FEWEST:
        return 0
    return beyond_noise(ours, theirs) if metric.higher_is_better else -beyond_noise(ours, theirs)


def level_with(best: str, scores: Mapping[str, Mapping[int, float]], metric: Metric) -> list[str]:
    """Who cannot be told apart from the best: by the seeds that both have, at least three; `scores` by name and seed.

    >>> scores = {"a": {0: 9.0, 1: 9.1, 2: 9.2}, "b": {0: 9.1, 1: 9.0, 2: 9.1}, "c": {0: 1.0, 1: 1.1, 2: 1.2}}
    >>> level_with("a", scores, Metric("accuracy"))
    ['b']
    """
    level = []
    for name, by_seed in scores.items():
        seeds = sorted(set(by_seed) & set(scores[best]))
        if name == best or len(seeds) < FEWEST:
            continue
        if ahead([scores[best][seed] for seed in seeds], [by_seed[seed] for seed in seeds], metric) <= 0:
            level.append(name)
    return level
