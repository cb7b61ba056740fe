"""What one optimizer step costs, as ratios against torch's own optimizers and against the floor, all in one run.

    python benchmarks/optimizer.py [--threads 2] [--rounds 15] [--models resnet50 vit_b_16 toy] [--compiled]

The candidates take turns, so that a busy moment hits all of them; each figure is the median over the
rounds. Ratios travel between machines, milliseconds do not. The floor is the bytes that a step must move, divided by
the bandwidth of this machine: the better of a copy and an addition in place, of as many numbers as the model has.
"""

import argparse
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torchvision
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ftp import SGDP, AdamP

SGD = {"lr": 1e-3, "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True}
ADAM = {"lr": 1e-3, "weight_decay": 1e-2}


class Candidate(NamedTuple):
    build: Callable[..., torch.optim.Optimizer]
    arguments: dict[str, Any]
    floor: int  # bytes a weight that a step must move
    peer: str  # torch's optimizer of the same kind, for the ratios: "<peer> foreach" and "<peer> fused"


def family(
    peer: str, base: Any, leashed: Any, options: dict[str, Any], floors: tuple[int, int, int]
) -> dict[str, Candidate]:
    """torch's optimizer both ways, and ours every way."""
    plain, full, low = floors
    name = leashed.__name__
    modes: dict[str, tuple[dict[str, Any], int]] = {
        "": ({}, full),
        " foreach": ({"foreach": True}, full),
        " fused": ({"fused": True}, full),
        " low_memory": ({"low_memory": True}, low),
        " anchor in bfloat16": ({"anchor_dtype": torch.bfloat16}, full - 4),
        " native": ({"kernel": "native"}, full),
        " native low_memory": ({"kernel": "native", "low_memory": True}, low),
    }
    rows = {f"{peer} {way}": Candidate(base, {**options, way: True}, plain, peer) for way in ("foreach", "fused")}
    return rows | {name + mode: Candidate(leashed, {**options, **more}, f, peer) for mode, (more, f) in modes.items()}


# SGD reads p g m and writes p m: 20. SGDP reads p g m W0 d and writes m d, then reads W0 d and writes p: 40; without d
# it reads p g m W0 and writes p m, then reads p W0 and writes p: 36. Adam has one state more: 8 bytes
CANDIDATES = {
    **family("SGD", torch.optim.SGD, SGDP, SGD, (20, 40, 36)),
    **family("AdamW", torch.optim.AdamW, AdamP, ADAM, (28, 48, 44)),
}


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
    """Counts operations that start a kernel (neither views nor memory without contents), and reads by the host."""

    def __init__(self) -> None:
        super().__init__()
        self.ops = 0
        self.reads = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops += func.namespace == "aten" and not func.is_view and "empty" not in func.__name__
        self.reads += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def state_bytes(optimizer: torch.optim.Optimizer) -> float:
    """Bytes of optimizer state per weight."""
    weights = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
    values = [v for state in optimizer.state.values() for v in state.values() if isinstance(v, Tensor)]
    return sum(v.numel() * v.element_size() for v in values) / weights


def prepare(weights: list[Tensor], grads: list[Tensor], candidate: Candidate) -> torch.optim.Optimizer:
    params = [nn.Parameter(w.clone()) for w in weights]
    for p, grad in zip(params, grads, strict=True):
        p.grad = grad
    optimizer = candidate.build([(str(i), p) for i, p in enumerate(params)], **candidate.arguments)
    for _ in range(3):
        optimizer.step()
    return optimizer


def take_turns(runs: dict[str, Callable[[], object]], rounds: int, repeats: int) -> dict[str, float]:
    """The median seconds of each, over rounds in which they take turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(repeats):
                run()
            times[name].append((time.perf_counter() - start) / repeats)
    return {name: statistics.median(record) for name, record in times.items()}


def measure(model: str, peer: str, rounds: int) -> None:
    """One family; two at once would not fit into the memory of a laptop."""
    weights = [p.detach() for p in MODELS[model]().parameters()]
    grads = [torch.randn_like(w) for w in weights]
    count = sum(w.numel() for w in weights)
    optimizers = {}
    for name, candidate in CANDIDATES.items():
        if candidate.peer != peer:
            continue
        try:
            optimizers[name] = prepare(weights, grads, candidate)
        except RuntimeError as error:  # no compiler
            print(f"{name} left out: {error}")
    left, right = torch.randn(count), torch.randn(count)
    runs: dict[str, Callable[[], object]] = {name: optimizer.step for name, optimizer in optimizers.items()}
    runs |= {"copy": lambda: left.copy_(right), "add": lambda: left.add_(right, alpha=1e-9)}
    seconds = take_turns(runs, rounds, repeats=1 if count > 1e6 else 50)
    bandwidth = max(8 * count / seconds["copy"], 12 * count / seconds["add"])
    print(f"\n{model}: {len(weights)} tensors, {count / 1e6:.2f} M weights, {bandwidth / 1e9:.0f} GB/s")
    print(
        f"{'':24}{'ms':>9}{'/ foreach':>11}{'/ fused':>9}{'/ floor':>9}"
        f"{'state B/weight':>16}{'ops':>6}{'host reads':>12}"
    )
    for name, optimizer in optimizers.items():
        floor = CANDIDATES[name].floor
        with CountOps() as counter:
            optimizer.step()
        peers = "".join(
            f"{seconds[name] / seconds[f'{peer} {way}']:{width}.2f}" for way, width in (("foreach", 11), ("fused", 9))
        )
        print(
            f"{name:24}{1e3 * seconds[name]:9.3f}{peers}{seconds[name] * bandwidth / (floor * count):9.2f}"
            f"{state_bytes(optimizer):16.2f}{counter.ops:6}{counter.reads:12}"
        )


class Kernels(NamedTuple):
    dispatched: int  # by torch
    ours: int
    reads: int


def triton_kernels(model: str, build: Any, options: dict[str, Any]) -> Kernels:
    """What a step starts with the Triton kernel, counted without a GPU: nothing is computed.

    Needs TRITON_INTERPRET=1 before Triton is imported.
    """
    from ftp import _triton

    started: list[Any] = []
    launch, _triton.launch = _triton.launch, lambda kernel, *_, **__: started.append(kernel)
    try:
        weights = [p.detach() for p in MODELS[model]().parameters()]
        optimizer = prepare(weights, weights, Candidate(build, {**options, "kernel": "triton"}, 0, ""))
        started.clear()
        with CountOps() as counter:
            optimizer.step()
    finally:
        _triton.launch = launch
    return Kernels(counter.ops, len(started), counter.reads)


def count_launches() -> None:
    if importlib.util.find_spec("triton") is None:
        print("\nTriton is not installed: its kernels are not counted")
        return
    os.environ["TRITON_INTERPRET"] = "1"
    print('\nkernels of a step with kernel="triton", counted by dispatch')
    for model in ("resnet50", "vit_b_16"):
        for build, options in ((SGDP, SGD), (AdamP, ADAM)):
            dispatched, ours, reads = triton_kernels(model, build, options)
            print(f"{model:12}{build.__name__:8}{dispatched + ours:4}, of these {ours} of our own; host reads {reads}")


def compiled(rounds: int) -> None:
    """A compiled step on the first half of ResNet-18's tensors; the whole of ResNet-50 takes minutes to compile."""
    from torch._inductor import metrics

    weights = [p.detach() for p in torchvision.models.resnet18().parameters()][:30]
    rate = {"lr": torch.tensor(1e-3)}  # a number would be compiled in
    optimizer = prepare(weights, weights, Candidate(SGDP, {**SGD, **rate, "foreach": False}, 0, ""))
    peer = prepare(weights, weights, CANDIDATES["SGD foreach"])
    eager = prepare(weights, weights, CANDIDATES["SGDP"])
    step = torch.compile(lambda: optimizer.step(), fullgraph=True)
    start = time.perf_counter()
    step()
    build = time.perf_counter() - start
    seconds = take_turns({"compiled": step, "peer": peer.step, "eager": eager.step}, rounds, repeats=5)
    ratios = [seconds["compiled"] / seconds[other] for other in ("peer", "eager")]
    print(
        f"\ncompiled SGDP, {len(weights)} tensors: built in {build:.0f} s, {metrics.generated_kernel_count} kernels, "
        f"{ratios[0]:.2f} of SGD foreach, {ratios[1]:.2f} of SGDP not compiled"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--models", nargs="*", choices=sorted(MODELS), default=list(MODELS))
    parser.add_argument("--compiled", action="store_true", help="also a compiled step; takes a minute to build")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {arguments.threads} threads, {arguments.rounds} rounds, medians")
    for name in arguments.models:
        for peer in ("SGD", "AdamW"):
            measure(name, peer, arguments.rounds)
    if arguments.compiled:
        compiled(arguments.rounds)
    count_launches()


if __name__ == "__main__":
    main()
