"""Partial fusion (Kanavati and Tsuneki 2021): the head and the normalisation layers train, the convolutions do not."""

from ftp.lab.methods._base import Method
from ftp.lab.record import LabError


class PartialFusion(Method):
    title = "Partial Fusion"
    summary = "Only the normalisation layers and the head are trained."

    def prepare(self) -> None:
        from torch import nn
        from torch.nn.modules.batchnorm import _BatchNorm

        kinds = (_BatchNorm, nn.LayerNorm, nn.GroupNorm)
        norms = {name for name, module in self.model.named_modules() if isinstance(module, kinds)}
        if not norms:
            raise LabError(
                "partial fusion trains normalisation layers, and this network has none; choose another method"
            )
        self.train_only(lambda name: name.rpartition(".")[0] in norms)


METHOD = PartialFusion
