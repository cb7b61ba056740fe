"""FTP (the paper): a leash for every layer whose length is learned from the gradient that is there anyway, Alg. 1.

With the optimizer `sgd` this is `ftp.SGDP`, with `adamw` it is `ftp.AdamP`. The head has no anchor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ftp.lab.base_rules import leashed_optimizer
from ftp.lab.methods._base import Method, longest_of
from ftp.lab.options import Option

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from ftp._projected import Projected


class FTP(Method):
    title = "FTP"
    summary = "Every layer has a leash of its own learned length."
    options = {
        "k": Option(1.0, "κ: how much a slope that would shorten a leash counts; at 0, not at all", 0.0, 1.0),
        "gamma_lr": Option(1e-2, "μ, the step of Adam on the constraints", 1e-6, 1.0),
        "frozen": Option("", "a what-if: this layer stays at its anchor (a name or a pattern)", layer=True),
        "free": Option("", "a what-if: this layer has no leash (a name or a pattern)", layer=True),
    }

    optimizer: Projected

    def prepare(self) -> None:
        self.frozen = self._named("frozen")
        for name, param in self.model.named_parameters():
            param.requires_grad_(name not in self.frozen)

    def _named(self, option: str) -> set[str]:
        """The anchored tensors that an option names."""
        from ftp.anchors import matched

        return matched(self.option(option), self.task.anchors)

    def make_optimizer(self) -> Optimizer:
        loose = {name for name, _ in self.trained() if name not in self.task.anchors} | self._named("free")
        learned = {name: float(self.option(name)) for name in ("k", "gamma_lr")}
        # torch's own choice for SGD and AdamW, so that every method runs the same base rule, to the last bit
        same = {"foreach": any(param.is_cuda for _, param in self.trained())}
        return leashed_optimizer(self._groups(), self.settings, exclude_set=loose - self.frozen, **learned, **same)

    def _groups(self) -> list[Any]:
        """The trained parameters by name; those with rows of another kind in groups that say so."""
        plain: list[Any] = [(name, param) for name, param in self.trained() if name not in self.task.rows]
        groups: dict[Any, list[Any]] = {}
        for name, param in self.trained():
            if name in self.task.rows:
                groups.setdefault(self.task.rows[name], []).append((name, param))
        if not groups:
            return plain
        special = [{"params": params, **rows._asdict()} for rows, params in groups.items()]
        return [{"params": plain}, *special] if plain else special

    def report(self) -> dict[str, tuple[float, float]]:
        parts: dict[str, list[tuple[float, float]]] = {}
        for name, row in self.optimizer.report().items():
            parts.setdefault(name.partition("[")[0], []).append((row.gamma, row.boundary))
        learned = {name: longest_of(leashes) for name, leashes in parts.items()}
        return learned | dict.fromkeys(self.frozen, (0.0, 1.0))  # a leash of no length holds every row


METHOD = FTP
