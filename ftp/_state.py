"""The state of a layer on its leash: how it begins, how it is given in the paper's layout, what may be loaded."""

from typing import Any

import torch
from torch import Tensor

from ftp import _sharded
from ftp._layers import GAMMA
from ftp._plan import LEASH_KEYS
from ftp.projection import EPS, mars_norm, wide

KEPT_WIDE = ("row_l1", "constraint", "floor")  # float32 or better, whatever the weights are


def appendix_layout(group: dict[str, Any]) -> list[Any] | None:
    """Take `name` and `pre` of the paper's Appendix 8.7 out of a group; returns the anchors, if given.

    >>> group = {"params": [torch.zeros(2)], "pre": [torch.ones(2)], "name": ["w"]}
    >>> appendix_layout(group), group
    ([tensor([1., 1.])], {'params': [('w', tensor([0., 0.]))]})
    """
    params = group["params"]
    if isinstance(group.get("name"), (list, tuple)) and not isinstance(params, Tensor):  # a string is a group's label
        names, params = list(group.pop("name")), list(params)
        if len(names) != len(params):
            raise ValueError(
                f'a group has {len(params)} parameters and {len(names)} entries in "name"; give one name per parameter'
            )
        group["params"] = list(zip(names, params, strict=True))
    if "pre" not in group:
        return None
    given = list(group.pop("pre"))
    group["params"] = [group["params"]] if isinstance(group["params"], Tensor) else list(group["params"])
    if len(given) != len(group["params"]):
        raise ValueError(
            f'a group has {len(group["params"])} parameters and {len(given)} entries in "pre"; '
            "give one anchor per parameter"
        )
    return given


def leash_state(param: Tensor, anchor: Tensor, group: dict[str, Any]) -> dict[str, Any]:
    """The state of one layer at the start: at its anchor, with the shortest leash.

    >>> state = leash_state(torch.ones(2, 3), torch.ones(2, 3), {"per_element": False, "low_memory": False})
    >>> list(state), state["constraint"]
    (['anchor', 'deviation', 'row_l1', 'constraint'], tensor([1.0000e-08, 0.0000e+00, 0.0000e+00, 0.0000e+00]))
    """
    per_element = group["per_element"]
    one_row = param.dim() < 2 and not per_element
    dtype = wide(param.dtype)
    rows = 1 if one_row or param.dim() == 0 else param.shape[0]
    anchor = torch.empty_like(param).copy_(anchor).detach()
    state: dict[str, Any] = {"anchor": anchor}
    constraint = torch.zeros(4, dtype=dtype, device=param.device)
    if group["low_memory"]:
        # a shorter leash would leave no trace in the weights, and with it the direction would be lost
        resolution = 2 * torch.finfo(param.dtype).eps * mars_norm(_sharded.whole(anchor), per_element)
        state["floor"] = resolution.clamp(min=EPS)
        constraint[GAMMA] = state["floor"]
    else:
        state["deviation"] = torch.zeros_like(param).detach()
        constraint[GAMMA] = EPS
    state["row_l1"] = _sharded.empty_rows(param, rows, dtype, one_row)
    state["constraint"] = constraint
    return state


def unpack(state: dict[str, Any]) -> None:
    """Give every packed tensor of a layer's state its own memory again.

    >>> state = {"constraint": torch.zeros(2, 4)[0]}
    >>> unpack(state)
    >>> state["constraint"]._base is None
    True
    """
    for key in LEASH_KEYS:
        if isinstance(state.get(key), Tensor) and state[key]._base is not None:
            state[key] = state[key].clone()


def check_state(state_dict: dict[str, Any]) -> None:
    """A checkpoint of another optimizer has no anchors; loading it would cut every leash.

    >>> from ftp import SGDP
    >>> check_state(SGDP([torch.nn.Parameter(torch.zeros(2))]).state_dict())
    """
    if "state" not in state_dict or "param_groups" not in state_dict:
        raise ValueError(
            f"the state dict has the keys {sorted(map(str, state_dict))}; it must have state and param_groups: "
            "pass what optimizer.state_dict() returned"
        )
    if not all("exclude_set" in group for group in state_dict["param_groups"]):
        raise ValueError(
            "the state dict has no anchors and no constraints, so it was not saved by SGDP or AdamP; "
            "to go on from another optimizer's checkpoint, load the model and start a new optimizer with anchors="
        )
