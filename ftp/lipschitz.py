"""Lemma 1 and Lemma 2 as numbers: how much can a fine-tuned network overreact?

The picture: shake the input by at most 1 in every entry; a function with Lipschitz constant L shakes
its output by at most L. A fine-tuned network is the pre-trained one plus a difference; if the
difference shakes by at most L_d, the sum shakes by at most L_0 + L_d. A leash of length gamma on the
rows of a layer makes L_d <= gamma for that layer.

All norms are the max norm, for which the constant of x -> Wx is the MARS norm of W, exactly.

Where it stops being true: through an activation the difference function of a whole network is not
bounded by the leashes alone, see `difference_bound`.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftp.projection import mars_norm, row_l1

# the largest slope of layers that have no weights, rounded up
SLOPES: dict[type[nn.Module], float] = {
    nn.ReLU: 1.0,
    nn.ReLU6: 1.0,
    nn.Hardtanh: 1.0,
    nn.Tanh: 1.0,
    nn.Softplus: 1.0,
    nn.Sigmoid: 0.25,
    nn.GELU: 1.1290,
    nn.SiLU: 1.0999,
    nn.Softmax: 0.5,
    nn.Identity: 1.0,
    nn.Flatten: 1.0,
    nn.Dropout: 1.0,
    nn.MaxPool2d: 1.0,
    nn.AvgPool2d: 1.0,
    nn.AdaptiveAvgPool2d: 1.0,
}


def layer_bound(layer: nn.Module) -> float:
    """The Lipschitz constant of one layer in the max norm (in evaluation mode).

    Exact for `Linear`, and for activations but for the rounding of `SLOPES`. For a convolution it is
    exact as soon as one output sees no padding, and an upper bound otherwise; `conv_matrix` gives the
    exact one.

    >>> linear = nn.Linear(2, 2)
    >>> _ = linear.weight.data.copy_(torch.tensor([[3.0, -4.0], [1.0, 0.0]]))
    >>> layer_bound(linear), layer_bound(nn.Sigmoid())
    (7.0, 0.25)
    """
    if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return float(mars_norm(layer.weight.detach()))
    if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) and layer.running_var is not None:
        scale = (layer.running_var + layer.eps).rsqrt()
        gain = scale if layer.weight is None else layer.weight.detach() * scale
        return float(gain.abs().max())
    if isinstance(layer, nn.AvgPool2d) and layer.divisor_override is not None:
        height, width = (layer.kernel_size,) * 2 if isinstance(layer.kernel_size, int) else layer.kernel_size
        return height * width / abs(layer.divisor_override)
    if isinstance(layer, nn.LeakyReLU):
        return max(1.0, abs(layer.negative_slope))
    if isinstance(layer, nn.ELU):
        return max(1.0, abs(layer.alpha))
    for kind, slope in SLOPES.items():
        if isinstance(layer, kind):
            return slope
    if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
        raise TypeError(
            f"this {type(layer).__name__} has no running statistics, so what it does depends on the batch; "
            "layer_bound takes one with track_running_stats=True"
        )
    raise TypeError(
        f"layer_bound does not know {type(layer).__name__}; it knows Linear, Conv, BatchNorm, LeakyReLU, ELU, "
        f"{', '.join(kind.__name__ for kind in SLOPES)}: compute its constant and pass numbers to compose"
    )


def compose(bounds: Iterable[float]) -> float:
    """The constant of a chain of functions is at most the product of theirs.

    >>> compose([2.0, 0.25, 3.0])
    1.5
    """
    return math.prod(bounds)


def network_bound(layers: Iterable[nn.Module]) -> float:
    """An upper bound for a chain of layers, such as an `nn.Sequential`. Rarely tight.

    >>> network_bound(nn.Sequential(nn.Sigmoid(), nn.Sigmoid()))
    0.0625
    """
    return compose(layer_bound(layer) for layer in layers)


def layer_difference(finetuned: Tensor, pretrained: Tensor) -> float:
    """L_d of one linear layer, Eq. 14: the MARS norm of W_f - W_0, exactly.

    >>> layer_difference(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 0.0]]))
    3.0
    """
    return float(mars_norm(finetuned.detach() - pretrained.detach()))


def lemma1(l_d: float, l_0: float) -> float:
    """Lemma 1, Eq. 13: a fine-tuned function is (L_d + L_0)-Lipschitz.

    >>> lemma1(l_d=0.5, l_0=2.0)
    2.5
    """
    if l_d < 0 or l_0 < 0:
        raise ValueError(f"l_d is {l_d} and l_0 is {l_0}; Lipschitz constants are >= 0")
    return l_d + l_0


def finetuned_bound(l_0: Sequence[float], l_d: Sequence[float]) -> float:
    """A bound for the fine-tuned chain from the pre-trained layers and their leashes: prod (L_0 + L_d).

    >>> finetuned_bound(l_0=[2.0, 1.0], l_d=[0.5, 0.0])
    2.5
    """
    return compose(lemma1(d, zero) for d, zero in zip(l_d, l_0, strict=True))


def difference_bound(l_0: Sequence[float], l_d: Sequence[float], linear: bool) -> float:
    """A bound of the constant of the difference function h_f - h_0 of a whole chain.

    linear=True, affine layers only: swap the layers one by one from pre-trained to fine-tuned and add
    up what each swap can change, sum_i (prod_{j>i} L_0j) L_di (prod_{j<i} (L_0j + L_dj)). It goes to
    zero with the leashes.
    linear=False, with activations in between: only L_f + L_0 holds. The two networks can switch their
    units at different inputs, and then the difference is as steep as one of them, however short the
    leash. Eq. 9 for a whole network is therefore an assumption of Lemma 1, not a consequence of Lemma 2.

    >>> difference_bound([2.0, 3.0], [0.1, 0.0], linear=True)
    0.30000000000000004
    >>> difference_bound([2.0, 3.0], [0.1, 0.0], linear=False)
    12.3
    """
    if not linear:
        return finetuned_bound(l_0, l_d) + compose(l_0)
    total = 0.0
    for i, distance in enumerate(l_d):
        total += compose(l_0[i + 1 :]) * distance * finetuned_bound(l_0[:i], l_d[:i])
    return total


def ratio(function: Callable[[Tensor], Tensor], x: Tensor, other: Tensor) -> Tensor:
    """How much the output moves for each unit that the input moves, one value per pair; 0 for equal inputs.

    >>> ratio(lambda x: 3 * x, torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 0.0]]))
    tensor([3.])
    """
    moved = (function(x) - function(other)).flatten(1).abs().amax(1)
    distance = (x - other).flatten(1).abs().amax(1)
    return torch.where(distance > 0, moved / distance.clamp(min=torch.finfo(distance.dtype).tiny), 0.0)


def worst_input(weight: Tensor) -> Tensor:
    """The input with entries in [-1, 1] that Wx answers most strongly: the signs of W's longest row.

    >>> weight = torch.tensor([[3.0, -4.0], [1.0, 0.0]])
    >>> worst_input(weight), (weight @ worst_input(weight)).abs().max()
    (tensor([ 1., -1.]), tensor(7.))
    """
    if weight.dim() != 2:
        raise ValueError(f"weight has {weight.dim()} dimensions; give a matrix, for a convolution conv_matrix(...)")
    row = weight[row_l1(weight).argmax()]
    return torch.where(row < 0, -1.0, 1.0).to(weight.dtype)


def worst_pair(
    function: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    steps: int = 100,
    lr: float = 0.05,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Search a steep pair of inputs by gradient ascent on the ratio; a lower bound of the constant.

    start: inputs of shape (batch, ...), each the beginning of one search.
    Returns (x, other, ratio), the best pair of each search.

    >>> linear = nn.Linear(3, 2)
    >>> found = worst_pair(linear, torch.zeros(8, 3), generator=torch.Generator().manual_seed(0))[2]
    >>> bool(found.max() <= layer_bound(linear) * 1.0001)
    True
    """
    noise = torch.empty_like(start).uniform_(-1, 1, generator=generator)
    pair = torch.stack([start, start + 0.1 * noise]).detach().requires_grad_()
    best = pair.detach().clone()
    optimizer = torch.optim.Adam([pair], lr=lr, maximize=True)
    value = ratio(function, pair[0], pair[1])
    highest = value.detach()
    for _ in range(steps):
        (pair.grad,) = torch.autograd.grad(value.sum(), pair)
        optimizer.step()
        value = ratio(function, pair[0], pair[1])
        with torch.no_grad():
            better = value > highest
            highest = torch.where(better, value, highest)
            best = torch.where(better.view(1, -1, *[1] * (start.dim() - 1)), pair, best)
    return best[0], best[1], highest


def conv_matrix(
    weight: Tensor,
    input_size: Sequence[int],
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Tensor:
    """A 2-D convolution as the matrix it is: shape (outputs, inputs) for inputs of size (height, width).

    Its columns are the answers to the unit images. Its MARS norm is the exact Lipschitz constant.

    >>> weight = torch.ones(1, 1, 3, 3)
    >>> matrix = conv_matrix(weight, (4, 4), padding=1)
    >>> matrix.shape, mars_norm(matrix), matrix.abs().sum(1).min()
    (torch.Size([16, 16]), tensor(9.), tensor(4.))
    """
    if weight.dim() != 4:
        raise ValueError(f"weight has {weight.dim()} dimensions; a 2-D convolution's weight has 4")
    height, width = input_size
    channels = weight.shape[1] * groups
    units = torch.eye(channels * height * width, dtype=weight.dtype, device=weight.device)
    answers = F.conv2d(
        units.view(-1, channels, height, width),
        weight,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    return answers.flatten(1).t()
