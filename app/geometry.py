"""The MARS projection of a row of two weights, and Lemma 2 for a small matrix, in plain floats.

No torch here: the server process stays small. Tests hold `project` and `bound` against `ftp.projection`.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Matrix = tuple[tuple[float, ...], ...]

ANCHOR: Point = (0.0, 0.0)
REACH = 1e-9  # 0.7 + 0.3 is not quite 1 in floats; such a row is still within reach


@dataclass(frozen=True)
class Projection:
    """One row before and after: w = w0 + shrink * d, with w0 at the origin and d = w~ - w0."""

    unconstrained: Point
    gamma: float
    l1: float
    shrink: float
    projected: Point

    @property
    def pulled(self) -> bool:
        return self.shrink < 1


def project(x: float, y: float, gamma: float) -> Projection:
    """Pull the point (x, y) to within l1 distance gamma of the origin, Eq. 10.

    Differs from `ftp.project_mars`: no 1e-8 in the denominator; a row within reach never divides.

    >>> project(3.0, -1.0, gamma=1.0).projected
    (0.75, -0.25)
    >>> project(0.25, 0.25, gamma=1.0).pulled
    False
    """
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(gamma) and gamma >= 0):
        raise ValueError(f"point ({x}, {y}), gamma {gamma}: give finite numbers, and gamma >= 0")
    l1 = abs(x) + abs(y)
    shrink = 1.0 if l1 <= gamma + REACH else gamma / l1
    # adding 0.0 turns -0.0 into 0.0, which nobody wants to read
    return Projection((x + 0.0, y + 0.0), gamma, l1, shrink, (shrink * x + 0.0, shrink * y + 0.0))


def table(row: Projection) -> list[dict[str, str | float]]:
    """The picture's numbers, one dict per point, with the settings in each line so that a file explains itself.

    >>> [line["l1 distance"] for line in table(project(2.0, -2.0, gamma=1.0))]
    [0.0, 4.0, 1.0]
    """
    points = {"anchor W0": ANCHOR, "wanted W~": row.unconstrained, "kept W": row.projected}
    settings = {"gamma": row.gamma, "shrink": row.shrink}
    return [
        {"point": name, "x": x, "y": y, "l1 distance": abs(x) + abs(y), **settings} for name, (x, y) in points.items()
    ]


def matrix(number: int, gamma: float) -> Matrix:
    """A difference W - W0 of two rows and three columns, after the projection: no row is longer than gamma.

    >>> [round(sum(map(abs, row)), 6) for row in matrix(0, gamma=0.5)]
    [0.5, 0.5]
    """
    random_numbers = random.Random(number)
    rows = [[random_numbers.choice((-1, 1)) * random_numbers.randint(2, 20) / 20 for _ in range(3)] for _ in range(2)]
    factors = [min(1.0, gamma / math.fsum(map(abs, row))) for row in rows]
    return tuple(tuple(f * value + 0.0 for value in row) for f, row in zip(factors, rows, strict=True))


@dataclass(frozen=True)
class Bound:
    """Lemma 2 for x -> D x in the max norm: its constant l_d, and an input that reaches it."""

    l_d: float
    row: int
    worst: tuple[float, ...]


def bound(difference: Matrix) -> Bound:
    """The MARS norm of D is the largest |D x| over all x with entries between -1 and 1; the signs of a row reach it.

    >>> bound(((0.5, -0.25, 0.25), (0.5, 0.0, 0.0)))
    Bound(l_d=1.0, row=0, worst=(1.0, -1.0, 1.0))
    """
    lengths = [math.fsum(map(abs, row)) for row in difference]
    row = lengths.index(max(lengths))
    return Bound(lengths[row], row, tuple(-1.0 if value < 0 else 1.0 for value in difference[row]))


def slope(difference: Matrix, x: Sequence[float]) -> float:
    """How strongly D answers x: the largest entry of |D x| per largest entry of |x|.

    >>> slope(((0.5, -0.25, 0.25), (0.5, 0.0, 0.0)), (0.5, 0.5, 0.0))
    0.5
    """
    size = max(map(abs, x))
    outs = [abs(math.fsum(d * value for d, value in zip(row, x, strict=True))) for row in difference]
    return max(outs) / size if size else 0.0
