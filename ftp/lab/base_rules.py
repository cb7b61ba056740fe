"""The base rules that a run can choose, plain and on a leash. A new one is a row of `BASE_RULES`. Without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ftp.lab.record import Settings

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from ftp._projected import Projected

Make = Callable[..., "Optimizer"]


@dataclass(frozen=True)
class BaseRule:
    """Where the plain optimizer and the one on a leash are, and which settings both take."""

    plain: Callable[[], Make]
    leashed: Callable[[], Make]
    arguments: Callable[[Settings], dict[str, Any]]


def _sgd() -> Make:
    from torch.optim import SGD

    return SGD


def _sgdp() -> Make:
    from ftp import SGDP

    return SGDP


def _adamw() -> Make:
    from torch.optim import AdamW

    return AdamW


def _adamp() -> Make:
    from ftp import AdamP

    return AdamP


def _with_momentum(settings: Settings) -> dict[str, Any]:
    return {"momentum": settings.momentum, "nesterov": settings.momentum > 0}


BASE_RULES: Mapping[str, BaseRule] = {
    "sgd": BaseRule(_sgd, _sgdp, _with_momentum),  # with Nesterov's momentum
    "adamw": BaseRule(_adamw, _adamp, lambda settings: {}),
}


def base_optimizer(groups: list[dict[str, Any]], settings: Settings) -> Optimizer:
    """The plain base rule. A group's `lr_scale` multiplies its learning rate."""
    rule = BASE_RULES[settings.optimizer]
    return rule.plain()(groups, **_shared(rule, settings))


def leashed_optimizer(params: Any, settings: Settings, **leash: Any) -> Projected:
    """The same rule on a learned leash; `leash` are the options of `ftp.SGDP` that the plain rule does not have."""
    rule = BASE_RULES[settings.optimizer]
    optimizer: Any = rule.leashed()(params, **_shared(rule, settings), **leash)
    return optimizer  # type: ignore[no-any-return]


def _shared(rule: BaseRule, settings: Settings) -> dict[str, Any]:
    return {"lr": settings.lr, "weight_decay": settings.weight_decay, **rule.arguments(settings)}
