"""Tensors of every rank, layout and dtype; no host reads; a compiled step."""

from typing import Any

import pytest
import torch
from cases import MODES, PEER_MODES, RULES, Rule, gradients, network, train, weights
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ftp import SGDP, AdamP, project_mars

RANKS: dict[str, Tensor] = {
    "0-D": torch.tensor(0.7),
    "1-D": torch.randn(5),
    "2-D": torch.randn(4, 3),
    "3-D": torch.randn(2, 3, 4),
    "4-D": torch.randn(4, 3, 2, 2),
    "5-D": torch.randn(2, 2, 2, 2, 2),
    "empty": torch.zeros(0, 3),
    "empty vector": torch.zeros(0),
    "one element": torch.randn(1, 1),
    "transposed": torch.randn(3, 4).t(),
    "strided": torch.randn(4, 6)[:, ::2],
    "strided 4-D": torch.randn(4, 3, 4, 4)[:, :, ::2, ::2],
    "channels last": torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last),
    "large": torch.randn(300, 300),
    "large channels last": torch.randn(64, 64, 5, 5).to(memory_format=torch.channels_last),
    "large strided": torch.randn(300, 600)[:, ::2],
}


def same_layout(value: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy with the same strides, gaps included."""
    return torch.empty_strided(value.shape, value.stride(), dtype=dtype).copy_(value)


@pytest.mark.parametrize("per_element", [False, True])
@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize("rank", RANKS)
def test_rank(rank: str, low_memory: bool, per_element: bool) -> None:
    """Alone (never packed) and among five of its kind (packed if small), against contiguous copies."""
    value = RANKS[rank]
    feed = gradients(tuple(value.shape), 30, torch.float64)
    ends = []
    for count, contiguous in ((1, False), (5, False), (1, True)):
        copies = [nn.Parameter(value.double().contiguous()) for _ in range(count)]
        if not contiguous:
            copies = [nn.Parameter(same_layout(value, torch.float64)) for _ in copies]
        optimizer = SGDP(copies, lr=0.05, leash=True, momentum=0.9, low_memory=low_memory, per_element=per_element)
        for grad in feed:
            for copy in copies:
                copy.grad = grad.clone()
            optimizer.step()
        ends += [copy.detach() for copy in copies]
        if value.numel():
            assert len(optimizer.report()) == count
            assert all(0 < row.distance <= row.gamma * (1 + 1e-9) + 1e-12 for row in optimizer.report().values())
    for end in ends:
        assert torch.isfinite(end).all()
        assert torch.allclose(end, ends[0], rtol=0, atol=1e-9)


def test_an_empty_parameter_has_no_constraint() -> None:
    optimizer = SGDP([("a", nn.Parameter(torch.zeros(0, 3))), ("b", nn.Parameter(torch.zeros(2, 3)))], lr=0.1)
    assert list(optimizer.constraints()) == ["b"]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("count", [1, 6])
def test_bfloat16_weights_stay_on_a_float32_leash(rule: Rule, count: int) -> None:
    params = [nn.Parameter(torch.randn(8, 16).bfloat16()) for _ in range(count)]
    anchors = [p.detach().clone() for p in params]
    optimizer = rule.build(params, **rule.options, leash=True, gamma_lr=0.1)
    for grads in zip(*[gradients((8, 16), 40, torch.bfloat16, i) for i in range(count)], strict=True):
        for p, g in zip(params, grads, strict=True):
            p.grad = g.clone()
        optimizer.step()
    for (_, row), p, anchor in zip(optimizer.report().items(), params, anchors, strict=True):
        state = optimizer.state[p]
        assert (state["gamma_state"].dtype, state["row_l1"].dtype) == (torch.float32, torch.float32)
        assert (state["anchor"].dtype, p.dtype) == (torch.bfloat16, torch.bfloat16)
        rows = (p.detach().float() - anchor.float()).abs().sum(1)
        assert (rows <= row.gamma * (1 + 1e-6)).all()  # rounding goes towards the anchor
        assert row.gamma > 0.5


@pytest.mark.parametrize(("rule", "mode"), [(rule, mode) for rule in RULES[1:4] for mode in MODES], ids=str)
def test_low_memory_keeps_only_the_anchor_and_nearly_the_same_path(rule: Rule, mode: str) -> None:
    ends = []
    for low_memory in (False, True):
        model = network(dtype=torch.float64)
        optimizer = rule.build(model.named_parameters(), low_memory=low_memory, **rule.options, **MODES[mode])
        train(model, optimizer, 25, dtype=torch.float64)
        ends.append((weights(model), optimizer.constraints()))
        state = optimizer.state[model.wide.weight]
        tensors = [key for key, v in state.items() if getattr(v, "shape", None) == model.wide.weight.shape]
    assert "deviation" not in tensors
    assert "anchor" in tensors
    assert torch.allclose(ends[0][0], ends[1][0], rtol=0, atol=1e-6)
    assert ends[0][1] == pytest.approx(ends[1][1], abs=1e-5)


def test_low_memory_leaves_the_anchor_in_float32() -> None:
    # a leash of 1e-8 is below the resolution of float32: without a floor gamma would never grow
    for count in (1, 6):
        params = [nn.Parameter(torch.randn(16, 32)) for _ in range(count)]
        optimizer = SGDP(params, lr=0.05, leash=True, low_memory=True)
        reference = SGDP([nn.Parameter(p.detach().clone()) for p in params], lr=0.05, leash=True)
        for grads in zip(*[gradients((16, 32), 40, torch.float32, i) for i in range(count)], strict=True):
            for p, q, g in zip(params, reference.param_groups[0]["params"], grads, strict=True):
                p.grad, q.grad = g.clone(), g.clone()
            optimizer.step()
            reference.step()
        ours, theirs = optimizer.constraints(), reference.constraints()
        assert ours == pytest.approx(theirs, rel=0.02)
        assert min(ours.values()) > 0.1


class HostReads(TorchDispatchMode):
    """Counts values that are read back, by the device they come from."""

    def __init__(self) -> None:
        super().__init__()
        self.devices: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        waits = func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)
        waits |= func is torch.ops.aten.repeat_interleave.Tensor and kwargs.get("output_size") is None
        waits |= func is torch.ops.aten.masked_select.default
        if waits:
            self.devices.append(args[0].device.type)
        return func(*args, **kwargs)


STEPS = [
    {},
    {"low_memory": True},
    {"k": 0.5},
    {"gamma_rows": "outside"},
    {"gamma_count": "updates"},
    {"maximize": True},
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("more", STEPS, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_step_reads_nothing_back(rule: Rule, more: dict[str, Any], mode: str) -> None:
    model = network()
    optimizer = rule.build(model.named_parameters(), **rule.options, **more, **MODES[mode])
    peer = rule.peer(model.parameters(), **rule.options, **PEER_MODES[mode])
    counts = []
    for runner in (optimizer, peer):
        counts.append(0)
        for missing in (None, None, model.norm.bias, None):  # the first steps, and a gradient that comes and goes
            for p in model.parameters():
                p.grad = None if p is missing else torch.ones_like(p)
            with HostReads() as reads:
                runner.step()
            counts[-1] += len(reads.devices)
    # AdamW without `fused` keeps its step count in CPU tensors and reads it there: not a wait for a device
    assert counts[0] == counts[1]
    if rule.build is SGDP or mode in ("default", "fused"):
        assert counts[0] == 0


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_step_reads_nothing_from_the_device(rule: Rule) -> None:
    # tensors on the meta device have no values: reading one back raises
    model = network().to("meta")
    optimizer = rule.build(model.named_parameters(), **rule.options)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    with HostReads() as reads:
        optimizer.step()
    assert "meta" not in reads.devices


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("rule", "more"),
    [
        (RULES[1], {}),
        (RULES[2], {"low_memory": True}),
        (RULES[3], {"gamma_rows": "outside", "k": 0.5}),
    ],
    ids=str,
)
def test_a_compiled_step_gives_the_same_weights(rule: Rule, more: dict[str, Any]) -> None:
    torch.compiler.reset()
    ends = []
    for compiled in (False, True):
        torch.manual_seed(0)
        params = [nn.Parameter(v.double()) for v in (torch.randn(4, 3), torch.randn(5), torch.randn(4, 3, 2, 2))]
        params += [nn.Parameter(torch.randn(300, 300).double())]
        optimizer = rule.build(params, leash=True, **{**rule.options, **more})
        step = torch.compile(lambda o=optimizer: o.step(), fullgraph=True) if compiled else optimizer.step
        feeds = [gradients(tuple(p.shape), 12, torch.float64, i) for i, p in enumerate(params)]
        for i, grads in enumerate(zip(*feeds, strict=True)):
            for p, g in zip(params, grads, strict=True):
                p.grad = g.clone()
            # two eager steps first: the state is packed by then, and the compiler must unpack it
            (optimizer.step if i in (0, 1, 6) else step)()
        ends.append(torch.cat([p.detach().flatten() for p in params]))
        gammas = optimizer.constraints()
    assert max(gammas.values()) > 0.01
    # a compiled AdamW computes its bias corrections in float32, an eager one in float64
    assert torch.allclose(ends[0], ends[1], rtol=0, atol=1e-12 if rule.build is SGDP else 1e-6)
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_step_with_two_dtypes_in_one_group() -> None:
    torch.compiler.reset()
    ends = []
    for compiled in (False, True):
        torch.manual_seed(0)
        params = [nn.Parameter(torch.randn(4, 3).to(dtype)) for dtype in (torch.float32, torch.bfloat16) * 3]
        anchors = [p.detach().clone() for p in params]
        optimizer = SGDP(params, lr=0.05, leash=True, gamma_lr=0.1)
        step = torch.compile(lambda o=optimizer: o.step(), fullgraph=True) if compiled else optimizer.step
        for _ in range(8):
            for i, p in enumerate(params):
                p.grad = gradients((4, 3), 1, torch.float32, i)[0].to(p.dtype)
            step()
        ends.append(([p.detach() for p in params], list(optimizer.constraints().values())))
        for param, anchor, gamma in zip(params, anchors, ends[-1][1], strict=True):
            far = (param.detach().double() - anchor.double()).abs().sum(1).max().item()
            assert far <= gamma * (1 + 1e-6) + 1e-6
    (eager, gammas), (again, gammas_again) = ends
    for one, other in zip(eager[::2], again[::2], strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-6)
    # a compiled step rounds to bfloat16 once where an eager one rounds in between, too
    assert gammas_again == pytest.approx(gammas, rel=0.1)
    assert min(gammas) > 0.5
    torch.compiler.reset()


def test_the_projection_that_the_optimizer_does_is_project_mars() -> None:
    param = nn.Parameter(torch.randn(6, 4, dtype=torch.float64))
    anchor = param.detach().clone()
    optimizer = SGDP([param], lr=0.1)
    for grad in gradients((6, 4), 20, torch.float64):
        before = param.detach().clone()
        param.grad = grad
        optimizer.step()
        gamma = optimizer.constraints()["param.0"]
        assert torch.allclose(param.detach(), project_mars(before - 0.1 * grad, anchor, gamma), atol=1e-14)


def test_adamp_state_sits_where_torch_puts_it() -> None:
    model = network()
    for fused in (False, True):
        optimizer = AdamP(model.named_parameters(), fused=fused)
        optimizer.anchor()
        assert all(state["step"].dtype == torch.float32 for state in optimizer.state.values())
