"""Encoders for dense tasks at full scale: a Swin of timm or torchvision, by its name."""

from typing import Any, cast

from torch import Tensor, nn

from ftp.lab.models.dense_network import SwinMaps
from ftp.lab.record import LabError


class TimmMaps(nn.Module):
    """The maps of a Swin of timm after each of its stages, channels last."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body  # timm's own list of features
        self.widths = tuple(int(channels) for channels in cast(Any, body).feature_info.channels())

    def forward(self, x: Tensor) -> list[Tensor]:
        return list(self.body(x))


def swin_maps(name: str, size: int, pretrained: bool) -> SwinMaps | TimmMaps:
    """An encoder by its name: timm:NAME or torchvision:NAME, a Swin.

    >>> swin_maps("torchvision:resnet50", 64, False)
    Traceback (most recent call last):
    ftp.lab.record.LabError: model is 'torchvision:resnet50'; it must be a Swin, such as torchvision:swin_t
    """
    source, _, which = name.partition(":")
    if source not in ("timm", "torchvision") or not which:
        raise LabError(f"model is {name!r}; write timm:NAME or torchvision:NAME, such as torchvision:swin_t")
    if not which.startswith("swin_"):
        example = "torchvision:swin_t" if source == "torchvision" else "timm:swin_tiny_patch4_window7_224.ms_in22k"
        raise LabError(f"model is {name!r}; it must be a Swin, such as {example}")
    return _timm(which, size, pretrained) if source == "timm" else _torchvision(which, pretrained)


def _timm(name: str, size: int, pretrained: bool) -> TimmMaps:
    try:
        import timm
    except ImportError:
        raise LabError(f"timm:{name} needs the package timm; install it: pip install timm") from None
    if name.partition(".")[0] not in timm.list_models():
        raise LabError(f"model is 'timm:{name}', and timm has no such network; see timm.list_models('swin_*')")
    return TimmMaps(timm.create_model(name, pretrained=pretrained, features_only=True, img_size=size))


def _torchvision(name: str, pretrained: bool) -> SwinMaps:
    from torchvision import models

    if name not in models.list_models():
        raise LabError(f"model is 'torchvision:{name}', and torchvision has no such network; write torchvision:swin_t")
    return SwinMaps(models.get_model(name, weights="DEFAULT" if pretrained else None))
