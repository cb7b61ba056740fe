"""Which layers of a group go one by one and which are packed; made once, and again when something changed."""

from collections.abc import Sequence
from operator import is_
from typing import Any

from torch import Tensor

from ftp import _sharded
from ftp._layers import Layers
from ftp._packed import FEWEST, Pack, is_small

# what the state of a leashed layer holds, in the order of the fields of Layers; the first marks a layer as leashed
LEASH_KEYS = ("gamma_state", "anchor", "deviation", "row_l1", "floor")


class Plan:
    """The parts into which the leashed layers of one group fall: by device, dtype, sharding and size.

    >>> import torch
    >>> from ftp import SGDP
    >>> params = [torch.nn.Parameter(torch.zeros(shape)) for shape in ((3, 3), (3,), (2, 2), (2,), (500, 500))]
    >>> states = SGDP(params).state
    >>> plan = Plan(params, [states[p] for p in params], per_element=False)
    >>> [type(part).__name__ for part in plan.parts(grads=params)]
    ['Pack', 'Layers']
    """

    def __init__(
        self, params: list[Tensor], states: Sequence[dict[str, Any]], per_element: bool, may_pack: bool = True
    ) -> None:
        self._params = params
        chosen: dict[Any, list[int]] = {}
        for i, (param, state) in enumerate(zip(params, states, strict=True)):
            if "gamma_state" in state:
                sharding = (param.device_mesh, param.placements) if _sharded.is_sharded(param) else None  # type: ignore[attr-defined]
                small = may_pack and sharding is None and is_small(param)
                chosen.setdefault((param.device, param.dtype, sharding, small), []).append(i)
        self._chosen: list[list[int]] = []
        self._parts: list[Layers | Pack] = []
        for (_, _, placed, small), indices in chosen.items():
            own = [states[i] for i in indices]
            if small and len(indices) >= FEWEST:
                part: Layers | Pack = Pack([params[i] for i in indices], own)
            else:
                columns: Any = [[_sharded.local(state.get(key)) for state in own] for key in LEASH_KEYS]
                local = [_sharded.local(params[i]) for i in indices]
                part = Layers(local, [], *columns)  # in the order of its fields
                if placed is not None:
                    one_row = tuple(params[i].dim() < 2 and not per_element for i in indices)
                    part.sharding = _sharded.Sharding(placed[0], placed[1], one_row)
            self._chosen.append(indices)
            self._parts.append(part)
        self._sharded = any(key[2] is not None for key in chosen)
        self._gamma_states = [state.get("gamma_state") for state in states]  # after packing: the views

    def holds(self, params: list[Tensor], gamma_states: list[Any]) -> bool:
        """Whether the same parameters have gradients as before, and their state was not replaced."""
        return (
            len(params) == len(self._params)
            and all(map(is_, params, self._params))
            and all(map(is_, gamma_states, self._gamma_states))
        )

    def parts(self, grads: list[Tensor]) -> list[Layers | Pack]:
        """The parts with the gradients of this step."""
        for indices, part in zip(self._chosen, self._parts, strict=True):
            own = [grads[i] for i in indices]
            part.grads = [_sharded.local(grad) for grad in own] if self._sharded else own
        return self._parts
