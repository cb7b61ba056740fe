"""What the optimizers keep, in bytes, and what it costs to keep less."""

import copy
from typing import Any

import pytest
import torch
from cases import MOMENTUM, batches, forward, network, train, train_step, weights
from torch import nn

from ftp import SGDP, AdamP

BFLOAT = {"anchor_dtype": torch.bfloat16}


def bytes_per_weight(optimizer: torch.optim.Optimizer, param: nn.Parameter) -> int:
    param.grad = torch.ones_like(param)
    optimizer.step()
    tensors = [value for value in optimizer.state[param].values() if torch.is_tensor(value)]
    return round(sum(tensor.nbytes for tensor in tensors) / param.numel())


@pytest.mark.parametrize(
    ("more", "sgdp", "adamp"),
    [
        ({}, 12, 16),
        ({"low_memory": True}, 8, 12),
        ({"low_memory": True, **BFLOAT}, 6, 10),
        ({"leash": False}, 4, 8),
    ],
    ids=str,
)
def test_the_table_of_the_readme(more: dict[str, Any], sgdp: int, adamp: int) -> None:
    param = nn.Parameter(torch.randn(2, 100_000))
    assert bytes_per_weight(SGDP([("w", param)], lr=0.1, momentum=0.9, **more), param) == sgdp
    assert bytes_per_weight(AdamP([("w", param)], lr=0.1, **more), param) == adamp


@pytest.mark.parametrize("low_memory", [False, True])
def test_anchors_on_the_cpu_change_no_bit(low_memory: bool) -> None:
    ends = []
    for device in (None, "cpu", torch.device("cpu")):
        model = network()
        optimizer = SGDP(model.named_parameters(), **MOMENTUM, low_memory=low_memory, anchor_device=device)
        train(model, optimizer, 8)
        ends.append(weights(model))
    assert torch.equal(ends[0], ends[1])
    assert torch.equal(ends[0], ends[2])


def test_an_anchor_in_bfloat16_moves_the_start_by_its_rounding_and_no_more() -> None:
    model = network()
    start = copy.deepcopy(model.state_dict())
    optimizer = SGDP(model.named_parameters(), lr=0.05, **BFLOAT)
    train(model, optimizer, 1)
    for name, param in model.named_parameters():
        assert optimizer.state[param]["anchor"].dtype == torch.bfloat16
        assert ((param.detach() - start[name]).abs() <= 2**-8 * start[name].abs() + 1e-7).all()
    train(model, optimizer, 10)
    report = optimizer.report()
    assert all(row.distance <= row.gamma * (1 + 1e-5) + 1e-6 for row in report.values())
    assert max(row.gamma for row in report.values()) > 0.01


def test_an_anchor_in_bfloat16_is_exact_for_weights_that_were_bfloat16() -> None:
    ends = []
    for more in ({}, BFLOAT):
        model = network()
        model.load_state_dict({name: value.bfloat16().to(value.dtype) for name, value in model.state_dict().items()})
        train(model, SGDP(model.named_parameters(), **MOMENTUM, **more), 8)
        ends.append(weights(model))
    assert torch.allclose(*ends, rtol=0, atol=1e-6)  # but for the order of sums: these layers are not packed


@pytest.mark.parametrize("more", [BFLOAT, {"anchor_device": "cpu"}, {**BFLOAT, "low_memory": True}], ids=str)
def test_they_resume_exactly(more: dict[str, Any]) -> None:
    model = network()
    optimizer = AdamP(model.named_parameters(), lr=0.01, **more)
    train(model, optimizer, 5)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    train(model, optimizer, 5, seed=2)
    straight = weights(model)
    again = AdamP(model.named_parameters(), lr=0.01, **more)
    model.load_state_dict(saved[0])
    again.load_state_dict(saved[1])
    if "anchor_dtype" in more:
        assert again.state[model.wide.weight]["anchor"].dtype == torch.bfloat16  # torch would widen it
    train(model, again, 5, seed=2)
    assert torch.equal(weights(model), straight)


def test_a_step_that_needs_no_state_makes_none() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.1)
    optimizer.step()  # no gradients yet
    assert not optimizer.state
    for batch in batches(1):
        forward(model, batch[0])
        train_step(model, optimizer, batch)
    assert len(optimizer.state) == 7
