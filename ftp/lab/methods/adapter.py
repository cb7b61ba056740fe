"""Adapter (Houlsby et al. 2019): small new layers beside a frozen body; they and the head are trained.

After each block of the network its output x becomes x + up(relu(down(x))). `up` starts at zero, so training begins
exactly at the pre-trained model. For maps the two are 1 x 1 convolutions, for tokens linear layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method, body_in_eval
from ftp.lab.methods._blocks import blocks_of
from ftp.lab.options import Option
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
        body_in_eval(self.model, self.task.readout)


def attach(model: nn.Module, sample: Tensor, width: int, seed: int) -> nn.ModuleList:
    """Put an adapter behind each block; `model.adapters` holds them, so that they are saved with the model."""
    import torch
    from torch import nn

    blocks = find_blocks(model, sample)
    if not blocks:
        raise LabError(
            "adapter finds no blocks in this network, a plain chain of layers; choose another method, such as ftp"
        )
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

    blocks = blocks_of(model)
    shapes: dict[nn.Module, tuple[int, ...]] = {}

    def note(module: nn.Module, inputs: object, output: object) -> None:
        if not isinstance(output, torch.Tensor):
            raise LabError(
                f"adapter cannot follow {type(module).__name__}, whose output is no tensor; choose another method"
            )
        shapes[module] = tuple(output.shape)

    hooks = [module.register_forward_hook(note) for module in blocks.values()]
    was_training = model.training
    with torch.no_grad():
        model.eval()(sample)
    model.train(was_training)
    for hook in hooks:
        hook.remove()
    sized_blocks = []
    for module in (module for module in blocks.values() if module in shapes):  # an auxiliary head may stay silent
        maps = any(isinstance(m, nn.Conv2d) for m in module.modules()) and len(shapes[module]) == 4
        sized_blocks.append((module, shapes[module][1 if maps else -1], maps))
    return sized_blocks


def _pair(channels: int, width: int, maps: bool) -> nn.Sequential:
    from torch import nn

    down: nn.Module = nn.Conv2d(channels, width, 1) if maps else nn.Linear(channels, width)
    up: nn.Module = nn.Conv2d(width, channels, 1) if maps else nn.Linear(width, channels)
    for parameter in up.parameters():
        nn.init.zeros_(parameter)
    return nn.Sequential(down, nn.ReLU(), up)


METHOD = AdapterMethod
