"""Fig. 6 of the paper: the main metric at each severity of a corruption."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from ftp.lab.figures._labels import column
from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import number, plain
from ftp.lab.figures.template import MARGIN, Style, axis, faint, layout, note, styles
from ftp.lab.record import CORRUPTIONS, SEVERITIES, LabError, RunRecord
from ftp.lab.registry import unknown
from ftp.lab.table import Group, Spread, called, groups, spread

LEVELS = (0, *SEVERITIES)  # 0 is the clean picture
HEIGHT = 480
FEW = 4  # methods; the bands of more would hide each other


def kinds(runs: Sequence[RunRecord]) -> list[str]:
    """The kinds of corruption that all runs have.

    >>> from ftp.lab.figures.data import example
    >>> kinds([example()])
    ['fog', 'defocus_blur', 'gaussian_noise', 'brightness']
    """
    pairs = [pair for group in groups(runs) for pair in zip(group.records, group.results, strict=True)]
    for run, result in pairs:
        if not result["corruptions"]:
            raise LabError(f"{called(run)} was not tested on corruptions; choose runs that were")
    shared = [kind for kind in pairs[0][1]["corruptions"] if all(kind in result["corruptions"] for _, result in pairs)]
    if not shared:
        raise LabError("the runs were tested on different corruptions; choose runs that share at least one")
    return shared


def curves(runs: Sequence[RunRecord], kind: str | None = None) -> list[tuple[Group, list[Spread]]]:
    """For each group the main metric at severity 0 to 5 over seeds; without a kind, the mean over the paper's four."""
    shown = _chosen(runs, kind)
    out = []
    for group in groups(runs):
        lines = [
            [result["id"], *(_mean([result["corruptions"][k][s - 1] for k in shown]) for s in SEVERITIES)]
            for result in group.results
        ]
        out.append((group, [spread(values) for values in zip(*lines, strict=True)]))
    return out


def table(runs: Sequence[RunRecord], *, kind: str | None = None) -> Lines:
    """One line per method and severity: mean and standard deviation of the main metric over seeds.

    >>> from ftp.lab.figures.data import example
    >>> table([example()], kind="fog")[5]
    {'method': 'FTP', 'severity': 5, 'accuracy': 86.0, 'std': None, 'seeds': 1}
    """
    return [
        {"method": group.name, "severity": level}
        | {group.records[0].measures.main.name: number(value.mean), "std": number(value.std)}
        | {"seeds": len(group.records)}
        for group, values in curves(runs, kind)
        for level, value in zip(LEVELS, values, strict=True)
    ]


@figure(
    "severity_curves",
    title="Score against severity",
    question="How fast does each method lose as pictures get worse?",
    needs="many",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False, kind: str | None = None) -> go.Figure:
    """A line per method with a band of one standard deviation over seeds.

    >>> from ftp.lab.figures.data import example
    >>> draw([example()]).data[0].y
    (97.0, 95.0, 94.0, 92.0, 89.0, 86.0)
    """
    by_group = curves(runs, kind)
    looks = styles([group for group, _ in by_group])
    solid = 0.15 if len(by_group) <= FEW else 0.04
    bands = [_band(values, s, dark, solid) for (_, values), s in zip(by_group, looks, strict=True) if _spread(values)]
    unit = by_group[0][0].records[0].measures.main.unit
    lines = [_line(values, s, dark, unit) for (_, values), s in zip(by_group, looks, strict=True)]
    names = ", ".join(name.replace("_", " ") for name in _chosen(runs, kind))
    subtitle = plain(names) + (": mean ± 1 std over seeds" if bands else ": mean" if not kind else "")
    ys = [v.mean + side * (v.std if math.isfinite(v.std) else 0) for _, vs in by_group for v in vs for side in (-1, 1)]
    ys = [y for y in ys if math.isfinite(y)]
    if not ys:
        raise LabError("no score of these runs is a number; choose other runs")
    low, high = min(ys), max(ys)
    metric = by_group[0][0].records[0].measures.main
    room = max(0.04 * (high - low), 0.005 * (metric.high - metric.low))
    look = layout(f"{metric.title} against severity", subtitle, dark, height=HEIGHT)
    look["margin"] = {**MARGIN, "r": 30 + 7.5 * max(len(s.name) for s in looks), "autoexpand": False}
    look["xaxis"] = axis("severity of the corruption", dark, range=[-0.15, 5.15], tickvals=list(LEVELS))
    look["xaxis"] |= {"ticktext": ["clean", *map(str, SEVERITIES)]}
    look["yaxis"] = axis(metric.axis, dark, range=[low - room, high + room])
    look["annotations"] = _names([values[-1].mean for _, values in by_group], [s.name for s in looks], look, dark)
    return go.Figure([*bands, *lines], look)


def _chosen(runs: Sequence[RunRecord], kind: str | None) -> list[str]:
    known = kinds(runs)
    if kind is not None and kind not in known:
        raise LabError(unknown("kind", kind, known))
    four = [k for k in CORRUPTIONS if k in known]
    return [kind] if kind else four or known


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [v for v in values if v is not None]
    return math.fsum(numbers) / len(numbers) if len(numbers) == len(values) else None


def _spread(values: Sequence[Spread]) -> bool:
    return all(math.isfinite(v.mean) and math.isfinite(v.std) for v in values)


def _line(values: Sequence[Spread], style: Style, dark: bool, unit: str) -> go.Scatter:
    color = style.color(dark)
    return go.Scatter(
        name=style.name,
        x=list(LEVELS),
        y=[number(v.mean) for v in values],
        customdata=[number(v.std) or 0.0 for v in values],
        mode="lines+markers",
        line={"color": color, "dash": style.dash, "width": 2.2},
        marker={"color": color, "symbol": style.marker, "size": 8},
        hovertemplate="<b>%{fullData.name}</b><br>severity %{x}<br>%{y:.2f} "
        + f"{unit} (± %{{customdata:.2f}})<extra></extra>",
    )


def _band(values: Sequence[Spread], style: Style, dark: bool, solid: float) -> go.Scatter:
    return go.Scatter(
        name=f"{style.name}, spread",
        x=[*LEVELS, *LEVELS[::-1]],
        y=[v.mean + v.std for v in values] + [v.mean - v.std for v in values[::-1]],
        fill="toself",
        fillcolor=faint(style.color(dark), solid),
        mode="lines",
        line={"width": 0},
        hoverinfo="skip",
    )


def _names(
    ends: list[float], names: list[str], look: dict[str, dict[str, list[float]]], dark: bool
) -> list[dict[str, object]]:
    """Names at the right ends of the lines, apart from each other."""
    finite = [(y, name) for y, name in zip(ends, names, strict=True) if math.isfinite(y)]
    low, high = look["yaxis"]["range"]
    inside = HEIGHT - MARGIN["t"] - MARGIN["b"]
    pixels = [(y - low) / (high - low) * inside for y, _ in finite]
    return [
        note(5.15, y, name, dark, showarrow=True, ax=14, ay=before - after, xanchor="left", standoff=2)
        for (y, name), before, after in zip(finite, pixels, column(pixels, 0, inside), strict=True)
    ]
