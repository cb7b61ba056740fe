"""The state of a layer on its leash: how it begins, how it is given in the paper's layout, what may be loaded."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from ftp import _sharded
from ftp._layers import GAMMA
from ftp._options import LEASH_DEFAULTS
from ftp._plan import LEASH_KEYS
from ftp.anchors import check_entries, check_params, group_labels, on_leash
from ftp.projection import EPS, cut, mars_norm, wide

KEPT_WIDE = ("row_l1", "gamma_state", "floor")  # float32 or better, whatever the weights are


def appendix_layout(group: dict[str, Any]) -> list[Any] | None:
    """Take `name` and `pre` of the paper's Appendix 8.7 out of a group; returns the anchors, if given.

    >>> group = {"params": [torch.zeros(2)], "pre": [torch.ones(2)], "name": ["w"]}
    >>> appendix_layout(group), group
    ([tensor([1., 1.])], {'params': [('w', tensor([0., 0.]))]})
    """
    params = group["params"]
    if isinstance(params, set):
        raise TypeError("a group's params are a set, which has no order; give a list or model.named_parameters()")
    params = [params] if isinstance(params, Tensor) else params
    check_params(params)
    params = group["params"] = list(params)
    if isinstance(group.get("name"), (list, tuple)):  # a string is a group's own label
        names = list(group.pop("name"))
        if len(names) != len(params):
            raise ValueError(
                f'a group has {len(params)} parameters and {len(names)} entries in "name"; give one name per parameter'
            )
        group["params"] = list(zip(names, params, strict=True))
    check_entries(group["params"])
    named = sum(isinstance(entry, tuple) for entry in group["params"])
    if named not in (0, len(params)):
        raise ValueError(
            f"{named} of {len(params)} parameters of a group have a name; name all of them or none: "
            "pass model.named_parameters()"
        )
    if "pre" not in group:
        return None
    given = group.pop("pre")
    given = [given] if isinstance(given, Tensor) else list(given)
    if len(given) != len(params):
        raise ValueError(
            f'a group has {len(params)} parameters and {len(given)} entries in "pre"; give one anchor per parameter'
        )
    return given


def leash_state(param: Tensor, anchor: Tensor, group: Mapping[str, Any]) -> dict[str, Any]:
    """The state of one parameter at the start: at its anchor, with the shortest leash.

    With `split` the parameter is several layers, each with a leash of its own: gamma_state has shape (split, 4).

    >>> from ftp._options import LEASH_DEFAULTS
    >>> state = leash_state(torch.ones(2, 3), torch.ones(2, 3), LEASH_DEFAULTS)
    >>> list(state), state["gamma_state"]
    (['anchor', 'deviation', 'row_l1', 'gamma_state'], tensor([1.0000e-08, 0.0000e+00, 0.0000e+00, 0.0000e+00]))
    """
    if group["product"] is not None:
        return product_state(param)
    per_element, split = group["per_element"], group["split"]
    one_row = param.dim() < 2 and not per_element
    dtype = wide(param.dtype)
    state: dict[str, Any] = {"anchor": anchor_copy(param, anchor, group)}
    gamma_state = torch.zeros((4,) if split == 1 else (split, 4), dtype=dtype, device=param.device)
    if group["low_memory"]:
        # a shorter leash would leave no trace in the weights, and with it the direction would be lost
        stacked = cut(_sharded.whole(state["anchor"]).to(param.device), group["row_axis"], split)
        largest = torch.stack([mars_norm(layer, per_element) for layer in stacked]).to(dtype)
        floor = (2 * torch.finfo(param.dtype).eps * largest).clamp(min=EPS)
        state["floor"] = floor[0] if split == 1 else floor
        gamma_state[..., GAMMA] = state["floor"]
    else:
        state["deviation"] = torch.zeros_like(param).detach()
        gamma_state[..., GAMMA] = EPS
    row_axis = group["row_axis"] if param.dim() > 1 else 0
    rows = split if one_row or param.dim() == 0 else param.shape[row_axis]
    state["row_l1"] = _sharded.empty_rows(param, rows, dtype, one_row)
    state["gamma_state"] = gamma_state
    return state


def product_state(left: Tensor) -> dict[str, Any]:
    """The state of B of a pair A, B: s B A begins at zero, with the shortest leash.

    >>> product_state(torch.zeros(3, 2))["row_l1"]
    tensor([0., 0., 0.])
    """
    gamma_state = torch.zeros(4, dtype=wide(left.dtype), device=left.device)
    gamma_state[GAMMA] = EPS
    rows = torch.zeros(left.shape[0], dtype=wide(left.dtype), device=left.device)
    return {"anchor": torch.zeros_like(left).detach(), "row_l1": rows, "gamma_state": gamma_state}


def check_zero(lefts: Iterable[Tensor], when: str) -> None:
    """Refuse a LoRA pair that is trained already: its leash ties s B A to zero. Reads from the device.

    >>> check_zero([torch.zeros(3, 2)], "at its first step")
    """
    if any(not left.is_meta and bool(left.any()) for left in lefts):
        raise ValueError(
            f"B of a LoRA pair is not zero {when}; the leash ties s B A to zero, where a new adapter begins: to go on "
            "with a trained one load the optimizer's state too, give its group leash=False, or merge it into the "
            "weights and begin a new one"
        )


def anchor_copy(param: Tensor, anchor: Tensor, group: Mapping[str, Any]) -> Tensor:
    """A copy of an anchor as the group keeps it: laid out as the parameter, in `anchor_dtype`, on `anchor_device`.

    >>> anchor_copy(torch.zeros(2), torch.ones(2), {"anchor_dtype": torch.bfloat16, "anchor_device": None}).dtype
    torch.bfloat16
    """
    dtype, device = group["anchor_dtype"], group["anchor_device"]
    like: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    if device is not None and torch.device(device) != param.device:
        # pinned memory lets a GPU fetch the anchor without making the CPU wait
        like |= {"device": device, "pin_memory": param.is_cuda and torch.device(device).type == "cpu"}
    return torch.empty_like(param, **like).copy_(_sharded.placed_like(param, anchor)).detach()


def own_copy(value: Any, param: Tensor) -> Any:
    """What a checkpoint holds, in memory of its own: torch lets the state share the state dict's, and a step would
    write into both. What has the shape of the parameter lies in memory as it does.

    >>> saved = torch.zeros(2, 3).t()
    >>> own_copy(saved, torch.zeros(3, 2)).stride(), own_copy(0.5, torch.zeros(3))
    ((2, 1), 0.5)
    """
    if not isinstance(value, Tensor):
        return value
    if value.shape != param.shape or _sharded.is_sharded(value):
        return value.clone()
    return torch.empty_like(param, dtype=value.dtype, device=value.device).copy_(value)


def unpack(state: dict[str, Any]) -> None:
    """Give every packed tensor of a layer's state its own memory again.

    >>> state = {"gamma_state": torch.zeros(2, 4)[0]}
    >>> unpack(state)
    >>> state["gamma_state"].untyped_storage().nbytes()
    16
    """
    for key in LEASH_KEYS:
        value = state.get(key)
        if not isinstance(value, Tensor) or _sharded.is_sharded(value):
            continue
        if value.untyped_storage().nbytes() > value.numel() * value.element_size():
            state[key] = value.clone()


def check_state(saved: dict[str, Any], groups: list[dict[str, Any]]) -> None:
    """A checkpoint must be of this kind of optimizer, with the same names on and off the leash.

    >>> from ftp import SGDP
    >>> optimizer = SGDP([torch.nn.Parameter(torch.zeros(2))])
    >>> check_state(optimizer.state_dict(), optimizer.param_groups)
    """
    if "state" not in saved or "param_groups" not in saved:
        raise ValueError(
            f"the state dict has the keys {sorted(map(str, saved))}; it must have state and param_groups: "
            "pass what optimizer.state_dict() returned"
        )
    if not all("exclude_set" in group for group in saved["param_groups"]):
        raise ValueError(
            "the state dict has no anchors and no constraints, so it was not saved by SGDP or AdamP; "
            "to go on from another optimizer's checkpoint, load the model and start a new optimizer with anchors="
        )
    pairs = zip(groups, group_labels(groups), saved["param_groups"], group_labels(saved["param_groups"]), strict=False)
    for mine, labels, theirs, other_labels in pairs:  # torch compares the numbers of groups and parameters
        # what an older version did not save keeps its default
        newer = {"param_names", "differentiable", "decoupled_weight_decay", *LEASH_DEFAULTS}
        missing = set(mine) - set(theirs) - newer
        if missing:
            raise ValueError(
                f"the state dict has no {', '.join(sorted(missing))}; it was saved by the other base rule: "
                "SGDP and AdamP load only what they saved themselves"
            )
        if "param_names" not in mine or "param_names" not in theirs:
            other_labels = labels
        columns = zip(
            labels,
            other_labels,
            on_leash(labels, mine),
            on_leash(other_labels, theirs),
            mine["params"],
            theirs["params"],
            strict=False,
        )
        for label, other, is_on, was_on, param, key in columns:
            if other != label:
                raise ValueError(
                    f"the state dict has {other!r} where this optimizer has {label!r}; "
                    "give the parameters in the order in which they were saved"
                )
            state = saved["state"].get(key, {})
            if is_on != was_on or (is_on and state and param.numel() and "anchor" not in state):
                raise ValueError(
                    f"{label!r} is {'off' if is_on else 'on'} the leash in the state dict and "
                    f"{'on' if is_on else 'off'} it here; use the exclude_set and leash that it was saved with"
                )
            if "anchor" in state and state["anchor"].shape != param.shape:
                raise ValueError(
                    f"the anchor of {label!r} in the state dict has shape {tuple(state['anchor'].shape)} but the "
                    f"parameter has {tuple(param.shape)}; load a checkpoint of this model"
                )
            shape = (4,) if mine["split"] == 1 else (mine["split"], 4)
            if "gamma_state" in state and state["gamma_state"].shape != shape:
                raise ValueError(
                    f"{label!r} has a gamma_state of shape {tuple(state['gamma_state'].shape)} in the state dict and "
                    f"split={mine['split']} here; use the split that it was saved with"
                )
