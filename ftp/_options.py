"""The rules for every number and word that an optimizer takes: one table, one form of message."""

import difflib
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

from torch import Tensor

Rule = tuple[Callable[[Any], bool], str]


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)  # NumPy's numbers too


def _at_least_zero(value: Any) -> bool:
    return _number(value) and 0 <= value < float("inf")


def _learning_rate(value: Any) -> bool:
    # a tensor may live on a GPU: its value is not read, so that nothing waits
    return value.numel() == 1 if isinstance(value, Tensor) else _at_least_zero(value)


def _betas(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(_number(b) and 0 <= b < 1 for b in value)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _maybe_flag(value: Any) -> bool:
    return value is None or isinstance(value, bool)


RULES: dict[str, Rule] = {
    "lr": (_learning_rate, "a number >= 0 or a tensor with one element"),
    "momentum": (_at_least_zero, "a number >= 0"),
    "dampening": (_number, "a number"),
    "weight_decay": (_at_least_zero, "a number >= 0"),
    "nesterov": (_flag, "True or False"),
    "betas": (_betas, "two numbers in [0, 1), such as (0.9, 0.999)"),
    "eps": (_at_least_zero, "a number >= 0"),
    "amsgrad": (_flag, "True or False"),
    "maximize": (_flag, "True or False"),
    "capturable": (_flag, "True or False"),
    "foreach": (_maybe_flag, "None, True or False"),
    "fused": (_maybe_flag, "None, True or False"),
    "k": (lambda v: _number(v) and 0 <= v <= 1, "a number from 0 to 1, such as 1.0 (the paper's default)"),
    "gamma_lr": (lambda v: _at_least_zero(v) and v > 0, "a number > 0, such as 1e-2 (the paper's mu)"),
    "gamma_betas": (_betas, "two numbers in [0, 1), such as (0.9, 0.999)"),
    "gamma_rows": (lambda v: v in ("all", "outside"), '"all" (the authors) or "outside" (the true derivative)'),
    "gamma_count": (lambda v: v in ("steps", "updates"), '"steps" (the authors) or "updates" (the textbook)'),
    "per_element": (_flag, "True or False"),
    "low_memory": (_flag, "True or False"),
    "hyper_lr": (_at_least_zero, "a number >= 0"),
}


# every other argument of an optimizer is an option that a group may set for itself
NOT_OPTIONS = ("self", "params", "anchors", "unknown", "__class__")

# what else an argument may be called: by its symbol in the paper, or as in other libraries
MEANT = {"kappa": "k", "mu": "gamma_lr", "pre": "anchors", "learning_rate": "lr", "wd": "weight_decay"}


def check_names(optimizer: str, unknown: Iterable[str], known: Iterable[str]) -> None:
    """Refuse arguments that an optimizer does not have, with the one that was probably meant.

    >>> check_names("SGDP", ["kappa"], known=["params", "lr", "k"])
    Traceback (most recent call last):
    TypeError: kappa is not an argument of SGDP; did you mean k?
    """
    names = list(known)
    for name in unknown:
        near = [MEANT[name]] if MEANT.get(name) in names else difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(names)}"
        raise TypeError(f"{name} is not an argument of {optimizer}; {hint}")


def check_group(group: dict[str, Any]) -> None:
    """Check every option of a parameter group; one sentence on the first that is wrong.

    >>> check_group({"k": 0.5, "lr": 0.1})
    >>> check_group({"k": 2})
    Traceback (most recent call last):
    ValueError: k is 2; it must be a number from 0 to 1, such as 1.0 (the paper's default)
    """
    for name, (allowed, words) in RULES.items():
        if name in group and not allowed(group[name]):
            raise ValueError(f"{name} is {group[name]!r}; it must be {words}")
    if group.get("nesterov") and (not group["momentum"] > 0 or group["dampening"] != 0):
        raise ValueError(
            f"nesterov=True with momentum={group['momentum']} and dampening={group['dampening']}; "
            "it must have momentum > 0 and dampening = 0"
        )
    if group.get("foreach") and group.get("fused"):
        raise ValueError("foreach=True and fused=True; it must be one of them: both are ways to run the base rule")
    if group.get("foreach") and isinstance(group.get("lr"), Tensor) and group.get("capturable") is False:
        raise ValueError(
            "lr is a tensor and foreach=True; it must be a number, or set foreach=False or capturable=True"
        )
