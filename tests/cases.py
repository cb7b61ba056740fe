"""What the tests of both optimizers share: the two base rules, a small network, and gradients to feed it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ftp import SGDP, AdamP


@dataclass(frozen=True)
class Rule:
    """One optimizer with its settings, and torch's optimizer that it must equal when it is off the leash."""

    name: str
    build: Callable[..., torch.optim.Optimizer]
    peer: Callable[..., torch.optim.Optimizer]
    options: dict[str, Any]

    def __str__(self) -> str:
        return self.name


MOMENTUM = {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}
RULES = [
    Rule("sgdp", SGDP, torch.optim.SGD, {"lr": 0.05}),
    Rule("sgdp-momentum", SGDP, torch.optim.SGD, MOMENTUM),
    Rule("sgdp-dampening", SGDP, torch.optim.SGD, {"lr": 0.05, "momentum": 0.8, "dampening": 0.3}),
    Rule("adamp", AdamP, torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    Rule("adamp-amsgrad", AdamP, torch.optim.AdamW, {"lr": 0.01, "amsgrad": True}),
]
# what a step may run through: small layers packed, large ones one by one, the low-memory mode
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "fused": {"fused": True},
    "foreach": {"foreach": True},
    "one by one": {"foreach": False},
}
PEER_MODES = {**MODES, "default": {"fused": True}}  # what torch's optimizer must be told to run in the same way


class Network(nn.Module):
    """A convolution, a norm, two linear layers and a scalar: tensors of rank 0, 1, 2 and 4, small and large."""

    width = 12000  # above the size that is packed

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, bias=False)  # before a norm its gradient would be rounding noise
        self.norm = nn.BatchNorm2d(6)
        self.wide = nn.Linear(6, self.width, bias=False)
        self.head = nn.Linear(self.width, 4)
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        features = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        out: Tensor = self.head(torch.tanh(self.wide(features))) * self.scale
        return out


def network(seed: int = 0, **to: Any) -> Network:
    torch.manual_seed(seed)
    return Network().to(**to)


def batches(steps: int, seed: int = 1, **to: Any) -> Iterator[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x = torch.randn(16, 3, 6, 6, generator=generator)
        yield x.to(**to), (x.mean((1, 2, 3)) > 0).long()


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: tuple[Tensor, Tensor]) -> None:
    optimizer.zero_grad()
    nn.functional.cross_entropy(forward(model, batch[0]), batch[1]).backward()
    optimizer.step()


def forward(model: nn.Module, x: Tensor) -> Tensor:
    """The network's answer; bfloat16 weights are widened first, as not every CPU can multiply them."""
    if x.dtype != torch.bfloat16:
        out: Tensor = model(x)
        return out
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    widened = {name: value.float() if value.is_floating_point() else value for name, value in state.items()}
    return torch.func.functional_call(model, widened, x.float())  # type: ignore[no-any-return]


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, seed: int = 1, **to: Any) -> None:
    for batch in batches(steps, seed, **to):
        train_step(model, optimizer, batch)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten().double() for p in model.parameters()])


def gradients(shape: tuple[int, ...], steps: int, dtype: torch.dtype, seed: int = 3) -> list[Tensor]:
    """Gradients with a drift, so that leashes grow, and enough noise that they also shrink."""
    generator = torch.Generator().manual_seed(seed)
    drift = torch.randn(shape, generator=generator, dtype=dtype)
    return [0.4 * drift + torch.randn(shape, generator=generator, dtype=dtype) for _ in range(steps)]
