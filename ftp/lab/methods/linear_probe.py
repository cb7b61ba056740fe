"""Linear probe: only the new head is trained; the body stays the pre-trained one, its running statistics too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method, body_in_eval, lacks_readout

if TYPE_CHECKING:
    from ftp.lab.worlds import World


class LinearProbe(Method):
    title = "Linear Prob."
    summary = "Only the new head is trained."

    @classmethod
    def misfit(cls, world: World) -> str:
        return lacks_readout(cls.title, world)

    def prepare(self) -> None:
        self.train_only(lambda name: False)

    def before_step(self, step: int) -> None:
        body_in_eval(self.model, self.task.readout)


METHOD = LinearProbe
