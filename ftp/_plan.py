"""Which layers of a group go one by one, which are packed, and which have a kernel of our own; made once, and again
when something changed.
"""

import importlib.util
import os
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import is_
from typing import Any

import torch
from torch import Tensor

from ftp import _sharded
from ftp._layers import Layers
from ftp._packed import FEWEST, Pack, is_small
from ftp._twopass import BaseRule, Kernel, TwoPass, can_walk
from ftp.projection import cut

# what the state of a leashed layer holds, in the order of the fields of Layers; the first marks a layer as leashed
LEASH_KEYS = ("gamma_state", "anchor", "deviation", "row_l1", "floor")
HELD = LEASH_KEYS[:2]  # what somebody may put in place of what a plan was made for


class Plan:
    """The parts into which the leashed layers of one group fall: by device, dtype, sharding and size.

    >>> import torch
    >>> from ftp import SGDP
    >>> shapes = {"a": (3, 3), "b": (3,), "c": (2, 2), "d": (2,), "e": (500, 500)}
    >>> optimizer = SGDP([(name, torch.nn.Parameter(torch.zeros(shape))) for name, shape in shapes.items()])
    >>> optimizer.anchor()
    >>> group = optimizer.param_groups[0]
    >>> rule = optimizer._kernel_rule(group)
    >>> plan = Plan(group["params"], [optimizer.state[p] for p in group["params"]], [], group, rule)
    >>> [type(part).__name__ for part in plan.parts(group["params"], rule)]
    ['Pack', 'Layers']
    """

    def __init__(
        self,
        params: list[Tensor],
        states: Sequence[dict[str, Any]],
        base: Sequence[Sequence[Any]],
        group: Mapping[str, Any],
        rule: BaseRule,
        may_pack: bool = True,
    ) -> None:
        self._params, self._group, self._kind = params, group, rule.kind
        self._base = [value for value in chain.from_iterable(base) if isinstance(value, Tensor)]
        self._kernel = group["kernel"]
        chosen: dict[Any, list[int]] = {}
        for i, (param, state) in enumerate(zip(params, states, strict=True)):
            if "gamma_state" in state:
                sharding = (param.device_mesh, param.placements) if _sharded.is_sharded(param) else None  # type: ignore[attr-defined]
                at_home = (state["anchor"].dtype, state["anchor"].device) == (param.dtype, param.device)
                simple = group["row_axis"] == 0 and at_home and sharding is None
                flat = simple and (may_pack or group["kernel"] is not None) and can_walk(param, state, rule.kind)
                kernel = pick_kernel(group, param.device) if flat else None
                roomy = may_pack and not group["low_memory"]
                small = simple and roomy and group["split"] == 1 and is_small(param)
                chosen.setdefault((param.device, param.dtype, sharding, kernel or small), []).append(i)
        self._parts: list[tuple[list[int], Layers | Pack | TwoPass]] = []
        for (_, _, sharding, how), indices in chosen.items():
            members = [states[i] for i in indices]
            if isinstance(how, type):
                own = [params[i] for i in indices]
                self._parts.append((indices, TwoPass(own, members, rule.kind, how, group["split"])))
                continue
            if how and len(indices) >= FEWEST:
                self._parts.append((indices, Pack([params[i] for i in indices], members)))
                continue
            local = _sharded.local if sharding is not None else lambda tensor: tensor
            columns: Any = [layer_views([local(state.get(key)) for state in members], key, group) for key in LEASH_KEYS]
            weights = layer_views([local(params[i]) for i in indices], "param", group)
            part = Layers(weights, [], *columns)  # in the order of its fields
            if sharding is not None:
                one_row = tuple(params[i].dim() < 2 and not group["per_element"] for i in indices)
                part.sharding = _sharded.Sharding(sharding[0], sharding[1], one_row)
            self._parts.append((indices, part))
        self._own = [state.get(key) for key in HELD for state in states]  # after packing: the views
        by_kernel = {i for indices, part in self._parts if isinstance(part, TwoPass) for i in indices}
        # those whose base rule no kernel runs; None if that is all of them
        self.rest = [i for i in range(len(params)) if i not in by_kernel] if by_kernel else None

    def holds(
        self, params: list[Tensor], columns: Sequence[Sequence[Any]], base: Sequence[Sequence[Any]], kind: str
    ) -> bool:
        """Whether the same parameters have gradients as before, and their state was not replaced.

        columns: of the leash's state, those that `HELD` names
        """
        same = (
            self._group["kernel"] == self._kernel
            and len(params) == len(self._params)
            and all(map(is_, params, self._params))
            and all(map(is_, chain.from_iterable(columns), self._own))
        )
        if not same or self.rest is None:
            return same
        tensors = [value for value in chain.from_iterable(base) if isinstance(value, Tensor)]
        if kind != self._kind or len(tensors) != len(self._base) or not all(map(is_, tensors, self._base)):
            return False
        return all(part.holds() for _, part in self._parts if isinstance(part, TwoPass))

    def parts(self, grads: list[Tensor], rule: BaseRule) -> list[Layers | Pack | TwoPass]:
        """The parts with the gradients and the base rule of this step."""
        for indices, part in self._parts:
            gradients, weights = [grads[i] for i in indices], [self._params[i] for i in indices]
            if isinstance(part, Layers):
                if part.sharding is not None:
                    gradients, weights = list(map(_sharded.local, gradients)), list(map(_sharded.local, weights))
                # anew in every step: `param.data` may have been replaced since, and a view would keep the old one
                gradients, part.params = (
                    layer_views(gradients, "grad", self._group),
                    layer_views(weights, "param", self._group),
                )
            elif isinstance(part, TwoPass):
                part.rule = rule
            part.grads = gradients
        return [part for _, part in self._parts]


def layer_views(tensors: Sequence[Any], key: str, group: Mapping[str, Any]) -> list[Any]:
    """One column of `Layers`: each parameter's tensor as the views of the layers that are stacked in it.

    >>> import torch
    >>> [view.shape for view in layer_views([torch.zeros(6, 2)], "param", {"row_axis": 1, "split": 2})]
    [torch.Size([1, 6]), torch.Size([1, 6])]
    """
    row_axis, split = group["row_axis"], group["split"]
    if row_axis == 0 and split == 1:
        return list(tensors)
    if key in ("gamma_state", "floor", "row_l1"):
        row_axis = 0
    views: list[Any] = []
    for tensor in tensors:
        if tensor is None:
            views += [None] * split
        elif key == "gamma_state":
            views += tensor.view(-1, 4).unbind()
        elif key == "floor":
            views += tensor.view(-1).unbind()
        else:
            views += cut(tensor, row_axis, split)
    return views


def pick_kernel(group: Mapping[str, Any], device: torch.device) -> type[Kernel] | None:
    """The kernel of our own for the layers of a group on a device; None for torch's operations.

    >>> group = {"kernel": None, "foreach": None, "fused": None}
    >>> print(pick_kernel(group, torch.device("cpu")))
    None
    """
    name = group["kernel"]
    if name == "native":
        if device.type != "cpu":
            raise ValueError(f'kernel="native" runs on CPUs and a parameter is on {device}; leave kernel out')
        from ftp._native import NativeKernel

        return NativeKernel
    asked = name == "triton"
    if asked and device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ValueError(f'kernel="triton" runs on GPUs and a parameter is on {device}; leave kernel out')
    # flags ask for torch's own bits
    flagged = group["foreach"] is not None or group["fused"] is not None or group.get("capturable")
    if not asked and (name is not None or device.type != "cuda" or flagged):
        return None
    if importlib.util.find_spec("triton") is None:
        if asked:
            raise ValueError('kernel="triton" needs the package triton, which is not installed; leave kernel out')
        return None
    from ftp._triton import TritonKernel, works

    return TritonKernel if asked or works(device) else None  # what nobody asked for must not fail
