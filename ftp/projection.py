"""Projection: pull a layer back until its leash is long enough.

The picture: the anchor W0 is a post, gamma is the length of a leash. A row of the layer that
strayed farther than gamma is pulled straight back along its own direction; a row that is within reach
by more than 1e-8 is left alone, bit for bit.

Differs from the paper: Eq. 2 prints no `min`; Eq. 10 has it, and so has the authors' code. The
authors divide by `l1 + 1e-8`, which keeps a row at the anchor from dividing by zero; so do we.
"""

import torch
from torch import Tensor

EPS = 1e-8  # the authors' guard against a row of length zero, and the shortest leash


def as_rows(tensor: Tensor, per_element: bool = False) -> Tensor:
    """A tensor of any rank as a matrix, one row per output: shape (rows, row length).

    A convolution's rows are its output channels. A vector (bias, norm gain) is one row, as in the
    authors' code. With `per_element` each entry of a vector is a row: a gain scales its own channel
    only, so it acts as a diagonal matrix, whose row norms are its entries.

    >>> as_rows(torch.zeros(8, 3, 5, 5)).shape, as_rows(torch.zeros(8)).shape
    (torch.Size([8, 75]), torch.Size([1, 8]))
    >>> as_rows(torch.zeros(8), per_element=True).shape, as_rows(torch.tensor(1.0)).shape
    (torch.Size([8, 1]), torch.Size([1, 1]))
    """
    if tensor.dim() < 2:
        return tensor.reshape(-1, 1) if per_element else tensor.reshape(1, -1)
    # the order inside a row does not matter to a sum, so a channels-last weight needs no copy
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        tensor = tensor.permute(0, 2, 3, 1)
    return tensor.flatten(1)


def row_l1(tensor: Tensor, per_element: bool = False) -> Tensor:
    """The l1 norm of each row, shape (rows,); in float32 or better.

    >>> row_l1(torch.tensor([[3.0, -4.0], [1.0, 0.0]]))
    tensor([7., 1.])
    >>> row_l1(torch.tensor([3.0, -4.0])), row_l1(torch.tensor([3.0, -4.0]), per_element=True)
    (tensor([7.]), tensor([3., 4.]))
    """
    return as_rows(tensor, per_element).abs().sum(1, dtype=wide(tensor.dtype))


def mars_norm(tensor: Tensor, per_element: bool = False) -> Tensor:
    """The maximum absolute row sum, Eq. 15: the exact Lipschitz constant of x -> Wx in the max norm.

    >>> mars_norm(torch.tensor([[3.0, -4.0], [1.0, 0.0]]))
    tensor(7.)
    >>> mars_norm(torch.zeros(0, 4))
    tensor(0.)
    """
    norms = row_l1(tensor, per_element)
    return norms.amax() if norms.numel() else norms.new_zeros(())


def shrink(norms: Tensor, gamma: Tensor | float, out: Tensor | None = None) -> Tensor:
    """The factor of Eq. 10 for each row: min(1, gamma / (l1 + 1e-8)).

    >>> shrink(torch.tensor([4.0, 0.5]), 1.0)
    tensor([0.2500, 1.0000])
    """
    return torch.clamp(gamma / (norms + EPS), max=1.0, out=out)


def project_mars(unconstrained: Tensor, anchor: Tensor, gamma: Tensor | float, per_element: bool = False) -> Tensor:
    """Pull every row of `unconstrained` to within l1 distance gamma of its anchor, Eq. 2 and 10.

        w_p = w_0 + min(1, gamma / ||w - w_0||_1) (w - w_0)        for each row w

    unconstrained: W~, any shape; anchor: W0, the same shape; gamma: one number >= 0 for the layer.

    >>> anchor = torch.zeros(2, 2)
    >>> project_mars(torch.tensor([[3.0, -1.0], [0.25, 0.25]]), anchor, gamma=1.0)
    tensor([[ 0.7500, -0.2500],
            [ 0.2500,  0.2500]])
    """
    if unconstrained.shape != anchor.shape:
        raise ValueError(
            f"unconstrained has shape {tuple(unconstrained.shape)} and anchor {tuple(anchor.shape)}; "
            "a layer and its anchor must have the same shape"
        )
    if unconstrained.dtype != anchor.dtype or not anchor.is_floating_point():
        raise ValueError(
            f"unconstrained is {unconstrained.dtype} and anchor {anchor.dtype}; "
            "a layer and its anchor must have the same real floating point dtype"
        )
    if not isinstance(gamma, Tensor) and not gamma >= 0:
        raise ValueError(f"gamma is {gamma}; a constraint is a length, so give a number >= 0")
    factor = shrink(row_l1(unconstrained - anchor, per_element), gamma)
    return toward(anchor, unconstrained, factor)


def toward(anchor: Tensor, unconstrained: Tensor, factor: Tensor) -> Tensor:
    """anchor + factor * (unconstrained - anchor), one factor per row; exact where factor is 1.

    >>> toward(torch.zeros(2, 1), torch.ones(2, 1), torch.tensor([0.5, 1.0]))
    tensor([[0.5000],
            [1.0000]])
    """
    weight = per_row(factor, unconstrained)
    if anchor.dtype == weight.dtype:
        return torch.lerp(anchor, unconstrained, weight)
    # bfloat16 keeps 8 bits: round once, at the end
    return torch.lerp(anchor.to(weight.dtype), unconstrained.to(weight.dtype), weight).to(anchor.dtype)


def per_row(values: Tensor, like: Tensor) -> Tensor:
    """One value per row, shaped so that it broadcasts over `like`.

    >>> per_row(torch.ones(8), torch.zeros(8, 3, 5, 5)).shape
    torch.Size([8, 1, 1, 1])
    """
    shape = (values.numel(),) + (1,) * (like.dim() - 1) if like.dim() else ()
    return values.view(shape)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which norms and constraints are kept: float32, or float64 for float64 weights.

    >>> wide(torch.bfloat16), wide(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.float64 if dtype == torch.float64 else torch.float32
