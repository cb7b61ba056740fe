"""HyperSGD: an SGD that learns its own learning rate, Eq. 6-8. FTP does the same with its leash.

The picture: if this gradient and the previous one point the same way, the last step was too short,
so the rate grows; if they point against each other, it was too long. Beside Eq. 4: the rate is to
the step what gamma is to the leash, one number learned from a gradient that is there anyway.

Differs from the paper: its Eq. 7 calls the rate of the rate kappa; kappa is also the annealing factor
of Eq. 5, so here it is `hyper_lr`. The rate is kept >= 0, as a negative one would
climb, and a gradient that is not finite does not reach it.
"""

from collections.abc import Callable
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from ftp._options import check_group
from ftp.projection import wide


def hyper_gradient(grads: list[Tensor], previous: list[Tensor]) -> Tensor:
    """The gradient of the loss in the learning rate, Eq. 7: - grad(W_{t-1}) . grad(W_{t-2}).

    >>> hyper_gradient([torch.tensor([1.0, 2.0])], [torch.tensor([3.0, 4.0])])
    tensor(-11.)
    """
    dots = [(grad * before).sum() for grad, before in zip(grads, previous, strict=True)]
    return -torch.stack(dots).sum()


class HyperSGD(Optimizer):
    """Plain SGD whose `lr` is a starting point; `param_groups[i]["lr"]` is a tensor that it learns.

    lr: alpha_0; hyper_lr: the learning rate of the learning rate (kappa of Eq. 7); 0 is plain SGD.

    >>> weight = torch.nn.Parameter(torch.tensor([4.0]))
    >>> optimizer = HyperSGD([weight], lr=0.01, hyper_lr=1e-4)
    >>> for _ in range(20):
    ...     optimizer.zero_grad()
    ...     (weight**2).sum().backward()
    ...     optimizer.step()
    >>> bool(optimizer.param_groups[0]["lr"] > 0.02)  # every step agreed with the one before
    True
    """

    def __init__(self, params: ParamsT, lr: float = 1e-2, hyper_lr: float = 1e-4) -> None:
        super().__init__(params, {"lr": lr, "hyper_lr": hyper_lr})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; each group learns a rate of its own.

        >>> optimizer = HyperSGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
        >>> optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))], "lr": 0.2})
        >>> [round(float(group["lr"]), 3) for group in optimizer.param_groups]
        [0.1, 0.2]
        """
        if isinstance(param_group, dict):
            check_group({**self.defaults, **param_group})
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        if group["params"]:
            first = group["params"][0]
            group["lr"] = torch.as_tensor(group["lr"], dtype=wide(first.dtype)).to(first.device, copy=True)

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """First the rate (Eq. 7), from the previous gradient; then the weights (Eq. 8).

        >>> weight = torch.nn.Parameter(torch.zeros(1))
        >>> optimizer = HyperSGD([weight], lr=0.1, hyper_lr=0.01)
        >>> for _ in range(2):
        ...     weight.grad = torch.ones(1)
        ...     optimizer.step()
        >>> weight.detach()  # 0.1 and then 0.1 + 0.01
        tensor([-0.2100])
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [param for param in group["params"] if param.grad is not None]
            if params and not isinstance(group["lr"], Tensor):  # somebody set a number
                group["lr"] = torch.tensor(group["lr"], dtype=wide(params[0].dtype), device=params[0].device)
            known = [param for param in params if "previous_grad" in self.state[param]]
            if known:
                previous = [self.state[param]["previous_grad"] for param in known]
                slope = hyper_gradient([param.grad for param in known], previous).nan_to_num(0.0, 0.0, 0.0)
                group["lr"].sub_(group["hyper_lr"] * slope).clamp_(min=0)  # Eq. 7
            for param in params:
                param.sub_(group["lr"].to(param.dtype) * param.grad)  # Eq. 6 and 8
                self.state[param]["previous_grad"] = param.grad.clone()
        return loss
