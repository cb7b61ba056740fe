"""What an optimizer takes: the options of the leash, and one table of rules for every value, one form of message."""

import difflib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd

from ftp.projection import is_dense

Rule = tuple[Callable[[Any], bool], str]


class LeashOptions(TypedDict, total=False):
    """What SGDP and AdamP take beside the arguments of torch's SGD and AdamW; see `ftp.SGDP` for what each means.

    >>> LeashOptions(k=0.5, exclude_set={"head.*"})["k"]
    0.5
    """

    k: float
    exclude_set: Iterable[str]
    anchors: Mapping[str, Tensor] | None
    leash: bool | None
    row_axis: int
    split: int
    product: float | None
    gamma_lr: float
    gamma_betas: tuple[float, float]
    gamma_rows: str
    gamma_count: str
    per_element: bool
    low_memory: bool
    anchor_dtype: torch.dtype | None
    anchor_device: str | torch.device | None
    stochastic_rounding: bool
    kernel: str | None


# what each option of the leash is when nobody says otherwise; every one but `anchors` may be set for a group
LEASH_DEFAULTS: dict[str, Any] = {
    "k": 1.0,
    "exclude_set": (),
    "leash": None,
    "row_axis": 0,
    "split": 1,
    "product": None,
    "gamma_lr": 1e-2,
    "gamma_betas": (0.9, 0.999),
    "gamma_rows": "all",
    "gamma_count": "steps",
    "per_element": False,
    "low_memory": False,
    "anchor_dtype": None,
    "anchor_device": None,
    "stochastic_rounding": False,
    "kernel": None,
}


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


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _maybe_float_dtype(value: Any) -> bool:
    return value is None or (isinstance(value, torch.dtype) and value.is_floating_point and value != torch.float16)


def _maybe_device(value: Any) -> bool:
    return value is None or isinstance(value, (str, torch.device))


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
    "differentiable": (lambda v: v is False, "False, because the projection writes in place"),
    "decoupled_weight_decay": (lambda v: v is True, "True, as in AdamW: AdamP has no other decay"),
    "foreach": (_maybe_flag, "None, True or False"),
    "fused": (_maybe_flag, "None, True or False"),
    "k": (lambda v: _number(v) and 0 <= v <= 1, "a number from 0 to 1, such as 1.0 (the paper's default)"),
    "gamma_lr": (lambda v: _at_least_zero(v) and v > 0, "a number > 0, such as 1e-2 (the paper's mu)"),
    "gamma_betas": (_betas, "two numbers in [0, 1), such as (0.9, 0.999)"),
    "gamma_rows": (lambda v: v in ("all", "outside"), '"all" (the authors) or "outside" (the true derivative)'),
    "gamma_count": (lambda v: v in ("steps", "updates"), '"steps" (the authors) or "updates" (the textbook)'),
    "per_element": (_flag, "True or False"),
    "low_memory": (_flag, "True or False"),
    "leash": (_maybe_flag, "True or None (on a leash, but for what exclude_set names) or False (free)"),
    "row_axis": (_whole(0), "a whole number >= 0: the axis that counts the outputs"),
    "split": (
        _whole(1),
        "a whole number >= 1: how many matrices are stacked along the row axis, such as 3 for q, k, v",
    ),
    "product": (
        lambda v: v is None or (_at_least_zero(v) and v > 0),
        "None, or for pairs A, B of LoRA a number > 0: the scale s of s B A",
    ),
    "anchor_dtype": (_maybe_float_dtype, "None (as the weights), torch.bfloat16, torch.float32 or torch.float64"),
    "anchor_device": (_maybe_device, 'None (with the weights) or a device, such as "cpu"'),
    "stochastic_rounding": (_flag, "True or False"),
    "kernel": (
        lambda v: v in (None, "eager", "triton", "native"),
        'None (the fastest at hand), "eager" (torch alone), "triton" (GPUs) or "native" (CPUs with a compiler)',
    ),
    "hyper_lr": (_at_least_zero, "a number >= 0"),
}


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


def gather(optimizer: str, arguments: dict[str, Any], leash: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an optimizer as one dict: those of its base rule and those of the leash.

    arguments: the `locals()` of the optimizer's constructor.

    >>> options = gather("SGDP", {"self": None, "params": [], "lr": 0.1, "leash": {}}, {"k": 0.5})
    >>> options["lr"], options["k"], options["gamma_lr"]
    (0.1, 0.5, 0.01)
    """
    base = {name: v for name, v in arguments.items() if name not in ("self", "params", "leash", "__class__")}
    unknown = [name for name in leash if name not in LeashOptions.__annotations__]
    check_names(optimizer, unknown, ("params", *base, *LeashOptions.__annotations__))
    return {**base, **LEASH_DEFAULTS, **leash}


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
    for name, meant in MEANT.items():
        if name in group:
            raise ValueError(f"a group has {name!r}, which nothing here reads; did you mean {meant!r}?")
    if group.get("nesterov") and (not group["momentum"] > 0 or group["dampening"] != 0):
        raise ValueError(
            f"nesterov=True with momentum={group['momentum']} and dampening={group['dampening']}; "
            "it must have momentum > 0 and dampening = 0"
        )
    if group.get("foreach") and group.get("fused"):
        raise ValueError("foreach=True and fused=True; it must be one of them: both are ways to run the base rule")
    if group.get("kernel") in ("triton", "native"):
        for flag in ("foreach", "fused"):
            if group.get(flag) is not None:
                raise ValueError(
                    f'kernel="{group["kernel"]}" and {flag}={group[flag]}; it must be one of them: the kernel runs the '
                    "base rule itself"
                )
    if group.get("foreach") and isinstance(group.get("lr"), Tensor) and group.get("capturable") is False:
        raise ValueError(
            "lr is a tensor and foreach=True; it must be a number, or set foreach=False or capturable=True"
        )


@functools.cache
def _fused_moves_bfloat16() -> bool:
    """Whether torch's fused SGD writes bfloat16 weights on a CPU; that of torch 2.6 leaves them where they are."""
    weight = torch.ones(16, dtype=torch.bfloat16)
    rates: Any = {"lr": 1.0, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0}
    sgd([weight], [weight.clone()], [None], fused=True, nesterov=False, maximize=False, **rates)
    return not weight.any()


def base_flags(
    group: Mapping[str, Any], params: Sequence[Tensor], grads: Sequence[Tensor], *moments: Sequence[Tensor | None]
) -> dict[str, Any]:
    """How torch shall run the base rule: as the flags of the group say, and without flags fused, where it can.

    moments: the state of the base rule that has the shape of the parameters

    >>> weight = torch.zeros(2, 3)
    >>> base_flags({"foreach": None, "fused": None}, [weight], [weight])
    {'foreach': None, 'fused': True}
    >>> base_flags({"foreach": True, "fused": None}, [weight], [weight])
    {'foreach': True, 'fused': None}
    """
    flags = {"foreach": group["foreach"], "fused": group["fused"]}
    unasked = flags["foreach"] is None and flags["fused"] is None
    if torch.compiler.is_compiling() or not (unasked or flags["fused"]) or any(grad.is_sparse for grad in grads):
        return flags
    # torch's fused rules walk over memory and do not look at strides: what lies in another order is paired wrongly
    layouts = [(param.stride(), param.dtype) for param in params]
    sound = all(map(is_dense, params)) and all(
        tensor is None or (tensor.stride(), tensor.dtype) == layout
        for column in (grads, *moments)
        for tensor, layout in zip(column, layouts, strict=True)
    )
    if any(p.dtype == torch.bfloat16 and p.device.type == "cpu" for p in params):
        sound = sound and _fused_moves_bfloat16()
    if not unasked:
        return {**flags, "fused": sound}
    kinds = {
        (type(p) in (Tensor, nn.Parameter), p.is_floating_point(), p.device.type in ("cpu", "cuda")) for p in params
    }
    return {**flags, "fused": True} if sound and kinds == {(True, True, True)} else flags
