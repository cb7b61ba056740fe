"""EWC (Kirkpatrick et al. 2017): a spring for every weight, the stiffer the more the earlier tasks needed it.

After each task the Fisher information of its trained weights is added to that of the tasks before: the mean over the
training pictures of the squared gradient of each picture's own loss, at its true label. From then on the loss has
strength / 2 * sum F (w - w0)^2, where w0 are the weights at the end of the last task. The head has no spring: its rows
for new classes must move.

Differs from the authors' development code: gradients are squared picture by picture, not batch by batch, which
shrinks F about batch-fold; and the loss is the one that trains, cross-entropy. Strengths do not carry over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method
from ftp.lab.methods._tasks import lacks_tasks
from ftp.lab.options import Option

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ftp.lab.worlds import World


class EWC(Method):
    title = "EWC"
    summary = "A spring for every weight, the stiffer the more old tasks needed it."
    options = {"strength": Option(1e3, "of the springs; 0 is fine-tuning", 0.0, 1e9)}

    @classmethod
    def misfit(cls, world: World) -> str:
        return lacks_tasks(cls.title, world)

    def prepare(self) -> None:
        super().prepare()
        self.fisher: dict[str, Tensor] = {}

    def end_phase(self) -> None:
        super().end_phase()
        if self.task.phase + 1 == self.task.phases:
            return
        names = [name for name, _, _ in self.anchored()]
        for name, values in fisher(self.model, names, self.task.loss, self.task.pool()).items():
            self.fisher[name] = self.fisher[name] + values if name in self.fisher else values

    def after_backward(self, step: int) -> None:
        import torch

        super().after_backward(step)
        strength = float(self.option("strength"))
        with torch.no_grad():
            for name, param, anchor in self.anchored():
                if name in self.fisher and param.grad is not None:
                    param.grad.addcmul_(self.fisher[name], param - anchor, value=strength)

    def state_dict(self) -> dict[str, Tensor]:
        return {f"fisher.{name}": values for name, values in self.fisher.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.fisher = {name.removeprefix("fisher."): values for name, values in state.items()}


def fisher(
    model: nn.Module,
    names: Iterable[str],
    loss: Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
) -> dict[str, Tensor]:
    """The mean over all pictures of the squared gradient of each one's loss, for the named parameters."""
    import torch
    from torch.func import functional_call, grad, vmap
    from torch.nn.attention import SDPBackend, sdpa_kernel

    model.eval()
    parameters = {name: param.detach() for name, param in model.named_parameters()}
    chosen = {name: parameters.pop(name) for name in names}

    def loss_of_one(weights: dict[str, Tensor], picture: Tensor, target: Tensor) -> Tensor:
        def network(x: Tensor) -> Tensor:
            answer: Tensor = functional_call(model, {**parameters, **weights}, (x,))
            return answer

        return loss(network, picture.unsqueeze(0), target.unsqueeze(0))

    each = vmap(grad(loss_of_one), (None, 0, 0))
    total = {name: torch.zeros_like(weight) for name, weight in chosen.items()}
    count = 0
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels cannot be mapped over
        for pictures, targets in batches:
            for name, gradients in each(chosen, pictures, targets).items():
                total[name] += gradients.square().sum(0)
            count += len(targets)
    return {name: values / count for name, values in total.items()}


METHOD = EWC
