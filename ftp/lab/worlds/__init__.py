"""Worlds: a pre-trained model, a task to fine-tune it on, and shifts it should survive. One file each.

A module of this package offers `WORLD`, a subclass of `World`. Looking one up costs nothing: torch, data and weights
are read when a model or a split is asked for.
"""

import functools
from collections.abc import Mapping
from typing import Any

from ftp.lab.record import LabError, Settings, Value
from ftp.lab.registry import find, modules, plugin_folders
from ftp.lab.worlds._base import TILES, Meter, Phase, Split, World

__all__ = ["TILES", "Meter", "Phase", "Split", "World", "default", "load", "names", "of", "world"]
__path__ += [str(folder) for folder in plugin_folders("worlds")]  # a world of your own, in a folder of your own


def names() -> tuple[str, ...]:
    """The names of all worlds, in the order in which a newcomer meets them."""
    return tuple(sorted(modules(__name__), key=lambda name: (world(name).order, name)))


def default() -> str:
    """The world that is meant where none is named."""
    return names()[0]


def world(name: str) -> type[World]:
    """What is known of a world before its options are: its title, its options, what it measures.

    >>> world("digits").metrics[0].name
    'accuracy'
    """
    kind: type[World] = find(__name__, "WORLD", name, "world")
    return kind


def load(name: str, options: Mapping[str, Value] | None = None) -> World:
    """A world with its options; what is not given has its default. The second time is free.

    >>> load("digits") is load("digits", {})
    True
    """
    kind = world(name)
    values = {key: (options or {}).get(key, option.default) for key, option in kind.options.items()}
    for key in options or {}:
        if key not in kind.options:
            known = ", ".join(kind.options) or "none"
            raise LabError(f"{key} is no option of the world {name}; its options are: {known}")
    return _open(name, tuple(values.items()))


def of(settings: Settings) -> World:
    """The world in which a run with these settings takes place."""
    kind = world(settings.world)
    place = load(settings.world, {key: settings.options[key] for key in kind.options if key in settings.options})
    return place.for_seed(settings.seed)


@functools.lru_cache(maxsize=16)
def _open(name: str, values: tuple[tuple[str, Any], ...]) -> World:
    return world(name)(dict(values))
