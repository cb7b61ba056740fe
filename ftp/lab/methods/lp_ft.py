"""LP-FT (Kumar et al. 2022): first a linear probe, then everything from there, with the same number of steps in all.

A fresh head sends wild gradients into the body. So the head is trained alone for the first part of the steps, and
the second part begins with a new momentum and a learning rate of its own.

Differs from the paper: there LP takes 30 epochs and FT another 15; here `probe` is the share of the steps, so that
all methods have one budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method, body_in_eval, cosine, lacks_readout
from ftp.lab.options import Option

if TYPE_CHECKING:
    from ftp.lab.worlds import World


class LPFT(Method):
    title = "LP-FT"
    summary = "First the head alone, then everything."
    options = {
        "probe": Option(0.5, "the share of the steps in which only the head is trained", 0.0, 0.95),
        "probe_lr": Option(0.1, "the learning rate of that part", 1e-6, 10.0),
    }

    @classmethod
    def misfit(cls, world: World) -> str:
        return lacks_readout(cls.title, world)

    def probe_steps(self) -> int:
        return round(float(self.option("probe")) * self.settings.steps)

    def lr(self, step: int) -> float:
        probe = self.probe_steps()
        if step < probe:
            return cosine(self.option("probe_lr"), step, probe)
        return cosine(self.settings.lr, step - probe, self.settings.steps - probe)

    def before_step(self, step: int) -> None:
        if step < self.probe_steps():
            body_in_eval(self.model, self.task.readout)
        else:
            self.model.train()
        for name, param in self.model.named_parameters():
            trains = step >= self.probe_steps() or name in self.task.readout
            param.requires_grad_(trains and name not in self.task.held)

    def after_step(self, step: int) -> None:
        if step + 1 == self.probe_steps():
            self.optimizer.state.clear()  # the second part starts without the first one's momentum


METHOD = LPFT
