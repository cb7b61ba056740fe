"""AdamP: AdamW on a learned leash (Alg. 1 with AdamW as the base rule)."""

from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.optimizer import ParamsT
from typing_extensions import Unpack

from ftp._options import LeashOptions, base_flags, gather
from ftp._projected import Projected
from ftp._twopass import BaseRule


class AdamP(Projected):
    """A drop-in for `torch.optim.AdamW` that ties every layer to its starting weights.

    >>> model = torch.nn.Linear(4, 2)
    >>> optimizer = AdamP(model.named_parameters(), lr=1e-3, weight_decay=0.1, exclude_set={"bias"})
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     model(torch.ones(8, 4)).square().mean().backward()
    ...     optimizer.step()
    >>> optimizer.report()["weight"].rows
    2

    Arguments as in `torch.optim.AdamW`; the leash's as in `ftp.SGDP`.

    Differs from torch.optim.AdamW: `differentiable` must be False and betas are numbers; with `fused=True` a GradScaler
    unscales before the step instead of inside it. With `foreach` torch keeps Adam's step count on
    the CPU and reads it there; nothing is read from the device.
    Differs from the paper: see `ftp.projection` and `ftp.constraint`.
    """

    _base_keys = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        fused: bool | None = None,
        differentiable: bool = False,
        decoupled_weight_decay: bool = True,
        **leash: Unpack[LeashOptions],
    ) -> None:
        super().__init__(params, gather(type(self).__name__, locals(), leash))

    def _base_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        unasked = group["foreach"] is None and group["fused"] is None
        on_device = group["capturable"] or group["fused"] or (unasked and param.is_cuda)
        state = {
            "step": torch.zeros((), dtype=torch.float32, device=param.device if on_device else "cpu"),
            "exp_avg": torch.zeros_like(param),
            "exp_avg_sq": torch.zeros_like(param),
        }
        return {**state, "max_exp_avg_sq": torch.zeros_like(param)} if group["amsgrad"] else state

    def _kernel_rule(self, group: dict[str, Any]) -> BaseRule:
        kind, (beta1, beta2) = "amsgrad" if group["amsgrad"] else "adam", group["betas"]
        same = {name: group[name] for name in ("lr", "weight_decay", "maximize", "eps")}
        return BaseRule(kind, momentum=beta1, beta2=beta2, **same)

    def _base_rule(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], *state: list[Any]) -> None:
        exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps = state
        beta1, beta2 = group["betas"]
        flags = base_flags(group, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)
        if flags["fused"]:  # a checkpoint may have left the step counts on the CPU
            for i, (param, step) in enumerate(zip(params, steps, strict=True)):
                if step.device != param.device:
                    steps[i] = self.state[param]["step"] = step.to(param.device)
        adamw(
            params,
            grads,
            exp_avgs,
            exp_avg_sqs,
            max_exp_avg_sqs if group["amsgrad"] else [],
            steps,
            **flags,
            capturable=group["capturable"],
            has_complex=any(torch.is_complex(param) for param in params),
            amsgrad=group["amsgrad"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )
