"""Rows of two weights on their leashes, drawn in the plane: the moving figures of lessons 03 and 04b."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import ftp
from ftp.constraint import gamma_grad
from ftp.lab import motion
from ftp.lab.lesson import figure
from ftp.lab.palette import GREY, LIGHT, PURPLE, SKY, VERMILLION

POSTS = torch.tensor([[0.0, 0.0], [0.2, 0.0], [0.4, 0.0]], dtype=torch.float64)
GOALS = POSTS + torch.tensor([[0.03, 0.04], [0.01, -0.02], [-0.02, 0.06]], dtype=torch.float64)
DIAMOND = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)


@dataclass(frozen=True)
class Step:
    """What one step of SGDP did to a layer of rows: from `before` SGD wanted `wanted`, the leash let it to `after`."""

    before: Tensor
    wanted: Tensor
    slope: float
    gamma: float
    after: Tensor


def walk(steps: int, lr: float = 0.3, noise: float = 0.02, seed: int = 0) -> list[Step]:
    """Walk three rows from their posts towards their goals with `ftp.SGDP`, on noisy gradients.

    >>> first, second = walk(2)
    >>> first.gamma, bool((first.after - POSTS).abs().max() < 1e-7), round(second.gamma, 5)
    (1e-08, True, 0.00744)
    """
    draw = torch.Generator().manual_seed(seed)
    layer = torch.nn.Parameter(POSTS.clone())
    optimizer, taken = ftp.SGDP([("layer", layer)], lr=lr), []
    for _ in range(steps):
        before = layer.detach().clone()
        layer.grad = before - GOALS + noise * torch.randn(POSTS.shape, generator=draw, dtype=POSTS.dtype)
        kept = optimizer.state[layer].get("deviation", torch.zeros_like(before))
        slope, wanted = float(gamma_grad(layer.grad, kept)), before - lr * layer.grad
        optimizer.step()
        taken.append(Step(before, wanted, slope, optimizer.constraints()["layer"], layer.detach().clone()))
    return taken


def step_by_step(taken: Sequence[Step]) -> Any:
    """A figure with a slider through the phases of each step: run, look back, pull (Alg. 1).

    >>> fig = step_by_step(walk(3))
    >>> [step.label for step in fig.layout.sliders[0].steps][:4]
    ['1 run', '1 look back', '1 pull', '2 run']
    """
    fig = _plane("One step after the other", taken)
    positions, words, gamma = {}, {}, 0.0
    for t, step in enumerate(taken, start=1):
        calls = "nobody has been asked yet" if t == 1 else "longer" if step.slope < 0 else "shorter"
        positions[f"{t} run"] = _drawn(gamma, step.before, step.wanted)
        words[f"{t} run"] = "SGD calls, and each row runs to where it wants to be (Eq. 1)"
        positions[f"{t} look back"] = _drawn(step.gamma, step.before, step.wanted)
        words[f"{t} look back"] = f"the batch says about the step before: {calls}; γ = {step.gamma:.4f} (Eq. 4, Alg. 2)"
        positions[f"{t} pull"] = _drawn(step.gamma, step.after, step.after)
        words[f"{t} pull"] = "who is beyond the end of the leash comes straight back to it (Eq. 2, 10)"
        gamma = step.gamma
    return motion.slide(fig, "step", positions, range(3), words=words)


def playing(taken: Sequence[Step], every: int = 2) -> Any:
    """A figure that plays a whole walk: the leashes let out and wound in, the rows on them.

    >>> len(playing(walk(10)).frames)
    5
    """
    fig = _plane("A leash is let out while the rows walk", taken)
    frames = {}
    for t, step in list(enumerate(taken, start=1))[::every]:
        drawn = _drawn(step.gamma, step.after, step.wanted)
        frames[str(t)] = [{"x": x, "y": y} for x, y in zip(drawn["x"], drawn["y"], strict=True)]
    for trace, change in zip(fig.data, next(iter(frames.values())), strict=False):
        trace.update(change)
    return motion.play(fig, frames)


def leash_and_row(rows: Tensor, lengths: Sequence[float]) -> Any:
    """A figure with a slider for the leash and a list of rows: where each ends, and which share of its way it keeps.

    >>> fig = leash_and_row(torch.tensor([[3.0, -1.0], [0.2, 0.1]]), [1.0, 2.0])
    >>> fig.data[1].x, fig.data[1].text
    ((3.0, 0.75), ('', 'keeps 25%'))
    >>> fig.data[2].text
    ('', 'keeps 100%')
    """
    rows = rows.to(torch.float64)
    fig = figure("A leash of any length", "first weight", "second weight", height=470)
    fig.add_scatter(name="reach", mode="lines", line={"color": LIGHT.leash, "width": 3})
    colors = (VERMILLION, PURPLE, "#007A5E", SKY)
    for at in range(len(rows)):
        color = colors[at % len(colors)]
        look: dict[str, Any] = {"line": {"color": color}, "marker": {"size": [7, 11], "color": color}}
        fig.add_scatter(name=f"row {at + 1}", mode="lines+markers+text", textposition="bottom center", **look)
    edge = 1.15 * max(float(rows.abs().max()), max(lengths))
    fig.update_xaxes(range=[-edge, edge], constrain="domain")
    fig.update_yaxes(range=[-edge, edge], constrain="domain", scaleanchor="x")
    positions = {f"{length:g}": _pulled(rows, length) for length in lengths}
    motion.slide(fig, "γ", positions, range(1 + len(rows)))
    options = {"all rows": list(range(1, 1 + len(rows)))} | {f"row {n}": [n] for n in range(1, 1 + len(rows))}
    return motion.choose(fig, options, always=[0])


def _pulled(rows: Tensor, length: float) -> dict[str, list[Any]]:
    ends = ftp.project_mars(rows, torch.zeros_like(rows), length)
    shares = (ftp.row_l1(ends) / ftp.row_l1(rows)).tolist()
    drawn = [length * DIAMOND, *(torch.stack(pair) for pair in zip(rows, ends, strict=True))]
    x, y = ([points[:, axis].round(decimals=4).tolist() for points in drawn] for axis in (0, 1))
    return {"x": x, "y": y, "text": [[], *(["", f"keeps {share:.0%}"] for share in shares)]}


def _plane(title: str, taken: Sequence[Step]) -> Any:
    """The empty picture: reach, ways, rows, then what never moves."""
    fig = figure(title, "first weight", "second weight", height=430)
    fig.add_scatter(name="reach", mode="lines", line={"color": LIGHT.leash, "width": 2})
    fig.add_scatter(name="wants to go", mode="lines+markers", line={"color": LIGHT.walk, "dash": "dot"}, marker_size=6)
    fig.add_scatter(name="rows", mode="markers", marker={"size": 12, "color": "#000000"})
    look: Callable[..., Any] = fig.add_scatter
    for name, points, symbol in (("posts", POSTS, "x"), ("goals", GOALS, "star-open")):
        x, y = points.T.tolist()
        look(x=x, y=y, name=name, mode="markers", marker={"symbol": symbol, "size": 10, "color": GREY})
    seen = torch.cat([point for step in taken for point in (step.after, step.wanted)] + [GOALS])
    reach = max(step.gamma for step in taken)
    low, high = seen.min(0).values.minimum(POSTS.min(0).values - reach), seen.max(0).values
    high = high.maximum(POSTS.max(0).values + reach)
    fig.update_xaxes(range=[float(low[0]) - 0.02, float(high[0]) + 0.02])
    return fig.update_yaxes(range=[float(low[1]) - 0.02, float(high[1]) + 0.02], scaleanchor="x")


def _drawn(gamma: float, rows: Tensor, wanted: Tensor) -> dict[str, list[Any]]:
    """The x and y of reach, ways and rows; a None between two parts lifts the pen."""
    reaches = [post + gamma * DIAMOND for post in POSTS]
    ways = [torch.stack(pair) for pair in zip(rows, wanted, strict=True)]
    return {
        name: [_parts(reaches, axis), _parts(ways, axis), rows[:, axis].round(decimals=4).tolist()]
        for axis, name in enumerate(("x", "y"))
    }


def _parts(parts: Sequence[Tensor], axis: int) -> list[float | None]:
    return [value for part in parts for value in (*part[:, axis].round(decimals=4).tolist(), None)]
