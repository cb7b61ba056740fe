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
        "frozen": Option("", "a what-if: this layer stays at its anchor (a name or a pattern)", layer=True),
        "free": Option("", "a what-if: this layer has no leash (a name or a pattern)", layer=True),
    }

    optimizer: Projected

    def prepare(self) -> None:
        self.frozen = self._named("frozen")
        for name, param in self.model.named_parameters():
            param.requires_grad_(name not in self.frozen)

    def _named(self, option: str) -> set[str]:
        """The anchored tensors that an option names."""
        from ftp.anchors import matched

        return matched(self.option(option), self.task.anchors)

    def make_optimizer(self) -> Optimizer:
        from ftp import SGDP, AdamP

        loose = {name for name, _ in self.trained() if name not in self.task.anchors} | self._named("free")
        shared: dict[str, Any] = {"lr": self.settings.lr, "weight_decay": self.settings.weight_decay}
        shared |= {name: float(self.option(name)) for name in ("k", "gamma_lr")}
        if self.settings.optimizer == "adamw":
            return AdamP(self.trained(), exclude_set=loose - self.frozen, **shared)
        momentum = self.settings.momentum
        return SGDP(self.trained(), exclude_set=loose - self.frozen, momentum=momentum, nesterov=momentum > 0, **shared)

    def report(self) -> dict[str, tuple[float, float]]:
        learned = {name: (row.gamma, row.boundary) for name, row in self.optimizer.report().items()}
        return learned | dict.fromkeys(self.frozen, (0.0, 1.0))  # a leash of no length holds every row


METHOD = FTP
