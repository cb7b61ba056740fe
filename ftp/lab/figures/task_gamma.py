"""Fig. 4 of the paper: the mean learned constraint at the end of each task."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from ftp.lab.continual import mean_gamma
from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import in_tasks_only, plain
from ftp.lab.figures.template import MARGIN, axis, layout, styles, theme
from ftp.lab.record import LabError, RunRecord
from ftp.lab.table import Group, groups, spread


def table(runs: Sequence[RunRecord]) -> Lines:
    """One line per method and task: the mean over layers, and over the seeds that keep their points.

    >>> from ftp.lab.figures.data import example_in_tasks
    >>> [(line["task"], round(line["gamma"], 6)) for line in table([example_in_tasks()])]
    [('first', 0.75), ('second', 0.75), ('third', 0.75)]
    """
    return [line for group in _groups(runs) for line in _lines(group)]


@figure(
    "task_gamma",
    title="How long the leashes are, task by task",
    question="Do later tasks get shorter leashes?",
    needs="task runs",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False) -> go.Figure:
    """A line per method that has leashes, from the first task to the last.

    >>> from ftp.lab.figures.data import example_in_tasks
    >>> [trace.name for trace in draw([example_in_tasks("finetune"), example_in_tasks()]).data]
    ['FTP']
    """
    run_groups = _groups(runs)
    traces = []
    for group, style in zip(run_groups, styles(run_groups), strict=True):
        lines, color = _lines(group), style.color(dark)
        bars = [line["std"] or 0.0 for line in lines]
        traces.append(
            go.Scatter(
                name=style.name,
                x=[plain(line["task"]) for line in lines],
                y=[line["gamma"] for line in lines],
                error_y={"array": bars, "color": color, "thickness": 1.2, "width": 3, "visible": any(bars)},
                mode="lines+markers",
                line={"color": color, "dash": style.dash, "width": 2.2},
                marker={"color": color, "symbol": style.marker, "size": 9},
                hovertemplate="<b>%{fullData.name}</b><br>%{x}: γ = %{y:.4f}<extra></extra>",
            )
        )
    seeds = max(line["seeds"] for group in run_groups for line in _lines(group))
    several = f"mean over layers, ± 1 std over {seeds} seeds" if seeds > 1 else "mean over layers, one seed"
    look = layout("Leashes, task by task", f"{several}; each task begins with leashes of no length", dark)
    look["margin"] = {**MARGIN, "b": 90}
    look |= {"showlegend": True, "legend": {"orientation": "h", "x": 0, "y": -0.2, "font": {"color": theme(dark).text}}}
    look["xaxis"] = axis("", dark, type="category")
    look["yaxis"] = axis("mean γ at the end of the task", dark, rangemode="tozero")
    return go.Figure(traces, look)


def _groups(runs: Sequence[RunRecord]) -> list[Group]:
    """The methods that have leashes, by the runs that keep their points."""
    run_groups = [group for group in groups(in_tasks_only(runs)) if any(_ends(run) for run in group.records)]
    if not run_groups:
        raise LabError("none of these runs keeps a constraint γ; choose runs of ftp or ftp_ewc that keep their points")
    return run_groups


def _ends(run: RunRecord) -> list[float]:
    """The mean gamma at the end of each task; nothing for a run that lacks one."""
    ends = [mean_gamma(run, phase) for phase in range(len(run.phases))]
    known = [end for end in ends if end is not None and math.isfinite(end)]
    return known if len(known) == len(ends) else []


def _lines(group: Group) -> Lines:
    ends = [values for run in group.records if (values := _ends(run))]
    out: Lines = []
    for n, task in enumerate(group.records[0].phases):
        gamma = spread(values[n] for values in ends)
        numbers = {"gamma": gamma.mean, "std": gamma.std if math.isfinite(gamma.std) else None, "seeds": len(ends)}
        out.append({"method": group.name, "task": task, "number": n + 1, **numbers})
    return out
