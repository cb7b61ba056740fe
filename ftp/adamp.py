"""AdamP: AdamW on a learned leash (Alg. 1 with AdamW as the base rule)."""

from collections.abc import Iterable, Mapping
from typing import Any, Never

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.optimizer import ParamsT

from ftp._options import NOT_OPTIONS, check_names
from ftp._projected import Projected


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

    Differs from torch.optim.AdamW: `differentiable` and tensor betas are not offered; with `fused=True` a GradScaler
    unscales before the step instead of inside it. Without `fused` torch keeps Adam's step count on
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
        k: float = 1.0,
        exclude_set: Iterable[str] = (),
        anchors: Mapping[str, Tensor] | None = None,
        gamma_lr: float = 1e-2,
        gamma_betas: tuple[float, float] = (0.9, 0.999),
        gamma_rows: str = "all",
        gamma_count: str = "steps",
        per_element: bool = False,
        low_memory: bool = False,
        **unknown: Never,  # there is none: a typing mistake gets a hint
    ) -> None:
        options = {key: v for key, v in locals().items() if key not in NOT_OPTIONS}
        check_names(type(self).__name__, unknown, ("params", *options, "anchors"))
        super().__init__(params, options, anchors)

    def _base_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        on_device = group["capturable"] or group["fused"]
        state = {
            "step": torch.zeros((), dtype=torch.float32, device=param.device if on_device else "cpu"),
            "exp_avg": torch.zeros_like(param),
            "exp_avg_sq": torch.zeros_like(param),
        }
        return {**state, "max_exp_avg_sq": torch.zeros_like(param)} if group["amsgrad"] else state

    def _base_rule(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], *state: list[Any]) -> None:
        exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps = state
        beta1, beta2 = group["betas"]
        adamw(
            params,
            grads,
            exp_avgs,
            exp_avg_sqs,
            max_exp_avg_sqs if group["amsgrad"] else [],
            steps,
            foreach=group["foreach"],
            capturable=group["capturable"],
            fused=group["fused"],
            has_complex=any(torch.is_complex(param) for param in params),
            amsgrad=group["amsgrad"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )
