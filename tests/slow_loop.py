"""SGDP and AdamP beside the slow loop of `oracle.py`: the cases, and the comparison."""

from typing import Any

import pytest
import torch
from cases import gradients
from oracle import SlowLayer
from torch import Tensor, nn

from ftp import SGDP, AdamP

SHAPES = [(4, 3), (5,), (2, 3, 2, 2), (), (3, 2), (6, 1)]
SLOW_RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "dampening": {"momentum": 0.9, "dampening": 0.2},
    "nesterov": {"momentum": 0.9, "nesterov": True},
    "weight decay": {"momentum": 0.9, "weight_decay": 0.01},
    "adam": {"rule": "adam", "weight_decay": 0.05},
    "amsgrad": {"rule": "adam", "weight_decay": 0.05, "amsgrad": True},
}


def nested(tensor: Tensor) -> list[list[float]]:
    rows = tensor.reshape(1, -1) if tensor.dim() < 2 else tensor.flatten(1)
    return [[float(value) for value in row] for row in rows.tolist()]


LEASHES: dict[str, dict[str, Any]] = {
    "k = 0": {"k": 0.0},
    "k = 0.5": {"k": 0.5},
    "k = 1": {"k": 1.0},
    "rows outside": {"rows": "outside"},
    "count updates": {"count": "updates"},
    "other Adam": {"mu": 3e-3, "gamma_betas": (0.5, 0.9)},
}


def follow(rule: str, leash: str, shapes: list[tuple[int, ...]], steps: int = 200, **more: Any) -> None:
    """Both ways side by side, compared after every step."""
    torch.manual_seed(0)
    params = [nn.Parameter(torch.randn(shape, dtype=torch.float64)) for shape in shapes]
    options = dict(SLOW_RULES[rule])
    build = {"sgd": SGDP, "adam": AdamP}[options.pop("rule", "sgd")]
    names = {"mu": "gamma_lr", "rows": "gamma_rows", "count": "gamma_count"}
    leash_options = {names.get(key, key): v for key, v in LEASHES[leash].items()}
    optimizer = build(params, lr=0.02, leash=True, **leash_options, **options, **more)
    slow = [SlowLayer(nested(p.detach()), lr=0.02, **LEASHES[leash], **SLOW_RULES[rule]) for p in params]
    batches = [gradients(shape, steps, torch.float64, seed) for seed, shape in enumerate(shapes)]
    pulled = []
    for t in range(steps):
        for param, layer, grads in zip(params, slow, batches, strict=True):
            param.grad = grads[t].clone()
            layer.step(nested(grads[t]))
        optimizer.step()
        if t % 20 == 1:
            pulled += [row.boundary for row in optimizer.report().values()]
        for param, layer in zip(params, slow, strict=True):
            rows = param.detach().reshape(1, -1) if param.dim() < 2 else param.detach().flatten(1)
            assert (rows - torch.tensor(layer.weight, dtype=torch.float64)).abs().max() < 1e-12
    for gamma, layer in zip(optimizer.constraints().values(), slow, strict=True):
        assert gamma == pytest.approx(layer.gamma, abs=1e-12)
    assert sum(pulled) / len(pulled) > 0.2  # the leashes were tight often enough for this to mean something
