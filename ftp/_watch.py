"""Did something that is not a step move the weights: load_state_dict, a swap of averaged weights? Seen on the host."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ftp import _sharded
from ftp._layers import GAMMA, beside
from ftp._plan import layer_views
from ftp.projection import row_l1


def stamp(param: Tensor) -> tuple[int, int]:
    """Changes when a tensor is written to or its memory is replaced; nothing is read from the device.

    A write through `param.data` is invisible to torch's counter, and so to this.

    >>> weight = torch.zeros(2)
    >>> before = stamp(weight)
    >>> _ = weight.add_(1)
    >>> stamp(weight) == before
    False
    """
    return param._version, param.data_ptr() if type(param) is nn.Parameter else 0  # a DTensor has no address


def has_strayed(param: Tensor, state: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Whether a row is beyond its leash by more than rounding; of a sharded parameter, one of this rank's rows.

    >>> from ftp._options import LEASH_DEFAULTS
    >>> state = {"anchor": torch.zeros(1, 2), "gamma_state": torch.tensor([1.0, 0.0, 0.0, 3.0])}
    >>> [has_strayed(torch.tensor([[0.5, far]]), state, LEASH_DEFAULTS) for far in (0.5, 0.6)]
    [False, True]
    """
    if "anchor" not in state or param.is_meta:
        return False
    columns = {"param": _sharded.local(param), "anchor": _sharded.local(state["anchor"])}
    columns["gamma_state"] = state["gamma_state"]
    stacked = [layer_views([tensor], key, group) for key, tensor in columns.items()]
    for layer, anchor, gamma_state in zip(*stacked, strict=True):
        anchor = beside(layer, anchor)
        norms, lengths = row_l1(layer - anchor, group["per_element"]), row_l1(anchor, group["per_element"])
        rounding = 4 * torch.finfo(layer.dtype).eps * lengths
        if (norms > 1.001 * gamma_state[GAMMA] + rounding).any():
            return True
    return False


def moved_message(names: Sequence[str]) -> str:
    """What to say, once.

    >>> moved_message(["fc.weight"])[:60]
    "something that is not a step has moved 'fc.weight' off the l"
    """
    more = f" and {len(names) - 1} more" if names[1:] else ""
    return (
        f"something that is not a step has moved {names[0]!r}{more} off the leash since the last step, such as "
        "load_state_dict or a swap of averaged weights; this step pulls it back to the old anchor: call "
        "optimizer.reanchor() after loading other weights, or optimizer.load_state_dict to go back in time"
    )
