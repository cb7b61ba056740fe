"""What the prompt methods share: a frozen body, prompts that its class token chooses, and a head that is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ftp.lab.methods._base import Method
from ftp.lab.methods._tasks import lacks_prefixes

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from ftp.lab.models.prompts import Prompts
    from ftp.lab.worlds import World


class Prompted(Method):
    @classmethod
    def misfit(cls, world: World) -> str:
        return lacks_prefixes(cls.title, world)

    def make_prompts(self, width: int, blocks: int, generator: Generator) -> Prompts:
        raise NotImplementedError

    def prepare(self) -> None:
        import torch

        self.train_only(lambda name: False)
        g = torch.Generator().manual_seed(self.settings.seed)
        model: Any = self.model
        self.prompts = self.make_prompts(model.head.width, len(model.blocks), g).to(self.task.sample.device)
        model.prompts = self.prompts  # part of the network: saved, counted and evaluated with it

    def begin_phase(self) -> None:
        self.prompts.enter(self.task.phase)
        super().begin_phase()

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return super().loss(inputs, targets) + self.prompts.extra
