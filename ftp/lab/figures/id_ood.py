"""Every method in the plane of in-distribution and out-of-distribution scores; up and right is better."""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from ftp.lab.figures._labels import Point, beside
from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import number
from ftp.lab.figures.template import MARGIN, Style, axis, layout, note, styles, theme
from ftp.lab.record import LabError, RunRecord
from ftp.lab.summary import Metric, average
from ftp.lab.table import Group, Row, groups, rows

WIDTH, HEIGHT = 560, 500  # the plot's width is a guess: a page decides it


def table(runs: Sequence[RunRecord], *, each: bool = False) -> Lines:
    """One line per method, or per run: ID and OOD in the main metric, and their change against fine-tuning.

    >>> from ftp.lab.figures.data import example
    >>> table([example()], each=True)
    [{'method': 'FTP', 'seed': 0, 'id': 97.0, 'ood_avg': 82.5}]
    """
    if each:
        pairs = [(group.name, result) for group in groups(runs) for result in group.results]
        return [
            {"method": name, "seed": r["seed"], "id": number(r["id"]), "ood_avg": number(r["ood_avg"])}
            for name, r in pairs
        ]
    return [
        {"method": row.name, "seeds": row.seeds, "id": number(row.id.mean), "id_std": number(row.id.std)}
        | {"ood_avg": number(row.ood_avg.mean), "ood_std": number(row.ood_avg.std)}
        | {"id_delta": number(row.id_delta), "ood_delta": number(row.ood_delta)}
        for row in rows(runs)
    ]


@figure(
    "id_ood",
    title="ID against OOD",
    question="Which method keeps the task and the robustness?",
    needs="many",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False, each: bool = False, height: int = HEIGHT) -> go.Figure:
    """A labelled point per method with bars of one standard deviation over seeds; `each` shows every run instead.

    height: in pixels; names keep clear of each other at this height.

    >>> from ftp.lab.figures.data import example
    >>> draw([example("finetune"), example("ftp")]).layout.annotations[-1].text
    'FTP'
    """
    run_groups, table_rows = groups(runs), rows(runs)
    group_styles = styles(run_groups)
    usable = [i for i, r in enumerate(table_rows) if math.isfinite(r.id.mean) and math.isfinite(r.ood_avg.mean)]
    if not usable:
        raise LabError("no run has both an ID and an OOD score; choose runs of a world with shifts")
    if each:
        traces = [_runs(run_groups[i], group_styles[i], dark, table_rows[i].metric) for i in usable]
    else:
        traces = [_mean(table_rows[i], group_styles[i], dark) for i in usable]
    spread = not each and any(len(group.records) > 1 for group in run_groups)
    subtitle = "mean ± 1 std over seeds" if spread else "one point per run"
    metric = table_rows[0].metric
    x_range = _range([x for t in traces for x in _reach(t.x, t.error_x)], metric)
    y_range = _range([y for t in traces for y in _reach(t.y, t.error_y)], metric)
    look = layout("In-distribution against out-of-distribution", subtitle, dark, height=height)
    look["xaxis"] = axis(f"ID {metric.axis}", dark, range=x_range)
    look["yaxis"] = axis(f"OOD {metric.axis}, mean over shifts", dark, range=y_range)
    plain = [i for i in usable if table_rows[i].method == "finetune"]
    if plain:
        which = group_styles[plain[0]].name if len(plain) > 1 else "fine-tuning"
        _reference(look, table_rows[plain[0]], which, dark)
    look["annotations"] = [
        *look.get("annotations", []),
        *_names(traces, look, height - MARGIN["t"] - MARGIN["b"], dark),
    ]
    return go.Figure(traces, look)


def _mean(row: Row, style: Style, dark: bool) -> go.Scatter:
    color = style.color(dark)
    bars = {"color": color, "thickness": 1.5, "width": 4}
    return go.Scatter(
        name=style.name,
        x=[row.id.mean],
        y=[row.ood_avg.mean],
        error_x={"array": [number(row.id.std) or 0.0], "visible": math.isfinite(row.id.std), **bars},
        error_y={"array": [number(row.ood_avg.std) or 0.0], "visible": math.isfinite(row.ood_avg.std), **bars},
        mode="markers",
        marker={"color": color, "symbol": style.marker, "size": 14 if style.marker == "star" else 12},
        hovertemplate=f"<b>%{{fullData.name}}</b><br>{_hover(row.metric)}<extra></extra>",
    )


def _runs(group: Group, style: Style, dark: bool, metric: Metric) -> go.Scatter:
    return go.Scatter(
        name=style.name,
        x=[number(result["id"]) for result in group.results],
        y=[number(result["ood_avg"]) for result in group.results],
        text=[f"seed {result['seed']}" for result in group.results],
        mode="markers",
        marker={"color": style.color(dark), "symbol": style.marker, "size": 11, "opacity": 0.85},
        hovertemplate=f"<b>%{{fullData.name}}</b>, %{{text}}<br>{_hover(metric)}<extra></extra>",
    )


def _hover(metric: Metric) -> str:
    number = f":.{metric.digits}f}} {metric.unit}"
    return f"ID %{{x{number}<br>OOD %{{y{number}"


def _reach(values: Sequence[float | None], bars: go.scatter.ErrorX) -> list[float]:
    size = bars.array[0] if bars.visible else 0.0
    return [v + side * size for v in values if v is not None for side in (-1, 1)]


def _range(values: Sequence[float], metric: Metric) -> list[float]:
    """From the worst to the best: an axis of a metric whose low values are the good ones is turned round."""
    low, high = min(values), max(values)
    room = max(0.12 * (high - low), 0.005 * (metric.high - metric.low))
    ends = [low - room, high + room]
    return ends if metric.higher_is_better else ends[::-1]


def _reference(look: dict[str, Any], plain: Row, name: str, dark: bool) -> None:
    """Dashed lines through plain fine-tuning: right of and above them a method is better."""
    line = {"color": theme(dark).muted, "width": 1.2, "dash": "dash"}
    x, y = plain.id.mean, plain.ood_avg.mean
    look["shapes"] = [
        {"type": "line", "layer": "below", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line},
        {"type": "line", "layer": "below", "y0": y, "y1": y, "xref": "paper", "x0": 0, "x1": 1, "line": line},
    ]
    muted = {"size": 12, "color": theme(dark).muted}
    text = f"↑ more robust than {name}"
    look["annotations"] = [note(0, y, text, dark, xref="paper", xanchor="left", yanchor="bottom", xshift=6, font=muted)]


def _names(traces: Sequence[go.Scatter], look: dict[str, Any], inside: float, dark: bool) -> list[dict[str, Any]]:
    """A name beside each point, clear of the bars and of the reference lines."""
    (x0, x1), (y0, y1) = look["xaxis"]["range"], look["yaxis"]["range"]

    def pixel(x: float, y: float) -> Point:
        return (x - x0) / (x1 - x0) * WIDTH, (y - y0) / (y1 - y0) * inside

    lines = [(pixel(s.get("x0", x0), y0), pixel(s.get("x1", x1), y1)) for s in look.get("shapes", []) if "yref" in s]
    lines += [(pixel(x0, s["y0"]), pixel(x1, s["y1"])) for s in look.get("shapes", []) if "xref" in s]
    labels = []
    for trace in traces:
        points = [(x, y) for x, y in zip(trace.x, trace.y, strict=True) if x is not None and y is not None]
        middle = pixel(average([x for x, _ in points]), average([y for _, y in points]))
        # of several runs the one in their midst
        x, y = min(points, key=lambda point: math.dist(pixel(*point), middle))
        labels.append(((x, y), trace.name))
        lines += [(pixel(*point), pixel(*point)) for point in points]
        xs, ys = _reach([x], trace.error_x), _reach([y], trace.error_y)
        lines += [(pixel(min(xs), y), pixel(max(xs), y)), (pixel(x, min(ys)), pixel(x, max(ys)))]
    return beside(labels, pixel, (WIDTH, inside), lines, dark)
