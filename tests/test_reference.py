"""The reference step that ships with the module: equal to the slow loop from the paper, and the fast paths to it."""

import pytest
import torch
from cases import RULES, Rule, gradients
from oracle import SlowLayer
from torch import nn

from ftp import reference

SHAPES = [(4, 3), (5,), (2, 3, 2, 2), (), (300, 300)]


def test_the_reference_is_the_papers_loop() -> None:
    start = torch.randn(4, 3, dtype=torch.float64)
    layer, slow = reference.Layer.at(start), SlowLayer(start.tolist(), k=0.5, lr=0.02)
    for grad in gradients((4, 3), 200, torch.float64):
        layer = reference.step(layer, grad, layer.weight - 0.02 * grad, k=0.5)
        slow.step(grad.tolist())
        assert (layer.weight - torch.tensor(slow.weight, dtype=torch.float64)).abs().max() < 1e-12
    assert float(layer.gamma) == pytest.approx(slow.gamma, abs=1e-12)
    assert slow.gamma > 0.1


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_optimizers_are_the_reference_around_torchs_base_rule(rule: Rule) -> None:
    params = [nn.Parameter(torch.randn(shape, dtype=torch.float64)) for shape in SHAPES]
    copies = [nn.Parameter(p.detach().clone()) for p in params]
    layers = [reference.Layer.at(p.detach().clone()) for p in params]
    optimizer = rule.build([(str(i), p) for i, p in enumerate(params)], k=0.5, **rule.options)
    peer = rule.peer(copies, **rule.options)
    for feed in zip(*[gradients(shape, 40, torch.float64, i) for i, shape in enumerate(SHAPES)], strict=True):
        for p, copy, grad in zip(params, copies, feed, strict=True):
            p.grad, copy.grad = grad.clone(), grad.clone()
        optimizer.step()
        peer.step()  # from W_{t-1} to W~_t
        for i, (copy, grad) in enumerate(zip(copies, feed, strict=True)):
            layers[i] = reference.step(layers[i], grad, copy.detach().clone(), k=0.5)
            copy.data.copy_(layers[i].weight)
        for p, layer in zip(params, layers, strict=True):
            assert torch.allclose(p.detach(), layer.weight, rtol=0, atol=1e-11)
    assert max(optimizer.constraints().values()) > 0.1
