"""MARS-SP (Gouk et al. 2021): a leash of one given length for every layer. After each step, Eq. 2.

What FTP learns for each layer, a person has to guess here for all of them at once.
"""

from __future__ import annotations

from ftp.lab.methods._base import Method
from ftp.lab.options import Option
from ftp.lab.rows import parts_of


class MARSSP(Method):
    title = "MARS-SP"
    summary = "Every layer is projected onto a leash of one given length."
    options = {"gamma": Option(4.0, "the length of the leash, the same for every layer", 0.0, 1e6)}

    def after_step(self, step: int) -> None:
        import torch

        from ftp.projection import row_l1, shrink, toward

        gamma = float(self.option("gamma"))
        with torch.no_grad():
            self._norms = {}
            for name, tensor, start in self.anchored():
                parts, starts = (parts_of(name, t, self.task.rows) for t in (tensor.detach(), start))
                norms = [row_l1(param - anchor) for param, anchor in zip(parts, starts, strict=True)]
                for param, anchor, norm in zip(parts, starts, norms, strict=True):
                    param.copy_(toward(anchor, param, shrink(norm, gamma)))
                self._norms[name] = norms[0] if len(norms) == 1 else torch.cat(norms)

    def report(self) -> dict[str, tuple[float, float]]:
        gamma = float(self.option("gamma"))
        return {name: (gamma, float((norms > gamma).float().mean())) for name, norms in self._norms.items()}


METHOD = MARSSP
