"""A network that says something of every pixel: a Swin encoder, and the all-MLP decoder of SegFormer on its maps.

The encoder is pre-trained, the decoder new; parameter names begin with `encoder.` and `decoder.`.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SwinMaps(nn.Module):
    """The maps of torchvision's SwinTransformer after each of its stages, channels last; its head is left out.

    >>> from torchvision.models.swin_transformer import SwinTransformer
    >>> swin = SwinTransformer([4, 4], embed_dim=24, depths=[2, 2, 2], num_heads=[2, 4, 8], window_size=[4, 4])
    >>> maps = SwinMaps(swin)
    >>> maps.widths, [tuple(part.shape) for part in maps(torch.zeros(1, 3, 64, 64))]
    ((24, 48, 96), [(1, 16, 16, 24), (1, 8, 8, 48), (1, 4, 4, 96)])
    """

    def __init__(self, swin: nn.Module) -> None:
        super().__init__()
        self.features = cast(nn.Sequential, swin.features)  # embed, stage, merge, stage, ...
        self.widths = tuple(int(cast(Any, stage)[-1].norm1.normalized_shape[0]) for stage in self.features[1::2])

    def forward(self, x: Tensor) -> list[Tensor]:
        maps = []
        for place, part in enumerate(self.features):
            x = part(x)
            if place % 2:
                maps.append(x)
        return maps


class AllMLPDecoder(nn.Module):
    """SegFormer's decoder: every map to one width, all to the size of the largest, side by side, mixed, read out.

    norms: a LayerNorm for each map comes first, since the stream of a Swin's stage is not normalised.
    Weights: sum(C_i C + C) + n C^2 + 2 C + C K + K for n maps of C_i channels, width C and K outputs; norms add 2 C_i.

    >>> sum(p.numel() for p in AllMLPDecoder((96, 192, 384, 768), 256, 21, norms=False).parameters())
    637717
    """

    def __init__(
        self, widths: Sequence[int], width: int, outputs: int, norms: bool = True, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(channels) if norms else nn.Identity() for channels in widths)
        self.linears = nn.ModuleList(nn.Linear(channels, width) for channels in widths)
        self.mix = nn.Conv2d(len(widths) * width, width, 1, bias=False)
        self.mix_norm = nn.BatchNorm2d(width)
        self.dropout = nn.Dropout2d(dropout)
        self.readout = nn.Conv2d(width, outputs, 1)

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        """maps: (batch, height, width, channels) each, the largest first -> (batch, outputs, height, width) of it."""
        size = maps[0].shape[1:3]
        resized = []
        for x, norm, linear in zip(maps, self.norms, self.linears, strict=True):
            x = linear(norm(x)).permute(0, 3, 1, 2)  # (batch, width, h, w)
            resized.append(F.interpolate(x, size, mode="bilinear", align_corners=False))
        mixed = F.relu(self.mix_norm(self.mix(torch.cat(resized[::-1], 1))))  # the smallest map first, as published
        return cast(Tensor, self.readout(self.dropout(mixed)))


class DenseNetwork(nn.Module):
    """Pictures in [0, 1] -> scores of the same height and width.

    encoder: gives maps, the largest first, channels last, and says their `widths`.
    mean, std: of each colour, taken off before the encoder; () for pictures as they are.

    >>> from torchvision.models.swin_transformer import SwinTransformer
    >>> swin = SwinTransformer([4, 4], embed_dim=24, depths=[2, 2, 2], num_heads=[2, 4, 8], window_size=[4, 4])
    >>> network = DenseNetwork(SwinMaps(swin), 7, width=48)
    >>> network(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 7, 64, 64])
    >>> sorted({name.split(".")[0] for name, _ in network.named_parameters()})
    ['decoder', 'encoder']
    """

    def __init__(
        self,
        encoder: nn.Module,
        outputs: int,
        width: int = 256,
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = AllMLPDecoder(cast(Any, encoder).widths, width, outputs, dropout=dropout)
        colours = [torch.tensor(list(values)).view(-1, 1, 1) for values in (mean or (0.0,), std or (1.0,))]
        self.register_buffer("mean", colours[0], persistent=False)
        self.register_buffer("std", colours[1], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.encoder((x - cast(Tensor, self.mean)) / cast(Tensor, self.std))
        return F.interpolate(self.decoder(maps), x.shape[-2:], mode="bilinear", align_corners=False)
