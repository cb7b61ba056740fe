"""Adapter (Houlsby et al. 2019): small new layers beside a frozen body; they and the head are trained.

After each block of the network its output x becomes x + up(relu(down(x))). `up` starts at zero, so training begins
exactly at the pre-trained model. For maps the two are 1 x 1 convolutions, for tokens linear layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method, Option, body_in_eval
from ftp.lab.record import LabError

if TYPE_CHECKING:
    from torch import Tensor, nn


class AdapterMethod(Method):
    title = "Adapter"
    summary = "The body is frozen; small new layers after each block are trained."
    options = {"width": Option(8, "channels inside an adapter", 1, 4096)}

    def prepare(self) -> None:
        self.train_only(lambda name: False)
        self.adapters = attach(self.model, self.task.sample, int(self.option("width")), self.settings.seed)

    def before_step(self, step: int) -> None:
        body_in_eval(self.model, self.task.head)


def attach(model: nn.Module, sample: Tensor, width: int, seed: int) -> nn.ModuleList:
    """Put an adapter behind each block; `model.adapters` holds them, so that they are saved with the model."""
    import torch
    from torch import nn

    blocks = find_blocks(model, sample)
    if not blocks:
        raise LabError("adapter finds no blocks in this model; it needs an nn.Sequential or nn.ModuleList of blocks")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        adapters = nn.ModuleList(_pair(channels, width, maps) for _, channels, maps in blocks)
    model.adapters = adapters.to(sample.device)
    for (module, _, _), pair in zip(blocks, adapters, strict=True):
        module.register_forward_hook(_Behind(pair))
    return adapters


class _Behind:
    """A hook that adds what an adapter says to a block's output."""

    def __init__(self, pair: nn.Module) -> None:
        self.pair = pair

    def __call__(self, module: nn.Module, inputs: object, output: Tensor) -> Tensor:
        return output + self.pair(output)  # type: ignore[no-any-return]


def find_blocks(model: nn.Module, sample: Tensor) -> list[tuple[nn.Module, int, bool]]:
    """The repeated blocks of a model: module, channels of its output, and whether that is a map (else tokens)."""
    import torch
    from torch import nn

    blocks: dict[str, nn.Module] = {}
    for name, parent in model.named_modules():
        if not isinstance(parent, nn.Sequential | nn.ModuleList) or any(name.startswith(b + ".") for b in blocks):
            continue
        for part, child in parent.named_children():
            weighty = [m for m in child.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
            if len(weighty) >= 2 and not isinstance(child, nn.Sequential | nn.ModuleList):
                blocks[f"{name}.{part}" if name else part] = child
    shapes: dict[nn.Module, tuple[int, ...]] = {}

    def note(module: nn.Module, inputs: object, output: Tensor) -> None:
        shapes[module] = tuple(output.shape)

    hooks = [module.register_forward_hook(note) for module in blocks.values()]
    was_training = model.training
    with torch.no_grad():
        model.eval()(sample)
    model.train(was_training)
    for hook in hooks:
        hook.remove()
    found = []
    for module in blocks.values():
        maps = any(isinstance(m, nn.Conv2d) for m in module.modules()) and len(shapes[module]) == 4
        found.append((module, shapes[module][1 if maps else -1], maps))
    return found


def _pair(channels: int, width: int, maps: bool) -> nn.Sequential:
    from torch import nn

    down: nn.Module = nn.Conv2d(channels, width, 1) if maps else nn.Linear(channels, width)
    up: nn.Module = nn.Conv2d(width, channels, 1) if maps else nn.Linear(width, channels)
    for parameter in up.parameters():
        nn.init.zeros_(parameter)
    return nn.Sequential(down, nn.ReLU(), up)


METHOD = AdapterMethod
