"""A residual network small enough for a laptop: six blocks, 45 tensors under the head, about 148,000 weights."""

from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

MEAN, STD = 0.5, 0.25  # of the pixels, for every channel


class Block(nn.Module):
    """Two convolutions with a bridge around them; the bridge is a 1 x 1 convolution where the shape changes.

    >>> import torch
    >>> Block(4, 8, stride=2)(torch.zeros(1, 4, 8, 8)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.bridge: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.bridge = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(y)).add_(self.bridge(x)), inplace=True)


class SmallResNet(nn.Module):
    """Pixels in [0, 1] of shape (batch, 3, 32, 32) -> one score for each class.

    >>> import torch
    >>> model = SmallResNet(10)
    >>> model(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    >>> sum(p.numel() for name, p in model.named_parameters() if not name.startswith("head"))
    147288
    """

    def __init__(self, classes: int, widths: tuple[int, ...] = (8, 24, 64)) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 5, 2, 2, bias=False)  # half the side at once: four times as fast
        self.stem_norm = nn.BatchNorm2d(widths[0])
        blocks, inputs = [], widths[0]
        for n, outputs in enumerate(widths):
            blocks += [Block(inputs, outputs, stride=1 if n == 0 else 2), Block(outputs, outputs, stride=1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(widths[-1], classes)

    def features(self, x: Tensor) -> Tensor:
        """What the head sees, of shape (batch, 64)."""
        x = (x - MEAN) / STD
        x = F.relu(self.stem_norm(self.stem(x)), inplace=True)
        return cast(Tensor, self.blocks(x).mean((2, 3)))

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))
