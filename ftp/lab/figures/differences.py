"""Every method against plain fine-tuning, paired by seed, with three standard errors: is it more than chance?"""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import number, plain
from ftp.lab.figures.template import MARGIN, axis, layout, styles, theme
from ftp.lab.noise import ERRORS
from ftp.lab.record import LabError, RunRecord
from ftp.lab.table import groups
from ftp.lab.verdict import Difference, judge

SYMBOLS = {"id": "circle", "ood_avg": "diamond", "corruption_avg": "square-open"}


def table(runs: Sequence[RunRecord]) -> Lines:
    """One line per method and question: the gain over fine-tuning, its standard error, and the word for it.

    >>> from ftp.lab.figures.data import example
    >>> table([example("finetune"), example("ftp")])[1]["gain"]
    2.5
    """
    return [
        {"method": d.name, "where": d.aspect.where, "gain": number(d.gain), "error": number(d.error)}
        | {"seeds": d.seeds, "verdict": d.word}
        for d in judge(runs).differences
    ]


@figure(
    "differences",
    title="Difference to fine-tuning",
    question="Is a difference more than chance?",
    needs="many",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False) -> go.Figure:
    """A row per method and question: the mean paired difference, and a bar of three standard errors each way.

    >>> from ftp.lab.figures.data import example
    >>> [trace.name for trace in draw([example("finetune"), example("ftp")]).data]
    ['FTP']
    """
    verdict = judge(runs)
    if not verdict.differences:
        raise LabError("there is one method, and nothing to compare it with; choose runs of two methods")
    metric = runs[0].measures.main
    run_groups = groups(runs)
    look_of = dict(zip([g.name for g in run_groups], styles(run_groups), strict=True))
    names = list(dict.fromkeys(d.name for d in verdict.differences))
    labels = [_label(d) for d in verdict.differences]
    traces = []
    for name in names:
        mine = [d for d in verdict.differences if d.name == name]
        color = look_of[name].color(dark)
        traces.append(
            go.Scatter(
                name=look_of[name].name,
                x=[number(d.gain) for d in mine],
                y=[_label(d) for d in mine],
                error_x={
                    "array": [ERRORS * d.error if math.isfinite(d.error) else 0.0 for d in mine],
                    "color": color,
                    "thickness": 2,
                    "width": 5,
                },
                customdata=[d.word for d in mine],
                mode="markers",
                marker={"color": color, "size": 11, "symbol": [SYMBOLS[d.aspect.key] for d in mine]},
                hovertemplate="<b>%{y}</b><br>%{x:+.2f} "
                + f"{metric.unit}: %{{customdata}} {verdict.reference}<extra></extra>",
            )
        )
    seeds = max(d.seeds for d in verdict.differences)
    bars = f"bars: {ERRORS} standard errors over {seeds} seeds" if seeds > 1 else "one seed: no telling from chance"
    look = layout(f"Difference to {plain(verdict.reference)}", bars, dark, height=150 + 34 * len(labels))
    look["margin"] = {**MARGIN, "l": 24 + 7.2 * max(map(len, labels)), "autoexpand": False}
    better = "right is better" if metric.higher_is_better else "right is better, a lower score"
    look["xaxis"] = axis(f"{metric.name} gained ({metric.unit}; {better})", dark)
    look["yaxis"] = axis("", dark, autorange="reversed", showgrid=False, categoryorder="array", categoryarray=labels)
    line = {"color": theme(dark).muted, "width": 1.5, "dash": "dash"}
    look["shapes"] = [
        {"type": "line", "layer": "below", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1, "line": line}
    ]
    return go.Figure(traces, look)


def _label(difference: Difference) -> str:
    return plain(f"{difference.name}, {difference.aspect.where}")
