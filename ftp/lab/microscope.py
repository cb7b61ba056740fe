"""Steps of SGDP under the microscope: every number of Eq. 1, 4, 5, Alg. 2 and Eq. 2 for one layer, as it trains.

The steps are those of the real optimizer: two hooks of torch.optim look at its state before and after each step. What
the state does not keep (the slope of Eq. 4, the annealed one, Adam's corrected moments) is computed once more with
the functions of `ftp.constraint`, and `gap` says how far that is from what the optimizer arrived at.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ftp import SGDP
from ftp.constraint import adam_update, anneal, clip, row_dot, row_slopes
from ftp.lab.formats import rounded
from ftp.lab.record import LabError, Settings
from ftp.lab.train import FineTuning
from ftp.projection import row_l1, shrink

FIRST, WINDOW, LAST = 12, 3, 300  # the first steps, then a few at a quarter, the half and the end; none after LAST
SIGNIFICANT = 7  # digits, as many as float32 has


def moments(steps: int) -> list[int]:
    """The steps worth a look in a run of so many.

    >>> moments(300)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 73, 74, 75, 148, 149, 150, 298, 299, 300]
    """
    end = min(steps, LAST)
    ends = (end // 4, end // 2, end)
    windows = [step for last in ends for step in range(last - WINDOW + 1, last + 1)]
    return sorted({step for step in (*range(1, FIRST + 1), *windows) if 1 <= step <= end})


def trace(
    settings: Settings,
    layer: str,
    steps: Sequence[int] | None = None,
    *,
    device: str = "cpu",
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Train as `settings` say and note what happens to one layer at the given steps (counted from 1), as plain data.

    One row of the layer is followed in full: the one that wanted to go farthest, and its two weights that did.
    """
    wanted = sorted(set(moments(settings.steps) if steps is None else steps))
    if not wanted or wanted[0] < 1 or wanted[-1] > settings.steps:
        raise LabError(f"steps are {wanted}; give steps from 1 to {settings.steps}, the length of the run")
    if settings.method != "ftp" or settings.optimizer != "sgd":
        raise LabError(f"the run is {settings.method} with {settings.optimizer}; the microscope shows ftp with sgd")
    run = FineTuning(settings, device=device, watches=0, evaluate_at_end=False)
    optimizer = run.method.optimizer
    assert isinstance(optimizer, SGDP)
    named = dict(run.model.named_parameters())
    if layer not in run.task.anchors:
        raise LabError(f"layer is {layer!r}; layers on a leash are {', '.join(list(run.task.anchors)[:3])}, ...")
    if layer in run.task.rows:
        plain = next(name for name in run.task.anchors if name not in run.task.rows)
        raise LabError(f"layer is {layer!r}, whose rows are not those of one matrix; choose another, such as {plain}")
    watch = _Watch(optimizer, named[layer])
    while run.step < wanted[-1]:
        if stop():
            raise LabError(f"stopped after step {run.step}")
        watch.on = run.step + 1 in wanted
        loss, lr = run.advance()
        if watch.on:
            watch.seen[-1] |= {"step": run.step, "lr": lr, "loss": loss.item()}
    return _described(settings, layer, watch)


class _Watch:
    """The state of one layer just before and just after a step."""

    def __init__(self, optimizer: SGDP, param: Tensor) -> None:
        self.optimizer, self.param, self.on = optimizer, param, False
        self.group = next(g for g in optimizer.param_groups if any(p is param for p in g["params"]))
        self.seen: list[dict[str, Any]] = []
        optimizer.anchor()  # a step has a "before" only if the state is there before the first
        optimizer.register_step_pre_hook(self.before)
        optimizer.register_step_post_hook(self.after)

    def state(self) -> dict[str, Tensor]:
        names = ("anchor", "deviation", "row_l1", "gamma_state", "momentum_buffer")
        state = self.optimizer.state[self.param]
        return {name: state[name].detach().clone() for name in names if name in state}

    def before(self, *_: Any) -> None:
        if self.on:
            assert self.param.grad is not None
            now = {"weight": self.param.detach().clone(), "grad": self.param.grad.detach().clone()}
            self.seen.append({"before": self.state() | now})

    def after(self, *_: Any) -> None:
        if self.on:
            self.seen[-1]["after"] = self.state() | {"weight": self.param.detach().clone()}


def _described(settings: Settings, layer: str, watch: _Watch) -> dict[str, Any]:
    lengths = torch.stack([row_l1(one["after"]["deviation"]) for one in watch.seen]).amax(0)
    row = int(lengths.argmax())
    moved = torch.stack([_rows(one["after"]["deviation"])[row].abs() for one in watch.seen]).amax(0)
    pair = moved.topk(min(2, len(moved))).indices.tolist()
    group = watch.group
    names = ("momentum", "weight_decay", "nesterov", "k", "gamma_lr", "gamma_betas")
    steps = [_step(one, group, row, pair) for one in watch.seen]
    about = {"layer": layer, "settings": settings.as_dict(), "shape": list(watch.param.shape), "row": row, "pair": pair}
    numbers: dict[str, Any] = rounded(
        {**about, "options": {name: group[name] for name in names}, "steps": steps}, SIGNIFICANT
    )
    return numbers


def _step(one: dict[str, Any], group: dict[str, Any], row: int, pair: list[int]) -> dict[str, Any]:
    """The numbers of one step, in the order in which Alg. 1 uses them."""
    before, after = one["before"], one["after"]
    gamma, m, v, count = before["gamma_state"]
    # Eq. 4: the new gradient along the previous deviation, row by row
    dots = row_dot(before["grad"], before["deviation"])
    slopes = row_slopes(dots, before["row_l1"], gamma, group["gamma_rows"])
    slope = slopes.sum()
    annealed = anneal(slope, group["k"])  # Eq. 5
    moved, m_new, v_new = adam_update(  # Alg. 2
        gamma, annealed, m, v, count + 1, lr=group["gamma_lr"], betas=group["gamma_betas"], count=group["gamma_count"]
    )
    clipped = clip(moved, after["row_l1"].amax())
    gap = (clipped - after["gamma_state"][0]).abs()
    factors = shrink(after["row_l1"], after["gamma_state"][0])  # Eq. 2, 10
    betas, t = group["gamma_betas"], float(count) + 1
    return {
        "step": one["step"],
        "lr": one["lr"],
        "loss": one["loss"],
        "gamma": [float(gamma), float(moved), float(after["gamma_state"][0])],  # before, after Adam, after the clip
        "slope": float(slope),
        "annealed": float(annealed),
        "m": [float(m), float(after["gamma_state"][1]), float(m_new) / (1 - betas[0] ** t)],  # old, new, corrected
        "v": [float(v), float(after["gamma_state"][2]), float(v_new) / (1 - betas[1] ** t)],
        "gap": float(gap),
        "rows": {"wanted": after["row_l1"].tolist(), "factor": factors.tolist()},
        "row": {
            "dot": float(dots[row]),
            "length": float(before["row_l1"][row]),  # of the previous deviation
            "slope": float(slopes[row]),
            "wanted": float(after["row_l1"][row]),
            "factor": float(factors[row]),
            "kept": float(row_l1(after["weight"] - after["anchor"])[row]),
        },
        "weights": [_weight(before, after, row, place) for place in pair],
    }


def _weight(before: dict[str, Tensor], after: dict[str, Tensor], row: int, place: int) -> dict[str, float]:
    """One weight of the followed row, from its anchor on: Eq. 1 and Eq. 2 in numbers."""

    def at(tensor: Tensor) -> float:
        return float(_rows(tensor)[row, place])

    anchor = at(after["anchor"])
    return {
        "anchor": anchor,
        "start": at(before["weight"]),
        "grad": at(before["grad"]),
        "momentum": at(after["momentum_buffer"]) if "momentum_buffer" in after else 0.0,
        "wanted": anchor + at(after["deviation"]),
        "kept": at(after["weight"]),
    }


def _rows(tensor: Tensor) -> Tensor:
    """A layer as a matrix in the order of its indices, however it lies in memory: places must mean the same in all."""
    return tensor.reshape(len(tensor), -1) if tensor.dim() > 1 else tensor.reshape(1, -1)
