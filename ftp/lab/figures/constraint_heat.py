"""All constraints at once: colour is gamma, upward is deeper, rightward is later."""

import plotly.graph_objects as go

from ftp.lab.figures import constraint_growth
from ftp.lab.figures._registry import figure
from ftp.lab.figures.data import MOST_POINTS, about, constrained, number, plain
from ftp.lab.figures.template import MARGIN, axis, colorbar, layout, theme
from ftp.lab.formats import thin
from ftp.lab.record import RunRecord

MOST_NAMES = 60  # more do not fit beside the picture


@figure(
    "constraint_heat",
    title="Constraints over depth and time",
    question="Where in the network, and when, is the leash let out?",
    needs="one",
    table=constraint_growth.table,
)
def draw(run: RunRecord, *, dark: bool = False) -> go.Figure:
    """A heat map of gamma, early layers at the bottom.

    >>> from ftp.lab.figures.data import example
    >>> draw(example()).data[0].y[0]
    'stem.weight'
    """
    shown = constrained(run)
    points = thin(run.points, MOST_POINTS)
    names = [plain(run.layers[i]) for i in shown]
    heat = go.Heatmap(
        name="γ",
        x=[p.step for p in points],
        y=names,
        z=[[number(p.gamma[i]) for p in points] for i in shown],
        colorscale="Viridis",
        colorbar=colorbar("γ", dark),
        hoverongaps=False,
        hovertemplate="<b>%{y}</b><br>step %{x}<br>γ = %{z:.4f}<extra></extra>",
    )
    few = len(names) <= MOST_NAMES
    size = {"height": 480 if not few else max(360, 17 * len(names) + 150)}
    left = 24 + 6.4 * max(map(len, names)) if few else 70
    look = layout("Constraints γ over depth and time", f"{about(run)}; early layers at the bottom", dark, **size)
    look["margin"] = {**MARGIN, "l": left, "r": 90, "autoexpand": False}
    look["xaxis"] = axis("training step", dark, showgrid=False)
    small = {"size": 11, "color": theme(dark).text}
    look["yaxis"] = axis("" if few else "layer, early to late", dark, showgrid=False, tickfont=small, type="category")
    look["yaxis"] |= {"tickmode": "linear", "dtick": 1} if few else {"showticklabels": False, "ticks": ""}
    return go.Figure(heat, look)
