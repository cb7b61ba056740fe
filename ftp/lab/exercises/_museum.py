"""The bug museum of lesson 05: SGDP written a second time, and mutants of it, each with one planted bug.

`Twin` shares no code with `ftp.SGDP`. Each of its parts is a method, and each mutant breaks one of them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor

EPS, MU, BETAS = 1e-8, 1e-2, (0.9, 0.999)
LEASH = ("anchor", "deviation", "gamma", "m", "v", "t")


class Twin(torch.optim.Optimizer):
    """SGDP once more, layer after layer: the same arguments, the same numbers.

    >>> layer = torch.nn.Linear(3, 2)
    >>> optimizer = Twin(layer.named_parameters(), lr=0.1, exclude_set={"bias"})
    >>> layer(torch.ones(4, 3)).sum().backward()
    >>> optimizer.step()
    >>> optimizer.constraints()
    {'weight': 1e-08}
    """

    def __init__(
        self,
        params: Iterable[tuple[str, Tensor]],
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        *,
        k: float = 1.0,
        exclude_set: Iterable[str] = (),
    ) -> None:
        named, patterns = list(params), tuple(exclude_set)
        super().__init__(named, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "k": k})
        self.check_patterns(patterns, [name for name, _ in named])
        for name, param in named:
            self.state[param] = {"momentum": torch.zeros_like(param)}
            if not any(fnmatchcase(name, pattern) for pattern in patterns):
                start = {"anchor": param.detach().clone(), "deviation": torch.zeros_like(param).detach()}
                self.state[param] |= {**start, "gamma": EPS, "m": 0.0, "v": 0.0, "t": 0}

    def check_patterns(self, patterns: tuple[str, ...], names: list[str]) -> None:
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ValueError(f"exclude_set has {pattern!r}, which matches no parameter")

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            moving = [param for param in group["params"] if param.grad is not None]
            for param, memory in zip(moving, self.memories(group, moving), strict=True):
                wanted = self.base(param, self.state[param], group)  # Eq. 1
                if memory is not None:
                    wanted = self.leash(wanted, param.grad, self.state[param]["anchor"], memory, group)
                param.copy_(self.last(wanted, param, group))

    def memories(self, group: dict[str, Any], moving: list[Tensor]) -> list[dict[str, Any] | None]:
        """What is known of each leashed layer that moves; None where there is no leash."""
        return [self.state[param] if "gamma" in self.state[param] else None for param in moving]

    def base(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        momentum: Tensor = group["momentum"] * state["momentum"] + param.grad + group["weight_decay"] * param
        state["momentum"] = momentum
        return torch.sub(param, momentum, alpha=group["lr"])

    def leash(
        self, wanted: Tensor, grad: Tensor, anchor: Tensor, memory: dict[str, Any], group: dict[str, Any]
    ) -> Tensor:
        memory["t"] += 1
        deviation = wanted - anchor
        norms = self.norms(deviation)
        memory["gamma"] = self.clip(self.learn(grad, memory, group), norms.max().item())
        memory["deviation"] = deviation
        return anchor + self.share(memory["gamma"], norms) * deviation

    def norms(self, deviation: Tensor) -> Tensor:
        """How far each row is, with as many dimensions as the layer; a vector is one row."""
        inside = tuple(range(1, deviation.dim())) or (0,)
        return deviation.abs().sum(inside, keepdim=True)

    def learn(self, grad: Tensor, memory: dict[str, Any], group: dict[str, Any]) -> float:
        """Eq. 4, Eq. 5, Alg. 2."""
        way = memory["deviation"]
        slope = self.anneal((grad * way / (self.norms(way) + EPS)).sum().item(), group["k"])
        memory["m"] = BETAS[0] * memory["m"] + (1 - BETAS[0]) * slope
        memory["v"] = BETAS[1] * memory["v"] + (1 - BETAS[1]) * slope * slope
        m, v = (memory[key] / (1 - beta ** memory["t"]) for key, beta in zip("mv", BETAS, strict=True))
        return float(memory["gamma"] - self.rate(group) * m / (math.sqrt(v) + 1e-8))

    def anneal(self, slope: float, k: float) -> float:
        return k * slope if slope > 0 else slope

    def rate(self, group: dict[str, Any]) -> float:
        return MU

    def clip(self, gamma: float, farthest: float) -> float:
        return max(EPS, min(gamma, farthest + EPS))

    def share(self, gamma: float, norms: Tensor) -> Tensor:
        return (gamma / (norms + EPS)).clamp(max=1)

    def last(self, weight: Tensor, param: Tensor, group: dict[str, Any]) -> Tensor:
        return weight

    def constraints(self) -> dict[str, float]:
        named = [
            pair for group in self.param_groups for pair in zip(group["param_names"], group["params"], strict=True)
        ]
        return {name: self.state[param]["gamma"] for name, param in named if "gamma" in self.state[param]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.check_names(state_dict)
        super().load_state_dict(state_dict)

    def check_names(self, saved: dict[str, Any]) -> None:
        for mine, theirs in zip(self.param_groups, saved["param_groups"], strict=True):
            if mine["param_names"] != theirs["param_names"]:
                raise ValueError("the parameters come in another order than they were saved in")

    def load_without(self, lost: tuple[str, ...], saved: dict[str, Any]) -> None:
        """Load as if these parts had never been saved: they stay as they were built."""
        built = {param: {key: v for key, v in state.items() if key in lost} for param, state in self.state.items()}
        Twin.load_state_dict(self, saved)
        for param, own in built.items():
            self.state[param].update(own)


class Columns(Twin):
    def norms(self, deviation: Tensor) -> Tensor:
        return deviation.abs().sum(0, keepdim=True)


class NoMin(Twin):
    def share(self, gamma: float, norms: Tensor) -> Tensor:
        return gamma / (norms + EPS)


class NoClip(Twin):
    def clip(self, gamma: float, farthest: float) -> float:
        return max(EPS, gamma)


class FreeStart(Twin):
    def leash(
        self, wanted: Tensor, grad: Tensor, anchor: Tensor, memory: dict[str, Any], group: dict[str, Any]
    ) -> Tensor:
        pulled = super().leash(wanted, grad, anchor, memory, group)
        return wanted if memory["t"] == 1 else pulled


class SharedRate(Twin):
    def rate(self, group: dict[str, Any]) -> float:
        return float(group["lr"])


class LateDecay(Twin):
    def base(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        return super().base(param, state, {**group, "weight_decay": 0.0})

    def last(self, weight: Tensor, param: Tensor, group: dict[str, Any]) -> Tensor:
        return torch.sub(weight, param, alpha=group["lr"] * group["weight_decay"])


class OtherKappa(Twin):
    def anneal(self, slope: float, k: float) -> float:
        return k * slope if slope < 0 else slope


class Forgetful(Twin):
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.load_without(LEASH, state_dict)


class Adrift(Twin):
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.load_without(("anchor",), state_dict)


class VisitingOrder(Twin):
    def memories(self, group: dict[str, Any], moving: list[Tensor]) -> list[dict[str, Any] | None]:
        kept = iter([self.state[param] for param in group["params"] if "gamma" in self.state[param]])
        return [next(kept) if "gamma" in self.state[param] else None for param in moving]


class Seats(Twin):
    def check_names(self, saved: dict[str, Any]) -> None:
        pass


class AnyName(Twin):
    def check_patterns(self, patterns: tuple[str, ...], names: list[str]) -> None:
        pass


class Thirteenth(Twin):
    """It is not among the twelve: its rows are wrong for convolutions only."""

    def norms(self, deviation: Tensor) -> Tensor:
        return deviation.abs().sum(1 if deviation.dim() > 1 else 0, keepdim=True)


@dataclass(frozen=True)
class Mutant:
    """An optimizer with one bug; its story says which real defect that is."""

    name: str
    optimizer: type[Twin]
    story: str


MUTANTS = (
    Mutant("wrong axis", Columns, "it adds up columns; in a square layer nothing crashes, and Lemma 2 is lost."),
    Mutant("no min", NoMin, "Eq. 2 as printed, without the min of Eq. 10: rows within reach are pushed outwards."),
    Mutant("no clip", NoClip, "Alg. 1 as printed, without the released code's clip: γ runs ahead of all rows."),
    Mutant("free first step", FreeStart, "step 1 is not pulled back, so the weights leave before there is a leash."),
    Mutant(
        "one rate for both", SharedRate, "γ learns with lr instead of its own μ: a schedule of lr stretches it too."
    ),
    Mutant(
        "late decay", LateDecay, "weight decay after the projection: it pulls towards zero, not to W0, past the leash."
    ),
    Mutant(
        "κ upside down", OtherKappa, "κ damps what lengthens the leash (Eq. 5, sign turned); at κ = 1 nobody sees it."
    ),
    Mutant(
        "forgets γ", Forgetful, "as the released code: γ is not in the checkpoint, so a resumed run falls back to W0."
    ),
    Mutant("forgets W0", Adrift, "the anchor is not in the checkpoint: the leash is tied to wherever the weights are."),
    Mutant(
        "visiting order", VisitingOrder, "as the released code: a layer without a gradient shifts γ to its neighbour."
    ),
    Mutant(
        "found by position", Seats, "a checkpoint is handed out by position, as torch's own: γ goes to another layer."
    ),
    Mutant(
        "any name will do", AnyName, "as the released code: a misspelt exclude_set is ignored, the head stays leashed."
    ),
)
