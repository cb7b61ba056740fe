"""The step for many layers: projection.py and constraint.py with few kernels, in place, without reading back.

A layer here is one parameter tensor, or one of the matrices that are stacked in it, with its rows along dimension 0
(`projection.cut`). The gammas of all layers move together, with their Adam moments, as one matrix of shape
(layers, 4). Large layers go one by one (this file), small ones are packed (`_packed.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ftp import _sharded
from ftp.constraint import adam_update, anneal, clip, row_slopes, same_order
from ftp.projection import EPS, as_rows, per_row, row_l1, shrink, toward

# the entries of a layer's `gamma_state` vector: gamma, Adam's two moments of it, and t of Alg. 1
GAMMA, EXP_AVG, EXP_AVG_SQ, STEP = range(4)


class Leash(NamedTuple):
    """How the constraints of one parameter group are learned; see the arguments of SGDP.

    >>> Leash().k, Leash.of({"k": 0.5, "lr": 0.1}).k
    (1.0, 0.5)
    """

    k: float = 1.0
    gamma_lr: float = 1e-2
    gamma_betas: tuple[float, float] = (0.9, 0.999)
    gamma_rows: str = "all"
    gamma_count: str = "steps"
    per_element: bool = False
    maximize: bool = False
    stochastic_rounding: bool = False

    @classmethod
    def of(cls, group: Mapping[str, Any]) -> "Leash":
        """The leash of a parameter group."""
        return cls(**{name: group[name] for name in cls._fields if name in group})


@dataclass
class Layers:
    """Leashed layers of one group that share device, dtype and sharding: one entry per layer.

    >>> leash = Leash()
    >>> weight, anchor = torch.tensor([[3.0, 1.0]]), torch.zeros(1, 2)
    >>> state = torch.tensor([1.0, 0.0, 0.0, 5.0])  # gamma = 1 after five steps
    >>> layers = Layers([weight], [torch.zeros(1, 2)], [state], [anchor], [anchor.clone()], [torch.zeros(1)], [None])
    >>> layers.before(leash)
    >>> layers.after(leash)
    >>> weight
    tensor([[0.7500, 0.2500]])
    """

    # every tensor here is the parameter's or the optimizer's own, or a view of it: writing here writes there
    params: list[Tensor]
    grads: list[Tensor]  # of this step
    gamma_states: list[Tensor]  # shape (4,)
    anchors: list[Tensor]  # maybe in another dtype or on another device
    deviations: list[Tensor | None]  # W~_{t-1} - W0; None in low-memory mode
    row_l1s: list[Tensor]  # the row norms of W~_{t-1} - W0, shape (rows,)
    floors: list[Tensor | None]  # the shortest leash of a layer in low-memory mode
    sharding: _sharded.Sharding | None = None
    slopes: Tensor = field(init=False)
    # scratch of the size of the largest layer, used by one after another; a compiler does better without
    spare: Tensor | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not torch.compiler.is_compiling():
            self.spare = self.row_l1s[0].new_empty(max(param.numel() for param in self.params))

    def before(self, leash: Leash) -> None:
        """Eq. 4 for every layer, from g_t and W_{t-1}; the base rule may overwrite both."""
        sums = []
        for param, grad, anchor, cached, norms, gamma_state in zip(
            self.params, self.grads, self.anchors, self.deviations, self.row_l1s, self.gamma_states, strict=True
        ):
            deviation = self._deviation(param, anchor) if cached is None else cached
            rows = as_rows(deviation, leash.per_element)
            grad_rows = as_rows(same_order(grad, deviation), leash.per_element)
            products = torch.mul(grad_rows.to(norms.dtype), rows.to(norms.dtype), out=self._scratch(rows.shape))
            dots = products.sum(1)  # g . d of each row
            if cached is None:
                # the projection is radial: W_{t-1} - W0 points where W~_{t-1} - W0 did, shrunk to gamma
                dots = dots / shrink(norms, gamma_state[GAMMA])
            sums.append(row_slopes(dots, norms, gamma_state[GAMMA], leash.gamma_rows).sum())
        self.slopes = torch.stack(sums)  # (layers,)

    def after(self, leash: Leash) -> None:
        """ProjUpdate (Eq. 5, Alg. 2) and Projection (Eq. 2)."""
        maxima = []
        for param, anchor, cached, norms in zip(self.params, self.anchors, self.deviations, self.row_l1s, strict=True):
            if cached is not None and cached.dtype == norms.dtype and takes_out(cached):
                deviation = torch.sub(param, beside(param, anchor), out=cached)
            else:
                deviation = self._deviation(param, anchor)
                if cached is not None:
                    cached.copy_(deviation)  # rounded to bfloat16; the norms below are not
            row_l1(deviation, leash.per_element, spare=self._scratch(param.shape), out=norms)
            maxima.append(norms.amax() if norms.numel() else norms.new_zeros(()))
        slopes, largest = self.slopes, torch.stack(maxima)
        if self.sharding is not None:
            slopes, largest = self.sharding.gather(slopes, largest, self.row_l1s)

        floor = None if self.floors[0] is None else torch.stack(self.floors)  # type: ignore[arg-type]
        updated = update(torch.stack(self.gamma_states), slopes, largest, floor, leash)
        torch._foreach_copy_(self.gamma_states, updated.unbind())

        for param, anchor, norms, gamma in zip(
            self.params, self.anchors, self.row_l1s, updated[:, GAMMA].unbind(), strict=True
        ):
            factor = shrink(norms, gamma)
            anchor = beside(param, anchor)
            if param.dtype == factor.dtype and takes_out(param):
                torch.lerp(anchor, param, per_row(factor, param), out=param)
            else:
                param.copy_(toward(anchor, param, factor, leash.stochastic_rounding))

    def _deviation(self, param: Tensor, anchor: Tensor) -> Tensor:
        """W - W0 in the scratch buffer, in float32 or better."""
        dtype = self.row_l1s[0].dtype
        return torch.sub(param.to(dtype), beside(param, anchor).to(dtype), out=self._scratch(param.shape))

    def _scratch(self, shape: torch.Size) -> Tensor | None:
        return None if self.spare is None else self.spare[: shape.numel()].view(shape)


def takes_out(tensor: Tensor) -> bool:
    """Whether a result can be written right into a tensor: a compiler cannot do that if it is not contiguous.

    >>> takes_out(torch.zeros(2, 3).t())
    True
    """
    return tensor.is_contiguous() or not torch.compiler.is_compiling()


def beside(param: Tensor, anchor: Tensor) -> Tensor:
    """The anchor with its parameter's device and dtype: itself, unless it is kept elsewhere or narrower.

    >>> beside(torch.zeros(1), torch.ones(1).bfloat16())
    tensor([1.])
    """
    return anchor.to(device=param.device, dtype=param.dtype, non_blocking=True)


def update(old: Tensor, slopes: Tensor, largest: Tensor, floor: Tensor | None, leash: Leash) -> Tensor:
    """ProjUpdate for all layers: the states of gamma, shape (layers, 4), one step further.

    >>> leash = Leash()
    >>> old = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    >>> update(old, torch.tensor([-1.0]), torch.tensor([9.0]), None, leash)[0, [GAMMA, STEP]]
    tensor([1.0074, 2.0000])
    """
    gamma, exp_avg, exp_avg_sq, step = old.unbind(1)
    step = step + 1
    slopes = anneal(-slopes if leash.maximize else slopes, leash.k)
    if floor is not None:
        # t = 1 only sets gamma. With a cached deviation, still zero at t = 1, there is no slope anyway;
        # in low-memory mode the weights may already be away from their anchor
        slopes = torch.where(step > 1, slopes, 0.0)
    gamma, exp_avg, exp_avg_sq = adam_update(
        gamma,
        slopes,
        exp_avg,
        exp_avg_sq,
        step,
        lr=leash.gamma_lr,
        betas=leash.gamma_betas,
        count=leash.gamma_count,
    )
    gamma = clip(gamma, largest, EPS if floor is None else floor)
    return torch.stack([gamma, exp_avg, exp_avg_sq, step], 1)
