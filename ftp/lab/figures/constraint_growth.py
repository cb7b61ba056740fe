"""Fig. 5 of the paper: the constraint of every layer while it is learned."""

import plotly.graph_objects as go

from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import MOST_POINTS, about, constrained, number, plain, steps_of
from ftp.lab.figures.template import MARGIN, axis, colorbar, depth_colors, layout
from ftp.lab.formats import thin
from ftp.lab.record import RunRecord


def table(run: RunRecord) -> Lines:
    """One line per logged step: the step and each layer's gamma.

    >>> from ftp.lab.figures.data import example
    >>> table(example())[0]
    {'step': 1, 'stem.weight': 0.1, 'norm.weight': 0.2, 'norm.bias': 0.30000000000000004, 'body.weight': 0.4}
    """
    shown = constrained(run)
    return [{"step": p.step, **{run.layers[i]: number(p.gamma[i]) for i in shown}} for p in run.points]


@figure(
    "constraint_growth",
    title="How the constraints grow",
    question="How long does each layer's leash γ become, and when?",
    needs="one",
    table=table,
)
def draw(run: RunRecord, *, dark: bool = False) -> go.Figure:
    """One line per layer, early layers dark and late ones light.

    >>> from ftp.lab.figures.data import example
    >>> len(draw(example()).data)  # four layers and the colour bar
    5
    """
    shown = constrained(run)
    colors = depth_colors(len(shown), dark)
    points = thin(steps_of(run), MOST_POINTS)
    steps = [p.step for p in points]
    lines = [
        go.Scatter(
            name=plain(run.layers[i]),
            x=steps,
            y=[number(p.gamma[i]) for p in points],
            mode="lines" if len(points) > 1 else "markers",
            line={"color": color, "width": 1.8},
            marker={"color": color},
            hovertemplate="<b>%{fullData.name}</b><br>step %{x}<br>γ = %{y:.4f}<extra></extra>",
        )
        for i, color in zip(shown, colors, strict=True)
    ]
    scale = [[i / 19, color] for i, color in enumerate(depth_colors(20, dark))]
    ends = {"tickvals": [0.0, 1.0], "ticktext": ["early<br>layers", "late<br>layers"], "ticks": ""}
    bar = colorbar("", dark, **ends)
    # an empty trace: only its colour bar is seen, in place of a legend line per layer
    marker = {"color": [0.0], "cmin": 0, "cmax": 1, "colorscale": scale, "showscale": True, "colorbar": bar}
    legend = go.Scatter(name="depth", x=[None], y=[None], mode="markers", marker=marker, hoverinfo="skip")
    subtitle = f"{about(run)}: {len(shown)} layers"
    look = layout("How the constraints γ grow", subtitle, dark, margin={**MARGIN, "r": 90, "autoexpand": False})
    most = max((y for line in lines for y in line.y if y is not None), default=0.0) or 1.0
    look["xaxis"] = axis("training step", dark, range=[0, 1.01 * max(steps)])
    look["yaxis"] = axis("constraint γ (l1 distance from W₀)", dark, range=[0, 1.06 * most])
    return go.Figure([*lines, legend], look)
