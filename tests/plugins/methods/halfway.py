"""Halfway: a method of one's own. After every step each weight goes back half of its way to its anchor."""

from ftp.lab.methods import Method


class Halfway(Method):
    title = "Halfway"
    summary = "After every step each weight goes back half of its way."

    def after_step(self, step: int) -> None:
        import torch

        with torch.no_grad():
            for _, param, anchor in self.anchored():
                param.lerp_(anchor, 0.5)


METHOD = Halfway
