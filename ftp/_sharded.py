"""FSDP2: the same constraints when every rank holds a part of each layer.

A row stays whole under Shard(0), so its norm and its slope need no neighbour. What a layer needs
from the others is two numbers, the sum of its slopes and its largest row norm: one all-gather for
the whole model, reduced on every rank in the same order, so that all ranks learn the same gamma to
the last bit. A vector that is one row is cut by Shard(0); its norm is the sum of its parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is a DTensor, without importing torch.distributed.

    >>> is_sharded(torch.zeros(2))
    False
    """
    return hasattr(tensor, "device_mesh")


def local(tensor: Any) -> Any:
    """This rank's part of a DTensor, sharing its memory; any other value unchanged.

    >>> local(torch.ones(1)), local(None)
    (tensor([1.]), None)
    """
    return tensor.to_local() if isinstance(tensor, Tensor) and is_sharded(tensor) else tensor  # type: ignore[attr-defined]


def whole(tensor: Tensor) -> Tensor:
    """The full tensor on every rank; a plain tensor unchanged.

    >>> whole(torch.ones(1))
    tensor([1.])
    """
    return tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]


def placed_like(param: Tensor, value: Tensor) -> Tensor:
    """A full tensor cut as the parameter is, when the parameter is a DTensor; every rank must hold the same value.

    >>> placed_like(torch.zeros(2), torch.ones(2))
    tensor([1., 1.])
    """
    if not is_sharded(param) or is_sharded(value):
        return value
    from torch.distributed.tensor import distribute_tensor

    local_value = value.to(device=param.device, dtype=param.dtype)
    return distribute_tensor(local_value, param.device_mesh, param.placements, src_data_rank=None)  # type: ignore[attr-defined]


def check_placements(name: str, param: Tensor, row_axis: int = 0, split: int = 1) -> None:
    """Rows must stay whole: a DTensor may be replicated or cut along its row axis only.

    >>> check_placements("w", torch.zeros(2))
    """
    axis = row_axis if param.dim() > 1 else 0
    for placement in getattr(param, "placements", ()):
        if not (placement.is_replicate() or placement.is_shard(axis)):
            raise TypeError(
                f"{name!r} is a DTensor placed as {placement}, which cuts its rows; "
                f"the projection needs whole rows: use Shard({axis}) or Replicate, or put the name into exclude_set"
            )
        if split > 1 and placement.is_shard():
            raise TypeError(
                f"{name!r} is a DTensor placed as {placement} and split is {split}; the cuts of the ranks and of the "
                "split differ: use split=1, so that one leash serves the whole tensor"
            )


def empty_rows(param: Tensor, rows: int, dtype: torch.dtype, one_row: bool) -> Tensor:
    """Zeros of shape (rows,), laid over the ranks as the parameter's rows are.

    >>> empty_rows(torch.zeros(3, 2), 3, torch.float32, one_row=False)
    tensor([0., 0., 0.])
    """
    if is_sharded(param) and not one_row:
        from torch.distributed.tensor import zeros

        return zeros(rows, dtype=dtype, device_mesh=param.device_mesh, placements=param.placements)  # type: ignore[attr-defined]
    return torch.zeros(rows, dtype=dtype, device=param.device)


def check_agreement(anchors: Sequence[Tensor]) -> None:
    """Refuse anchors that were given and differ between the ranks of a process group: the ranks would drift apart.

    Called at the first step on every rank, and only for anchors that do not come from the weights themselves:
    those DistributedDataParallel has made equal.

    >>> check_agreement([torch.ones(2)])  # no process group: nothing to compare
    """
    plain = [anchor for anchor in anchors if not is_sharded(anchor)]
    if not plain:
        return
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return
    weights = [anchor.double().flatten() for anchor in plain]
    sums = [torch.stack([w.sum(), w.abs().sum(), w @ torch.arange(w.numel()).to(w)]).cpu() for w in weights]
    mine = torch.stack(sums).tolist()
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    differing = [rank for rank, sums_there in enumerate(everyone) if sums_there != everyone[0]]
    if differing:
        raise RuntimeError(
            f"the anchors of ranks {differing} differ from those of rank 0, so the ranks would drift apart; "
            "load the same weights on every rank, or leave anchors= out: then the anchors are the weights at the "
            "first step, which DistributedDataParallel has made equal"
        )


@dataclass(frozen=True)
class Sharding:
    """How some layers are laid over a device mesh, and which of them are one row.

    >>> alone = Sharding(mesh=None, placements=(), one_row=(False,))  # nothing is cut: nothing to gather
    >>> alone.gather(torch.tensor([1.0]), torch.tensor([2.0]), [torch.zeros(3)])
    (tensor([1.]), tensor([2.]))
    """

    mesh: Any
    placements: tuple[Any, ...]
    one_row: tuple[bool, ...]

    def gather(self, slopes: Tensor, largest: Tensor, row_l1s: list[Tensor]) -> tuple[Tensor, Tensor]:
        """The layers' slopes and largest row norms over all ranks; completes the norms of cut rows."""
        import torch.distributed as dist

        # a cut row adds its parts, a whole row competes for the maximum: one slot each, the other stays 0
        own, zero = largest.unbind(), largest.new_zeros(())
        parts = torch.stack([value if one else zero for one, value in zip(self.one_row, own, strict=True)])
        peaks = torch.stack([zero if one else value for one, value in zip(self.one_row, own, strict=True)])
        for dim, placement in enumerate(self.placements):
            if placement.is_shard():
                group = self.mesh.get_group(dim)
                mine = torch.stack([slopes, parts, peaks])  # (3, layers)
                everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
                dist.all_gather(everyone, mine, group=group)
                stacked = torch.stack(everyone)  # (ranks, 3, layers)
                slopes, parts, peaks = stacked[:, 0].sum(0), stacked[:, 1].sum(0), stacked[:, 2].amax(0)
        for norms, one, total in zip(row_l1s, self.one_row, parts.unbind(), strict=True):
            if one:
                norms.copy_(total)
        return slopes, parts + peaks
