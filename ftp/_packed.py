"""Small layers, packed: their state lies in a few flat vectors, so that a step costs a few kernels.

A network has many small tensors (biases, norm gains, thin layers), and for those the time goes into
starting kernels, not into arithmetic. Layers with rows of equal length lie side by side, so that one
sum serves all of them. That takes scratch, three numbers for each weight, so `low_memory` goes without.
`optimizer.state` still holds every tensor: views into the flat vectors, so that a write into either is a write
into both (`_state.unpack` ends that).
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from ftp._layers import GAMMA, Leash, update
from ftp.constraint import row_slopes
from ftp.projection import shrink

LARGEST = 2**16  # elements; beyond this the arithmetic outweighs the kernels
FEWEST = 4  # layers; below this there is nothing to gain


def is_small(param: Tensor) -> bool:
    """Whether a layer is worth packing, and its device and dtype have the kernels for it.

    >>> is_small(torch.zeros(64, 64, 3, 3)), is_small(torch.zeros(512, 512))
    (True, False)
    """
    if param.numel() > LARGEST or param.device.type not in ("cpu", "cuda"):
        return False
    return param.dtype in (torch.float32, torch.float64)


class Pack:
    """Some small layers with their state in flat vectors; has the methods of `Layers`.

    >>> leash = Leash()
    >>> weights = [torch.tensor([[3.0, 1.0]]), torch.tensor([0.5])]
    >>> states = [{"anchor": torch.zeros_like(w), "deviation": torch.zeros_like(w)} for w in weights]
    >>> for state in states:  # gamma = 1 after five steps
    ...     state.update(row_l1=torch.zeros(1), gamma_state=torch.tensor([1.0, 0.0, 0.0, 5.0]))
    >>> pack = Pack(weights, states)
    >>> pack.grads = [torch.zeros_like(w) for w in weights]
    >>> pack.before(leash)
    >>> pack.after(leash)
    >>> weights  # the second is within reach: its gamma is clipped to 0.5, where it is
    [tensor([[0.7500, 0.2500]]), tensor([0.5000])]
    """

    def __init__(self, params: list[Tensor], states: Sequence[dict[str, Any]]) -> None:
        rows = [state["row_l1"].numel() for state in states]
        lengths = [param.numel() // count for param, count in zip(params, rows, strict=True)]
        self.order = sorted(range(len(params)), key=lengths.__getitem__)
        self.params = [params[i] for i in self.order]
        states = [states[i] for i in self.order]
        self._grads: list[Tensor] = []

        self.anchor = pack("anchor", states)
        self.norms = pack("row_l1", states)
        self.deviation = pack("deviation", states)
        self.gamma_state = torch.stack([state["gamma_state"] for state in states])  # (layers, 4)
        for state, view in zip(states, self.gamma_state.unbind(), strict=True):
            state["gamma_state"] = view  # the step writes the matrix, and with it what the state shows

        device = self.anchor.device
        self.layer_rows = torch.tensor([rows[i] for i in self.order], device=device)
        self.layer_of_row = torch.arange(len(rows), device=device).repeat_interleave(
            self.layer_rows, output_size=sum(rows)
        )

        # scratch: W, the element products of Eq. 4 and the element distances, and their sums over rows
        self.weight = torch.empty_like(self.anchor)
        self.weights = _views(self.weight, self.params)
        self.products, self.distances = both = self.anchor.new_empty(2, self.anchor.numel())
        self.sums = self.anchor.new_empty(2, self.norms.numel())
        self.factor = torch.empty_like(self.norms)
        # blocks of equally long rows, as (views to read, views to write)
        runs = [(length, sum(rows[i] for i in run)) for length, run in groupby(self.order, key=lengths.__getitem__)]
        counts, sizes = [count for _, count in runs], [length * count for length, count in runs]
        shapes = [(count, length) for length, count in runs]

        def blocks(flat: Tensor) -> list[Tensor]:
            return [
                v.view(*v.shape[:-1], *shape) for v, shape in zip(flat.split_with_sizes(sizes, -1), shapes, strict=True)
            ]

        self.sum_blocks = list(zip(blocks(both), self.sums.split_with_sizes(counts, 1), strict=True))
        factors = [factor.unsqueeze(1) for factor in self.factor.split_with_sizes(counts)]
        self.pull_blocks = list(zip(blocks(self.anchor), blocks(self.weight), factors, strict=True))

    @property
    def grads(self) -> list[Tensor]:
        """The gradients of this step, in the order of the layers that the pack was given."""
        return self._grads

    @grads.setter
    def grads(self, grads: list[Tensor]) -> None:
        self._grads = [grads[i] for i in self.order] if grads else []

    def before(self, leash: Leash) -> None:
        """What Eq. 4 needs of g_t and W_{t-1}, which the base rule will overwrite."""
        torch._foreach_copy_(self.weights, self._grads)
        torch.mul(self.weight, self.deviation, out=self.products)

    def after(self, leash: Leash) -> None:
        """ProjUpdate (Eq. 4, 5, Alg. 2) and Projection (Eq. 2)."""
        torch._foreach_copy_(self.weights, self.params)
        torch.sub(self.weight, self.anchor, out=self.deviation)
        torch.abs(self.deviation, out=self.distances)
        for block, sums in self.sum_blocks:
            torch.sum(block, 2, out=sums)
        dots, norms = self.sums
        largest = torch.segment_reduce(norms, "max", lengths=self.layer_rows, unsafe=True)
        slopes = self._slopes(dots, leash)
        self.gamma_state.copy_(update(self.gamma_state, slopes, largest, None, leash))
        self.norms.copy_(norms)
        shrink(norms, self._gamma_of_rows(), out=self.factor)
        for anchor, weight, factor in self.pull_blocks:
            torch.lerp(anchor, weight, factor, out=weight)
        torch._foreach_copy_(self.params, self.weights)

    def _slopes(self, dots: Tensor, leash: Leash) -> Tensor:
        """Eq. 4 for every layer, shape (layers,); the norms and gammas are still those of t - 1."""
        gamma = self._gamma_of_rows() if leash.gamma_rows == "outside" else None
        slopes = row_slopes(dots, self.norms, gamma, leash.gamma_rows)
        return torch.segment_reduce(slopes, "sum", lengths=self.layer_rows, unsafe=True)

    def _gamma_of_rows(self) -> Tensor:
        return self.gamma_state[:, GAMMA].index_select(0, self.layer_of_row)


def pack(key: str, states: Sequence[dict[str, Any]]) -> Tensor:
    """Copy one kind of state into a flat vector, and let the states hold views of it.

    >>> states = [{"anchor": torch.zeros(2, 2)}, {"anchor": torch.ones(3)}]
    >>> flat = pack("anchor", states)
    >>> flat, states[0]["anchor"].shape
    (tensor([0., 0., 0., 0., 1., 1., 1.]), torch.Size([2, 2]))
    """
    old = [state[key] for state in states]
    flat = torch.cat([tensor.reshape(-1) for tensor in old])
    for state, view in zip(states, _views(flat, old), strict=True):
        state[key] = view
    return flat


def _views(flat: Tensor, shapes: Sequence[Tensor]) -> list[Tensor]:
    parts = flat.split_with_sizes([tensor.numel() for tensor in shapes])
    return [part.view(tensor.shape) for part, tensor in zip(parts, shapes, strict=True)]
