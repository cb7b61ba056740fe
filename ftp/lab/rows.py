"""What a row of each tensor of a network is: see `ftp.groups`. Most count their outputs along axis 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ftp.groups import Rows


def special_rows(model: nn.Module) -> dict[str, Rows]:
    """The tensors whose rows are not simply those of axis 0: stacked matrices, position embeddings.

    >>> from torch import nn
    >>> special_rows(nn.MultiheadAttention(4, 2))
    {'in_proj_weight': Rows(row_axis=0, split=3), 'in_proj_bias': Rows(row_axis=0, split=3)}
    """
    from ftp.groups import Rows, rows_of

    modules = dict(model.named_modules())
    special = {}
    for name, param in model.named_parameters():
        owner, _, attribute = name.rpartition(".")
        rows = rows_of(modules[owner], attribute, name, param)
        if rows != Rows():
            special[name] = rows
    return special


def parts_of(name: str, tensor: Tensor, rows: Mapping[str, Rows]) -> tuple[Tensor, ...]:
    """The matrices in a tensor, each with its rows along axis 0; views: writing into one writes into the tensor.

    >>> import torch
    >>> from ftp.groups import Rows
    >>> [part.shape for part in parts_of("qkv.bias", torch.zeros(12), {"qkv.bias": Rows(0, 3)})]
    [torch.Size([4]), torch.Size([4]), torch.Size([4])]
    >>> parts_of("positions", torch.zeros(1, 50, 8), {"positions": Rows(1)})[0].shape
    torch.Size([50, 1, 8])
    """
    from ftp.projection import cut

    return cut(tensor, *rows[name]) if name in rows else (tensor,)


def whole_of(name: str, parts: Sequence[Tensor], rows: Mapping[str, Rows]) -> Tensor:
    """The counterpart of `parts_of`, as a new tensor."""
    import torch

    if name not in rows:
        return parts[0]
    tensor = torch.cat(list(parts))
    return tensor.movedim(0, rows[name].row_axis) if tensor.dim() > 1 else tensor


def farthest(name: str, tensor: Tensor, rows: Mapping[str, Rows]) -> Tensor:
    """The MARS norm of a tensor: of its farthest row, whatever a row is there."""
    import torch

    from ftp.projection import mars_norm

    norms = [mars_norm(part) for part in parts_of(name, tensor, rows)]
    return norms[0] if len(norms) == 1 else torch.stack(norms).amax()
