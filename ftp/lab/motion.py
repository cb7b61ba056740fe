"""Figures that one can move: a slider, a choice and a play button, all inside the figure.

They need no kernel and no network: every position is computed beforehand and kept in the figure, so that a notebook
which was only opened can be played with, and one that is run again gives the same figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ftp.lab.figures.template import MARGIN

BELOW, LINE = 56, 22  # pixels for a slider under the axes, and for a line of words above them


def slide(
    fig: Any,
    name: str,
    steps: Mapping[str, Mapping[str, Sequence[Any]]],
    traces: Sequence[int],
    *,
    words: Mapping[str, str] | None = None,
    start: int = 0,
) -> Any:
    """Put a slider under a figure, and the figure at its first position; returns the figure.

    steps: for each label the new attributes of the traces, a value for each trace, None where it has no such
    attribute. words: for each label a line that stands above the axes.

    >>> from ftp.lab.lesson import figure
    >>> fig = figure("A title")
    >>> dot = fig.add_scatter(x=[0], y=[0])
    >>> moved = slide(fig, "x", {"1": {"x": [[1]]}, "2": {"x": [[2]]}}, [0], start=1)
    >>> moved.data[0].x, moved.layout.sliders[0].currentvalue.prefix
    ((2,), 'x = ')
    """
    labels = list(steps)
    lines = dict(words or {})
    if lines:
        place = {"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        fig.add_annotation(text=lines[labels[start]], showarrow=False, align="left", **place)
        fig.update_layout(
            margin_t=(fig.layout.margin.t or MARGIN["t"]) + LINE, height=(fig.layout.height or 440) + LINE
        )
    at = len(fig.layout.annotations) - 1
    entries = []
    for label in labels:
        layout = {f"annotations[{at}].text": lines[label]} if lines else {}
        entries.append({"label": label, "method": "update", "args": [dict(steps[label]), layout, list(traces)]})
    for attribute, values in steps[labels[start]].items():
        for trace, value in zip(traces, values, strict=True):
            if value is not None:
                fig.data[trace][attribute] = value
    under = {"x": 0, "len": 1, "y": 0, "yanchor": "top", "pad": {"t": 44, "b": 0}}
    current = {"prefix": f"{name} = " if not lines else f"{name}: ", "xanchor": "left"}
    fig.update_layout(sliders=[{"active": start, "steps": entries, "currentvalue": current, **under}])
    return _room(fig)


def choose(fig: Any, options: Mapping[str, Iterable[int]], always: Iterable[int] = ()) -> Any:
    """Put a list above a figure that shows the traces of one option at a time, and those that are always there.

    >>> from ftp.lab.lesson import figure
    >>> fig = figure("A title").add_scatter(y=[1]).add_scatter(y=[2])
    >>> choose(fig, {"both": [0, 1], "second": [1]}).layout.updatemenus[0].buttons[1].args
    ({'visible': [False, True]},)
    """
    fixed, buttons = set(always), []
    for label, traces in options.items():
        shown = fixed | set(traces)
        visible = [index in shown for index in range(len(fig.data))]
        buttons.append({"label": label, "method": "restyle", "args": [{"visible": visible}]})
    place = {"x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "pad": {"b": 6}}
    fig.update_layout(updatemenus=[{"buttons": buttons, "showactive": True, **place}])
    return fig


def play(fig: Any, frames: Mapping[str, Sequence[Mapping[str, Any]]], milliseconds: int = 80) -> Any:
    """Give a figure a button that plays its frames, one that stops, and a slider that shows where it is.

    frames: for each label what changes of the traces, from the first trace on.

    >>> from ftp.lab.lesson import figure
    >>> fig = figure("A title").add_scatter(y=[0])
    >>> len(play(fig, {"1": [{"y": [1]}], "2": [{"y": [2]}]}).frames)
    2
    """
    import plotly.graph_objects as go

    fig.frames = [go.Frame(name=label, data=[dict(change) for change in changes]) for label, changes in frames.items()]
    run = {"frame": {"duration": milliseconds, "redraw": False}, "transition": {"duration": 0}, "fromcurrent": True}
    halt = {"frame": {"duration": 0, "redraw": False}, "mode": "immediate"}
    buttons = [
        {"label": "▶ play", "method": "animate", "args": [None, run]},
        {"label": "❚❚ stop", "method": "animate", "args": [[None], halt]},
    ]
    menu = {"type": "buttons", "direction": "left", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"}
    entries = [{"label": label, "method": "animate", "args": [[label], halt]} for label in frames]
    under = {"x": 0, "len": 1, "y": 0, "yanchor": "top", "pad": {"t": 44, "b": 0}}
    current = {"prefix": "step ", "xanchor": "left"}
    fig.update_layout(
        updatemenus=[{"buttons": buttons, "showactive": False, "pad": {"b": 6}, **menu}],
        sliders=[{"steps": entries, "currentvalue": current, **under}],
    )
    return _room(fig)


def _room(fig: Any) -> Any:
    below = fig.layout.margin.b if fig.layout.margin.b is not None else MARGIN["b"]
    fig.update_layout(margin_b=below + BELOW, height=(fig.layout.height or 440) + BELOW)
    return fig
