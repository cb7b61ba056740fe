"""Fig. 3 of the paper: ID and OOD on the straight way from the pre-trained to the fine-tuned weights (WiSE)."""

import math
from collections.abc import Sequence
from itertools import pairwise

import plotly.graph_objects as go

from ftp.lab.figures._labels import Point, beside
from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import WiseCurve, number
from ftp.lab.figures.template import MARGIN, axis, layout, style
from ftp.lab.record import LabError
from ftp.lab.table import title

WIDTH, HEIGHT = 560, 500  # the plot's width is a guess: a page decides it
SIDE = 130  # the right margin, into which labels may reach
INSIDE = HEIGHT - MARGIN["t"] - MARGIN["b"]


def table(curves: Sequence[WiseCurve]) -> Lines:
    """One line per curve and alpha: the main metric at home and its mean over the shifts.

    >>> table([WiseCurve("0" * 16, "ftp", (0.0, 1.0), (90.0, 97.0), (80.0, 87.0))])[1]
    {'run_id': '0000000000000000', 'method': 'FTP', 'seed': 0, 'alpha': 1.0, 'id': 97.0, 'ood_avg': 87.0}
    """
    _check(curves)
    return [
        {"run_id": c.run_id, "method": title(c.method), "seed": c.seed}
        | {"alpha": alpha, "id": number(accuracy), "ood_avg": number(ood)}
        for c in curves
        for alpha, accuracy, ood in zip(c.alphas, c.id, c.ood_avg, strict=True)
    ]


@figure(
    "wise_curve",
    title="Between pre-trained and fine-tuned (WiSE)",
    question="Is there a better point on the way from W₀ to W?",
    needs="wise",
    table=table,
)
def draw(curves: Sequence[WiseCurve], *, dark: bool = False) -> go.Figure:
    """A line per run from alpha = 0, the pre-trained weights, to alpha = 1, the fine-tuned ones.

    >>> curve = WiseCurve("0" * 16, "ftp", (0.0, 0.5, 1.0), (90.0, 96.0, 97.0), (80.0, 88.0, 87.0))
    >>> [note.text for note in draw([curve]).layout.annotations]
    ['α = 0, pre-trained', 'FTP, α = 1']
    """
    _check(curves)
    traces = [_line(curve, dark) for curve in curves]
    points = [point for curve in curves for point in _known(curve).values()]
    metric = curves[0].metric
    (x0, x1), (y0, y1) = _range([x for x, _ in points]), _range([y for _, y in points])
    look = layout(
        "Between pre-trained and fine-tuned", "weights W₀ + α (W − W₀), from α = 0 to α = 1", dark, height=HEIGHT
    )
    look["margin"] = {**MARGIN, "r": SIDE, "autoexpand": False}
    look["xaxis"] = axis(f"ID {metric.axis}", dark, range=[x0, x1])
    look["yaxis"] = axis(f"OOD {metric.axis}, mean over shifts", dark, range=[y0, y1])

    def pixel(x: float, y: float) -> Point:
        return (x - x0) / (x1 - x0) * WIDTH, (y - y0) / (y1 - y0) * INSIDE

    ways = [[pixel(*p) for p in _known(curve).values()] for curve in curves]
    lines = [pair for way in ways for pair in pairwise(way)]
    look["annotations"] = beside(_labels(curves), pixel, (WIDTH + SIDE - 10, INSIDE), lines, dark)
    return go.Figure(traces, look)


def _check(curves: Sequence[WiseCurve]) -> None:
    for curve in curves:
        if not _known(curve):
            raise LabError(f"the curve of run {curve.run_id} has no points; compute it for some alphas from 0 to 1")


def _line(curve: WiseCurve, dark: bool) -> go.Scatter:
    method_style = style(curve.method)
    color = method_style.color(dark)
    ends = [alpha in (0.0, 1.0) for alpha in curve.alphas]
    return go.Scatter(
        name=f"{method_style.name}, seed {curve.seed}",
        x=[number(v) for v in curve.id],
        y=[number(v) for v in curve.ood_avg],
        text=[f"{alpha:g}" for alpha in curve.alphas],
        mode="lines+markers",
        line={"color": color, "dash": method_style.dash, "width": 2.2},
        marker={
            "color": color,
            "symbol": ["circle-open" if alpha == 0 else method_style.marker for alpha in curve.alphas],
            "size": [14 if end else 7 for end in ends],
            "opacity": 1,
            "line": {"color": color, "width": 2},
        },
        hovertemplate="<b>%{fullData.name}</b><br>α = %{text}<br>"
        + f"ID %{{x:.2f}} {curve.metric.unit}<br>OOD %{{y:.2f}} {curve.metric.unit}<extra></extra>",
    )


def _labels(curves: Sequence[WiseCurve]) -> list[tuple[Point, str]]:
    """Each different start once, and the end of each method's first curve."""
    starts: list[tuple[Point, str]] = []
    ends: list[tuple[Point, str]] = []
    methods = set()
    for curve in curves:
        known = _known(curve)
        if 0.0 in known and all(math.dist(known[0.0], point) > 0.5 for point, _ in starts):
            starts.append((known[0.0], style(curve.method).name))
        if curve.method not in methods and 1.0 in known:
            ends.append((known[1.0], f"{style(curve.method).name}, α = 1"))
        methods.add(curve.method)
    if len(starts) == 1:
        return [(starts[0][0], "α = 0, pre-trained"), *ends]
    # the heads differ, and so do the starts
    return [(point, f"{name}, α = 0") for point, name in starts] + ends


def _known(curve: WiseCurve) -> dict[float, Point]:
    at = dict(zip(curve.alphas, zip(curve.id, curve.ood_avg, strict=True), strict=True))
    return {alpha: point for alpha, point in at.items() if all(map(math.isfinite, point))}


def _range(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    room = max(0.1 * (high - low), 0.5)
    return [low - room, high + room]
