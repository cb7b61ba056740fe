"""One run while it trains: its loss, and its scores at home and on the shifts."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from ftp.lab.figures._labels import column
from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import MOST_POINTS, about, number, plain, steps_of
from ftp.lab.figures.template import MARGIN, axis, faint, layout, note, theme
from ftp.lab.formats import thin
from ftp.lab.record import EvalEvent, RunRecord, StepEvent
from ftp.lab.summary import average

HEIGHT = 560
LOWER, UPPER = (0.0, 0.56), (0.66, 1.0)  # the shares of accuracy and loss
SMOOTH = 0.025  # share of the points on each side that the running mean takes in


def table(run: RunRecord) -> Lines:
    """One line per logged step and per evaluation; what was not measured there is None.

    >>> from ftp.lab.figures.data import example
    >>> table(example())[-1]
    {'step': 3, 'loss': None, 'final': True, 'val': 97.0, 'id': 97.0, 'sketch': 75.0, 'typeset': 90.0}
    """
    names = list(dict.fromkeys(name for e in run.evals for name in e.main))
    empty = dict.fromkeys(names)
    steps = [{"step": p.step, "loss": number(p.loss), "final": False, **empty} for p in steps_of(run)]
    tests = [
        {"step": e.step, "loss": None, "final": e.final, **{name: number(e.main.get(name)) for name in names}}
        for e in run.evals
    ]
    return sorted([*steps, *tests], key=lambda line: (line["step"], line["loss"] is None, line["final"]))


@figure(
    "training",
    title="The run as it trains",
    question="Does it lose on the shifts what it gains on the task?",
    needs="one",
    table=table,
)
def draw(run: RunRecord, *, dark: bool = False) -> go.Figure:
    """The loss above; below it the main metric at home, its mean over the shifts, and each shift as a thin line.

    >>> from ftp.lab.figures.data import example
    >>> [trace.name for trace in draw(example()).data]
    ['loss', 'loss, smoothed', 'ID', 'OOD mean', 'sketch', 'typeset']
    """
    points = steps_of(run)
    colors = theme(dark)
    traces = _losses(points, colors.text)
    path = [e for e in run.evals if not e.final] or list(run.evals)
    metric, others = run.measures.main, run.measures.splits("shift", "task")
    thin_lines = [name for name in others if any(name in e.main for e in path)]
    shifted = any(run.summary(e).shifts for e in path)
    main = {"ID": colors.id, "OOD mean": colors.ood} if shifted else {"ID": colors.id}
    if path:
        traces += [_line(run, name, path, color, 2.6) for name, color in main.items()]
        traces += [_line(run, name, path, colors.ood if shifted else colors.id, 1.1) for name in thin_lines]
    if run.final is not None and run.final not in path:
        traces += [_final(run, name, run.final, color) for name, color in main.items()]
    small = "; stars: the final evaluation, on more pictures" if run.final not in (None, *path) else ""
    look = layout("Training", f"{about(run)}{small}", dark, height=HEIGHT)
    look["margin"] = {**MARGIN, "r": 100, "autoexpand": False}
    end = 1.02 * max(run.settings.steps * len(run.phases), points[-1].step)
    look["xaxis"] = axis("training step", dark, anchor="y2" if path else "y", range=[0, end])
    look["yaxis"] = axis("loss", dark, domain=UPPER if path else (0, 1), rangemode="tozero")
    look["annotations"] = _lost(points, dark)
    if path:
        values = [v for t in traces if t.yaxis == "y2" for v in t.y if v is not None]
        low, high = (min(values), max(values)) if values else (metric.low, metric.high)
        room = max(0.06 * (high - low), 0.005 * (metric.high - metric.low))
        look["yaxis2"] = axis(metric.axis, dark, domain=LOWER, range=[low - room, high + room], anchor="x")
        look["annotations"] += _names(traces, look["yaxis2"]["range"], end if small else None, dark)
    return go.Figure(traces, look)


def _losses(points: Sequence[StepEvent], color: str) -> list[go.Scatter]:
    """The loss as it is, faint, and its running mean."""
    losses = [number(p.loss) for p in points]
    side = round(SMOOTH * len(losses))
    windows = [losses[max(0, i - side) : i + side + 1] for i in range(len(losses))]
    means = [average([v for v in window if v is not None]) for window in windows]
    smooth = [None if loss is None else mean for loss, mean in zip(losses, means, strict=True)]
    rows = thin(list(zip((p.step for p in points), losses, smooth, strict=True)), MOST_POINTS)
    steps = [row[0] for row in rows]
    hover = "step %{x}<br>loss %{y:.4f}<extra>%{fullData.name}</extra>"
    common = {"x": steps, "mode": "lines", "hovertemplate": hover}
    return [
        go.Scatter(name="loss", y=[row[1] for row in rows], line={"color": faint(color, 0.35), "width": 1}, **common),
        go.Scatter(name="loss, smoothed", y=[row[2] for row in rows], line={"color": color, "width": 2.4}, **common),
    ]


def _value(run: RunRecord, name: str, event: EvalEvent) -> float | None:
    summary = run.summary(event)
    return number({"OOD mean": summary.shift_mean, "ID": summary.home}.get(name, event.main.get(name)))


def _line(run: RunRecord, name: str, path: Sequence[EvalEvent], color: str, width: float) -> go.Scatter:
    return go.Scatter(
        name=plain(name),
        x=[e.step for e in path],
        y=[_value(run, name, e) for e in path],
        yaxis="y2",
        mode="lines+markers",
        line={"color": color, "width": width, "dash": "solid" if width > 2 else "dot"},
        marker={"color": color, "size": 7 if width > 2 else 4, "symbol": "square" if name == "OOD mean" else "circle"},
        hovertemplate=f"<b>%{{fullData.name}}</b><br>step %{{x}}<br>%{{y:.2f}} {run.measures.main.unit}<extra></extra>",
    )


def _final(run: RunRecord, name: str, event: EvalEvent, color: str) -> go.Scatter:
    return go.Scatter(
        name=f"{name}, final",
        x=[event.step],
        y=[_value(run, name, event)],
        yaxis="y2",
        mode="markers",
        marker={"color": color, "size": 15, "symbol": "star"},
        hovertemplate=f"<b>%{{fullData.name}}</b><br>%{{y:.2f}} {run.measures.main.unit}<extra></extra>",
    )


def _lost(points: Sequence[StepEvent], dark: bool) -> list[dict[str, object]]:
    """Where the loss stopped being a number."""
    step = next((p.step for p in points if not math.isfinite(p.loss)), None)
    if step is None:
        return []
    where = {"yref": "y domain", "xanchor": "right" if step > points[-1].step / 2 else "left", "yanchor": "top"}
    return [note(step, 1, f"from step {step} on the loss is no number", dark, **where)]


def _names(
    traces: Sequence[go.Scatter], limits: Sequence[float], edge: float | None, dark: bool
) -> list[dict[str, object]]:
    """Names at the right ends of the lines, or at the right edge, so that no star lies on them."""
    ends = []
    for trace in traces:
        known = [(x, y) for x, y in zip(trace.x, trace.y, strict=True) if y is not None]
        if trace.yaxis == "y2" and trace.mode != "markers" and known:
            ends.append((*known[-1], trace.name))
    inside = (HEIGHT - MARGIN["t"] - MARGIN["b"]) * (LOWER[1] - LOWER[0])
    pixels = [(y - limits[0]) / (limits[1] - limits[0]) * inside for _, y, _ in ends]
    bold = {"ID": 600, "OOD mean": 600}
    far, near = (22, 8) if edge is None else (16, 2)
    return [
        note(
            edge or x,
            y,
            name,
            dark,
            yref="y2",
            showarrow=True,
            ax=far,
            ay=before - after,
            xanchor="left",
            standoff=near,
        )
        | {"font": {"size": 13, "color": theme(dark).text, "weight": bold.get(name, 400)}}
        for (x, y, name), before, after in zip(ends, pixels, column(pixels, 0, inside), strict=True)
    ]
