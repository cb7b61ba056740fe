"""LoRA on a leash: not its factors A and B are tied, but what they do to a layer, the product s B A.

Leashes on A and on B apart do not bound their product: the rows of A are long from the start. Here the rows of s B A
are measured, and the rows of B are pulled back, which pulls those of the product along the same line:

    s (f_i b_i) A = f_i (s b_i A)        f_i = min(1, gamma / ||s b_i A||_1)

The anchor is zero, where LoRA begins. Eq. 4 needs no gradient of the product: g_i . (s b_i A) = (dL/db_i) . b_i.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ftp._layers import GAMMA, Leash, update
from ftp.constraint import row_slopes
from ftp.projection import row_l1, shrink, toward, wide


def product(scale: float, left: Tensor, right: Tensor) -> Tensor:
    """s B A as a matrix of shape (outputs, inputs), in float32 or better; the factors may be convolutions.

    >>> product(2.0, torch.ones(3, 1), torch.ones(1, 4))[0]
    tensor([2., 2., 2., 2.])
    """
    dtype = wide(left.dtype)
    return scale * (left.flatten(1).to(dtype) @ right.flatten(1).to(dtype))


def partners(group: Mapping[str, Any]) -> dict[int, Tensor]:
    """A by the id of its B, for the parameters A, B, A, B, ... of a group.

    >>> a, b = torch.ones(1, 4), torch.ones(3, 1)
    >>> partners({"params": [a, b]})[id(b)] is a
    True
    """
    params = group["params"]
    return {id(b): a for a, b in zip(params[::2], params[1::2], strict=True)}


@dataclass
class Products:
    """The pairs of one group; has the methods of `Layers`. Writing here writes into B and into its state.

    >>> a, b = torch.ones(1, 4), torch.tensor([[1.0], [0.1]])
    >>> pair = Products(1.0, [a], [b], [torch.zeros(2, 1)], [torch.tensor([1.0, 0.0, 0.0, 5.0])], [torch.zeros(2)])
    >>> pair.before(Leash())
    >>> pair.after(Leash())
    >>> b.flatten()  # the first row of B A was 4 long, and may be 1; the second is 0.4
    tensor([0.2500, 0.1000])
    """

    scale: float
    rights: Sequence[Tensor]  # A
    lefts: Sequence[Tensor]  # B
    grads: Sequence[Tensor]  # of B
    gamma_states: list[Tensor]
    row_l1s: list[Tensor]  # the row norms of s B~ A after the last step's base rule
    slopes: Tensor = field(init=False)

    def before(self, leash: Leash) -> None:
        """Eq. 4 for every pair, from the gradient of B."""
        sums = []
        for left, grad, norms, gamma_state in zip(self.lefts, self.grads, self.row_l1s, self.gamma_states, strict=True):
            dots = (grad.flatten(1).to(norms.dtype) * left.flatten(1).to(norms.dtype)).sum(1)
            dots = dots / shrink(norms, gamma_state[GAMMA])  # B is B~ shrunk, as in low-memory mode
            sums.append(row_slopes(dots, norms, gamma_state[GAMMA], leash.gamma_rows).sum())
        self.slopes = torch.stack(sums)

    def after(self, leash: Leash) -> None:
        """ProjUpdate (Eq. 5, Alg. 2) and Projection (Eq. 2) of the products."""
        for left, right, norms in zip(self.lefts, self.rights, self.row_l1s, strict=True):
            norms.copy_(row_l1(product(self.scale, left, right)))
        largest = torch.stack([norms.amax() for norms in self.row_l1s])
        updated = update(torch.stack(self.gamma_states), self.slopes, largest, None, leash)
        for left, norms, state, new in zip(self.lefts, self.row_l1s, self.gamma_states, updated.unbind(), strict=True):
            state.copy_(new)
            zero = torch.zeros_like(left)
            left.copy_(toward(zero, left, shrink(norms, new[GAMMA]), leash.stochastic_rounding))
