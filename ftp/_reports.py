"""Where every layer is on its leash, as numbers: what `constraints()` and `report()` return. Reads from the device."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ftp import _sharded
from ftp._layers import GAMMA, beside
from ftp._plan import layer_views
from ftp._product import partners, product
from ftp.projection import mars_norm, wide


class LayerReport(NamedTuple):
    """One layer on its leash, as numbers.

    >>> LayerReport(gamma=0.5, distance=0.4, boundary=0.0, rows=8).gamma
    0.5
    """

    gamma: float  # the constraint: how far a row may go
    distance: float  # how far the farthest row is: the MARS norm of W - W0
    boundary: float  # the share of rows that the last step pulled back, 0 to 1
    rows: int


class Leashed(NamedTuple):
    """One parameter on a leash, with its state and the options of its group.

    >>> Leashed("fc.weight", torch.zeros(2, 2), {}, {}).label
    'fc.weight'
    """

    label: str
    param: Tensor
    state: Mapping[str, Any]
    group: Mapping[str, Any]


def layer_names(label: str, split: int) -> list[str]:
    """The names of the layers that are stacked in a parameter.

    >>> layer_names("qkv.weight", 3), layer_names("weight", 1)
    (['qkv.weight[0]', 'qkv.weight[1]', 'qkv.weight[2]'], ['weight'])
    """
    return [label] if split == 1 else [f"{label}[{i}]" for i in range(split)]


def distance(leashed: Leashed) -> Tensor:
    """W - W0 of a whole parameter, in float32 or better; of a LoRA pair s B A.

    >>> from ftp._options import LEASH_DEFAULTS
    >>> distance(Leashed("w", torch.ones(2), {"anchor": torch.zeros(2)}, LEASH_DEFAULTS))
    tensor([1., 1.])
    """
    _, param, state, group = leashed
    if group["product"] is not None:
        return product(group["product"], param, partners(group)[id(param)])
    weights, dtype = _sharded.whole(param), wide(param.dtype)
    return weights.to(dtype) - beside(weights, _sharded.whole(state["anchor"])).to(dtype)


def read_gammas(parameters: Iterable[Leashed]) -> dict[str, float]:
    """gamma of every layer, by name.

    >>> state = {"gamma_state": torch.tensor([0.5, 0.0, 0.0, 9.0])}
    >>> read_gammas([Leashed("w", torch.zeros(2), state, {"split": 1})])
    {'w': 0.5}
    """
    gammas: dict[str, Tensor] = {}
    for label, _, state, group in parameters:
        values = state["gamma_state"].view(-1, 4)[:, GAMMA].unbind()
        gammas |= zip(layer_names(label, group["split"]), values, strict=True)
    numbers = torch.stack([gamma.cpu().double() for gamma in gammas.values()]).tolist() if gammas else []
    return dict(zip(gammas, numbers, strict=True))


def read_reports(parameters: Iterable[Leashed]) -> dict[str, LayerReport]:
    """gamma, distance, share of rows on the boundary and number of rows of every layer, by name.

    >>> read_reports([])
    {}
    """
    names, sizes, values = [], [], []
    for leashed in parameters:
        label, _, state, group = leashed
        columns = {
            "gamma_state": state["gamma_state"],
            "row_l1": _sharded.whole(state["row_l1"]),
            "param": distance(leashed),
        }
        stacked = [layer_views([tensor], key, group) for key, tensor in columns.items()]
        for name, gamma_state, norms, layer in zip(layer_names(label, group["split"]), *stacked, strict=True):
            gamma = gamma_state[GAMMA]
            values += [gamma, mars_norm(layer, group["per_element"]), (norms > gamma).to(gamma.dtype).mean()]
            names.append(name)
            sizes.append(norms.numel())
    if len({value.device for value in values}) > 1:
        values = [value.cpu() for value in values]
    rows = torch.stack(values).view(-1, 3).tolist() if values else []  # one read for all layers
    numbers = zip(names, rows, sizes, strict=True)
    return {name: LayerReport(gamma, far, share, size) for name, (gamma, far, share), size in numbers}
