"""SGDP: SGD on a learned leash (Alg. 1 with SGD as the base rule)."""

from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT
from torch.optim.sgd import sgd
from typing_extensions import Unpack

from ftp._options import LeashOptions, base_flags, gather
from ftp._projected import Projected
from ftp._twopass import BaseRule


class SGDP(Projected):
    """A drop-in for `torch.optim.SGD` that ties every layer to its starting weights.

    >>> model = torch.nn.Linear(4, 2)
    >>> optimizer = SGDP(model.named_parameters(), lr=0.1, momentum=0.9, exclude_set={"bias"})
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     model(torch.ones(8, 4)).square().mean().backward()
    ...     optimizer.step()
    >>> list(optimizer.constraints())
    ['weight']

    Arguments as in `torch.optim.SGD`, and
    params: `model.named_parameters()`, `ftp.named_groups(model)`, or groups; a group may also be laid out as in the
        paper's Appendix 8.7, with the keys "params", "pre" (the anchors) and "name"
    k: kappa of Eq. 5, 0 to 1; the smaller, the less a leash is ever shortened
    exclude_set: names or glob patterns of parameters without a leash, such as {"head.*"}
    anchors: a state dict with W0; by default W0 is the weights at the first step (or at `anchor()`)
    leash: False for a group without a leash, such as a new head; True says that it is meant
    row_axis, split: which axis counts the outputs, and how many matrices are stacked along it; ftp/README.md has
        the table, `ftp.named_groups` sets both
    product: for groups of LoRA's pairs A, B: the scale s; the leash then ties the rows of s B A to zero
    gamma_lr, gamma_betas: mu and the betas of Alg. 2
    gamma_rows: "all" rows count in Eq. 4, as the authors do it, or only those "outside" their leash
    gamma_count: Adam's t counts "steps", as the authors do it, or "updates"
    per_element: each entry of a vector is its own row, instead of the vector being one row
    low_memory: keep only the anchor, and derive the deviation from the weights
    anchor_dtype, anchor_device: keep the anchors in bfloat16, or on the CPU; ftp/README.md says what that costs
    stochastic_rounding: bfloat16 weights that are pulled back are rounded up or down at random
    kernel: None, the fastest at hand; "eager", torch's operations only; "triton", on GPUs; "native", on CPUs with a
        C++ compiler. ftp/README.md says what runs when
    All of these but `anchors` may also be set for each group.

    A learning rate that a scheduler changes is a new number each time, and a compiled step is built again for each:
    pass `lr=torch.tensor(0.1)` there, as with torch's own optimizers.

    Differs from torch.optim.SGD: `differentiable` must be False, because the projection writes in
    place; without a flag the base rule is fused where torch can; a GradScaler unscales before a fused step, not in it.
    Differs from the paper: see `ftp.projection` and `ftp.constraint`.
    """

    _base_keys = ("momentum_buffer", "first_momentum")
    _takes_sparse = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        differentiable: bool = False,
        **leash: Unpack[LeashOptions],
    ) -> None:
        super().__init__(params, gather(type(self).__name__, locals(), leash))

    def _base_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if group["momentum"] == 0:
            return {}
        # torch's first momentum is the undamped gradient; from zero, momentum x 0 + gradient is the same,
        # but with dampening it is not, so the first time must be known
        state: dict[str, Any] = {"momentum_buffer": torch.zeros_like(param)}
        return {**state, "first_momentum": True} if group["dampening"] != 0 else state

    def _base_rule(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], *state: list[Any]) -> None:
        buffers, firsts = state
        fresh = [buffer is None or first is True for buffer, first in zip(buffers, firsts, strict=True)]
        if not any(fresh):
            self._sgd(group, params, grads, buffers)
            return
        for is_fresh in (False, True):
            chosen = [i for i, value in enumerate(fresh) if value == is_fresh]
            momentum = [None if is_fresh else buffers[i] for i in chosen]
            self._sgd(group, [params[i] for i in chosen], [grads[i] for i in chosen], momentum)
            for i, buffer in zip(chosen, momentum, strict=True):
                if is_fresh and buffer is not None:
                    self.state[params[i]].update(momentum_buffer=buffer, first_momentum=False)

    def _kernel_rule(self, group: dict[str, Any]) -> BaseRule:
        kind = "plain" if group["momentum"] == 0 else "nesterov" if group["nesterov"] else "momentum"
        return BaseRule(kind, *(group[name] for name in ("lr", "weight_decay", "momentum", "dampening", "maximize")))

    @staticmethod
    def _sgd(group: dict[str, Any], params: list[Tensor], grads: list[Tensor], momentum: list[Any]) -> None:
        if params:
            sgd(
                params,
                grads,
                momentum if group["momentum"] != 0 else [],
                has_sparse_grad=any(grad.is_sparse for grad in grads),
                **base_flags(group, params, grads, momentum),
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
            )
