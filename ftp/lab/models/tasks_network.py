"""A network of timm or torchvision with a head that grows from task to task."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from ftp.lab.models.small_vit import GrowingHead
from ftp.lab.record import LabError


class TasksNetwork(nn.Module):
    """Pictures in [0, 1] -> one score for each class so far. `body` gives the features.

    name: timm:NAME or torchvision:NAME, a vision transformer.
    """

    def __init__(self, name: str, size: int, pretrained: bool) -> None:
        super().__init__()
        source, _, which = name.partition(":")
        if source not in ("timm", "torchvision") or not which:
            raise LabError(f"model is {name!r}; write timm:NAME or torchvision:NAME, such as torchvision:vit_b_16")
        self.body = _timm(which, size, pretrained) if source == "timm" else _torchvision(which, size, pretrained)
        was_training = self.body.training
        with torch.no_grad():
            width = self.body.eval()(torch.zeros(1, 3, size, size)).shape[1]
        self.body.train(was_training)
        self.head = GrowingHead(width)

    def features(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.body(x))

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))


def _timm(name: str, size: int, pretrained: bool) -> nn.Module:
    try:
        import timm
    except ImportError:
        raise LabError(f"timm:{name} needs the package timm; install it: pip install timm") from None
    if name.partition(".")[0] not in timm.list_models():
        raise LabError(f"model is 'timm:{name}', and timm has no such network; see timm.list_models('vit*')")
    network: nn.Module = timm.create_model(name, pretrained=pretrained, num_classes=0, img_size=size)
    return network


def _torchvision(name: str, size: int, pretrained: bool) -> nn.Module:
    from torchvision import models

    if name not in models.list_models():
        raise LabError(
            f"model is 'torchvision:{name}', and torchvision has no such network; write torchvision:vit_b_16"
        )
    if not name.startswith("vit_"):
        raise LabError(f"model is 'torchvision:{name}'; it must be a vision transformer, such as torchvision:vit_b_16")
    network: Any = models.get_model(name, weights="DEFAULT" if pretrained else None, image_size=size)
    network.heads = nn.Identity()
    return cast(nn.Module, network)
