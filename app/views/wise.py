"""WiSE: glide from the pre-trained to the fine-tuned weights, and watch ID and OOD accuracy change."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app import run_chooser, widgets
from app.components.wise import Way, scrubber
from app.supervisor import supervisor
from app.world import current
from ftp.lab import noise
from ftp.lab.alpha import from_dict
from ftp.lab.figures import WiseCurve
from ftp.lab.figures.template import style
from ftp.lab.figures.wise_curve import table
from ftp.lab.jobs import Order
from ftp.lab.record import RunRecord
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.summary import Metric, average
from ftp.lab.worlds import World

TITLE = "Between pre-trained and fine-tuned (WiSE)"
QUESTION = "Is there a better network on the straight way from W₀ to W?"
# formulas are not to be broken across lines
MIXED = "W₀ + α\u00a0(W\u00a0−\u00a0W₀)"
PICTURE = f"WiSE mixes two networks weight by weight: **{MIXED}**. {{ends}} **Move α**, or drag along a curve."
AT = "α\u00a0=\u00a0"
NEW_HEAD = (
    f"At {AT}0 it is the pre-trained body, at {AT}1 the fine-tuned network; the head is the fine-tuned one all along."
)
WHOLE = (
    f"At {AT}0 it is the pre-trained network with its own head, at {AT}1 the fine-tuned one; the head is mixed, too."
)
GUESSES = ("At the start, α = 0", "In between", "At the end, α = 1")
START = 0.5
LINK = {"alpha": (0.0, 1.0)}


def misfit(world: World) -> str:
    return "" if has_extra("wise", world.name) else f"No walk between two networks was recorded in {world.title}"


def render() -> None:
    recorded = extra("wise", current().name)
    curves = [curve_of(row) for row in recorded["curves"]]
    seeds = sorted({curve.seed for curve in curves})
    left, right = st.columns([1, 3], gap="medium")
    with left:
        guess = widgets.predict("wise_guess", "Fine-tuning: where on the way is OOD best?", GUESSES)
        seed = run_chooser.seed_of(seeds)
        chosen = run_chooser.choose()
        st.markdown(PICTURE.format(ends=NEW_HEAD if current().unanchored else WHOLE))
    your_curve = _your_curve(chosen) if chosen else None
    ways = [way_of([c for c in runs if seed in (None, c.seed)]) for runs in by_method(curves).values()]
    with right:
        alpha = round(scrubber(ways, _start(), your_curve, widgets.waits(guess)), 3)
        if guess:
            best = [best_of(runs) for runs in by_method(curves).values()]
            widgets.answer(f"{mark(guess, best[0])}: {answer(best)}")
        else:
            widgets.answer("Make your guess, move α, and the answer stands here in words.")
        st.caption(_standing(recorded["images"], seeds, seed))
    if chosen:
        order, about = Order("wise", chosen.run_id), "21 points on the line"
        run_chooser.ask(order, order.path(supervisor().store).exists, "Compute the curve of this run", about)
    widgets.data_table(table([*curves, *([your_curve] if your_curve else [])]), "wise")
    widgets.remember({"alpha": f"{alpha:g}"}, {"alpha": f"{START:g}"})
    settings: dict[str, Any] = {"alpha": f"{alpha:g}", "seed": seed, "run": chosen.run_id if chosen else None}
    lessons = ("06", "03") if current().unanchored else ("14", "06")
    widgets.sharing("wise", settings, python_of(alpha, chosen, current().name), run_chooser.lesson(*lessons))


def _standing(images: int, seeds: Sequence[int], seed: int | None) -> str:
    """What the dots stand on."""
    if seed is not None or len(seeds) == 1:
        one = seeds[0] if seed is None else seed
        who = f"Recorded runs of seed {one} alone, which cannot tell what is better"
    else:
        who = f"Mean of {len(seeds)} seeds trained on one machine, the bands one standard deviation of OOD"
    return f"{who}; {images} images of each set at every dot. The line joins the dots: between them numbers have a ≈."


def by_method(curves: Iterable[WiseCurve]) -> dict[str, list[WiseCurve]]:
    """The curves of each method, in the order in which they come."""
    curves_of: dict[str, list[WiseCurve]] = {}
    for curve in curves:
        curves_of.setdefault(curve.method, []).append(curve)
    return curves_of


def way_of(curves: Sequence[WiseCurve]) -> Way:
    """The mean of some curves of one method at each alpha, and their spread.

    >>> a, b = (WiseCurve("0" * 16, "ftp", (0.0, 1.0), (90.0, home), (80.0, 70.0)) for home in (96.0, 98.0))
    >>> way = way_of([a, b])
    >>> way.mean.id, way.spread["ood"], way_of([a]).spread
    ((90.0, 97.0), (0.0, 0.0), None)
    """
    columns = {"id": [c.id for c in curves], "ood": [c.ood_avg for c in curves]}
    at = {name: list(zip(*rows, strict=True)) for name, rows in columns.items()}
    mean = {name: tuple(map(average, values)) for name, values in at.items()}
    spread = {name: tuple(map(statistics.stdev, values)) for name, values in at.items()} if len(curves) > 1 else None
    bare = replace(curves[0], val=(), val_error=(), shifts={})  # of which no mean was taken
    return Way(replace(bare, id=mean["id"], ood_avg=mean["ood"]), spread)


@dataclass(frozen=True)
class Best:
    """The best point of a method for the shifts, on the mean over seeds, against the two ends of its way.

    above_start, above_end: 1 if it is better than that end beyond the noise of the seeds, else 0.
    """

    method: str
    alpha: float
    home: float
    ood: float
    gain: float  # over the end, in points, and its standard error
    error: float
    above_start: int
    above_end: int
    seeds: int
    metric: Metric


def best_of(curves: Sequence[WiseCurve]) -> Best:
    """Where on the way OOD is best, and whether that is more than the noise of the seeds."""
    metric, mean = curves[0].metric, way_of(curves).mean
    place = mean.ood_avg.index(metric.best(mean.ood_avg))
    best, start, end = ([curve.ood_avg[i] for curve in curves] for i in (place, 0, -1))
    gain, error = noise.paired(best, end) if len(curves) > 1 else (best[0] - end[0], math.nan)
    ends = (noise.ahead(best, start, metric), noise.ahead(best, end, metric))
    numbers = (mean.alphas[place], mean.id[place], mean.ood_avg[place], abs(gain), error)
    return Best(curves[0].method, *numbers, *ends, len(curves), metric)


def mark(guess: str, best: Best) -> str:
    """Whether the guess was right; an end that is about as good as the best point is as good as right."""
    place = 0 if best.alpha == 0 else 2 if best.alpha == 1 else 1
    level = {0: not best.above_start, 2: not best.above_end}
    chosen = GUESSES.index(guess)
    return "Right" if chosen == place else "As good as right" if level.get(chosen) else "Look again"


def curve_of(row: dict[str, Any]) -> WiseCurve:
    """A curve from JSON.

    >>> curve_of({"run_id": "a", "method": "ftp", "alphas": [0], "id": [90], "ood_avg": [80], "seed": 1}).seed
    1
    """
    return from_dict(row)


def answer(best: Sequence[Best]) -> str:
    """The best point of each method against its end, in words; the noise of the seeds decides what is more."""
    said = []
    for point in best:
        name, unit = style(point.method).name, point.metric.unit
        noisy = f": {'more than' if point.above_end else 'about the same, by'} the noise of {point.seeds} seeds"
        error = f" ± {point.error:.1f}" if math.isfinite(point.error) else ""
        gain = f"{point.gain:.1f}{error} points above its end"
        said.append(
            f"{name} is best on the shifts at α = {point.alpha:g} with {point.ood:.1f} {unit} (ID {point.home:.1f} "
            f"{unit}), {gain}{noisy if point.seeds >= noise.FEWEST else ''}."
            if point.alpha < 1
            else f"{name} is best on the shifts at its end, with {point.ood:.1f} {unit}."
        )
    return " ".join(said)


def python_of(alpha: float, record: RunRecord | None, world: str) -> str:
    """The point at this alpha, computed in a notebook cell."""
    settings = f"resolve({widgets.arguments_of(record.settings)})" if record else ""
    call = settings or f'resolve("{world}", "finetune")'
    return f"""from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.wise import wise

with Store("runs.db") as store:
    record = execute({call}, store)  # half a minute, if it is not there yet
    print(wise(record, store, alphas=[0.0, {alpha}, 1.0]))"""


def _start() -> float:
    try:
        alpha = float(st.query_params.get("alpha", START))
    except ValueError:
        return START
    return alpha if math.isfinite(alpha) and 0 <= alpha <= 1 else START


def _your_curve(record: RunRecord) -> WiseCurve | None:
    row = Order("wise", record.run_id).result(supervisor().store)
    return curve_of(row) if row else None
