"""Lemma 1 and 2 as numbers: exact where they claim it, never broken by an attack, and where they stop."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftp import SGDP, mars_norm, project_mars
from ftp.lipschitz import (
    SLOPES,
    compose,
    conv_matrix,
    difference_bound,
    finetuned_bound,
    layer_bound,
    layer_difference,
    lemma1,
    network_bound,
    ratio,
    worst_input,
    worst_pair,
)


def test_sign_vectors_attain_the_mars_norm_exactly() -> None:
    for seed in range(10):
        weight = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        worst = worst_input(weight)
        assert worst.abs().tolist() == [1.0] * 7
        assert (weight @ worst).abs().max() == pytest.approx(mars_norm(weight).item(), rel=1e-14)
        random = torch.rand(2000, 7, dtype=torch.float64) * 2 - 1
        assert (random @ weight.t()).abs().max() <= mars_norm(weight)


def test_worst_input_for_zeros_and_wrong_ranks() -> None:
    assert worst_input(torch.zeros(2, 3)).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=r"^weight has 4 dimensions; give a matrix, for a convolution conv_matrix"):
        worst_input(torch.zeros(2, 3, 1, 1))


CONVOLUTIONS = [
    ((3, 2, 3, 3), (5, 4), {}),
    ((3, 2, 3, 3), (5, 5), {"padding": 1}),
    ((4, 2, 3, 2), (6, 5), {"stride": 2, "padding": (1, 0)}),
    ((2, 2, 2, 2), (6, 6), {"dilation": 2}),
    ((4, 1, 3, 3), (5, 5), {"groups": 4, "padding": 1}),
]


def slow_matrix(weight: Tensor, size: tuple[int, int], options: dict) -> Tensor:
    """Entry by entry from the definition of a convolution."""
    pairs = {key: v if isinstance(v, tuple) else (v, v) for key, v in options.items() if key != "groups"}
    stride, padding, dilation = (
        pairs.get(k, d) for k, d in (("stride", (1, 1)), ("padding", (0, 0)), ("dilation", (1, 1)))
    )
    groups = options.get("groups", 1)
    out, per_group, kh, kw = weight.shape
    h, w = size
    oh = (h + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (w + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    matrix = torch.zeros(out, oh, ow, per_group * groups, h, w, dtype=weight.dtype)
    for o in range(out):
        first = o // (out // groups) * per_group
        for y in range(oh):
            for x in range(ow):
                for c in range(per_group):
                    for i in range(kh):
                        for j in range(kw):
                            row = y * stride[0] - padding[0] + i * dilation[0]
                            col = x * stride[1] - padding[1] + j * dilation[1]
                            if 0 <= row < h and 0 <= col < w:
                                matrix[o, y, x, first + c, row, col] = weight[o, c, i, j]
    return matrix.flatten(0, 2).flatten(1)


@pytest.mark.parametrize(("shape", "size", "options"), CONVOLUTIONS)
def test_a_convolution_is_its_matrix(shape: tuple[int, ...], size: tuple[int, int], options: dict) -> None:
    weight = torch.randn(shape, dtype=torch.float64)
    matrix = conv_matrix(weight, size, **options)
    assert torch.allclose(matrix, slow_matrix(weight, size, options), rtol=0, atol=1e-14)
    image = torch.randn(1, shape[1] * options.get("groups", 1), *size, dtype=torch.float64)
    direct = F.conv2d(image, weight, **options).flatten()
    assert torch.allclose(matrix @ image.flatten(), direct, atol=1e-12)
    assert mars_norm(matrix) <= mars_norm(weight) + 1e-12


def test_the_kernels_mars_norm_is_exact_once_an_output_sees_no_padding() -> None:
    weight = torch.randn(3, 2, 3, 3, dtype=torch.float64)
    assert mars_norm(conv_matrix(weight, (3, 3), padding=1)) == pytest.approx(mars_norm(weight).item())
    assert mars_norm(conv_matrix(weight, (2, 2), padding=1)) < mars_norm(weight)  # every output is at the border


@pytest.mark.parametrize("kind", [k for k in SLOPES if not k.__module__.endswith(("flatten", "pooling"))])
def test_slopes_of_activations(kind: type[nn.Module]) -> None:
    layer = (kind(dim=-1) if kind is nn.Softmax else kind()).double().eval()
    if kind is nn.Softmax:
        x = torch.randn(4000, 3, dtype=torch.float64) * 3
        steepest = torch.func.vmap(torch.func.jacrev(layer))(x).abs().sum(-1).max()
    else:
        x = torch.linspace(-8, 8, 400_001, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(layer(x).sum(), x)
        steepest = slope.abs().max()
    assert layer_bound(layer) * 0.98 <= steepest <= layer_bound(layer) + 1e-12


def test_layers_with_parameters() -> None:
    norm = nn.BatchNorm2d(3).eval()
    norm.running_var.copy_(torch.tensor([1.0, 0.25, 4.0]))
    norm.weight.data.copy_(torch.tensor([1.0, -3.0, 5.0]))
    assert layer_bound(norm) == pytest.approx(6.0, rel=1e-4)
    assert layer_bound(nn.BatchNorm2d(3, affine=False).eval()) == pytest.approx(1.0, rel=1e-4)
    assert layer_bound(nn.LeakyReLU(2.0)) == 2.0
    assert layer_bound(nn.ELU(3.0)) == layer_bound(nn.ELU(-3.0)) == 3.0
    with pytest.raises(TypeError, match=r"^this BatchNorm2d has no running statistics, so what it does depends on"):
        layer_bound(nn.BatchNorm2d(3, track_running_stats=False).eval())
    with pytest.raises(TypeError, match=r"^layer_bound does not know LSTM; it knows Linear, Conv, BatchNorm, "):
        layer_bound(nn.LSTM(2, 2))


def make(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def test_no_attack_breaks_the_bound_and_a_long_one_comes_near() -> None:
    net = make(0)
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(64, 6, dtype=torch.float64, generator=generator)
    x, other, found = worst_pair(net, start, steps=200, generator=generator)
    assert torch.allclose(ratio(net, x, other), found)
    random = ratio(net, start, torch.randn(64, 6, dtype=torch.float64, generator=generator)).max()
    assert random < found.max() <= network_bound(net)
    linear = nn.Linear(6, 3).double()
    best = worst_pair(linear, start, steps=300, generator=generator)[2].max().item()
    assert 0.99 * layer_bound(linear) < best <= layer_bound(linear) * (1 + 1e-12)


def test_ratio_of_equal_inputs_is_zero() -> None:
    x = torch.ones(2, 6, dtype=torch.float64)
    assert ratio(make(0), x, x).tolist() == [0.0, 0.0]


def test_lemma_2_the_projection_enforces_l_d() -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        pretrained, finetuned = torch.randn(5, 6, dtype=torch.float64), torch.randn(5, 6, dtype=torch.float64)
        for l_d in (0.0, 0.3, 2.0, 100.0):
            projected = project_mars(finetuned, pretrained, l_d)
            assert layer_difference(projected, pretrained) <= l_d + 1e-12


def test_lemma_1_holds_for_a_network_trained_on_a_leash() -> None:
    net = make(1)
    before = [layer_bound(layer) for layer in net]
    start = [p.detach().clone() for p in net.parameters() if p.dim() == 2]
    optimizer = SGDP(net.named_parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        x = torch.randn(32, 6, dtype=torch.float64)
        F.cross_entropy(net(x), (x.sum(1) > 0).long()).backward()
        optimizer.step()
    matrices = [p for p in net.parameters() if p.dim() == 2]
    moved = iter([layer_difference(p, a) for p, a in zip(matrices, start, strict=True)])
    l_d = [next(moved) if isinstance(layer, nn.Linear) else 0.0 for layer in net]
    gammas = [gamma for name, gamma in optimizer.constraints().items() if name.endswith("weight")]
    assert all(d <= g + 1e-9 for d, g in zip([d for d in l_d if d], gammas, strict=True))
    for layer, zero, d in zip(net, before, l_d, strict=True):
        assert layer_bound(layer) <= lemma1(d, zero) + 1e-12
    assert network_bound(net) <= finetuned_bound(before, l_d) + 1e-9
    with pytest.raises(ValueError, match=r"^l_d is -1 and l_0 is 2; Lipschitz constants are >= 0$"):
        lemma1(-1, 2)


def test_the_difference_bound_of_an_affine_chain_holds_and_vanishes_with_the_leash() -> None:
    torch.manual_seed(0)
    for scale in (1.0, 0.1, 1e-3):
        old = [torch.randn(5, 5, dtype=torch.float64) for _ in range(3)]
        new = [w + scale * torch.randn(5, 5, dtype=torch.float64) for w in old]
        truth = mars_norm(torch.linalg.multi_dot(new[::-1]) - torch.linalg.multi_dot(old[::-1])).item()
        l_0 = [mars_norm(w).item() for w in old]
        l_d = [layer_difference(n, o) for n, o in zip(new, old, strict=True)]
        bound = difference_bound(l_0, l_d, linear=True)
        assert truth <= bound * (1 + 1e-12)
    assert bound < 0.1 * compose(l_0)


def test_where_it_stops_a_relu_makes_the_difference_as_steep_as_the_network() -> None:
    # a bias a hair lower: the two networks switch their unit on at different inputs
    old, new = nn.Linear(1, 1).double(), nn.Linear(1, 1).double()
    for layer, bias in ((old, 0.0), (new, -1e-6)):
        layer.weight.data.fill_(1.0)
        layer.bias.data.fill_(bias)
    x, other = torch.tensor([[1e-6]], dtype=torch.float64), torch.tensor([[0.0]], dtype=torch.float64)
    steep = ratio(lambda v: torch.relu(new(v)) - torch.relu(old(v)), x, other).item()
    assert layer_difference(new.weight, old.weight) == 0.0  # the leash on the weights has length zero
    assert steep == pytest.approx(1.0)  # and yet the difference function is 1-Lipschitz, no better
    assert difference_bound([1.0, 1.0], [0.0, 0.0], linear=True) == 0.0
    assert steep <= difference_bound([1.0, 1.0], [0.0, 0.0], linear=False)
