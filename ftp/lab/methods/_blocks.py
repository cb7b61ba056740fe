"""The blocks of a network, by its structure: residual blocks of a ResNet, layers of a transformer, stages of neither.

A block is a module of its own class, inside an nn.Sequential or nn.ModuleList, with two or more convolutions or linear
layers. A stage that is nothing but a chain of blocks (timm's Swin and ConvNeXt) stands for those. A network that keeps
its blocks as plain attributes (GoogLeNet) is searched there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def blocks_of(model: nn.Module) -> dict[str, nn.Module]:
    """The blocks by name, early ones first; {} for a plain chain of layers.

    >>> from ftp.lab.models.small_resnet import SmallResNet
    >>> list(blocks_of(SmallResNet(10)))
    ['blocks.0', 'blocks.1', 'blocks.2', 'blocks.3', 'blocks.4', 'blocks.5']
    """
    from torch import nn

    containers = (nn.Sequential, nn.ModuleList)
    blocks: dict[str, nn.Module] = {}
    for name, parent in model.named_modules():
        if isinstance(parent, containers) and not any(name.startswith(f"{block}.") for block in blocks):
            for part, child in parent.named_children():
                if _is_weighty(child) and not isinstance(child, containers):
                    blocks[f"{name}.{part}" if name else part] = child
    if len(blocks) < 2:
        children = model.named_children()
        blocks = {name: part for name, part in children if _is_weighty(part) and not isinstance(part, containers)}
    refined: dict[str, nn.Module] = {}
    for name, block in blocks.items():
        refined |= _chain(name, block) or {name: block}
    return refined if len(refined) > 1 else {}


def _chain(name: str, stage: nn.Module) -> dict[str, nn.Module]:
    """The blocks of a stage, if it holds a chain of them."""
    from torch import nn

    containers = (nn.Sequential, nn.ModuleList)
    for part, chain in stage.named_children():
        links = list(chain.named_children()) if isinstance(chain, containers) else []
        if links and all(_is_weighty(link) and not isinstance(link, containers) for _, link in links):
            return {f"{name}.{part}.{place}": link for place, link in links}
    return {}


def _is_weighty(module: nn.Module) -> bool:
    from torch import nn

    return sum(isinstance(part, nn.Conv2d | nn.Linear) for part in module.modules()) >= 2


def depths(model: nn.Module, names: Iterable[str], top: Iterable[str]) -> dict[str, int]:
    """How far up each parameter lies: 0 before the first block, then one more with every block; `top` above all.

    What lies between two blocks or after the last belongs to the one below it. In a network without blocks every
    module with parameters is one.
    """
    above = set(top)
    blocks = list(blocks_of(model))
    seen: list[str] = []
    depth = {}
    for name in names:
        if name in above:
            continue
        if blocks:
            block = next((block for block in blocks if name.startswith(f"{block}.")), None)
        else:
            block = name.rpartition(".")[0]
        if block is not None and block not in seen:
            seen.append(block)
        depth[name] = len(seen) if block is None else seen.index(block) + 1
    lowest = min(depth.values(), default=0)
    highest = max(depth.values(), default=0)
    return {**{name: level - lowest for name, level in depth.items()}, **dict.fromkeys(above, highest - lowest + 1)}
