"""The MARS projection of one row of two weights, in plain floats, and its picture.

No torch here: the server process stays small. A test holds `project` against `ftp.project_mars`.
"""

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

Point = tuple[float, float]
Figure = dict[str, Any]

# Okabe-Ito, each at least 3 : 1 on the light and on the dark background
BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#858585"
LIMIT = 2.5  # the sliders end at 2; the rest is room for labels
ANCHOR: Point = (0.0, 0.0)
REACH = 1e-9  # 0.7 + 0.3 is not quite 1 in floats; such a row is still within reach


@dataclass(frozen=True)
class Projection:
    """One row before and after: w = w0 + shrink * d, with w0 at the origin and d = w~ - w0."""

    unconstrained: Point
    gamma: float
    l1: float
    shrink: float
    projected: Point

    @property
    def pulled(self) -> bool:
        return self.shrink < 1


def project(x: float, y: float, gamma: float) -> Projection:
    """Pull the point (x, y) to within l1 distance gamma of the origin, Eq. 10.

    Differs from `ftp.project_mars`: no 1e-8 in the denominator; a row within reach never divides.

    >>> project(3.0, -1.0, gamma=1.0).projected
    (0.75, -0.25)
    >>> project(0.25, 0.25, gamma=1.0).pulled
    False
    """
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(gamma) and gamma >= 0):
        raise ValueError(f"point ({x}, {y}), gamma {gamma}: give finite numbers, and gamma >= 0")
    l1 = abs(x) + abs(y)
    shrink = 1.0 if l1 <= gamma + REACH else gamma / l1
    # adding 0.0 turns -0.0 into 0.0, which nobody wants to read
    return Projection((x + 0.0, y + 0.0), gamma, l1, shrink, (shrink * x + 0.0, shrink * y + 0.0))


def sentence(row: Projection) -> str:
    """The answer in words.

    >>> sentence(project(1.5, 0.6, gamma=1.0))
    'The row wanted to go 2.10 away; the leash is 1.00 long, so it is pulled back to 48 % of its way.'
    """
    if row.l1 == 0:
        return "The row stayed at its anchor, so the leash has nothing to do."
    wish = f"The row wanted to go {row.l1:.2f} away; the leash is {row.gamma:.2f} long, so "
    if not row.pulled:
        return wish + "it is within reach and nothing happens."
    if row.gamma == 0:
        return wish + "it is pulled all the way back to its anchor."
    percent = min(99, max(1, round(100 * row.shrink)))  # "100 %" would deny the pull
    return wish + f"it is pulled back to {percent} % of its way."


def table(row: Projection) -> list[dict[str, str | float]]:
    """The picture's numbers, one dict per point."""
    points = {"anchor W₀": ANCHOR, "wanted W̃": row.unconstrained, "kept W": row.projected}
    return [{"point": name, "x": x, "y": y, "l1 distance": abs(x) + abs(y)} for name, (x, y) in points.items()]


def to_csv(row: Projection) -> str:
    """The table as CSV, with the settings in each line so that a file explains itself."""
    settings = {"gamma": row.gamma, "shrink": row.shrink}
    # the symbols are left out: a spreadsheet may not read UTF-8
    lines = [line | settings | {"point": str(line["point"]).split()[0]} for line in table(row)]
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def figure(row: Projection, circle: bool = False) -> Figure:
    """The picture as a plain Plotly dict, so that this module needs no Plotly."""
    g, wanted, kept = row.gamma, row.unconstrained, row.projected
    traces = []
    if circle:
        turns = [2 * math.pi * i / 120 for i in range(121)]
        ring = [(g * math.cos(t), g * math.sin(t)) for t in turns]
        traces.append(_line("l2 circle, same γ", ring, GREY, dash="dash", width=1.5))
    diamond = [(g, 0.0), (0.0, g), (-g, 0.0), (0.0, -g), (g, 0.0)]
    traces.append(_line("reach |x| + |y| ≤ γ", diamond, BLUE, fill="toself", fillcolor="rgba(0, 114, 178, 0.15)"))
    traces.append(_line("leash", [ANCHOR, kept], GREEN, width=4))
    if row.pulled:
        arrow: Figure = {"symbol": "arrow", "angleref": "previous", "size": [0, 15], "standoff": [0, 7]}
        arrow |= {"color": VERMILLION, "opacity": 1, "line": {"width": 0}}
        back = _line("pull-back", [wanted, kept], VERMILLION, dash="dot")
        traces.append(back | {"mode": "lines+markers", "marker": arrow})
    # labels on three different sides of the leash, so that near points stay readable
    out = math.atan2(wanted[1], wanted[0]) if row.l1 else math.pi / 4
    traces.append(_dot("anchor W₀", "W₀", ANCHOR, GREY, "square", out + math.pi))
    traces.append(_dot("wanted W̃", "W̃" if row.pulled else "", wanted, VERMILLION, "circle-open", out))
    beside = math.pi / 2 * round(out / (math.pi / 2) + 1)  # never along an edge of the diamond
    traces.append(_dot("kept W", "W" if row.pulled else "W = W̃", kept, GREEN, "circle", beside))
    return {"data": traces, "layout": _layout()}


def _layout() -> Figure:
    """Square axes that neither zoom nor swallow a phone's scrolling.

    Text has no colour here: the browser gives it the theme's, also when the viewer changes the theme.
    """
    axis = {"range": [-LIMIT, LIMIT], "dtick": 1, "fixedrange": True, "constrain": "domain"}
    axis |= {"zeroline": False, "showline": False, "showgrid": True, "gridcolor": "rgba(133, 133, 133, 0.25)"}
    return {
        "template": "none",  # Streamlit's default template has placeholder colours
        "height": 490,
        # fixed, else the square changes size whenever a legend entry comes or goes
        "margin": {"l": 45, "r": 10, "t": 5, "b": 120, "autoexpand": False},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "xaxis": axis | {"title": {"text": "first weight, x", "standoff": 5}},
        "yaxis": axis | {"title": {"text": "second weight, y", "standoff": 5}, "scaleanchor": "x"},
        "legend": {"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.15, "yanchor": "top"},
        "dragmode": False,
    }


def _line(name: str, points: list[Point], color: str, dash: str = "solid", width: float = 2, **more: Any) -> Figure:
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    style = {"color": color, "dash": dash, "width": width}
    trace = {"type": "scatter", "mode": "lines", "name": name, "x": xs, "y": ys, "line": style, "hoverinfo": "skip"}
    return trace | more


def _dot(name: str, label: str, at: Point, color: str, symbol: str, side: float) -> Figure:
    """One marker, its label on the given side (an angle)."""
    compass = ["middle right", "top right", "top center", "top left"]
    compass += ["middle left", "bottom left", "bottom center", "bottom right"]
    marker = {"color": color, "symbol": symbol, "size": 12, "line": {"width": 3, "color": color}}
    # large and bold: the light theme's chart grey has only 3.7 : 1
    font = {"size": 19, "weight": "bold"}
    text = {"text": [label], "textposition": compass[round(side / (math.pi / 4)) % 8], "textfont": font}
    trace = {"type": "scatter", "mode": "markers+text", "name": name, "x": [at[0]], "y": [at[1]], "marker": marker}
    return trace | text | {"hovertemplate": "%{x:.2f}, %{y:.2f}"}
