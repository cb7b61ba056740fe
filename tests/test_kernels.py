"""The kernels of our own: the same weights as torch's operations, by the same battery of cases."""

import dataclasses
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import RULES, Rule, gradients, network, train, weights
from slow_loop import LEASHES, SHAPES, SLOW_RULES, follow
from test_cases import CASES, WIDE
from test_tensors import RANKS, same_layout
from torch import nn

from ftp import SGDP, AdamP, _native

WORKER = Path(__file__).with_name("triton_worker.py")


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The C++ kernel, built once for all tests by this machine's compiler."""
    if not any(map(shutil.which, _native.COMPILERS)):
        pytest.skip("there is no C++ compiler here")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    _native._library.cache_clear()
    _native._library()
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


native = pytest.mark.usefixtures("_built")
pairs = [(rule, "k = 0.5") for rule in SLOW_RULES] + [("weight decay", leash) for leash in LEASHES]


@native
@pytest.mark.parametrize(("rule", "leash"), pairs)
def test_native_follows_the_slow_loop(rule: str, leash: str) -> None:
    follow(rule, leash, SHAPES, kernel="native")


@native
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", [c.__name__ for c in CASES if "scaler" not in c.__name__])
def test_native_case(name: str, rule: Rule) -> None:
    with_kernel = dataclasses.replace(rule, build=functools.partial(rule.build, kernel="native"))
    first, second = next(c for c in CASES if c.__name__ == name)(with_kernel)
    assert torch.allclose(weights(first), weights(second), rtol=0, atol=1e-12)
    assert not torch.equal(weights(first), weights(network(**WIDE))), "nothing was trained"


OPTIONS: list[dict[str, Any]] = [
    {},
    {"low_memory": True},
    {"per_element": True},
    {"maximize": True},
    {"gamma_rows": "outside", "gamma_count": "updates"},
    {"anchor_dtype": torch.bfloat16},
]


@native
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("more", OPTIONS, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_native_is_eager(rule: Rule, more: dict[str, Any], dtype: torch.dtype) -> None:
    """Every rank and layout at once; those that the kernel cannot walk over go through torch beside it."""
    ends = []
    for kernel in ("eager", "native"):
        params = {name: nn.Parameter(same_layout(value, dtype)) for name, value in RANKS.items()}
        optimizer = rule.build(params.items(), **rule.options, **more, kernel=kernel)
        feeds = [gradients(tuple(p.shape), 12, dtype, i) for i, p in enumerate(params.values())]
        for grads in zip(*feeds, strict=True):
            for p, g in zip(params.values(), grads, strict=True):
                p.grad = g.clone()
            optimizer.step()
        ends.append(({name: p.detach() for name, p in params.items()}, optimizer.constraints()))
    # in float32 Adam divides by roots that differ in the last bit
    limit = 1e-12 if dtype == torch.float64 else 2e-6
    for name, eager in ends[0][0].items():
        assert torch.allclose(eager, ends[1][0][name], rtol=0, atol=limit), name
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-4 if dtype == torch.float32 else 1e-9)
    assert max(ends[0][1].values()) > 0.02


@native
@pytest.mark.parametrize(("shape", "row_axis", "split"), [((12, 5), 0, 3), ((12,), 0, 3), ((4, 6, 2, 2), 1, 2)])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_native_with_stacked_matrices(rule: Rule, shape: tuple[int, ...], row_axis: int, split: int) -> None:
    ends = []
    for kernel in ("eager", "native"):
        torch.manual_seed(0)
        params = {str(i): nn.Parameter(torch.randn(shape, dtype=torch.float64)) for i in range(2)}
        optimizer = rule.build(params.items(), **rule.options, row_axis=row_axis, split=split, kernel=kernel)
        for grad in gradients(shape, 12, torch.float64):
            for scale, p in enumerate(params.values(), 1):
                p.grad = grad * torch.linspace(0.5, scale, shape[row_axis]).view(-1, *[1] * (len(shape) - row_axis - 1))
            optimizer.step()
        ends.append((torch.stack([p.detach() for p in params.values()]), optimizer.constraints()))
    assert torch.allclose(ends[0][0], ends[1][0], rtol=0, atol=1e-12)
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-9)
    assert len(set(ends[0][1].values())) == 2 * split


@native
def test_a_checkpoint_goes_from_one_kernel_to_the_other() -> None:
    ends = []
    for kernels in (("eager", "eager"), ("native", "eager"), ("eager", "native")):
        model = network(**WIDE)
        first = AdamP(model.named_parameters(), lr=0.01, kernel=kernels[0])
        train(model, first, 5, **WIDE)
        second = AdamP(model.named_parameters(), lr=0.01)
        second.load_state_dict(first.state_dict())
        second.param_groups[0]["kernel"] = kernels[1]
        train(model, second, 5, seed=2, **WIDE)
        ends.append(weights(model))
    assert torch.allclose(ends[0], ends[1], rtol=0, atol=1e-12)
    assert torch.allclose(ends[0], ends[2], rtol=0, atol=1e-12)


@native
def test_a_row_within_reach_is_left_alone() -> None:
    """The base rule of the kernel, without a pull: torch's, but for rounding; and no bit of it is lost in pass two."""
    param, peer = nn.Parameter(torch.randn(8, 40)), nn.Parameter(torch.zeros(8, 40))
    peer.data.copy_(param.detach())
    optimizer = SGDP([param], lr=0.5, kernel="native")
    optimizer.anchor()
    optimizer.state[param]["gamma_state"][0] = 1e9
    param.grad = peer.grad = torch.randn(8, 40)
    optimizer.step()
    torch.optim.SGD([peer], lr=0.5).step()
    assert torch.allclose(param, peer, rtol=0, atol=1e-7)


@native
def test_weights_and_momentum_that_were_replaced_are_seen() -> None:
    ends = []
    for kernel in ("eager", "native"):
        torch.manual_seed(0)
        params = {str(i): nn.Parameter(torch.randn(6, 4, dtype=torch.float64)) for i in range(3)}
        optimizer = SGDP(params.items(), lr=0.1, momentum=0.9, kernel=kernel)
        for i, grad in enumerate(gradients((6, 4), 9, torch.float64)):
            for p in params.values():
                p.grad = grad.clone()
            if i == 3:
                params["0"].data = params["0"].data.clone()
                params["1"].data = params["1"].data.t().contiguous().t()
                optimizer.state[params["2"]]["momentum_buffer"] = torch.ones(6, 4, dtype=torch.float64)
            if i == 6:
                optimizer.param_groups[0]["momentum"] = 0
            optimizer.step()
        ends.append(torch.stack([p.detach() for p in params.values()]))
    assert torch.allclose(ends[0], ends[1], rtol=0, atol=1e-12)


@native
def test_a_write_by_the_kernel_is_seen_by_autograd() -> None:
    param = nn.Parameter(torch.ones(4, 4))
    optimizer = SGDP([param], lr=0.1, kernel="native")
    loss = param.square().sum()
    param.grad = torch.ones(4, 4)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("build", [SGDP, AdamP])
def test_a_gradient_in_another_order_than_the_weights(build: Any) -> None:
    """torch's fused rules would pair the wrong numbers; also when fused is asked for."""
    ends = []
    for more in ({}, {"fused": True}, {"foreach": False}):
        torch.manual_seed(0)
        param = nn.Parameter(torch.randn(4, 3, 2, 2, dtype=torch.float64).to(memory_format=torch.channels_last))
        optimizer = build([param], lr=0.1, **more)
        for grad in gradients((4, 3, 2, 2), 6, torch.float64):
            param.grad = grad.clone()
            optimizer.step()
        ends.append(param.detach())
    assert torch.allclose(ends[0], ends[2], rtol=0, atol=1e-14)
    assert torch.allclose(ends[1], ends[2], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kernel": "native", "fused": True},
            'kernel="native" and fused=True; it must be one of them: the kernel runs the base rule itself',
        ),
    ],
    ids=str,
)
def test_a_kernel_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        SGDP([nn.Parameter(torch.zeros(2, 2))], **options)


@pytest.mark.parametrize(
    ("kernel", "device", "message"),
    [
        ("native", "meta", 'kernel="native" runs on CPUs and a parameter is on meta; leave kernel out'),
        ("triton", "cpu", 'kernel="triton" runs on GPUs and a parameter is on cpu; leave kernel out'),
    ],
)
def test_a_kernel_for_another_device(kernel: str, device: str, message: str) -> None:
    if kernel == "triton":
        pytest.importorskip("triton", reason="Triton is not installed here")
    param = nn.Parameter(torch.zeros(2, 2, device=device))
    param.grad = torch.ones_like(param)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        SGDP([param], kernel=kernel).step()


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(RuntimeError) as error:
        _native._library.__wrapped__()
    assert str(error.value) == (
        'kernel="native" needs a C++ compiler and there is none of c++, g++, clang++ here; '
        'install one (Debian and Ubuntu: apt install g++), set CXX, or write kernel="eager"'
    )


def test_with_a_compiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no licence >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RuntimeError) as error:
        _native._library.__wrapped__()
    assert str(error.value) == (
        f'kernel="native" could not be built by {broken}; write kernel="eager". It said: no licence'
    )


def triton(*what: str, interpret: bool = True) -> None:
    pytest.importorskip("triton", reason="Triton is not installed here")
    environment = {**os.environ, "TRITON_INTERPRET": "1"} if interpret else dict(os.environ)
    root = Path(__file__).parents[1]
    paths = [str(root), str(root / "benchmarks"), str(WORKER.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-W", "error::RuntimeWarning", str(WORKER), *what],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("done\n")


@pytest.mark.slow
def test_triton_follows_the_slow_loop() -> None:
    triton("loop")


@pytest.mark.slow
def test_triton_in_every_case() -> None:
    triton("table")


@pytest.mark.slow
def test_triton_is_eager() -> None:
    triton("paths")


@pytest.mark.slow
def test_triton_starts_few_kernels() -> None:
    pytest.importorskip("torchvision", reason="ResNet-50 needs torchvision")
    triton("launches")


@pytest.mark.slow
def test_triton_compiles_for_gpus_that_are_not_here() -> None:
    installed = pytest.importorskip("triton", reason="Triton is not installed here")
    if tuple(map(int, installed.__version__.split(".")[:2])) < (3, 3):
        pytest.skip("an older Triton is asked for a compiled kernel in another way")
    triton("compile", interpret=False)
