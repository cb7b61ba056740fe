"""TPGM (Tian et al. 2023): a leash for every layer, learned on separate validation batches in a nested loop, Eq. 3.

After each step of the base rule the constraints are trained: project W~ with the present gammas, run a validation
batch through the projected network, and let the gradient of that loss with respect to every gamma move it by Adam
(mu = `gamma_lr`). Then W~ is projected for good. One more forward and backward pass per step than fine-tuning:
what FTP saves.

Differs from the paper: the validation batches are a tenth of the training data that the base rule never sees, so
that TPGM has no more labels than the others.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method, longest_of
from ftp.lab.options import Option
from ftp.lab.rows import parts_of, whole_of

if TYPE_CHECKING:
    from torch import Tensor

LEAST = 1e-8  # the shortest leash, where all begin


class TPGM(Method):
    title = "TPGM"
    summary = "Every layer has a leash whose length a nested loop learns on validation batches."
    options = {
        "inner": Option(1, "turns of the nested loop in each step", 1, 20),
        "gamma_lr": Option(1e-2, "μ, the step of Adam on the constraints", 1e-6, 1.0),
    }
    needs_held_out = True

    def prepare(self) -> None:
        self.begin_gammas()

    def begin_phase(self) -> None:
        super().begin_phase()
        self.begin_gammas()

    def begin_gammas(self) -> None:
        """All leashes at their shortest."""
        import torch

        # a leash for each matrix, also of those that are stacked in one tensor
        self.layers = [name for name, param, _ in self.anchored() for _ in parts_of(name, param, self.task.rows)]
        first = next(self.model.parameters())
        self.gamma = torch.full((len(self.layers),), LEAST, device=first.device, requires_grad=True)
        self.adam = torch.optim.Adam([self.gamma], lr=float(self.option("gamma_lr")))
        self.pulled = torch.zeros(len(self.layers))

    def after_step(self, step: int) -> None:
        import torch
        from torch.func import functional_call

        from ftp.projection import row_l1, shrink, toward

        special = self.task.rows
        rows = [
            (name, part, start)
            for name, param, anchor in self.anchored()
            for part, start in zip(
                parts_of(name, param.detach(), special), parts_of(name, anchor, special), strict=True
            )
        ]
        norms = [row_l1(param - anchor) for _, param, anchor in rows]
        longest = torch.stack([n.amax() for n in norms])
        buffers = {name: buffer.clone() for name, buffer in self.model.named_buffers()}  # their statistics stay
        for turn in range(int(self.option("inner"))):
            images, labels = self.task.held_out(step * int(self.option("inner")) + turn)
            lengths = self.gamma.unbind()
            parts: dict[str, list[Tensor]] = {}
            for (name, param, anchor), norm, length in zip(rows, norms, lengths, strict=True):
                parts.setdefault(name, []).append(toward(anchor, param, shrink(norm, length)))
            projected = {name: whole_of(name, matrices, special) for name, matrices in parts.items()}
            network = functools.partial(functional_call, self.model, {**projected, **buffers})
            loss = self.task.loss(network, images, labels)
            (self.gamma.grad,) = torch.autograd.grad(loss, self.gamma)
            self.adam.step()
            with torch.no_grad():  # as in FTP: never below LEAST, never longer than the farthest row
                self.gamma.copy_(torch.minimum(self.gamma.clamp(min=LEAST), longest + LEAST))
        with torch.no_grad():
            lengths = self.gamma.unbind()
            for (_, param, anchor), norm, length in zip(rows, norms, lengths, strict=True):
                param.copy_(toward(anchor, param, shrink(norm, length)))
            self.pulled = torch.stack([(n > g).float().mean() for n, g in zip(norms, lengths, strict=True)])

    def report(self) -> dict[str, tuple[float, float]]:
        leashes: dict[str, list[tuple[float, float]]] = {}
        for name, gamma, share in zip(self.layers, self.gamma.tolist(), self.pulled.tolist(), strict=True):
            leashes.setdefault(name, []).append((gamma, share))
        return {name: longest_of(parts) for name, parts in leashes.items()}

    def state_dict(self) -> dict[str, Tensor]:
        state = self.adam.state.get(self.gamma, {})
        return {"gamma": self.gamma.detach(), **{f"adam.{key}": value for key, value in state.items()}}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        import torch

        with torch.no_grad():
            self.gamma.copy_(state["gamma"])
        moments = {key.removeprefix("adam."): value for key, value in state.items() if key.startswith("adam.")}
        if moments:
            self.adam.load_state_dict({**self.adam.state_dict(), "state": {0: moments}})


METHOD = TPGM
