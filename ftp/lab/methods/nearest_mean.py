"""Nearest class mean: a frozen body, no training at all; a picture is of the class whose mean feature is nearest.

|x - m|^2 is least where 2 m x - |m|^2 is greatest, which is a linear read-out: at the end of each task the rows of its
classes become 2 m and their biases -|m|^2. It never forgets, because nothing that old rows depend on changes: the
control for every method that moves the body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ftp.lab.methods._base import Method
from ftp.lab.methods._tasks import lacks_tasks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ftp.lab.worlds import World


class NearestMean(Method):
    title = "Nearest mean"
    summary = "Nothing is trained: the class whose mean feature is nearest."

    @classmethod
    def misfit(cls, world: World) -> str:
        return lacks_tasks(cls.title, world)

    def prepare(self) -> None:
        self.train_only(lambda name: False)

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return 0 * self._rows().bias.sum()  # a step costs nothing and changes nothing

    def after_backward(self, step: int) -> None:
        for _, param in self.trained():
            param.grad = None  # not even weight decay

    def after_step(self, step: int) -> None:
        import torch

        if step + 1 < self.settings.steps:
            return
        self.model.eval()
        model: Any = self.model
        rows = self._rows()
        with torch.no_grad():
            features, targets = zip(*((model.features(x), y) for x, y in self.task.pool()), strict=True)
            x, y = torch.cat(features), torch.cat(targets) - self.task.labels.start
            means = torch.stack([x[y == label].mean(0) for label in range(len(self.task.labels))])
            rows.weight.copy_(2 * means)
            rows.bias.copy_(-means.square().sum(1))

    def _rows(self) -> nn.Linear:
        """The rows of the present task."""
        head: Any = self.model.head
        rows: nn.Linear = head[self.task.phase]
        return rows


METHOD = NearestMean
