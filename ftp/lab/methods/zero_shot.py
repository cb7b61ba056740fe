"""Zero-shot: nothing is trained. The pre-trained network answers through the head that came with it.

It needs a world whose head is no new one, such as one made of the classes' names by a text tower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method

if TYPE_CHECKING:
    from torch import Tensor

    from ftp.lab.worlds import World


class ZeroShot(Method):
    title = "Zero-shot"
    summary = "Nothing is trained: the pre-trained network with the head that came with it."

    @classmethod
    def misfit(cls, world: World) -> str:
        if world.unanchored:
            return (
                f"{cls.title} trains nothing, and the head of the world {world.name} is new and knows nothing; "
                "choose a method that trains it, such as linear_probe"
            )
        if not world.readout or not world.classes:
            return f"{cls.title} needs a head with the names of its classes, and the world {world.name} names none"
        return ""

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return sum((0 * param.sum() for _, param in self.trained()), inputs.new_zeros(()))  # a step costs nothing

    def before_step(self, step: int) -> None:
        self.model.eval()

    def after_backward(self, step: int) -> None:
        for _, param in self.trained():
            param.grad = None  # not even weight decay


METHOD = ZeroShot
