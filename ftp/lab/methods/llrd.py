"""LLRD (Zhang et al. 2020): the learning rate falls by a factor from each layer to the one below it.

A layer is a block of the network, such as one residual block or one layer of a transformer; what comes before the first
is one more. The head, on top, has the full learning rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.base_rules import base_optimizer
from ftp.lab.methods._base import Method
from ftp.lab.methods._blocks import depths
from ftp.lab.options import Option

if TYPE_CHECKING:
    from torch.optim import Optimizer


class LLRD(Method):
    title = "LLRD"
    summary = "The deeper below the head a block is, the smaller its learning rate."
    options = {"decay": Option(0.65, "the factor from one block to the block below", 0.01, 1.0)}

    def make_optimizer(self) -> Optimizer:
        trained = dict(self.trained())
        head = [name for name in trained if name in self.task.readout or name not in self.task.anchors]
        depth = depths(self.model, trained, head)
        top, decay = max(depth.values()), float(self.option("decay"))
        groups = []
        for level in sorted(set(depth.values())):
            params = [param for name, param in trained.items() if depth[name] == level]
            groups.append({"params": params, "lr_scale": decay ** (top - level)})
        return base_optimizer(groups, self.settings)


METHOD = LLRD
