"""What a comparison says, in plain words and with the noise taken into account. Plain data, without torch.

Methods are compared with plain fine-tuning (or with the first method, if it is not among them), paired by seed:

    ahead of, behind      the difference is beyond three standard errors of the paired differences (`ftp.lab.noise`)
    level with            it is not, and with three standard errors it is smaller than a hundredth of the metric's range
    cannot be told from   it is not, and it may be larger than that; or there are fewer than three seeds

What a test set of a few hundred pictures cannot tell is said beside it: seeds say nothing about other pictures.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftp.lab.noise import ERRORS, beyond_noise, paired
from ftp.lab.record import RunRecord
from ftp.lab.summary import Metric
from ftp.lab.table import Group, groups

FEWEST = 3  # seeds
SMALL = 0.01  # of the metric's range: a difference that nobody would care about, such as 1 % of accuracy
AHEAD, LEVEL, BEHIND, UNTOLD = "ahead of", "level with", "behind", "cannot be told from"


@dataclass(frozen=True)
class Aspect:
    """One of the questions that a comparison answers: the scores by method and seed, all in the main metric."""

    key: str  # of a result: "id", "ood_avg" or "corruption_avg"
    where: str  # in words
    scores: Mapping[str, Mapping[int, float]]  # method's name -> seed -> score

    def mean(self, name: str) -> float:
        values = list(self.scores[name].values())
        return math.fsum(values) / len(values)


@dataclass(frozen=True)
class Difference:
    """A method against the reference in one aspect: the gain (positive is better) and its standard error."""

    name: str
    aspect: Aspect
    seeds: int
    gain: float
    error: float  # NaN with one seed
    word: str  # AHEAD, LEVEL, BEHIND or UNTOLD


@dataclass(frozen=True)
class Verdict:
    """What is said: one line for the head of a report, a paragraph, what it cannot say, and the numbers behind it."""

    headline: str
    sentences: tuple[str, ...]
    limits: str
    reference: str
    differences: tuple[Difference, ...]

    @property
    def paragraph(self) -> str:
        return " ".join(self.sentences)


def judge(records: Sequence[RunRecord]) -> Verdict:
    """The verdict on finished runs of one world.

    >>> from ftp.lab.figures.data import example
    >>> runs = [example(method, seed) for method in ("finetune", "ftp") for seed in range(3)]
    >>> judge(runs).headline
    'FTP is level with Vanilla FT at home, ahead on the 2 shifts (+2.50 %) and ahead on damaged pictures (+0.20 %).'
    """
    run_groups = groups(records)
    metric = records[0].measures.main
    reference = next((g.name for g in run_groups if g.method == "finetune"), run_groups[0].name)
    aspects = _aspects(run_groups)
    differences = tuple(
        _difference(group.name, reference, aspect, metric)
        for group in run_groups
        for aspect in aspects
        if group.name != reference and group.name in aspect.scores and reference in aspect.scores
    )
    star = next((g.name for g in run_groups if g.method == "ftp" and g.name != reference), None)
    star = star or next((g.name for g in run_groups if g.name != reference), None)
    sentences = [_sentence(name, reference, differences, metric) for name in dict.fromkeys(d.name for d in differences)]
    sentences += [_best(aspect, differences, reference, metric) for aspect in aspects]
    sentences += _cost(run_groups, reference)
    headline = _headline(star, reference, differences, metric) if star else _alone(reference, aspects, metric)
    return Verdict(
        headline, tuple(filter(None, sentences)), _limits(records, metric, differences), reference, differences
    )


def _aspects(run_groups: Sequence[Group]) -> list[Aspect]:
    shifts = len(run_groups[0].results[0]["ood"])
    where = {
        "id": "at home",
        "ood_avg": "on the shift" if shifts == 1 else f"on the {shifts} shifts",
        "corruption_avg": "on damaged pictures",
    }
    aspects = []
    for key, words in where.items():
        scores = {g.name: _by_seed(g, key) for g in run_groups}
        scores = {name: values for name, values in scores.items() if values}
        if scores:
            aspects.append(Aspect(key, words, scores))
    return aspects


def _by_seed(group: Group, key: str) -> dict[int, float]:
    values: Mapping[int, Any] = {r["seed"]: r.get(key) for r in group.results}
    return {seed: float(v) for seed, v in values.items() if v is not None and math.isfinite(v)}


def _difference(name: str, reference: str, aspect: Aspect, metric: Metric) -> Difference:
    seeds = sorted(set(aspect.scores[name]) & set(aspect.scores[reference]))
    ours, theirs = ([aspect.scores[who][seed] for seed in seeds] for who in (name, reference))
    sign = 1 if metric.higher_is_better else -1
    if len(seeds) < 2:
        gain = sign * (ours[0] - theirs[0]) if seeds else math.nan
        return Difference(name, aspect, len(seeds), gain, math.nan, UNTOLD)
    mean, error = paired(ours, theirs)
    return Difference(name, aspect, len(seeds), sign * mean, error, _word(ours, theirs, metric))


def _word(ours: Sequence[float], theirs: Sequence[float], metric: Metric) -> str:
    """What may be said of a difference.

    >>> accuracy = Metric("accuracy")
    >>> _word([90.0, 90.2, 90.1], [90.1, 90.1, 90.1], accuracy), _word([90.0, 95.0, 85.0], [90.0] * 3, accuracy)
    ('level with', 'cannot be told from')
    """
    if len(ours) < FEWEST:
        return UNTOLD
    beyond = beyond_noise(ours, theirs) * (1 if metric.higher_is_better else -1)
    if beyond:
        return AHEAD if beyond > 0 else BEHIND
    mean, error = paired(ours, theirs)
    return LEVEL if abs(mean) + ERRORS * error <= SMALL * (metric.high - metric.low) else UNTOLD


def _signed(value: float, metric: Metric) -> str:
    """A gain as text; where lower scores are better a sign would mislead.

    >>> _signed(-2.0, Metric("accuracy")), _signed(-2.0, Metric("angle", "°", higher_is_better=False))
    ('−2.00 %', '2.00° worse')
    """
    shown = metric.with_unit(abs(value))
    if not metric.higher_is_better:
        return f"{shown} {'better' if value > 0 else 'worse'}"
    sign = "−" if value < 0 and float(metric.text(abs(value))) else "+" if float(metric.text(abs(value))) else "±"
    return f"{sign}{shown}"


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _headline(name: str, reference: str, differences: Sequence[Difference], metric: Metric) -> str:
    mine = [d for d in differences if d.name == name]
    if all(d.word == UNTOLD for d in mine):
        apart = ", ".join(f"{_signed(d.gain, metric)} {d.aspect.where}" for d in mine)
        return f"Whether {name} helps here cannot be told with {_seeds(mine[0].seeds)}: {apart}."
    if len({d.word for d in mine}) == 1 and mine[0].word == LEVEL:
        return f"{name} is level with {reference} {_and([d.aspect.where for d in mine])}."
    parts: list[str] = []
    for d in (d for d in mine if d.word != UNTOLD):
        who = f"{d.word} {reference} " if not parts else f"{d.word.removesuffix(' of').removesuffix(' with')} "
        size = "" if d.word == LEVEL else f" ({_signed(d.gain, metric)})"
        parts.append(f"{who}{d.aspect.where}{size}")
    open_ones = [f"{d.aspect.where} ({_signed(d.gain, metric)})" for d in mine if d.word == UNTOLD]
    rest = f"; {_and(open_ones)} {_seeds(mine[0].seeds)} cannot tell" if open_ones else ""
    return f"{name} is {_and(parts)}{rest}."


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _alone(name: str, aspects: Sequence[Aspect], metric: Metric) -> str:
    scores = [f"{metric.with_unit(aspect.mean(name))} {aspect.where}" for aspect in aspects]
    return f"{name} reaches {_and(scores)}; name two methods or more to compare."


def _sentence(name: str, reference: str, differences: Sequence[Difference], metric: Metric) -> str:
    """All aspects of one method in one sentence."""
    clauses = []
    for d in (d for d in differences if d.name == name):
        score, other = metric.with_unit(d.aspect.mean(name)), metric.text(d.aspect.mean(reference))
        noise = f", {abs(d.gain) / d.error:.1f} standard errors" if d.error and math.isfinite(d.error) else ""
        if d.word == UNTOLD:
            why = f"which {_seeds(d.seeds)} cannot tell from chance"
            told = f"{_signed(d.gain, metric)} against {reference}'s {other}{noise}, {why}"
        elif d.word == LEVEL:
            told = f"level with {reference}'s {other} ({_signed(d.gain, metric)}{noise})"
        else:
            told = f"{d.word} {reference}'s {other} by {metric.with_unit(abs(d.gain))}{noise}"
        clauses.append(f"{d.aspect.where} {score}, {told}")
    return f"{name}: {'; '.join(clauses)}."


def _best(aspect: Aspect, differences: Sequence[Difference], reference: str, metric: Metric) -> str:
    """Who has the best mean in an aspect, and who cannot be told from them."""
    if len(aspect.scores) < 3:  # of two everything is said
        return ""
    top = metric.best(aspect.mean(name) for name in aspect.scores)
    first = next(name for name in aspect.scores if aspect.mean(name) == top)
    rivals = [_difference(name, first, aspect, metric) for name in aspect.scores if name != first]
    near = [d.name for d in rivals if d.word in (LEVEL, UNTOLD)]
    whom = f", and {_and(near)} cannot be told from it" if near else ", ahead of all others"
    return f"The best mean {aspect.where} is {first}'s{whom}."


def _cost(run_groups: Sequence[Group], reference: str) -> list[str]:
    seconds = {g.name: [r["seconds_per_step"] for r in g.results if r.get("seconds_per_step")] for g in run_groups}
    means = {name: math.fsum(values) / len(values) for name, values in seconds.items() if values}
    if reference not in means or len(means) < 2:
        return []
    ratios = [f"{name} {value / means[reference]:.2f}" for name, value in means.items() if name != reference]
    how = "as timed while the runs were made, whatever else the machine did"
    return [f"A training step took, in units of one of {reference}: {', '.join(ratios)} ({how})."]


def _limits(records: Sequence[RunRecord], metric: Metric, differences: Sequence[Difference]) -> str:
    """What the numbers cannot say: other pictures, and many comparisons."""
    home = records[0].measures.home
    pictures = records[0].final.counts.get(home, 0) if records[0].final else 0
    parts = []
    if pictures and metric.per_picture and metric.unit == "%" and metric.high == 100:
        share = min(max(records[0].summary().home / 100, 0.5 / pictures), 1 - 0.5 / pictures)
        error = 100 * math.sqrt(share * (1 - share) / pictures)
        parts.append(
            "The seeds say how much chance in training matters, not how much the choice of test pictures does: "
            f"home has {pictures} of them, and with {pictures} others each score would move by about "
            f"{metric.with_unit(error, 1)}."
        )
    told = sum(d.word in (AHEAD, BEHIND) for d in differences)
    if told and len(differences) > 5:
        parts.append(f"Of {len(differences)} comparisons {told} passed three standard errors; one may do so by chance.")
    if records[0].measures.splits("shift"):
        parts.append("No shift was used to choose a setting.")
    return " ".join(parts)
