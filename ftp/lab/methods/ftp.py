"""FTP (the paper): a leash for every layer whose length is learned from the gradient that is there anyway, Alg. 1.

With the optimizer `sgd` this is `ftp.SGDP`, with `adamw` it is `ftp.AdamP`. The head has no anchor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ftp.lab.methods._base import Method, Option

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from ftp._projected import Projected


class FTP(Method):
    title = "FTP"
    summary = "Every layer has a leash of its own learned length."
    options = {
        "k": Option(1.0, "κ: how much of a shrinking gradient counts; 0 lets leashes only grow", 0.0, 1.0),
        "gamma_lr": Option(1e-2, "μ, the step of Adam on the constraints", 1e-6, 1.0),
    }

    optimizer: Projected

    def make_optimizer(self) -> Optimizer:
        from ftp import SGDP, AdamP

        head = {name for name, _ in self.trained() if name not in self.task.anchors}
        shared: dict[str, Any] = {"lr": self.settings.lr, "weight_decay": self.settings.weight_decay}
        shared |= {name: float(self.option(name)) for name in self.options}
        if self.settings.optimizer == "adamw":
            return AdamP(self.trained(), exclude_set=head, **shared)
        momentum = self.settings.momentum
        return SGDP(self.trained(), exclude_set=head, momentum=momentum, nesterov=momentum > 0, **shared)

    def report(self) -> dict[str, tuple[float, float]]:
        return {name: (row.gamma, row.boundary) for name, row in self.optimizer.report().items()}


METHOD = FTP
