"""A vision transformer small enough for a laptop: a convolutional stem, 16 tokens and a class token, five blocks.

The three projections of attention are one fused matrix `qkv`, as in timm's ViT-B/16, so FTP gives them one gamma.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, DEPTH, HEADS = 96, 5, 4
Prefixes = Sequence[tuple[Tensor, Tensor] | None]  # a block each: rows before its keys and values, (batch, rows, width)


class Attention(nn.Module):
    """Every token looks at every token; a prefix is further rows to look at, which are no tokens themselves.

    >>> layer, rows = Attention(8, 2), torch.zeros(3, 4, 8)
    >>> layer(torch.zeros(3, 5, 8)).shape, layer(torch.zeros(3, 5, 8), (rows, rows)).shape
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 8]))
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, prefix: tuple[Tensor, Tensor] | None = None) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)  # (batch, tokens, width) each
        if prefix is not None:
            k, v = torch.cat([prefix[0], k], 1), torch.cat([prefix[1], v], 1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)  # (batch, heads, tokens, width / heads)
        return cast(Tensor, self.proj(y.transpose(1, 2).flatten(2)))


class Block(nn.Module):
    """Attention and a two-layer network, each behind a norm and with a bridge around it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

    def forward(self, x: Tensor, prefix: tuple[Tensor, Tensor] | None = None) -> Tensor:
        x = x + self.attn(self.norm1(x), prefix)
        return cast(Tensor, x + self.mlp(self.norm2(x)))


class GrowingHead(nn.ModuleList):
    """A linear read-out that gets further rows with every task; each task's rows are a layer of their own.

    So rows of old classes can stay exactly as they are, whatever the optimizer does to what it trains.

    >>> head = GrowingHead(8)
    >>> head.grow(3, torch.Generator().manual_seed(0)), head.grow(2, torch.Generator().manual_seed(1))
    (None, None)
    >>> head(torch.zeros(4, 8)).shape, [name for name, _ in head.named_parameters()][:2]
    (torch.Size([4, 5]), ['0.weight', '0.bias'])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def grow(self, rows: int, generator: torch.Generator) -> None:
        """Small random rows, with the deviation of 0.02 that is usual for the head of a ViT; their bias is 0."""
        layer = nn.Linear(self.width, rows)
        with torch.no_grad():
            layer.weight.copy_(0.02 * torch.randn((rows, self.width), generator=generator))
            layer.bias.zero_()
        self.append(layer)

    def forward(self, x: Tensor) -> Tensor:
        layers = [cast(nn.Linear, layer) for layer in self]
        return F.linear(x, torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers]))


class SmallViT(nn.Module):
    """Ink in [0, 1] of shape (batch, 1, 32, 32) -> one score for each class.

    >>> model = SmallViT(20)
    >>> model(torch.zeros(2, 1, 32, 32)).shape
    torch.Size([2, 20])
    >>> sum(p.numel() for name, p in model.named_parameters() if not name.startswith("head"))
    501024
    """

    def __init__(self, classes: int, width: int = WIDTH, depth: int = DEPTH, heads: int = HEADS) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, 2, 1), nn.GELU()),  # 16 x 16
            *(nn.Conv2d(16, 32, 3, 2, 1), nn.GELU()),  # 8 x 8
            nn.Conv2d(32, width, 3, 2, 1),  # 4 x 4: the tokens
        )
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(0.02 * torch.randn(1, 17, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head: nn.Module = nn.Linear(width, classes)
        self.prompts: nn.Module | None = None  # a method may put one here: what it saw -> prefixes

    def features(self, x: Tensor, prefixes: Prefixes | None = None) -> Tensor:
        """The class token after the last norm, of shape (batch, 96)."""
        x = self.stem(x - 0.1).flatten(2).transpose(1, 2)  # (batch, 16, width); about a tenth of a page is ink
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.place
        for n, block in enumerate(self.blocks):
            x = block(x, prefixes[n] if prefixes else None)
        return cast(Tensor, self.norm(x[:, 0]))

    def forward(self, x: Tensor) -> Tensor:
        if self.prompts is None:
            return cast(Tensor, self.head(self.features(x)))
        with torch.no_grad():
            query = self.features(x)  # of the network without prompts: what chooses them, picture by picture
        return cast(Tensor, self.head(self.features(x, self.prompts(query))))
