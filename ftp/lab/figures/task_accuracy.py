"""Every old task over time, method by method: the columns of R."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from ftp.lab.continual import tasks_of
from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import in_tasks_only, plain
from ftp.lab.figures.template import MARGIN, axis, depth_colors, layout, note
from ftp.lab.record import RunRecord
from ftp.lab.table import groups, spread

ACROSS, HIGH, GAP = 3, 240, 0.16  # pictures in a row, the pixels of each, and the space between two rows of them


def table(runs: Sequence[RunRecord]) -> Lines:
    """One line per method, task and time: the score, mean over seeds.

    >>> from ftp.lab.figures.data import example_in_tasks
    >>> table([example_in_tasks()])[1]
    {'method': 'FTP', 'task': 'first', 'after': 'second', 'number': 2, 'score': 80.0, 'std': None}
    """
    lines: Lines = []
    for group in groups(in_tasks_only(runs)):
        many = [tasks_of(run) for run in group.records]
        for n, task in enumerate(many[0].names):
            for i in range(n, len(many[0].names)):
                score = spread(tasks.matrix[i][n] for tasks in many)
                std = score.std if math.isfinite(score.std) else None
                place = {"method": group.name, "task": task, "after": many[0].names[i], "number": i + 1}
                lines.append({**place, "score": score.mean, "std": std})
    return lines


@figure(
    "task_accuracy",
    title="Each task, from when it was learned",
    question="Which methods keep the first tasks while they learn the last?",
    needs="task runs",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False) -> go.Figure:
    """A small picture per method, a line per task: early tasks dark, late ones light.

    >>> from ftp.lab.figures.data import example_in_tasks
    >>> len(draw([example_in_tasks("finetune"), example_in_tasks()]).data)
    6
    """
    lines, metric = table(runs), in_tasks_only(runs)[0].measures.main
    methods = list(dict.fromkeys(str(line["method"]) for line in lines))
    tasks = list(dict.fromkeys(str(line["task"]) for line in lines))
    colors = depth_colors(len(tasks), dark)
    across, down = min(ACROSS, len(methods)), math.ceil(len(methods) / ACROSS)
    look = layout(
        "Each task, from when it was learned", f"{metric.axis}, mean over seeds; early tasks dark", dark,
        height=MARGIN["t"] + MARGIN["b"] + HIGH * down,
    )  # fmt: skip
    traces, notes = [], []
    for k, method in enumerate(methods):
        number = str(k + 1) if k else ""
        left, each = (k % across) / across, (1 + GAP) / down
        wide = [left + (0.03 if k % across else 0), left + 1 / across - 0.01]
        high = [1 - (k // across + 1) * each + GAP, 1 - (k // across) * each - 0.04]
        ticks = {"dtick": max(1, round(len(tasks) / 5)), "tick0": 1, "range": [0.6, len(tasks) + 0.4]}
        last = k + across >= len(methods)
        look[f"xaxis{number}"] = axis("tasks learned" if last else "", dark, domain=wide, anchor=f"y{number}", **ticks)
        look[f"yaxis{number}"] = axis("", dark, domain=high, anchor=f"x{number}", range=_range(lines))
        if k % across:
            look[f"yaxis{number}"]["showticklabels"] = False
        place = {"xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom"}
        notes.append(note(sum(wide) / 2, high[1], f"<b>{plain(method)}</b>", dark, **place))
        for task, color in zip(tasks, colors, strict=True):
            mine = [line for line in lines if line["method"] == method and line["task"] == task]
            traces.append(
                go.Scatter(
                    name=plain(f"{method}: {task}"),
                    x=[line["number"] for line in mine],
                    y=[line["score"] for line in mine],
                    mode="lines+markers",
                    line={"color": color, "width": 2},
                    marker={"color": color, "size": 5},
                    xaxis=f"x{number}",
                    yaxis=f"y{number}",
                    hovertemplate="<b>%{fullData.name}</b><br>after %{x} tasks: %{y:.1f} "
                    + f"{metric.unit}<extra></extra>",
                )
            )
    return go.Figure(traces, look | {"annotations": notes})


def _range(lines: Lines) -> list[float]:
    values = [float(line["score"]) for line in lines]
    room = 0.05 * (max(values) - min(values)) or 1.0
    return [min(values) - room, max(values) + room]
