"""The matrix R of a run in tasks: how well it knows task n after having learned i of them."""

import plotly.graph_objects as go

from ftp.lab.continual import CUT, tasks_of
from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import about, in_tasks_only, plain
from ftp.lab.figures.template import MARGIN, axis, colorbar, layout, theme
from ftp.lab.record import RunRecord

MOST_NUMBERS = 12  # tasks: more numbers do not fit into the squares


def table(run: RunRecord, *, cut: bool = False) -> Lines:
    """One line after each task: the score on every task; what was not learned yet is None.

    >>> from ftp.lab.figures.data import example_in_tasks
    >>> table(example_in_tasks())[1]
    {'after': 'second', 'first': 80.0, 'second': 90.0, 'third': None}
    """
    tasks = tasks_of(in_tasks_only([run])[0])
    rows = tasks.cut if cut else tasks.matrix
    return [
        {"after": name, **{n: row[i] if i < len(row) else None for i, n in enumerate(tasks.names)}}
        for name, row in zip(tasks.names, rows, strict=True)
    ]


@figure(
    "task_matrix",
    title="What is left of each task",
    question="How well does the network know each task after each further one?",
    needs="task run",
    table=table,
)
def draw(run: RunRecord, *, dark: bool = False, cut: bool = False) -> go.Figure:
    """A square for each pair of tasks, the first row at the top; cut: with the head cut to the tasks 1..n.

    >>> from ftp.lab.figures.data import example_in_tasks
    >>> draw(example_in_tasks()).data[0].z[2]
    [70.0, 80.0, 90.0]
    """
    lines, metric = table(run, cut=cut), run.measures.main
    names = [str(line["after"]) for line in lines]
    z = [[line[name] for name in names] for line in lines]
    heat = go.Heatmap(
        name=metric.name,
        x=[plain(name) for name in names],
        y=[f"after {plain(name)}" for name in names],
        z=z,
        zmin=metric.low,
        zmax=max(value for row in z for value in row if value is not None) if metric.unit != "%" else metric.high,
        colorscale="Viridis" if metric.higher_is_better else "Viridis_r",
        colorbar=colorbar(metric.unit, dark),
        hoverongaps=False,
        texttemplate="%{z:.0f}" if len(names) <= MOST_NUMBERS else "",
        hovertemplate="%{y}: <b>%{x}</b> %{z:.1f} " + metric.unit + "<extra></extra>",
    )
    head = (
        "the head cut to tasks 1..n" if cut and CUT in (run.final.scores if run.final else {}) else "all classes seen"
    )
    look = layout("What is left of each task", f"{about(run)}; {metric.axis}, {head}", dark, height=520)
    look["margin"] = {**MARGIN, "l": 40 + 7 * max(map(len, names)) + 40, "r": 90, "autoexpand": False}
    small = {"size": 12, "color": theme(dark).text}
    look["xaxis"] = axis("on the test pictures of", dark, showgrid=False, type="category", tickfont=small)
    look["yaxis"] = axis("", dark, showgrid=False, type="category", tickfont=small, autorange="reversed")
    for side in ("xaxis", "yaxis"):
        look[side]["tickfont"] = {**small}
    return go.Figure(heat, look)
