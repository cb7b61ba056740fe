"""Alg. 1 and 2 as a slow loop over rows and elements, written from the paper, in Python floats.

The choices that the paper leaves open follow the authors' code: the ratio is min(1, gamma / (l1 + 1e-8)),
Eq. 4 sums over all rows and divides by l1 + 1e-8, gamma is clipped to [1e-8, largest (l1 + 1e-8)], t counts
training steps. Nothing here uses `ftp`, torch's optimizers or tensor operations.
"""

import math
from dataclasses import dataclass, field


@dataclass
class SlowLayer:
    """One layer: rows of Python floats."""

    weight: list[list[float]]
    k: float = 1.0
    rule: str = "sgd"
    lr: float = 0.1
    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    amsgrad: bool = False
    mu: float = 1e-2
    gamma_betas: tuple[float, float] = (0.9, 0.999)
    rows: str = "all"
    count: str = "steps"
    t: int = 0
    gamma: float = 0.0
    m: float = 0.0
    v: float = 0.0
    memory: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.anchor = [row[:] for row in self.weight]
        self.previous = [[0.0] * len(row) for row in self.weight]  # W~_{t-1} - W0

    def step(self, grad: list[list[float]]) -> None:
        self.t += 1
        unconstrained = [
            [self.base(i, j, w, grad[i][j]) for j, w in enumerate(row)] for i, row in enumerate(self.weight)
        ]
        deviation = [
            [u - a for u, a in zip(urow, arow, strict=True)]
            for urow, arow in zip(unconstrained, self.anchor, strict=True)
        ]
        norms = [sum(abs(d) for d in row) + 1e-8 for row in deviation]
        if self.t == 1:
            self.gamma = 1e-8
        else:
            slope = 0.0
            for grow, drow in zip(grad, self.previous, strict=True):
                length = sum(abs(d) for d in drow) + 1e-8
                if self.rows == "outside" and length - 1e-8 <= self.gamma:
                    continue  # within reach: this row does not depend on gamma
                slope += sum(g * d for g, d in zip(grow, drow, strict=True)) / length
            if slope > 0:
                slope *= self.k
            self.gamma = min(max(self.adam(slope), 1e-8), max(norms))
        self.weight = [
            [a + min(1.0, self.gamma / norm) * d for a, d in zip(arow, drow, strict=True)]
            for arow, drow, norm in zip(self.anchor, deviation, norms, strict=True)
        ]
        self.previous = deviation

    def adam(self, slope: float) -> float:
        b1, b2 = self.gamma_betas
        self.m = b1 * self.m + (1 - b1) * slope
        self.v = b2 * self.v + (1 - b2) * slope * slope
        t = self.t if self.count == "steps" else self.t - 1
        m_hat, v_hat = self.m / (1 - b1**t), self.v / (1 - b2**t)
        return self.gamma - self.mu * m_hat / (math.sqrt(v_hat) + 1e-8)

    def base(self, i: int, j: int, w: float, g: float) -> float:
        if self.rule == "sgd":
            g = g + self.weight_decay * w
            if self.momentum:
                before = self.memory.get((i, j))
                buffer = g if before is None else self.momentum * before + (1 - self.dampening) * g
                self.memory[i, j] = buffer
                g = g + self.momentum * buffer if self.nesterov else buffer
            return w - self.lr * g
        m, v, v_max = self.memory.get((i, j), (0.0, 0.0, 0.0))
        b1, b2 = self.betas
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        v_max = max(v_max, v)
        self.memory[i, j] = m, v, v_max
        second = v_max if self.amsgrad else v
        denominator = math.sqrt(second / (1 - b2**self.t)) + self.eps
        return w - self.lr * self.weight_decay * w - self.lr * (m / (1 - b1**self.t)) / denominator
