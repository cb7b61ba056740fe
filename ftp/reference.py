"""One step of Alg. 1 for one layer, as plainly as it can be written; what the fast paths are held against.

No packing, no scratch buffers, no in-place tricks: tensors in, tensors out, whatever the base rule is.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ftp.constraint import adam_update, anneal, clip, gamma_grad
from ftp.projection import EPS, mars_norm, project_mars


class Layer(NamedTuple):
    """A layer on its leash between two steps.

    >>> Layer.at(torch.ones(2, 3)).gamma
    tensor(1.0000e-08)
    """

    weight: Tensor  # W_{t-1}
    anchor: Tensor  # W0
    deviation: Tensor  # W~_{t-1} - W0
    gamma: Tensor  # the length of the leash
    exp_avg: Tensor  # Adam's two moments of the slope of gamma
    exp_avg_sq: Tensor
    t: int  # steps so far

    @classmethod
    def at(cls, anchor: Tensor) -> "Layer":
        """A layer at its anchor, with the shortest leash."""
        zero = anchor.new_zeros(())
        return cls(anchor.clone(), anchor, torch.zeros_like(anchor), zero + EPS, zero, zero, 0)


def step(layer: Layer, grad: Tensor, unconstrained: Tensor, *, k: float = 1.0, gamma_lr: float = 1e-2) -> Layer:
    """UGD, ProjUpdate, Projection: the layer after one more batch.

    grad: g_t, at the layer's weight; unconstrained: W~_t of Eq. 1, where the base rule would go from there.

    >>> layer, grad = Layer.at(torch.zeros(1, 2)), torch.tensor([[-1.0, 0.0]])
    >>> for _ in range(3):
    ...     layer = step(layer, grad, unconstrained=layer.weight - 0.1 * grad)  # SGD with a rate of 0.1
    >>> layer.gamma, layer.weight  # two moves of nearly mu after a step to nowhere; the row is at the end of its leash
    (tensor(0.0160), tensor([[0.0160, 0.0000]]))
    """
    t = layer.t + 1
    deviation = unconstrained - layer.anchor

    # Eq. 4 and 5: does this batch push on along the way that the layer took, or back? At t = 1 there is no way yet
    slope = anneal(gamma_grad(grad, layer.deviation), k)
    # Alg. 2: one step of Adam on gamma
    gamma, exp_avg, exp_avg_sq = adam_update(layer.gamma, slope, layer.exp_avg, layer.exp_avg_sq, t, lr=gamma_lr)
    gamma = clip(gamma, mars_norm(deviation))

    weight = project_mars(unconstrained, layer.anchor, gamma)  # Eq. 2: pull each row back to the end of its leash
    return Layer(weight, layer.anchor, deviation, gamma, exp_avg, exp_avg_sq, t)
