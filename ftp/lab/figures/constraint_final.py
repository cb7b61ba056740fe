"""The claim of Fig. 5 as one picture: constraints at the end against depth, and how strongly the two go together."""

import math
from collections.abc import Sequence
from dataclasses import replace

import plotly.graph_objects as go

from ftp.lab.figures._registry import Lines, figure
from ftp.lab.figures.data import BIAS, GAIN, WEIGHT, block_of, constrained, kind_of, plain, rank_correlation
from ftp.lab.figures.template import MARGIN, METHOD_STYLE, Style, axis, layout, note, styles, theme
from ftp.lab.record import LabError, RunRecord
from ftp.lab.table import Group, Spread, called, groups, spread

MARKERS = {WEIGHT: "square", GAIN: "triangle-up", BIAS: "circle-open"}
MOST_BLOCKS = 14
Ends = list[tuple[int, str, Spread]]  # depth, layer, gamma at the end


def ends(runs: Sequence[RunRecord]) -> list[tuple[Group, Ends]]:
    """Gamma at the end, over seeds, for each group of runs that has constraints.

    >>> from ftp.lab.figures.data import example
    >>> ends([example("finetune"), example("ftp")])[0][1][0]
    (1, 'stem.weight', Spread(mean=0.30000000000000004, std=nan))
    """
    runs_with_gamma = [run for run in runs if run.points and any(g is not None for g in run.points[-1].gamma)]
    if not runs_with_gamma:
        constrained(runs[0])  # says what is wrong with it
        raise LabError(f"{called(runs[0])} ended without a constraint γ; choose a run of ftp, tpgm or mars_sp")
    ends_by_group = []
    for group in groups(runs_with_gamma):
        layers = group.records[0].layers
        if any(run.layers != layers for run in group.records):
            raise LabError(f"the runs of {group.name} have different layers; compare runs of one model")
        values = [spread(run.points[-1].gamma[i] for run in group.records) for i in range(len(layers))]
        ends_by_group.append((group, [(i + 1, n, v) for i, (n, v) in enumerate(zip(layers, values, strict=True))]))
    return ends_by_group


def correlations(values: Ends) -> dict[str, float]:
    """Spearman's rank correlation of depth and gamma, for each kind of tensor and for all.

    >>> correlations([(1, "a.weight", Spread(0.1)), (2, "b.weight", Spread(0.2)), (3, "c.weight", Spread(0.4))])
    {'weights': 1.0, 'norm gains': nan, 'biases': nan, 'all': 1.0}
    """
    parts = {kind: [v for v in values if kind_of(v[1]) == kind] for kind in MARKERS} | {"all": values}
    return {kind: rank_correlation([d for d, _, _ in part], [g.mean for *_, g in part]) for kind, part in parts.items()}


def table(runs: Sequence[RunRecord]) -> Lines:
    """One line per method and layer: depth, kind, mean and standard deviation of gamma over seeds.

    >>> from ftp.lab.figures.data import example
    >>> table([example()])[3]["gamma"]
    1.2000000000000002
    """
    return [
        {"method": group.name, "layer": layer, "depth": depth, "kind": kind_of(layer)}
        | {"gamma": value.mean, "std": value.std if math.isfinite(value.std) else None, "seeds": len(group.records)}
        for group, values in ends(runs)
        for depth, layer, value in values
        if math.isfinite(value.mean)
    ]


@figure(
    "constraint_final",
    title="Constraints at the end",
    question="Do late layers end with longer leashes than early ones?",
    needs="many",
    table=table,
)
def draw(runs: Sequence[RunRecord], *, dark: bool = False) -> go.Figure:
    """Markers tell the kind of tensor, colours tell the method.

    A method whose γ is the same everywhere is told in words if others have more to show.

    >>> from ftp.lab.figures.data import example
    >>> [trace.name for trace in draw([example()]).data]
    ['weights', 'norm gains', 'biases']
    """
    all_ends = ends(runs)
    drawn = [(group, values) for group, values in all_ends if _constant(values) is None] or all_ends
    group_styles = _apart(styles([group for group, _ in drawn]))
    several = len(drawn) > 1
    traces = []
    for (_, values), look_of in zip(drawn, group_styles, strict=True):
        for kind, marker in MARKERS.items():
            part = [(d, plain(n), g) for d, n, g in values if kind_of(n) == kind and math.isfinite(g.mean)]
            if part:
                name = f"{look_of.name}, {kind}" if several else kind
                traces.append(_trace(name, part, look_of.color(dark), marker))
    if several:
        traces = [t.update(showlegend=False) for t in traces] + _legend(group_styles, dark)
    subtitle = _subtitle(drawn) + _fixed(all_ends if len(drawn) < len(all_ends) else [])
    look = layout("Constraints γ at the end", subtitle, dark, height=500, showlegend=True)
    look["margin"] = {**MARGIN, "t": 104}
    look["legend"] = {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top", "font": {"color": theme(dark).text}}
    names = [name for _, name, _ in drawn[0][1]]
    look["xaxis"] = axis("layer, early to late", dark, range=[0.2, len(names) + 0.8], showgrid=False)
    tops = [g.mean + (g.std if math.isfinite(g.std) else 0.0) for _, v in drawn for *_, g in v if math.isfinite(g.mean)]
    most = max(tops, default=0.0) or 1.0
    look["yaxis"] = axis("constraint γ at the end", dark, range=[-0.02 * most, 1.06 * most])  # a bar may reach below 0
    _mark_blocks(look, names, dark)
    return go.Figure(traces, look)


def _constant(values: Ends) -> float | None:
    """Gamma, if all layers that have one have the same."""
    gammas = {value.mean for *_, value in values if math.isfinite(value.mean)}
    return gammas.pop() if len(gammas) == 1 else None


def _fixed(all_ends: list[tuple[Group, Ends]]) -> str:
    """The groups that are not drawn."""
    words = [(plain(group.name), _constant(values)) for group, values in all_ends]
    return "".join(f"; {name}: γ = {gamma:g} everywhere" for name, gamma in words if gamma is not None)


def _apart(group_styles: list[Style]) -> list[Style]:
    """Markers tell the kind here, so several settings of one method take the colours of methods that are not shown."""
    used = {s.light for s in group_styles}
    free = [s for s in reversed(METHOD_STYLE.values()) if s.light not in used]
    out: list[Style] = []
    for s in group_styles:
        again = any(s.light == other.light for other in out)
        out.append(replace(s, light=free[0].light, dark=free.pop(0).dark) if again and free else s)
    return out


def _legend(group_styles: Sequence[Style], dark: bool) -> list[go.Scatter]:
    """Colours and markers one by one, instead of every pair of them."""
    entries = [(s.name, s.color(dark), "circle") for s in group_styles]
    entries += [(kind, theme(dark).muted, marker) for kind, marker in MARKERS.items()]
    return [
        go.Scatter(name=name, x=[None], y=[None], mode="markers", marker={"color": color, "symbol": symbol, "size": 10})
        for name, color, symbol in entries
    ]


def _trace(name: str, part: Ends, color: str, marker: str) -> go.Scatter:
    bars = [value.std if math.isfinite(value.std) else 0.0 for *_, value in part]
    return go.Scatter(
        name=name,
        x=[depth for depth, *_ in part],
        y=[value.mean for *_, value in part],
        error_y={"array": bars, "color": color, "thickness": 1.2, "width": 3, "visible": any(bars)},
        text=[layer for _, layer, _ in part],
        mode="markers",
        marker={"color": color, "symbol": marker, "size": 10, "line": {"color": color, "width": 2}},
        hovertemplate="<b>%{text}</b><br>γ = %{y:.4f}<extra>%{fullData.name}</extra>",
    )


def _subtitle(drawn: list[tuple[Group, Ends]]) -> str:
    """The rank correlations: of each kind for one method, of all layers for several."""
    texts = []
    for group, values in drawn:
        numbers = correlations(values)
        if len(drawn) > 1:
            numbers = {plain(group.name): numbers["all"]}
        texts += [f"{name} {value:+.2f}".replace("-", "−") for name, value in numbers.items() if math.isfinite(value)]
    return "Rank correlation of depth and γ: " + (", ".join(texts) or "none, γ is the same everywhere")


def _mark_blocks(look: dict[str, object], names: list[str], dark: bool) -> None:
    """Thin lines between the parts of the network, with their names on top."""
    blocks = [block_of(name) for name in names]
    starts = [i for i, block in enumerate(blocks) if i == 0 or block != blocks[i - 1]]
    if len(starts) > MOST_BLOCKS:
        return
    line = {"color": theme(dark).muted, "width": 1, "dash": "dot"}
    across = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "line": line}
    look["shapes"] = [across | {"x0": i + 0.5, "x1": i + 0.5} for i in starts[1:]]
    muted = {"size": 12, "color": theme(dark).muted}
    look["annotations"] = [
        note((i + end) / 2 + 0.5, 1, plain(blocks[i]), dark, yref="paper", yanchor="bottom", font=muted)
        for i, end in zip(starts, [*starts[1:], len(names)], strict=True)
    ]
