"""LwF.MC (Li and Hoiem 2016; Rebuffi et al. 2017): the network of before answers for the old classes.

Every class seen so far is a yes-or-no question. For a new class the target is whether it is this one; for an old class
it is what the frozen network from before this task says of the same picture, sigmoid(z), without a temperature. The
loss is the sum of all binary cross-entropies of a picture, mean over the batch.

It has targets for old rows of the head and so trains them: tuned with mask=seen. With mask=new they stay as they are,
and only the body is held to the old answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method
from ftp.lab.methods._tasks import lacks_tasks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ftp.lab.worlds import World


class LwFMC(Method):
    title = "LwF.MC"
    summary = "The network of before the task says what old classes should answer."

    @classmethod
    def misfit(cls, world: World) -> str:
        return lacks_tasks(cls.title, world)

    def prepare(self) -> None:
        self.teacher: nn.Module | None = None

    def begin_phase(self) -> None:
        import copy

        super().begin_phase()
        self.teacher = copy.deepcopy(self.model).eval().requires_grad_(False)

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        import torch
        from torch.nn import functional as F

        outputs = self.model(inputs)
        wanted = F.one_hot(targets, outputs.shape[1]).to(outputs.dtype)
        if self.teacher is not None:
            first = self.task.labels.start
            with torch.no_grad():
                wanted[:, :first] = self.teacher(inputs)[:, :first].sigmoid()
        return F.binary_cross_entropy_with_logits(outputs, wanted, reduction="sum") / len(targets)

    def state_dict(self) -> dict[str, Tensor]:
        return {f"teacher.{name}": values for name, values in self.teacher.state_dict().items()} if self.teacher else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if self.teacher is not None:
            self.teacher.load_state_dict({name.removeprefix("teacher."): values for name, values in state.items()})


METHOD = LwFMC
