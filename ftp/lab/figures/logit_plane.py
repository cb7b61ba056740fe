"""Home against shifts on logit axes, with the line of ordinary models: what stands above it is robust (Taori 2020)."""

from collections.abc import Sequence
from statistics import fmean

import plotly.graph_objects as go

from ftp.lab.figures.data import WiseCurve, plain
from ftp.lab.figures.template import MARGIN, axis, layout, style, theme
from ftp.lab.record import RunRecord, result_of
from ftp.lab.robustness import Line, line_through, logit
from ftp.lab.table import groups, title

TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 35, 50, 65, 80, 90, 95, 98, 99, 99.5, 99.8)
HEIGHT, ROOM = 500, 0.25  # pixels; around the points, in logits


def logit_plane(
    runs: Sequence[RunRecord],
    ordinary: Sequence[RunRecord],
    curves: Sequence[WiseCurve] = (),
    *,
    dark: bool = False,
) -> go.Figure:
    """A dot for each run, open ones for the ordinary models and their line; dotted, the mean WiSE curve of a method.

    >>> from ftp.lab.figures.data import example
    >>> fig = logit_plane([example("ftp")], [example("finetune", seed) for seed in (-300, -150, 0)])
    >>> [trace.name for trace in fig.data]
    ['ordinary models', 'their line', 'FTP']
    """
    line = line_through(ordinary)
    grey = theme(dark).muted
    traces = [_dots("ordinary models", ordinary, grey, "circle-open"), _drawn_line(line, (line.low, line.high), grey)]
    best = max((_pair(run)[0] for run in runs), default=line.high)
    if best > line.high:  # no ordinary model is as good at home: nobody knows whether the line goes on so
        traces.append(_drawn_line(line, (line.high, best), grey, "dash"))
    for group in groups(runs) if runs else []:
        look = style(group.method)
        traces.append(_dots(plain(group.name), group.records, look.color(dark), look.marker))
    for method in dict.fromkeys(curve.method for curve in curves):
        traces.append(_way(method, [curve for curve in curves if curve.method == method], dark))
    metric = ordinary[0].measures.main
    look_of_all = layout("Above the line of ordinary models?", "logit axes; higher is more robust", dark, height=HEIGHT)
    look_of_all |= {"showlegend": True, "legend": {"x": 1.02, "y": 1, "font": {"size": 13}}}
    look_of_all["margin"] = {**MARGIN, "r": 190, "autoexpand": False}
    for name, text, place in (("xaxis", f"ID {metric.axis}", 0), ("yaxis", f"OOD {metric.axis}, mean over shifts", 1)):
        values = [trace.x[i] if place == 0 else trace.y[i] for trace in traces for i in range(len(trace.x))]
        ticks = {"tickvals": [logit(tick / 100) for tick in TICKS], "ticktext": [f"{tick:g}" for tick in TICKS]}
        look_of_all[name] = axis(text, dark, range=[min(values) - ROOM, max(values) + ROOM], **ticks)
    return go.Figure(traces, look_of_all)


def _pair(record: RunRecord) -> tuple[float, float]:
    result = record.result or result_of(record)
    return float(result["id"]), float(result["ood_avg"])


def _dots(name: str, records: Sequence[RunRecord], color: str, marker: str) -> go.Scatter:
    pairs = [_pair(record) for record in records]
    return go.Scatter(
        name=name,
        x=[logit(home / 100) for home, _ in pairs],
        y=[logit(shifted / 100) for _, shifted in pairs],
        customdata=pairs,
        mode="markers",
        marker={"color": color, "symbol": marker, "size": 10, "line": {"color": color, "width": 2}},
        hovertemplate="<b>%{fullData.name}</b><br>ID %{customdata[0]:.1f}<br>OOD %{customdata[1]:.1f}<extra></extra>",
    )


def _drawn_line(line: Line, homes: Sequence[float], color: str, dash: str = "solid") -> go.Scatter:
    heights = [logit(line.expected(home) / 100) for home in homes]
    name, look = "their line" if dash == "solid" else "continued", {"color": color, "dash": dash}
    return go.Scatter(name=name, x=[logit(home / 100) for home in homes], y=heights, mode="lines", line=look)


def _way(method: str, curves: Sequence[WiseCurve], dark: bool) -> go.Scatter:
    home, shifted = ([fmean(at) for at in zip(*rows, strict=True)] for rows in _columns(curves))
    return go.Scatter(
        name=f"{title(method)}, WiSE",
        x=[logit(value / 100) for value in home],
        y=[logit(value / 100) for value in shifted],
        text=[f"α = {alpha:g}" for alpha in curves[0].alphas],
        mode="lines+markers",
        line={"color": style(method).color(dark), "dash": "dot", "width": 2},
        marker={"size": 4},
        hovertemplate="<b>%{fullData.name}</b><br>%{text}<extra></extra>",
    )


def _columns(curves: Sequence[WiseCurve]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [curve.id for curve in curves], [curve.ood_avg for curve in curves]
