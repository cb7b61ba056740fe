"""The registry: what a corruption is, and the decorator that makes a function one."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor

Function = Callable[..., Tensor]
Severities = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Corruption:
    """One kind of damage: the function, and its parameters for the severities 1 to 5 in the three published sets.

    `colour`: the function needs three channels. `eight_bit`: it works on levels 0 to 255, as image files do.
    `moves_pixels`: what was at one place is at another afterwards, so a map of targets would no longer lie on it.
    """

    name: str
    function: Function
    imagenet: Severities
    cifar: Severities
    tiny: Severities
    colour: bool = False
    eight_bit: bool = False
    moves_pixels: bool = False

    @property
    def random(self) -> bool:
        """Whether the function draws from a generator."""
        return "generator" in inspect.signature(self.function).parameters


REGISTRY: dict[str, Corruption] = {}


def corruption(
    name: str,
    *,
    imagenet: Iterable[float | tuple[float, ...]],
    cifar: Iterable[float | tuple[float, ...]],
    tiny: Iterable[float | tuple[float, ...]] | None = None,
    colour: bool = False,
    eight_bit: bool = False,
    moves_pixels: bool = False,
) -> Callable[[Function], Function]:
    """Register a function x, *parameters -> x under a name, with five parameter tuples for each set.

    x is a private copy of shape (batch, channels, height, width): the function may write into it, need not
    clip, and draws only from `generator`, if it names that argument. Without `tiny` cifar's numbers serve
    for 64 pixels as well.

    >>> @corruption("dim", imagenet=[0.8, 0.6, 0.4, 0.2, 0.1], cifar=[0.9, 0.8, 0.7, 0.6, 0.5])
    ... def dim(x, factor):
    ...     return x.mul_(factor)
    >>> REGISTRY.pop("dim").imagenet[0]
    (0.8,)
    """
    given = {"imagenet": imagenet, "cifar": cifar, "tiny": cifar if tiny is None else tiny}
    sets = {key: tuple(c if isinstance(c, tuple) else (c,) for c in rows) for key, rows in given.items()}
    for key, rows in sets.items():
        if len(rows) != 5:
            raise ValueError(f"{name!r} has {len(rows)} severities for {key}; give five")
    if name in REGISTRY:
        raise ValueError(f"two corruptions are called {name!r}; they are found by name: choose another one")

    def register(function: Function) -> Function:
        REGISTRY[name] = Corruption(
            name, function, **sets, colour=colour, eight_bit=eight_bit, moves_pixels=moves_pixels
        )
        return function

    return register
