"""The step in two passes over memory, for kernels of our own (`_triton.py` on GPUs, `_native.py` on CPUs).

Torch's own operations (`_layers.py`) read the weights of a large layer about nine times a step. Here pass one
does all that needs no gamma: the products of Eq. 4, the base rule, the deviation, its row norms. Then the gammas
of all layers move in a few small operations, and pass two pulls back the rows that strayed too far.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ftp._layers import GAMMA, Leash, update
from ftp._packed import pack
from ftp.constraint import row_slopes
from ftp.projection import cut, is_dense, shrink

# the base rules that the kernels know, and the state of each that they read and write
BASE_KEYS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "momentum": ("momentum_buffer",),
    "nesterov": ("momentum_buffer",),
    "adam": ("exp_avg", "exp_avg_sq"),
    "amsgrad": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),
}
TINY = 1e-300  # stands for a beta of zero, which has no logarithm


class BaseRule(NamedTuple):
    """A base rule as the kernels take it; the kinds of SGD do not use the last two numbers.

    >>> BaseRule("nesterov", lr=0.1, weight_decay=0.0, momentum=0.9).kind
    'nesterov'
    """

    kind: str
    lr: float | Tensor
    weight_decay: float
    momentum: float = 0.0  # of SGD, or Adam's first beta
    dampening: float = 0.0
    maximize: bool = False
    beta2: float = 0.0
    eps: float = 0.0


@dataclass
class Layout:
    """What the kernels walk over: layers whose tensors hold row after row without gaps, all of one dtype and device.

    >>> weight = torch.zeros(3, 4)
    >>> Layout([weight], [weight.clone()], None, base=[], rows=[3], lengths=[4]).rows
    [3]
    """

    params: list[Tensor]
    anchors: list[Tensor]
    deviations: list[Tensor] | None  # None in low-memory mode
    base: list[list[Tensor]]  # momentum; or Adam's two moments, and their maximum
    rows: list[int]
    lengths: list[int]  # of a row


class Kernel(Protocol):
    """The two passes over a layout; for `numbers` and `corrections` see the methods of `TwoPass` that make them.

    >>> [name for name in vars(Kernel) if name.startswith("pass")]
    ['pass_one', 'pass_two']
    """

    def __init__(self, layout: Layout) -> None: ...

    def pass_one(
        self, grads: list[Tensor], rule: BaseRule, numbers: Tensor, corrections: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns g . d_{t-1} and the new row norms, one of each for every row."""

    def pass_two(self, factors: Tensor) -> None:
        """Moves every row to anchor + factor * (W~ - anchor)."""


def can_walk(param: Tensor, state: dict[str, Any], kind: str) -> bool:
    """Whether a layer and its state lie in memory row after row, all in one order, dtype and place.

    >>> layer = torch.zeros(3, 4)
    >>> can_walk(layer, {"anchor": layer}, "plain"), can_walk(layer, {"anchor": layer.bfloat16()}, "plain")
    (True, False)
    >>> can_walk(layer.t(), {"anchor": layer.t()}, "plain")
    False
    """
    if kind not in BASE_KEYS or not is_dense(param) or param.dtype not in (torch.float32, torch.float64):
        return False
    if "step" in state and state["step"].device != param.device:
        return False
    tensors = [state.get(key) for key in ("anchor", *(["deviation"] if "deviation" in state else []), *BASE_KEYS[kind])]
    return all(tensor is not None and lies_like(param, tensor) for tensor in tensors)


def lies_like(param: Tensor, tensor: Tensor) -> bool:
    """Whether a tensor has its elements in memory as a parameter has, in the same dtype and on the same device.

    >>> lies_like(torch.zeros(2, 3), torch.ones(2, 3)), lies_like(torch.zeros(2, 2), torch.zeros(2, 2).t())
    (True, False)
    """
    same = tensor.stride() == param.stride()
    return same and tensor.dtype == param.dtype and tensor.device == param.device


class TwoPass:
    """Leashed layers of one group and the kernel that walks over them; has the methods of `Layers`.

    The base rule is part of the first pass. The norms and gammas lie in flat tensors; the states hold views of them.

    >>> weight = torch.zeros(3, 4)
    >>> state = {"anchor": weight.clone(), "deviation": weight.clone(), "row_l1": torch.zeros(3)}
    >>> part = TwoPass([weight], [state | {"gamma_state": torch.zeros(4)}], "plain", kernel=lambda layout: None)
    >>> part.layout.rows, part.layout.lengths
    ([3], [4])
    """

    def __init__(
        self, params: list[Tensor], states: Sequence[dict[str, Any]], kind: str, kernel: type[Kernel], split: int = 1
    ) -> None:
        low_memory = "deviation" not in states[0]
        rows = [state["row_l1"].numel() // split for state in states for _ in range(split)]
        self.whole_params, self.states, self.split = params, states, split
        self.norms = pack("row_l1", states)
        self.gamma_state = pack("gamma_state", states).view(-1, 4)  # (layers, 4)
        self.floor = torch.cat([state["floor"].view(-1) for state in states]) if low_memory else None
        device = self.norms.device
        self.layer_rows = torch.tensor(rows, device=device)
        self.layer_of_row = torch.arange(len(rows), device=device).repeat_interleave(
            self.layer_rows, output_size=sum(rows)
        )
        weights = self._layers(params)
        self.layout = Layout(
            weights,
            self._layers([state["anchor"] for state in states]),
            None if low_memory else self._layers([state["deviation"] for state in states]),
            [self._layers([state[key] for state in states]) for key in BASE_KEYS[kind]],
            rows,
            [weight.numel() // count for weight, count in zip(weights, rows, strict=True)],
        )
        self.kernel = kernel(self.layout)
        self.rule = BaseRule(kind, 0.0, 0.0)  # these two are given anew for each step
        self.grads: list[Tensor] = []
        self._sent: dict[str, tuple[Any, Tensor]] = {}

    def _layers(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The layers that are stacked in each parameter, one after another: views that share its memory."""
        return [layer for tensor in tensors for layer in cut(tensor, 0, self.split)]

    def holds(self) -> bool:
        """Whether the weights still lie in memory as the anchors do: `param.data` may have been replaced."""
        pairs = zip(self.whole_params, self.states, strict=True)
        return all(lies_like(param, state["anchor"]) for param, state in pairs)

    def before(self, leash: Leash) -> None:
        """Pass one: what Eq. 4 needs of g_t and W_{t-1}, the base rule, and how far each row went."""
        self.layout.params = self._layers(self.whole_params)
        pairs = zip(self._layers(self.grads), self.layout.anchors, strict=True)
        grads = [grad if lies_like(anchor, grad) else torch.empty_like(anchor).copy_(grad) for grad, anchor in pairs]
        self.dots, self.new_norms = self.kernel.pass_one(grads, self.rule, self._numbers(), self._corrections())

    def after(self, leash: Leash) -> None:
        """ProjUpdate (Eq. 4, 5, Alg. 2), and pass two: Projection (Eq. 2)."""
        dots, norms = self.dots, self.new_norms
        gamma = self._gamma_of_rows() if self.floor is not None or leash.gamma_rows == "outside" else None
        if self.floor is not None and gamma is not None:
            dots = dots / shrink(self.norms, gamma)  # see Layers.before
        slopes = row_slopes(dots, self.norms, gamma, leash.gamma_rows)
        slopes = torch.segment_reduce(slopes, "sum", lengths=self.layer_rows, unsafe=True)
        largest = torch.segment_reduce(norms, "max", lengths=self.layer_rows, unsafe=True)
        self.gamma_state.copy_(update(self.gamma_state, slopes, largest, self.floor, leash))
        self.norms.copy_(norms)
        self.kernel.pass_two(shrink(norms, self._gamma_of_rows()))
        torch.autograd.graph.increment_version(self.whole_params)  # as torch's own operations do

    def _gamma_of_rows(self) -> Tensor:
        return self.gamma_state[:, GAMMA].index_select(0, self.layer_of_row)

    def _numbers(self) -> Tensor:
        """Rate, weight decay, momentum, second beta and epsilon, where the kernels read them.

        In a tensor, so that a rate that changes, or lies on the device, costs no wait.
        """
        _, lr, decay, momentum, _, _, beta2, eps = self.rule
        numbers = self._send("numbers", [0.0 if isinstance(lr, Tensor) else lr, decay, momentum, beta2, eps])
        if isinstance(lr, Tensor):
            numbers[0].copy_(lr.view(()), non_blocking=True)
        return numbers

    def _corrections(self) -> Tensor:
        """Two rows with one entry per layer: 1 - dampening, or Adam's beta1^t - 1 and beta2^t - 1."""
        if self.rule.kind in ("adam", "amsgrad"):
            steps = [state["step"] for state in self.states]
            torch._foreach_add_(steps, 1)
            steps = [step for step in steps for _ in range(self.split)]
            logs = self._send("logs", [[math.log(beta or TINY)] for beta in (self.rule.momentum, self.rule.beta2)])
            return torch.expm1(torch.stack(steps) * logs)
        gains = []
        for state in self.states:
            gains += [1.0 if state.get("first_momentum") else 1 - self.rule.dampening] * self.split
            if "first_momentum" in state:  # torch's first momentum is the undamped gradient
                state["first_momentum"] = False
        return self._send("gains", [gains, gains])

    def _send(self, name: str, values: list[Any]) -> Tensor:
        """A small tensor on the device, sent again only when its values changed."""
        if name not in self._sent or self._sent[name][0] != values:
            self._sent[name] = values, to_device(values, self.norms.dtype, self.norms.device)
        return self._sent[name][1]


def to_device(values: list[Any], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A small tensor on a device, sent without waiting for it.

    >>> to_device([1, 2], torch.int64, torch.device("cpu"))
    tensor([1, 2])
    """
    if device.type != "cuda":
        return torch.tensor(values, dtype=dtype, device=device)
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "a step is being captured in a CUDA graph, and its gradients or its learning rate are not those of the "
            'step before; keep the gradients in place with zero_grad(set_to_none=False), or write kernel="eager"'
        )
    return torch.tensor(values, dtype=dtype, pin_memory=True).to(device, non_blocking=True)
