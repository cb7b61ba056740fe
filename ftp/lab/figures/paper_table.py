"""Every method on every shift, in the form of the paper's tables (Tab. 1, 2, 4), as a picture."""

from collections.abc import Sequence

import plotly.graph_objects as go

from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import number, plain
from ftp.lab.figures.template import FONT, layout, theme
from ftp.lab.record import RunRecord
from ftp.lab.table import MISSING, Cell, columns, rows

LINE, TALL = 30, 48  # the height of a row with one line of text, and with two


def table(runs: Sequence[RunRecord]) -> Lines:
    """One line per method: means and standard deviations over seeds, and the changes against fine-tuning.

    >>> from ftp.lab.figures.data import example
    >>> table([example()])[0]["sketch"]
    75.0
    """
    out = []
    for row in rows(runs):
        line: dict[str, object] = {"method": row.name, "seeds": row.seeds}
        pairs = {"id": row.id, **row.ood, "ood_avg": row.ood_avg, "corruption_avg": row.corruption_avg}
        for name, value in pairs.items():
            line |= {name: number(value.mean), f"{name}_std": number(value.std)}
        line |= {"id_delta": number(row.id_delta), "ood_delta": number(row.ood_delta)}
        out.append(line | {"seconds_per_step": number(row.seconds.mean)})
    return out


@figure(
    "paper_table",
    title="Every method on every shift",
    question="How do the methods compare on every shift?",
    needs="many",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False) -> go.Figure:
    """The main metric, the best of each column bold; Δ is relative to plain fine-tuning.

    >>> from ftp.lab.figures.data import example
    >>> draw([example("finetune"), example("ftp")]).data[0].cells.values[0]
    ['<span>Vanilla FT</span>', '<span>FTP</span>']
    """
    table_rows = rows(runs)
    shown = columns(table_rows)
    look = theme(dark)
    several = any(row.seeds > 1 for row in table_rows)
    texts = [[_text(cell, look.muted, several) for cell in cells] for cells in shown.values()]
    colors = [[_color(name, cell, dark) for cell in cells] for name, cells in shown.items()]
    shade = [look.grid if row.method == "ftp" else look.paper for row in table_rows]
    left = ["left", *["right"] * (len(shown) - 1)]
    grid = go.Table(
        name="table",
        header={
            "values": [f"<b>{plain(name)}</b>" for name in shown],
            "align": left,
            "fill": {"color": look.paper},
            "line": {"color": look.muted, "width": 1},
            "font": {"color": look.text, "size": 13, "family": FONT},
            "height": 46,
        },
        cells={
            "values": texts,
            "align": left,
            "fill": {"color": [shade]},
            "line": {"color": look.grid, "width": 1},
            "font": {"color": colors, "size": 13, "family": FONT},
            "height": TALL if several else LINE,
        },
        columnwidth=[2 + max(len(row.name) for row in table_rows), *(_width(name) for name in list(shown)[1:])],
    )
    small = "(sample std over seeds), " if several else ""
    size = {"height": 76 + 78 + (TALL if several else LINE) * len(table_rows)}
    metric = table_rows[0].metric
    page_layout = layout(
        metric.title + metric.axis[len(metric.name) :], f"{small}Δ relative to fine-tuning", dark, **size
    )
    page_layout["margin"] = {"l": 16, "r": 16, "t": 76, "b": 10, "autoexpand": False}
    return go.Figure(grid, page_layout)


def _text(cell: Cell, muted: str, two_lines: bool) -> str:
    text = plain(cell.text)
    if text.startswith("-") and text != MISSING:
        text = f"−{text[1:]}"
    bold = f"<b>{text}</b>" if cell.best else f"<span>{text}</span>"
    # a second line also where there is no spread: else the numbers of a row stand at different heights
    return (
        f'{bold}<br><span style="color: {muted}; font-size: 11px">{cell.std or "&nbsp;"}</span>' if two_lines else bold
    )


def _width(column: str) -> float:
    """In letters: that of a number, or of the longest word above it."""
    return max(7.5, 2.0 + max(map(len, column.split())))


def _color(column: str, cell: Cell, dark: bool) -> str:
    """Gains and losses in colours that everybody can tell apart; the paper has green and red."""
    look = theme(dark)
    if "Δ" not in column or cell.text in (MISSING, "0.00"):
        return look.text
    return look.loss if cell.text.startswith("-") else look.gain
