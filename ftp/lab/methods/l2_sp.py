"""L2-SP (Xuhong et al. 2018): a spring instead of a leash. The loss gets strength / 2 * sum (w - w0)^2.

Its gradient, strength * (w - w0), is added to that of the task. The usual weight decay pulls only the head: the
spring replaces it elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.base_rules import base_optimizer
from ftp.lab.methods._base import Method
from ftp.lab.options import Option

if TYPE_CHECKING:
    from torch.optim import Optimizer


class L2SP(Method):
    title = "L2-SP"
    summary = "A spring pulls every weight back to its anchor."
    options = {"strength": Option(1e-2, "of the spring; 0 is plain fine-tuning without weight decay", 0.0, 1e3)}

    def make_optimizer(self) -> Optimizer:
        tied = [param for _, param, _ in self.anchored()]
        free = [param for name, param in self.trained() if name not in self.task.anchors]
        return base_optimizer([{"params": tied, "weight_decay": 0.0}, {"params": free}], self.settings)

    def after_backward(self, step: int) -> None:
        import torch

        strength = float(self.option("strength"))
        with torch.no_grad():
            for _, param, anchor in self.anchored():
                if param.grad is not None:
                    param.grad.add_(param - anchor, alpha=strength)


METHOD = L2SP
