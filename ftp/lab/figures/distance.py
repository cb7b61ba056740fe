"""How far each layer has gone from its pre-trained weights, and how far it was allowed to."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import plain, steps_of
from ftp.lab.figures.template import MARGIN, Style, axis, layout, styles, theme
from ftp.lab.record import LabError, RunRecord
from ftp.lab.table import Group, groups, spread


def table(runs: Sequence[RunRecord]) -> Lines:
    """One line per method and layer: distance and gamma at the end, means over seeds.

    >>> from ftp.lab.figures.data import example
    >>> table([example("finetune")])[0]
    {'method': 'Vanilla FT', 'layer': 'stem.weight', 'distance': 0.30000000000000004, 'std': None, 'gamma': None}
    """
    return [{"method": group.name, **line} for group in _groups(runs) for line in _ends(group)]


@figure(
    "distance",
    title="How far each layer went",
    question="Which layers leave their pre-trained weights, and which does the leash hold back?",
    needs="many",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False) -> go.Figure:
    """A dot per layer and method, and a tick where its leash ends; early layers at the bottom.

    >>> from ftp.lab.figures.data import example
    >>> [trace.name for trace in draw([example("finetune"), example("ftp")]).data]
    ['Vanilla FT', 'FTP', 'γ of FTP']
    """
    run_groups = _groups(runs)
    traces = []
    for group, style in zip(run_groups, styles(run_groups), strict=True):
        lines = _ends(group)
        traces.append(_dots(style, lines, dark))
        if any(line["gamma"] is not None for line in lines):
            traces.append(_ticks(style, lines, dark))
    names = [plain(name) for name in run_groups[0].records[0].layers]
    several = "mean ± 1 std over seeds; " if any(len(group.records) > 1 for group in run_groups) else ""
    look = layout("How far each layer went from W₀", f"{several}early layers at the bottom", dark)
    inside = max(200, 19 * len(names))
    legend = 24 * math.ceil(len(traces) / 4)
    look["height"] = inside + MARGIN["t"] + MARGIN["b"] + 10 + legend
    look["margin"] = {**MARGIN, "l": 24 + 6.4 * max(map(len, names))}
    below = {"orientation": "h", "x": 0, "yanchor": "top", "y": -60 / inside, "font": {"color": theme(dark).text}}
    look |= {"showlegend": True, "legend": below}
    look["xaxis"] = axis("distance from W₀ at the end (MARS norm)", dark, rangemode="tozero")
    small = {"size": 11, "color": theme(dark).text}
    look["yaxis"] = axis("", dark, tickfont=small, type="category", tickmode="linear", dtick=1)
    look["yaxis"] |= {"range": [-0.7, len(names) - 0.3], "categoryorder": "array", "categoryarray": names}
    return go.Figure(traces, look)


def _groups(runs: Sequence[RunRecord]) -> list[Group]:
    run_groups = groups(runs)
    for group in run_groups:
        for run in group.records:
            steps_of(run)
            if run.layers != run_groups[0].records[0].layers:
                raise LabError("the runs have different layers; compare runs of one model")
    return run_groups


def _ends(group: Group) -> Lines:
    out: Lines = []
    for i, layer in enumerate(group.records[0].layers):
        last = [run.points[-1] for run in group.records]
        distance, gamma = spread(p.distance[i] for p in last), spread(p.gamma[i] for p in last)
        numbers = {"distance": distance.mean, "std": distance.std, "gamma": gamma.mean}
        out.append({"layer": layer, **{k: v if math.isfinite(v) else None for k, v in numbers.items()}})
    return out


def _dots(style: Style, lines: Lines, dark: bool) -> go.Scatter:
    color, bars = style.color(dark), [line["std"] or 0.0 for line in lines]
    return go.Scatter(
        name=style.name,
        x=[line["distance"] for line in lines],
        y=[plain(line["layer"]) for line in lines],
        error_x={"array": bars, "color": color, "thickness": 1.2, "width": 0, "visible": any(bars)},
        mode="markers",
        marker={"color": color, "symbol": style.marker, "size": 9, "line": {"color": color, "width": 1}},
        hovertemplate="<b>%{y}</b><br>distance %{x:.4f}<extra>%{fullData.name}</extra>",
    )


def _ticks(style: Style, lines: Lines, dark: bool) -> go.Scatter:
    line = {"color": style.color(dark), "width": 2.5}
    return go.Scatter(
        name=f"γ of {style.name}",
        x=[entry["gamma"] for entry in lines],
        y=[plain(entry["layer"]) for entry in lines],
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 16, "color": style.color(dark), "line": line},
        hovertemplate="<b>%{y}</b><br>γ = %{x:.4f}<extra>%{fullData.name}</extra>",
    )
