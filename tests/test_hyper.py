"""HyperSGD against autograd through two steps, against plain SGD, and through a checkpoint."""

import copy

import pytest
import torch
from torch import Tensor, nn

from ftp import HyperSGD
from ftp.hyper import hyper_gradient


def loss(weight: Tensor, batch: Tensor) -> Tensor:
    return (torch.tanh(batch @ weight) - batch.sum(1)).square().mean()


def test_the_hyper_gradient_is_autograds() -> None:
    start = torch.randn(4, dtype=torch.float64, requires_grad=True)
    first, second = torch.randn(8, 4, dtype=torch.float64), torch.randn(8, 4, dtype=torch.float64)
    alpha = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    (g1,) = torch.autograd.grad(loss(start, first), start)
    moved = start.detach() - alpha * g1  # Eq. 6
    (truth,) = torch.autograd.grad(loss(moved, second), alpha)
    point = moved.detach().requires_grad_()
    (g2,) = torch.autograd.grad(loss(point, second), point)
    assert hyper_gradient([g2], [g1]).item() == pytest.approx(truth.item(), rel=1e-12)


def test_it_follows_eq_6_to_8() -> None:
    weight = nn.Parameter(torch.randn(4, dtype=torch.float64))
    by_hand, alpha, before = weight.detach().clone(), 0.05, None
    optimizer = HyperSGD([weight], lr=0.05, hyper_lr=1e-3)
    for _ in range(30):
        batch = torch.randn(8, 4, dtype=torch.float64)
        optimizer.zero_grad()
        loss(weight, batch).backward()
        optimizer.step()
        point = by_hand.clone().requires_grad_()
        (grad,) = torch.autograd.grad(loss(point, batch), point)
        if before is not None:
            alpha = max(0.0, alpha + 1e-3 * float(grad @ before))  # Eq. 7
        by_hand, before = by_hand - alpha * grad, grad  # Eq. 8
        assert torch.allclose(weight.detach(), by_hand, rtol=0, atol=1e-12)
        assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(alpha, abs=1e-14)
    assert alpha != 0.05


def test_without_a_hyper_rate_it_is_sgd() -> None:
    ends = []
    for build in (lambda p: HyperSGD(p, lr=0.1, hyper_lr=0.0), lambda p: torch.optim.SGD(p, lr=0.1)):
        torch.manual_seed(0)
        weight = nn.Parameter(torch.randn(4, dtype=torch.float64))
        optimizer = build([weight])
        for _ in range(10):
            optimizer.zero_grad()
            loss(weight, torch.randn(8, 4, dtype=torch.float64)).backward()
            optimizer.step()
        ends.append(weight.detach())
    assert torch.allclose(ends[0], ends[1], rtol=0, atol=1e-14)


def test_a_bad_rate_is_mended() -> None:
    ends = {}
    for hyper_lr in (0.0, 1e-3):
        weight = nn.Parameter(torch.full((4,), 3.0))
        optimizer = HyperSGD([weight], lr=1e-3, hyper_lr=hyper_lr)
        for _ in range(60):
            optimizer.zero_grad()
            weight.square().sum().backward()
            optimizer.step()
        ends[hyper_lr] = weight.detach().square().sum().item()
    assert ends[1e-3] < 1e-3 * ends[0.0]


def test_resume_and_missing_gradients() -> None:
    a, b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))
    optimizer = HyperSGD([a, b], lr=0.1, hyper_lr=1e-2)
    for i in range(6):
        a.grad = torch.ones(3)
        b.grad = torch.ones(2) if i % 2 else None
        optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    c, d = nn.Parameter(a.detach().clone()), nn.Parameter(b.detach().clone())
    again = HyperSGD([c, d], lr=9.0)
    again.load_state_dict(saved)
    for params, runner in (((a, b), optimizer), ((c, d), again)):
        for p in params:
            p.grad = torch.ones_like(p)
        runner.step()
    assert torch.equal(a, c)
    assert torch.equal(b, d)


def test_a_closure_and_two_groups() -> None:
    a, b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer = HyperSGD([{"params": [a], "lr": 0.1}, {"params": [b], "lr": 0.2, "hyper_lr": 0.0}])

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = a.square().sum() + b.square().sum()
        value.backward()
        return value

    values = [optimizer.step(closure).item() for _ in range(5)]
    assert values == sorted(values, reverse=True)
    assert float(optimizer.param_groups[0]["lr"]) > 0.1
    assert float(optimizer.param_groups[1]["lr"]) == pytest.approx(0.2)
