"""What one optimizer step costs, as ratios against torch's own optimizers, all in one run.

    python benchmarks/optimizer.py [--threads 2] [--rounds 15] [--models resnet50 vit_b_16 toy]

The candidates take turns, so that a busy moment hits all of them; each figure is the median over the
rounds. Ratios travel between machines, milliseconds do not.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ftp import SGDP, AdamP

SGD = {"lr": 1e-3, "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True}
ADAM = {"lr": 1e-3, "weight_decay": 1e-2}
# name, class, arguments, the peer it is measured against
CANDIDATES: list[tuple[str, Callable[..., torch.optim.Optimizer], dict[str, Any], str]] = [
    ("SGD foreach", torch.optim.SGD, {**SGD, "foreach": True}, "SGD foreach"),
    ("SGD fused", torch.optim.SGD, {**SGD, "fused": True}, "SGD foreach"),
    ("SGDP foreach", SGDP, {**SGD, "foreach": True}, "SGD foreach"),
    ("SGDP fused", SGDP, {**SGD, "fused": True}, "SGD foreach"),
    ("SGDP fused low_memory", SGDP, {**SGD, "fused": True, "low_memory": True}, "SGD foreach"),
    ("AdamW foreach", torch.optim.AdamW, {**ADAM, "foreach": True}, "AdamW foreach"),
    ("AdamW fused", torch.optim.AdamW, {**ADAM, "fused": True}, "AdamW foreach"),
    ("AdamP foreach", AdamP, {**ADAM, "foreach": True}, "AdamW foreach"),
    ("AdamP fused", AdamP, {**ADAM, "fused": True}, "AdamW foreach"),
    ("AdamP fused low_memory", AdamP, {**ADAM, "fused": True, "low_memory": True}, "AdamW foreach"),
]


def toy() -> nn.Module:
    """Thirty small tensors, as in a network that a laptop trains in seconds."""
    blocks: list[nn.Module] = []
    channels = 3
    for width in (16, 16, 16, 32, 32, 32, 64, 64, 64):
        blocks += [nn.Conv2d(channels, width, 3, bias=False), nn.BatchNorm2d(width)]
        channels = width
    return nn.Sequential(*blocks, nn.Linear(64, 62), nn.LayerNorm(62, bias=False))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet50": torchvision.models.resnet50,
    "vit_b_16": torchvision.models.vit_b_16,
    "toy": toy,
}


class CountOps(TorchDispatchMode):
    """Counts the operations that reach the dispatcher, and those that read a value back to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.ops = 0
        self.reads = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops += 1
        self.reads += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def state_bytes(optimizer: torch.optim.Optimizer) -> float:
    """Bytes of optimizer state per weight."""
    weights = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
    values = [v for state in optimizer.state.values() for v in state.values() if isinstance(v, Tensor)]
    return sum(v.numel() * v.element_size() for v in values) / weights


def measure(name: str, rounds: int) -> None:
    weights = [p.detach() for p in MODELS[name]().parameters()]
    runs = []
    for _, build, arguments, _ in CANDIDATES:
        params = [nn.Parameter(w.clone()) for w in weights]
        for p in params:
            p.grad = torch.randn_like(p)
        optimizer = build(params, **arguments)
        for _ in range(3):
            optimizer.step()
        runs.append(optimizer)
    repeats = 1 if sum(w.numel() for w in weights) > 1e6 else 50
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for optimizer, record in zip(runs, times, strict=True):
            start = time.perf_counter()
            for _ in range(repeats):
                optimizer.step()
            record.append((time.perf_counter() - start) / repeats)
    medians = {row[0]: statistics.median(record) for row, record in zip(CANDIDATES, times, strict=True)}
    print(f"\n{name}: {len(weights)} tensors, {sum(w.numel() for w in weights) / 1e6:.2f} M weights")
    print(f"{'':24}{'ms':>9}{'ratio':>8}  {'against':14}{'state B/weight':>15}{'ops':>7}{'host reads':>12}")
    for optimizer, (label, _, _, peer) in zip(runs, CANDIDATES, strict=True):
        with CountOps() as counter:
            optimizer.step()
        print(
            f"{label:24}{1e3 * medians[label]:9.3f}{medians[label] / medians[peer]:8.2f}  {peer:14}"
            f"{state_bytes(optimizer):15.2f}{counter.ops:7}{counter.reads:12}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {arguments.threads} threads, {arguments.rounds} rounds, medians")
    for name in arguments.models:
        measure(name, arguments.rounds)


if __name__ == "__main__":
    main()
