"""LLRD (Zhang et al. 2020): the learning rate falls by a factor from each layer to the one below it.

A layer is a block of the network, such as one residual block; the stem and its normalisation are one. The head, on top,
has the full learning rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method, Option, base_optimizer

if TYPE_CHECKING:
    from torch.optim import Optimizer


class LLRD(Method):
    title = "LLRD"
    summary = "The deeper below the head a block is, the smaller its learning rate."
    options = {"decay": Option(0.65, "the factor from one block to the block below", 0.01, 1.0)}

    def make_optimizer(self) -> Optimizer:
        blocks: dict[str, list[object]] = {}
        for name, param in self.trained():
            blocks.setdefault(block(name), []).append(param)
        groups = [
            {"params": params, "lr_scale": float(self.option("decay")) ** (len(blocks) - 1 - depth)}
            for depth, params in enumerate(blocks.values())
        ]
        return base_optimizer(groups, self.settings)


def block(name: str) -> str:
    """The block that a parameter belongs to: its name up to the first number, or its module.

    >>> block("blocks.0.conv1.weight"), block("layer1.0.bn.bias"), block("stem_norm.weight"), block("head.bias")
    ('blocks.0', 'layer1.0', 'stem', 'head')
    """
    parts = name.split(".")
    for i, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: i + 1])
    return parts[0].removesuffix("_norm")


METHOD = LLRD
