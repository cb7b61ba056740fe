"""The state of a layer on its leash: how it begins, how it is given in the paper's layout, what may be loaded."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ftp import _sharded
from ftp._layers import GAMMA
from ftp._plan import LEASH_KEYS
from ftp.anchors import check_entries, check_params, plain_name
from ftp.projection import EPS, mars_norm, wide

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


def leash_state(param: Tensor, anchor: Tensor, group: dict[str, Any]) -> dict[str, Any]:
    """The state of one layer at the start: at its anchor, with the shortest leash.

    >>> state = leash_state(torch.ones(2, 3), torch.ones(2, 3), {"per_element": False, "low_memory": False})
    >>> list(state), state["gamma_state"]
    (['anchor', 'deviation', 'row_l1', 'gamma_state'], tensor([1.0000e-08, 0.0000e+00, 0.0000e+00, 0.0000e+00]))
    """
    per_element = group["per_element"]
    one_row = param.dim() < 2 and not per_element
    dtype = wide(param.dtype)
    rows = 1 if one_row or param.dim() == 0 else param.shape[0]
    anchor = torch.empty_like(param).copy_(_sharded.placed_like(param, anchor)).detach()
    state: dict[str, Any] = {"anchor": anchor}
    gamma_state = torch.zeros(4, dtype=dtype, device=param.device)
    if group["low_memory"]:
        # a shorter leash would leave no trace in the weights, and with it the direction would be lost
        resolution = 2 * torch.finfo(param.dtype).eps * mars_norm(_sharded.whole(anchor), per_element)
        state["floor"] = resolution.clamp(min=EPS)
        gamma_state[GAMMA] = state["floor"]
    else:
        state["deviation"] = torch.zeros_like(param).detach()
        gamma_state[GAMMA] = EPS
    state["row_l1"] = _sharded.empty_rows(param, rows, dtype, one_row)
    state["gamma_state"] = gamma_state
    return state


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


def check_state(saved: dict[str, Any], groups: list[dict[str, Any]], own: Mapping[Tensor, dict[str, Any]]) -> None:
    """A checkpoint must be of this kind of optimizer, with the same names on and off the leash.

    >>> from ftp import SGDP
    >>> optimizer = SGDP([torch.nn.Parameter(torch.zeros(2))])
    >>> check_state(optimizer.state_dict(), optimizer.param_groups, optimizer.state)
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
    for mine, theirs in zip(groups, saved["param_groups"], strict=False):  # torch compares the numbers of both
        missing = set(mine) - set(theirs) - {"param_names"}
        if missing:
            raise ValueError(
                f"the state dict has no {', '.join(sorted(missing))}; it was saved by the other base rule: "
                "SGDP and AdamP load only what they saved themselves"
            )
        names = mine.get("param_names") or [f"param.{i}" for i in range(len(mine["params"]))]
        for i, (name, param, key) in enumerate(zip(names, mine["params"], theirs["params"], strict=False)):
            name = plain_name(name)
            other = plain_name(theirs["param_names"][i]) if "param_names" in theirs else name
            if "param_names" in mine and other != name:
                raise ValueError(
                    f"the state dict has {other!r} where this optimizer has {name!r}; "
                    "give the parameters in the order in which they were saved"
                )
            anchor = saved["state"].get(key, {}).get("anchor")
            if (anchor is None) != ("anchor" not in own[param]):
                raise ValueError(
                    f"{name!r} is {'off' if anchor is None else 'on'} the leash in the state dict and "
                    f"{'on' if anchor is None else 'off'} it here; use the exclude_set that it was saved with"
                )
            if anchor is not None and anchor.shape != param.shape:
                raise ValueError(
                    f"the anchor of {name!r} in the state dict has shape {tuple(anchor.shape)} but the parameter has "
                    f"{tuple(param.shape)}; load a checkpoint of this model"
                )
