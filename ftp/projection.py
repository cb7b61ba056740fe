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
    if is_channels_last(tensor):
        tensor = tensor.permute(0, 2, 3, 1)
    return tensor.flatten(1)


def is_dense(tensor: Tensor) -> bool:
    """Whether a tensor lies in memory without gaps, row after row; the order inside a row may be channels-last.

    >>> is_dense(torch.zeros(4, 3, 2, 2).to(memory_format=torch.channels_last)), is_dense(torch.zeros(3, 2).t())
    (True, False)
    """
    return tensor.is_contiguous() or is_channels_last(tensor)


def is_channels_last(tensor: Tensor) -> bool:
    """Whether the channels of each picture element lie side by side.

    >>> is_channels_last(torch.zeros(4, 3, 2, 2)), is_channels_last(torch.zeros(3, 2))
    (False, False)
    """
    return tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)


def cut(tensor: Tensor, row_axis: int = 0, split: int = 1) -> tuple[Tensor, ...]:
    """The matrices that are stacked in one tensor, as views of it, each with its rows along dimension 0.

    Writing into a view writes into the tensor. A vector has only one axis, whatever `row_axis` is.

    >>> [part.shape for part in cut(torch.zeros(4, 6, 2), row_axis=1, split=3)]
    [torch.Size([2, 4, 2]), torch.Size([2, 4, 2]), torch.Size([2, 4, 2])]
    """
    if row_axis and tensor.dim() > 1:
        tensor = tensor.movedim(row_axis, 0)
    return tensor.chunk(split) if split > 1 else (tensor,)


def row_l1(
    tensor: Tensor, per_element: bool = False, *, spare: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """The l1 norm of each row, shape (rows,); in float32 or better.

    spare: scratch of as many elements, and out: where to write; both are optional and save memory.

    >>> row_l1(torch.tensor([[3.0, -4.0], [1.0, 0.0]]))
    tensor([7., 1.])
    >>> row_l1(torch.tensor([3.0, -4.0])), row_l1(torch.tensor([3.0, -4.0]), per_element=True)
    (tensor([7.]), tensor([3., 4.]))
    """
    rows = as_rows(tensor, per_element)
    dtype = wide(tensor.dtype)
    lengths = rows.abs().to(dtype) if spare is None else torch.abs(rows.to(dtype), out=spare.view(rows.shape))
    return torch.sum(lengths, 1, out=out)


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
    dtype = wide(anchor.dtype)
    factor = shrink(row_l1(unconstrained.to(dtype) - anchor.to(dtype), per_element), gamma)
    return toward(anchor, unconstrained, factor)


def toward(anchor: Tensor, unconstrained: Tensor, factor: Tensor, stochastic: bool = False) -> Tensor:
    """anchor + factor * (unconstrained - anchor), one factor per row; exact where factor is 1.

    bfloat16 keeps 8 bits, so the result is rounded: towards the anchor, so that no row leaves its leash by
    rounding, or at random with `stochastic`, so that the mean is right and the leash holds on average.

    >>> toward(torch.zeros(2, 1), torch.ones(2, 1), torch.tensor([0.5, 1.0]))
    tensor([[0.5000],
            [1.0000]])
    """
    weight = per_row(factor, unconstrained)
    if anchor.dtype == weight.dtype:
        return torch.lerp(anchor, unconstrained, weight)
    exact = torch.lerp(anchor.to(weight.dtype), unconstrained.to(weight.dtype), weight)
    return round_to(exact, anchor, stochastic)


def round_to(exact: Tensor, anchor: Tensor, stochastic: bool = False) -> Tensor:
    """Round to the anchor's dtype, never away from the anchor; or at random to either neighbour.

    >>> anchor = torch.tensor([1.0, 1.0]).bfloat16()
    >>> round_to(torch.tensor([1.0077, 0.9922]), anchor).tolist()  # the nearest are 1.0078 and 0.9922
    [1.0, 0.99609375]
    """
    if anchor.dtype != torch.bfloat16:
        return exact.to(anchor.dtype)
    # the upper half of a float32 is a bfloat16; on whole numbers, where no compiler may round in between
    bits = exact.view(torch.int32)
    if stochastic:
        bits = bits + torch.randint_like(bits, 2**16)
    else:
        away_from_zero = (exact - anchor.to(exact.dtype)).sign() != exact.sign()
        bits = torch.where(away_from_zero, bits + (2**16 - 1), bits)
    rounded = (bits & -(2**16)).view(exact.dtype)
    return torch.where(exact.isnan(), exact, rounded).to(anchor.dtype)  # adding may carry a NaN's bits into a number


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
