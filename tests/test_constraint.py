"""The gradient of gamma and its update: against autograd, torch's Adam, and arbitrary input."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from ftp import SGDP, AdamP, project_mars, row_l1
from ftp.constraint import adam_update, anneal, clip, gamma_grad


@pytest.mark.parametrize("shape", [(6, 4), (5, 3, 2, 2), (7,)])
def test_outside_rows_give_the_true_derivative(shape: tuple[int, ...]) -> None:
    anchor, weight = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    target = torch.randn(shape, dtype=torch.float64)
    norms = row_l1(weight - anchor)
    gamma = (0.9 * norms.median()).requires_grad_()  # some rows inside, some outside, none on the kink

    def loss(g: torch.Tensor) -> torch.Tensor:
        return (project_mars(weight, anchor, g) - target).square().sum()

    (truth,) = torch.autograd.grad(loss(gamma), gamma)
    projected = project_mars(weight, anchor, gamma.detach()).requires_grad_()
    (grad,) = torch.autograd.grad((projected - target).square().sum(), projected)
    ours = gamma_grad(grad, weight - anchor, gamma.detach(), rows="outside")
    assert ours.item() == pytest.approx(truth.item(), rel=1e-7)
    with torch.no_grad():
        numeric = (loss(gamma + 1e-6) - loss(gamma - 1e-6)).item() / 2e-6
    assert ours.item() == pytest.approx(numeric, rel=1e-6)
    if len(shape) > 1:
        assert gamma_grad(grad, weight - anchor).item() != pytest.approx(truth.item(), rel=1e-3)


def test_all_rows_outside_make_both_ways_equal() -> None:
    grad, deviation = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    assert gamma_grad(grad, deviation) == gamma_grad(grad, deviation, 1e-3, rows="outside")


def test_three_of_six_rows_outside_differ() -> None:
    deviation = torch.tensor([[2.0], [2.0], [2.0], [0.5], [0.5], [0.5]])
    grad = torch.tensor([[0.1], [0.2], [0.3], [0.02], [0.03], [0.05]])
    assert gamma_grad(grad, deviation).item() == pytest.approx(0.7)
    assert gamma_grad(grad, deviation, 1.0, rows="outside").item() == pytest.approx(0.6)


def test_the_memory_order_of_the_gradient_does_not_matter() -> None:
    grad, deviation = torch.randn(4, 3, 5, 5), torch.randn(4, 3, 5, 5)
    last = torch.channels_last
    expected = gamma_grad(grad, deviation).item()
    for g, d in ((grad.to(memory_format=last), deviation), (grad, deviation.to(memory_format=last))):
        assert gamma_grad(g, d).item() == pytest.approx(expected, abs=1e-5)


def test_adam_update_is_torchs_adam_when_it_counts_updates() -> None:
    gamma = nn.Parameter(torch.tensor([0.5, -2.0, 3.0], dtype=torch.float64))
    peer = torch.optim.Adam([gamma], lr=1e-2)
    ours, m, v = gamma.detach().clone(), torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for step in range(2, 60):
        gamma.grad = torch.randn(3, dtype=torch.float64)
        peer.step()
        ours, m, v = adam_update(ours, gamma.grad, m, v, step, count="updates")
    assert torch.allclose(ours, gamma.detach(), rtol=0, atol=1e-12)


def test_the_bias_correction_is_exact_in_float32() -> None:
    zero = torch.tensor(0.0)
    for t in (2, 3, 10, 1000, 100_000):
        gamma, _, _ = adam_update(zero, torch.tensor(1e-3), zero, zero, t)
        m, v = 0.1 * 1e-3 / (1 - 0.9**t), 0.001 * 1e-6 / (1 - 0.999**t)
        assert gamma.item() == pytest.approx(-1e-2 * m / (math.sqrt(v) + 1e-8), rel=1e-5)


def test_zero_betas_are_allowed() -> None:
    gamma, _, _ = adam_update(*torch.tensor([1.0, 2.0, 0.0, 0.0]), 2, betas=(0.0, 0.0))
    assert gamma.item() == pytest.approx(0.99)


def test_anneal() -> None:
    values = torch.tensor([2.0, -2.0, 0.0, float("nan"), float("inf"), -float("inf")])
    assert anneal(values, 0.5).tolist() == pytest.approx([1.0, -2.0, 0.0, 0.0, 0.5e18, -1e18])
    assert anneal(values, 0.0)[0] == 0


def test_clip() -> None:
    gamma = torch.tensor([5.0, 0.5, -1.0, 1.0])
    largest = torch.tensor([2.0, 2.0, 2.0, float("nan")])
    assert clip(gamma, largest).tolist() == pytest.approx([2.0, 0.5, 1e-8, 1.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gamma_grad(torch.zeros(2, 3), torch.zeros(3, 2)),
            "grad has shape (2, 3) and deviation (3, 2); both belong to one layer, so they must have the same shape",
        ),
        (
            lambda: gamma_grad(torch.zeros(2), torch.zeros(2), rows="some"),
            'rows is \'some\'; write rows="all" (the authors) or rows="outside" (the derivative)',
        ),
        (
            lambda: gamma_grad(torch.zeros(2), torch.zeros(2), rows="outside"),
            'rows="outside" needs gamma, to know which rows are outside; pass gamma=',
        ),
        (
            lambda: adam_update(*torch.zeros(4), 2, count="days"),
            'count is \'days\'; write count="steps" (the authors) or count="updates" (the textbook)',
        ),
    ],
)
def test_messages(call: object, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()  # type: ignore[operator]
    assert str(error.value) == message


NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 1e-30, -1e-8, 1e8, -1e20, 3e38, float("inf"), float("nan")]) | st.floats(
    -1e3, 1e3, width=32
)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=8),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([SGDP, AdamP]),
    st.booleans(),
    st.sampled_from([1, 5]),
    st.sampled_from([{}, {"gamma_rows": "outside"}, {"per_element": True, "gamma_count": "updates"}]),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_gamma_stays_in_its_range_whatever_happens(
    feeds: list[list[float]], k: float, build: type, low_memory: bool, count: int, more: dict, dtype: torch.dtype
) -> None:
    params = [nn.Parameter(torch.tensor([[0.5, -1.0, 2.0], [0.0, 0.0, 1e-3]]).to(dtype)) for _ in range(count)]
    optimizer = build(params, lr=0.1, leash=True, k=k, low_memory=low_memory, **more)
    shortest = min(torch.tensor(1e-8).item(), 1e-8)
    for feed in feeds:
        for param in params:
            param.grad = torch.tensor(feed).view(2, 3).to(dtype)
        before = optimizer.constraints()
        optimizer.step()
        for (name, gamma), param in zip(optimizer.constraints().items(), params, strict=True):
            norms = optimizer.state[param]["row_l1"]
            largest = norms.max().item()
            floor = optimizer.state[param]["floor"].item() if low_memory else shortest
            assert not math.isnan(gamma)
            assert gamma >= shortest
            if math.isfinite(largest):
                assert gamma <= max(largest + 1e-8, floor) * (1 + 1e-6)
                if k == 0 and gamma < largest:
                    assert gamma >= before[name] * (1 - 1e-6)  # never shortened, but for the upper clip


@pytest.mark.parametrize("kind", ["zero gradients", "zero deviation"])
def test_nothing_to_learn_from(kind: str) -> None:
    param = nn.Parameter(torch.randn(3, 3))
    start = param.detach().clone()
    optimizer = SGDP([param], lr=0.0 if kind == "zero deviation" else 0.1)
    for _ in range(20):
        param.grad = torch.zeros(3, 3) if kind == "zero gradients" else torch.randn(3, 3)
        optimizer.step()
    assert torch.equal(param.detach(), start)
    assert optimizer.constraints()["param.0"] == pytest.approx(1e-8)


def test_k_zero_lets_gamma_only_grow() -> None:
    generator = torch.Generator().manual_seed(0)
    last = {1.0: 0.0, 0.0: 0.0}
    shrank = dict.fromkeys(last, False)
    for k in last:
        param = nn.Parameter(torch.zeros(4, 4))
        optimizer = SGDP([param], lr=1.0, k=k)
        for _ in range(60):
            param.grad = torch.randn(4, 4, generator=generator) * 5
            optimizer.step()
            gamma = optimizer.constraints()["param.0"]
            clipped = gamma >= optimizer.state[param]["row_l1"].max().item()
            shrank[k] |= gamma < last[k] and not clipped
            last[k] = gamma
    assert shrank == {1.0: True, 0.0: False}
