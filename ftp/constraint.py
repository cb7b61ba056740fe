"""ProjUpdate: learn the length of the leash from the gradient that is there anyway.

The picture: if the newest batch pushes the layer farther out along the way it already strayed, the
leash is too short and grows; if the batch pulls it back, the leash is too long and shrinks.

All functions work on one layer (0-D tensors) or on many layers at once (one entry per layer).

Differs from the paper: gamma is clipped to [1e-8, largest row norm + 1e-8] after each update, as in
the authors' code; Alg. 1 has no clip. `rows` and `count` choose between the authors' way and the
textbook's, see `gamma_grad` and `adam_update`.
"""

import math

import torch
from torch import Tensor

from ftp.projection import EPS, as_rows, row_l1, wide

HUGE = 1e18  # a gradient beyond this is cut, so that its square stays finite in float32


def same_order(grad: Tensor, deviation: Tensor) -> Tensor:
    """The gradient with its elements in memory as the deviation's are, so that rows can be paired up.

    >>> weight = torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)
    >>> same_order(torch.ones(2, 3, 4, 4), weight).stride() == weight.stride()
    True
    """
    if grad.dim() < 4 or grad.stride() == deviation.stride():
        return grad
    return torch.empty_like(deviation).copy_(grad)


def row_dot(grad: Tensor, deviation: Tensor, per_element: bool = False) -> Tensor:
    """g . d for each row, shape (rows,); in float32 or better.

    >>> row_dot(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([11.])
    """
    dtype = wide(deviation.dtype)
    left, right = as_rows(same_order(grad, deviation), per_element), as_rows(deviation, per_element)
    return (left.to(dtype) * right.to(dtype)).sum(1)


def gamma_grad(
    grad: Tensor,
    deviation: Tensor,
    gamma: Tensor | float | None = None,
    *,
    rows: str = "all",
    per_element: bool = False,
) -> Tensor:
    """The gradient of the loss in gamma, Eq. 4: the slope along the leash, summed over rows.

        sum_i  g_i . d_i / ||d_i||_1        d = W~_{t-1} - W0, g at W_{t-1}

    rows="all" sums over every row, as the authors do. rows="outside" is the true derivative: a row
    that is within reach does not depend on gamma, so it counts only if ||d_i||_1 > gamma.

    >>> g, d = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 2.0], [0.0, 0.1]])
    >>> gamma_grad(g, d), gamma_grad(g, d, gamma=1.0, rows="outside")
    (tensor(1.5000), tensor(0.5000))
    """
    if grad.shape != deviation.shape:
        raise ValueError(
            f"grad has shape {tuple(grad.shape)} and deviation {tuple(deviation.shape)}; "
            "both belong to one layer, so they must have the same shape"
        )
    if rows == "outside" and gamma is None:
        raise ValueError('rows="outside" needs gamma, to know which rows are outside; pass gamma=')
    norms = row_l1(deviation, per_element)
    return row_slopes(row_dot(grad, deviation, per_element), norms, gamma, rows).sum()


def row_slopes(dots: Tensor, norms: Tensor, gamma: Tensor | float | None, rows: str) -> Tensor:
    """The terms of Eq. 4, one per row, from the row dots and the row norms.

    >>> row_slopes(torch.tensor([2.0, 2.0]), torch.tensor([4.0, 1.0]), 2.0, "outside")
    tensor([0.5000, 0.0000])
    """
    slopes = dots / (norms + EPS)
    if rows == "all":
        return slopes
    if rows == "outside" and gamma is not None:
        return slopes * (norms > gamma)
    raise ValueError(f'rows is {rows!r}; write rows="all" (the authors) or rows="outside" (the derivative)')


def anneal(gradient: Tensor, k: float = 1.0) -> Tensor:
    """Positive gradient annealing, Eq. 5: what would shorten the leash counts only k times.

    k=1 changes nothing; k=0 never shortens. Not-a-number counts as zero and huge values are cut, so
    that gamma stays a number. A huge finite slope still slows gamma down for long, through Adam's memory.

    >>> anneal(torch.tensor([2.0, -2.0]), k=0.5)
    tensor([ 1., -2.])
    """
    gradient = gradient.nan_to_num(0.0).clamp(-HUGE, HUGE)
    return gradient if k == 1 else torch.where(gradient > 0, k * gradient, gradient)


def adam_update(
    gamma: Tensor,
    gradient: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: Tensor | int,
    *,
    lr: float = 1e-2,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    count: str = "steps",
) -> tuple[Tensor, Tensor, Tensor]:
    """One Adam step on gamma, Alg. 2. Returns the new (gamma, exp_avg, exp_avg_sq).

        m = b1 m + (1 - b1) grad        gamma <- gamma - mu m^ / (sqrt(v^) + eps)
        v = b2 v + (1 - b2) grad^2      m^ = m / (1 - b1^t),  v^ = v / (1 - b2^t)

    step: t of Alg. 1; the first update happens at t = 2, because t = 1 only sets gamma. The authors
    correct the bias with that t (count="steps"), so the first move is 0.744 mu. The textbook counts
    updates (count="updates"), so the first move is mu.

    >>> zero, one = torch.tensor(0.0), torch.tensor(1.0)
    >>> [round(adam_update(one, -one, zero, zero, 2, count=c)[0].item(), 5) for c in ("steps", "updates")]
    [1.00744, 1.01]
    """
    if count not in ("steps", "updates"):
        raise ValueError(f'count is {count!r}; write count="steps" (the authors) or count="updates" (the textbook)')
    beta1, beta2 = betas
    t = torch.as_tensor(step, dtype=gamma.dtype, device=gamma.device)
    if count == "updates":
        t = (t - 1).clamp(min=1)
    exp_avg = torch.lerp(exp_avg, gradient, 1 - beta1)
    exp_avg_sq = torch.lerp(exp_avg_sq, gradient.square(), 1 - beta2)
    # 1 - b^t by way of expm1: the plain difference would cost three digits of float32 at t = 2
    correction1 = -torch.expm1(t * math.log(beta1)) if beta1 else 1.0
    correction2 = -torch.expm1(t * math.log(beta2)) if beta2 else 1.0
    denominator = (exp_avg_sq / correction2).sqrt().add(eps)
    gamma = gamma.addcdiv(exp_avg / correction1, denominator, value=-lr)
    return gamma, exp_avg, exp_avg_sq


def clip(gamma: Tensor, norms_max: Tensor, floor: Tensor | float = EPS) -> Tensor:
    """Keep gamma in [1e-8, largest row norm + 1e-8]: a leash longer than the distance is slack.

    A largest norm that is not a number is ignored; the lower end wins.

    >>> clip(torch.tensor([5.0, -1.0]), torch.tensor([2.0, 2.0]))
    tensor([2.0000e+00, 1.0000e-08])
    """
    return torch.fmin(gamma, norms_max + EPS).clamp(min=floor)
