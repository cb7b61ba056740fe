"""LoRA: what a leash on the factors does not bound, and what a leash on their product does."""

import copy

import pytest
import torch
from cases import gradients
from torch import Tensor, nn

from ftp import SGDP, AdamP, mars_norm

RANK, INPUTS, OUTPUTS, SCALE = 3, 20, 12, 2.0


def factors(dtype: torch.dtype = torch.float64) -> tuple[nn.Parameter, nn.Parameter]:
    """A and B as PEFT begins them: A random, B zero."""
    torch.manual_seed(0)
    a = nn.Parameter(torch.empty(RANK, INPUTS, dtype=dtype))
    nn.init.kaiming_uniform_(a, a=5**0.5)
    return a, nn.Parameter(torch.zeros(OUTPUTS, RANK, dtype=dtype))


def batch(seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(64, INPUTS, generator=generator, dtype=torch.float64)
    mixing = torch.randn(INPUTS, OUTPUTS, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    return x.to(dtype), (x @ mixing).to(dtype)


def train(a: nn.Parameter, b: nn.Parameter, optimizer: torch.optim.Optimizer, steps: int, first: int = 0) -> None:
    for seed in range(first, first + steps):
        x, y = batch(seed, a.dtype)
        optimizer.zero_grad()
        ((x @ (SCALE * b @ a).t() - y).float() ** 2).mean().backward()
        optimizer.step()


def pair(build: type, a: nn.Parameter, b: nn.Parameter, **more: object) -> torch.optim.Optimizer:
    return build([{"params": [("lora_A", a), ("lora_B", b)], "product": SCALE}], **{"lr": 0.02, **more})


def length(a: Tensor, b: Tensor) -> float:
    return float(mars_norm(SCALE * b.detach().double() @ a.detach().double()))


def test_leashes_on_the_factors_do_not_bound_the_product() -> None:
    a, b = factors()
    optimizer = AdamP([("lora_A", a), ("lora_B", b)], lr=0.05)
    train(a, b, optimizer, 100)
    gammas = optimizer.constraints()
    assert length(a, b) > 3 * max(gammas.values())  # the rows of A are long from the start


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("build", [SGDP, AdamP])
def test_a_leash_on_the_product_holds_it(build: type, dtype: torch.dtype) -> None:
    a, b = factors(dtype)
    optimizer = pair(build, a, b)
    pulled = 0.0
    for step in range(60):
        train(a, b, optimizer, 1, first=step)
        (row,) = optimizer.report().values()
        # rounding a factor to bfloat16 turns the rows of the product a little
        assert length(a, b) <= row.gamma * (1 + (2**-7 if dtype == torch.bfloat16 else 1e-5))
        assert row.distance == pytest.approx(length(a, b), rel=1e-4)
        pulled += row.boundary
    assert list(optimizer.constraints()) == ["lora_B"]
    assert row.gamma > 0.1
    assert pulled > 3
    assert "anchor" not in optimizer.state[a]


def test_with_an_identity_for_a_it_is_the_leash_of_a_layer_that_begins_at_zero() -> None:
    a = nn.Parameter(torch.eye(5, dtype=torch.float64), requires_grad=False)
    b = nn.Parameter(torch.zeros(4, 5, dtype=torch.float64))
    layer = nn.Parameter(torch.zeros(4, 5, dtype=torch.float64))
    lora = SGDP([{"params": [("a", a), ("b", b)], "product": 1.0}], lr=0.05, momentum=0.9, k=0.5)
    plain = SGDP([("w", layer)], lr=0.05, momentum=0.9, k=0.5)
    for grad in gradients((4, 5), 40, torch.float64):
        b.grad, layer.grad = grad.clone(), grad.clone()
        lora.step()
        plain.step()
        assert torch.allclose(b.detach(), layer.detach(), rtol=0, atol=1e-9)
    assert lora.constraints()["b"] == pytest.approx(plain.constraints()["w"], abs=1e-9)


def test_the_slope_is_the_derivative_of_the_loss_in_gamma() -> None:
    """Eq. 4 through the factors, against finite differences through the projection itself."""
    a, b = factors()
    optimizer = pair(SGDP, a, b, gamma_rows="outside", lr=0.3)
    train(a, b, optimizer, 6)
    state = optimizer.state[b]
    gamma, norms = float(state["gamma_state"][0]), state["row_l1"].clone()
    unconstrained = b.detach() / torch.clamp(gamma / (norms + 1e-8), max=1.0).unsqueeze(1)
    x, y = batch(77)

    def loss(length: float) -> Tensor:
        left = unconstrained * torch.clamp(length / (norms + 1e-8), max=1.0).unsqueeze(1)
        return ((x @ (SCALE * left @ a.detach()).t() - y) ** 2).mean()

    step = 1e-6
    truth = float(loss(gamma + step) - loss(gamma - step)) / (2 * step)
    optimizer.zero_grad()
    ((x @ (SCALE * b @ a).t() - y) ** 2).mean().backward()
    before = state["gamma_state"].clone()
    optimizer.step()
    slope = (state["gamma_state"][1] - 0.9 * before[1]) / 0.1  # out of Adam's first moment
    assert float(slope) == pytest.approx(truth, rel=1e-4)
    assert (norms > gamma).any()


def test_a_product_resumes_exactly() -> None:
    ends = []
    for stop in (False, True):
        a, b = factors(torch.float32)
        optimizer = pair(AdamP, a, b)
        train(a, b, optimizer, 5)
        if stop:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer = pair(AdamP, a, b)
            optimizer.load_state_dict(saved)
        train(a, b, optimizer, 5, first=5)
        ends.append((a.detach(), b.detach()))
    assert all(torch.equal(x, y) for x, y in zip(*ends, strict=True))


def test_an_adapter_that_does_not_begin_at_zero_is_refused() -> None:
    a, b = factors()
    nn.init.ones_(b)
    optimizer = pair(SGDP, a, b)
    with pytest.raises(ValueError) as error:
        train(a, b, optimizer, 1)
    assert str(error.value) == (
        "B of a LoRA pair is not zero at its first step; the leash ties s B A to zero, where a new adapter begins: "
        "to go on with a trained one load the optimizer's state too, give its group leash=False, or merge it into the "
        "weights and begin a new one"
    )


def test_what_is_no_pair_is_refused() -> None:
    a, b = factors()
    with pytest.raises(ValueError) as error:
        SGDP([{"params": [("b", b), ("a", a)], "product": SCALE}])
    assert str(error.value) == (
        "a group with product has the parameters b (12, 3), a (3, 20); it takes pairs A (r, inputs), B (outputs, r), "
        "one after the other: use ftp.named_groups(model)"
    )
