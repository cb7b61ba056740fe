"""Several runs while they train, one over another: the shifts, home, and the loss."""

from collections.abc import Sequence
from dataclasses import replace

import plotly.graph_objects as go

from ftp.lab.figures._labels import column
from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import MOST_POINTS, number, plain
from ftp.lab.figures.template import DASHES, MARGIN, Style, axis, layout, note, style
from ftp.lab.formats import thin
from ftp.lab.record import LabError, RunRecord
from ftp.lab.table import called, differences, title

HEIGHT = 415
EDGES = {**MARGIN, "t": 76, "b": 50}
GAP = 0.07  # between two panels, of the whole
OOD, ID, LOSS = "OOD", "ID", "loss"
Path = list[tuple[int, float | None]]


def names(runs: Sequence[RunRecord]) -> list[str]:
    """A run by its method and by what else tells it from the others that are shown.

    >>> from ftp.lab.figures.data import example
    >>> names([example("finetune"), example("ftp"), example("ftp", seed=1)])
    ['Vanilla FT, seed 0', 'FTP, seed 0', 'FTP, seed 1']
    """
    out = []
    for at, run in enumerate(runs):
        peers = [other for other in runs if other.settings.method == run.settings.method]
        apart = differences([other.settings for other in peers])
        shown = [f"{name} {run.settings.as_dict().get(name)}" for name in apart]
        if not shown and len({other.settings.seed for other in runs}) > 1:
            shown = [f"seed {run.settings.seed}"]
        out.append(run.name or ", ".join([title(run.settings.method), *shown]))
        if out[at] in out[:at]:
            out[at] += f" ({run.run_id[:6]})"
    return out


def paths(run: RunRecord) -> dict[str, Path]:
    """Where a run was at each step: its mean over the shifts, home, and its loss; what it has not is left out."""
    scores = [(e.step, run.summary(e)) for e in run.evals if e.step > 0]
    loss = [(p.step, number(p.loss)) for p in thin(run.points, MOST_POINTS)]
    shifted = [(step, number(summary.shift_mean)) for step, summary in scores if summary.shifts]
    parts: dict[str, Path] = {OOD: shifted, ID: [(step, number(s.home)) for step, s in scores], LOSS: loss}
    return {name: path for name, path in parts.items() if any(value is not None for _, value in path)}


def table(runs: Sequence[RunRecord]) -> Lines:
    """One line per run, quantity and step.

    >>> from ftp.lab.figures.data import example
    >>> table([example()])[0]
    {'run': 'FTP', 'id': '0000000000000000', 'of': 'OOD', 'step': 3, 'value': 82.5}
    """
    return [
        {"run": name, "id": run.run_id, "of": part, "step": step, "value": value}
        for name, run in zip(names(runs), runs, strict=True)
        for part, path in paths(run).items()
        for step, value in path
    ]


@figure(
    "curves",
    title="Runs, one over another",
    question="Where do these runs part while they train?",
    needs="many",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False) -> go.Figure:
    """A line per run in each panel: a method has its colour, runs of one method have different dashes.

    >>> from ftp.lab.figures.data import example
    >>> [trace.name for trace in draw([example("finetune"), example("ftp")]).data[:2]]
    ['Vanilla FT', 'FTP']
    """
    by_run = [paths(run) for run in runs]
    panels = [part for part in (OOD, ID, LOSS) if any(part in path for path in by_run)]
    if not panels:
        raise LabError(f"{called(runs[0])} has no steps yet; choose a run that has begun")
    looks = _looks(runs)
    metric = runs[0].measures.main
    longest = max(len(s.name) for s in looks)
    look = layout(
        "Runs, one over another", f"{metric.axis}; points on the way stand on few pictures", dark, height=HEIGHT
    )
    look["margin"] = {**EDGES, "r": min(260, 40 + 7.2 * longest), "autoexpand": False}
    end = max(run.settings.steps * len(run.phases) for run in runs)
    share = (1 - GAP * (len(panels) - 1)) / len(panels)
    look["annotations"], traces = [], []
    for at, part in enumerate(panels):
        number_of_axis = "" if at == 0 else str(at + 1)
        top = 1 - at * (share + GAP)
        domain = [max(0.0, top - share), top]
        text = LOSS if part == LOSS else f"{part} ({metric.unit})" if metric.unit else part
        values = [v for path in by_run for _, v in path.get(part, ()) if v is not None]
        room = max(0.06 * (max(values) - min(values)), 1e-3)
        limits = [min(values) - room, max(values) + room]
        look[f"yaxis{number_of_axis}"] = axis(text, dark, domain=domain, range=limits)
        for path, s in zip(by_run, looks, strict=True):
            if part in path:
                traces.append(_line(path[part], s, dark, f"y{number_of_axis}", part, metric.unit))
        if at == 0:
            ends = [(path[part], s.name) for path, s in zip(by_run, looks, strict=True) if part in path]
            look["annotations"] = _labels(ends, limits, (domain[1] - domain[0]), end, dark)
    last = f"y{len(panels)}" if len(panels) > 1 else "y"
    look["xaxis"] = axis("training step", dark, range=[0, 1.01 * end], anchor=last)
    return go.Figure(traces, look)


def _looks(runs: Sequence[RunRecord]) -> list[Style]:
    count: dict[str, int] = {}
    out = []
    for run, name in zip(runs, names(runs), strict=True):
        usual = style(run.settings.method)
        at = count[usual.name] = count.get(usual.name, -1) + 1
        dashes = [usual.dash, *(dash for dash in DASHES if dash != usual.dash)]
        out.append(replace(usual, name=plain(name), dash=dashes[at % len(dashes)]))
    return out


def _line(path: Path, look_of: Style, dark: bool, yaxis: str, part: str, unit: str) -> go.Scatter:
    said = f"{part} %{{y:.4f}}" if part == LOSS else f"{part} %{{y:.2f}} {unit}"
    return go.Scatter(
        name=look_of.name,
        x=[step for step, _ in path],
        y=[value for _, value in path],
        yaxis=yaxis,
        mode="lines",
        line={"color": look_of.color(dark), "dash": look_of.dash, "width": 1.4 if part == LOSS else 2.2},
        hovertemplate=f"<b>%{{fullData.name}}</b><br>step %{{x}}<br>{said}<extra></extra>",
    )


def _labels(
    ends: Sequence[tuple[Path, str]], limits: Sequence[float], share: float, end: int, dark: bool
) -> list[dict[str, object]]:
    """The names of the runs beside the ends of their lines in the first panel, none on another."""
    inside = (HEIGHT - EDGES["t"] - EDGES["b"]) * share
    last = [next((step, value) for step, value in reversed(path) if value is not None) for path, _ in ends]
    pixels = [(value - limits[0]) / (limits[1] - limits[0]) * inside for _, value in last]
    heights = column(pixels, 0, inside)
    arrow = {"showarrow": True, "xanchor": "left", "standoff": 3, "ax": 18}
    return [
        note(min(step, end), value, name, dark, yref="y", ay=before - after, **arrow)
        for (step, value), (_, name), before, after in zip(last, ends, pixels, heights, strict=True)
    ]
