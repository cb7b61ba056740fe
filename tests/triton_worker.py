"""Runs the Triton kernel without a GPU, in a process of its own: Triton reads its environment when it is imported.

TRITON_INTERPRET=1 python triton_worker.py loop | table | paths | launches     in Triton's interpreter
python triton_worker.py compile                                                for GPUs that are not here
"""

import dataclasses
import functools
import sys
from typing import Any

import torch
from cases import RULES, Network, gradients
from slow_loop import LEASHES, SHAPES, SLOW_RULES, follow
from test_cases import CASES, WIDE, network, weights
from test_tensors import RANKS, same_layout
from torch import Tensor, nn

from ftp import SGDP, AdamP, _triton

torch.set_num_threads(1)


def loop() -> None:
    """The slow loop of the paper, for every rule and every leash."""
    for rule in SLOW_RULES:
        follow(rule, "k = 0.5", SHAPES, steps=25, kernel="triton")
    for leash in LEASHES:
        follow("weight decay", leash, SHAPES, steps=25, kernel="triton")


def table() -> None:
    """What happens to an optimizer in a training loop; the scaler's case asks for torch's fused rule instead."""
    Network.width = 40  # the interpreter takes milliseconds for each tile
    for rule in (RULES[2], RULES[4]):
        with_kernel = dataclasses.replace(rule, build=functools.partial(rule.build, kernel="triton"))
        for case in CASES:
            if "scaler" not in case.__name__:
                first, second = case(with_kernel)
                assert torch.allclose(weights(first), weights(second), rtol=0, atol=1e-12), (case.__name__, rule.name)
                assert not torch.equal(weights(first), weights(network(**WIDE))), case.__name__


def paths() -> None:
    """Every rank and layout, rows that are cut, low memory, rows of one element, maximize, a rate in a tensor."""
    _triton.SPAN = 64
    _triton.WIDTHS = (4, 16)
    _triton.TILE = 64
    shapes = [value for name, value in RANKS.items() if "large" not in name] + [torch.randn(3, 150), torch.randn(200)]
    more: list[dict[str, Any]] = [{}, {"low_memory": True}, {"per_element": True}, {"maximize": True}]
    for options in [*more, {"gamma_rows": "outside"}, {"lr": torch.tensor(0.02, dtype=torch.float64)}]:
        for build, base in ((SGDP, {"momentum": 0.9, "nesterov": True}), (AdamP, {"weight_decay": 0.1})):
            ends = [paths_end(build, shapes, {"lr": 0.02, **base, **options, "kernel": k}) for k in ("eager", "triton")]
            for (eager, gammas), (kernel, other_gammas) in zip(*ends, strict=True):
                assert torch.allclose(eager, kernel, rtol=0, atol=1e-12), options
                assert torch.allclose(gammas, other_gammas, rtol=1e-10, atol=1e-12), options


def paths_end(build: Any, values: list[Tensor], options: dict[str, Any]) -> list[tuple[Tensor, Tensor]]:
    params = [nn.Parameter(same_layout(value, torch.float64)) for value in values]
    optimizer = build([(f"p{i}", p) for i, p in enumerate(params)], **options)
    feeds = [gradients(tuple(p.shape), 4, torch.float64, i) for i, p in enumerate(params)]
    for grads in zip(*feeds, strict=True):
        for p, g in zip(params, grads, strict=True):
            p.grad = g.clone()
        optimizer.step()
    states = [optimizer.state[p].get("gamma_state", torch.zeros(4)) for p in params]
    return [(p.detach(), state) for p, state in zip(params, states, strict=True)]


def launches() -> None:
    """Kernels of one step on ResNet-50, as the benchmark counts them."""
    from optimizer import ADAM, SGD, triton_kernels

    for build, options in ((SGDP, SGD), (AdamP, ADAM)):
        dispatched, ours, reads = triton_kernels("resnet50", build, options)
        assert 0 < ours <= 6
        assert dispatched + ours <= 40
        assert reads == 0


def compile() -> None:
    """Every kernel, for the GPUs of 2020 and of 2022."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    tables = dict.fromkeys(("addresses", "sizes", "tiles"), "*i64") | {"layers": "i32"}
    shape = {"R": 1, "C": 1024, "SPAN": _triton.SPAN}
    sources = []
    for dtype in ("*fp32", "*fp64"):
        numbers = tables | dict.fromkeys(("numbers", "corrections", "dots", "norms"), dtype)
        for kind in ("plain", "momentum", "nesterov", "adam", "amsgrad"):
            for flag in (True, False):
                options = {"KIND": kind, "CACHED": flag, "MAXIMIZE": not flag, **shape}
                sources.append((_triton._pass_one, numbers, options))
        sources.append((_triton._pass_two, tables | {"factors": dtype}, shape))
    for capability in (80, 90):
        for kernel, types, options in sources:
            signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
            source = ASTSource(fn=kernel, signature=signature, constexprs=options)
            target = GPUTarget("cuda", capability, 32)
            built = triton.compile(source, target=target, options={"enable_fp_fusion": True})
            assert len(built.asm["cubin"]) > 1000


if __name__ == "__main__":
    {f.__name__: f for f in (loop, table, paths, launches, compile)}[sys.argv[1]]()
    print("done")
