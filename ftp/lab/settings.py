"""Settings at the border: from what a person wrote to a checked `Settings`. Without torch."""

import difflib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ftp.lab import methods, recipes, worlds
from ftp.lab.base_rules import BASE_RULES
from ftp.lab.options import Option
from ftp.lab.record import LabError, Settings, Value
from ftp.lab.registry import nearest

COMMON: Mapping[str, Option] = {
    "seed": Option(0, "of the head and of the order of the data", 0, 2**31 - 1),
    "labels": Option(1.0, "the share of the training labels that is used", 0.01, 1.0),
    "steps": Option(300, "training steps", 1, 1_000_000),
    "batch": Option(64, "images in a batch", 2, 65_536),
    "optimizer": Option("sgd", "the base rule", choices=tuple(BASE_RULES)),
    "lr": Option(0.05, "the learning rate at the start; it falls to 0 along a cosine", 1e-8, 100.0),
    "momentum": Option(0.9, "of sgd", 0.0, 0.999),
    "weight_decay": Option(5e-4, "coupled with sgd, decoupled with adamw", 0.0, 10.0),
}


def scale() -> str:
    """FTP_SCALE: "quick" (a laptop, minutes) or "full" (a GPU). Read here and nowhere else."""
    value = os.environ.get("FTP_SCALE", "quick")
    if value not in ("quick", "full"):
        raise LabError(f"FTP_SCALE is {value!r}; it must be quick or full: write FTP_SCALE=quick")
    return value


def rate(quick: float, world: str | None = None) -> float:
    """A learning rate of quick scale at this scale: as much higher as the tuned one of fine-tuning is.

    >>> rate(0.05) == (0.05 if scale() == "quick" else 0.2)
    True
    """
    world = world or worlds.default()
    tuned = [float(recipes.recipe(world, "finetune", size).get("lr", 1.0)) for size in ("quick", scale())]
    return quick * (tuned[1] / tuned[0])


@dataclass(frozen=True)
class Known:
    """A setting and where its value comes from, for forms and for `ftp-lab recipe`."""

    name: str
    option: Option
    value: Value
    source: str  # "given", "recipe", "world" or "default"


def known(world: str, method: str, changes: Mapping[str, Any] | None = None) -> list[Known]:
    """Every setting of a run, and where it comes from: what was given, else the tuned recipe, else the world's default,
    else the setting's own.

    >>> [row.source for row in known("digits", "ftp", {"lr": "0.1"}) if row.name == "lr"]
    ['given']
    """
    place = worlds.world(world)
    options = options_of(world, method)
    changes = dict(changes or {})
    for name in changes:
        if name not in options:
            raise LabError(f"{method} on {world} has no setting {name!r}; {nearest(name, options)}")
    recipe = recipes.recipe(world, method, scale(), {n: changes.get(n, o.default) for n, o in place.options.items()})
    rows = []
    for name, option in options.items():
        if name in changes:
            rows.append(Known(name, option, parse(name, changes[name], option), "given"))
        elif name in recipe:
            rows.append(Known(name, option, recipe[name], "recipe"))
        elif name in place.defaults.get(scale(), {}):
            rows.append(Known(name, option, place.defaults[scale()][name], "world"))
        else:
            rows.append(Known(name, option, option.default, "default"))
    return rows


def options_of(world: str, method: str) -> dict[str, Option]:
    """Every setting by name: what all runs have, what the world has of its own, what the method has.

    >>> list(options_of("digits", "l2_sp"))[-1]
    'strength'
    """
    of_world, of_method = worlds.world(world).options, methods.method(method).options
    taken = {"world", "method", *COMMON}
    if twice := sorted({*of_world} & {*of_method} | taken & {*of_world, *of_method}):
        raise LabError(f"the setting {twice[0]} is there twice in {world} with {method}; give one of them another name")
    return {**COMMON, **of_world, **of_method}


def settings_anywhere() -> set[str]:
    """The names of all settings, of any world and any method.

    >>> {"lr", "task", "k"} <= settings_anywhere()
    True
    """
    of_worlds = (name for world in worlds.names() for name in worlds.world(world).options)
    of_methods = (name for method in methods.names() for name in methods.method(method).options)
    return {*COMMON, *of_worlds, *of_methods}


def resolve(world: str | None = None, method: str = "ftp", changes: Mapping[str, Any] | None = None) -> Settings:
    """Checked settings, ready to run.

    >>> resolve("digits", "ftp", {"k": "0.5", "seed": 3}).options["k"]
    0.5
    """
    world = world or worlds.default()
    rows = known(world, method, changes)
    place = worlds.load(world, {row.name: row.value for row in rows if row.name in worlds.world(world).options})
    if problem := place.missing() or methods.method(method).misfit(place):
        raise LabError(problem)
    for row in rows:
        if row.option.layer and row.value:
            _check_layer(row.name, str(row.value), place.layers())
    # a what-if that is not asked leaves no trace: the settings are those of a run without it
    values = {row.name: row.value for row in rows if not (row.option.layer and row.value == "")}
    common = {name: values.pop(name) for name in COMMON}
    return Settings(world=world, method=method, **common, options=values)  # type: ignore[arg-type]


def parse(name: str, raw: object, option: Option) -> Value:
    """A value of the option's kind and in its range, from text or a number.

    >>> parse("k", "0.5", Option(1.0, "", 0.0, 1.0))
    0.5
    >>> parse("k", "2", Option(1.0, "", 0.0, 1.0))
    Traceback (most recent call last):
    ftp.lab.record.LabError: k is '2'; it must be a number from 0 to 1, such as k=1.0
    """
    example = f"such as {name}={option.default}"
    if option.choices:
        if raw not in option.choices:
            raise LabError(f"{name} is {raw!r}; it must be {' or '.join(option.choices)}, {example}")
        return str(raw)
    if isinstance(option.default, str):
        if not isinstance(raw, str):
            raise LabError(f"{name} is {raw!r}; it must be text, such as {name}=stem.weight")
        return _absolute(raw) if option.path else raw
    whole = isinstance(option.default, int)
    wanted = f"a {'whole ' if whole else ''}number {_range(option)}"
    try:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise ValueError
        value = float(raw)
        if not option.low <= value <= option.high or (whole and value != int(value)):
            raise ValueError
    except (ValueError, OverflowError):
        raise LabError(f"{name} is {raw!r}; it must be {wanted}, {example}") from None
    return int(value) if whole else value


def _absolute(text: str) -> str:
    """A path from wherever it is read later; a word that names no file stays a word."""
    path = Path(text).expanduser()
    is_path = bool(text) and (os.sep in text or path.exists())
    return str(path.absolute()) if is_path else text


def deciding(settings: Settings) -> dict[str, Value]:
    """The settings that decide a run's numbers: paths are left out, whose content counts, and how work is divided.

    >>> list(deciding(resolve("digits", "ftp")))[-1]
    'gamma_lr'
    """
    options = worlds.world(settings.world).options if settings.world in worlds.names() else {}
    aside = {name for name, option in options.items() if not option.decides}
    aside |= {n for n, option in options.items() if option.path and _is_place(str(settings.options.get(n, "")))}
    return {name: value for name, value in settings.as_dict().items() if name not in aside}


def _is_place(text: str) -> bool:
    """A path, or the name of a tree of the kit's own, which is unpacked to a path."""
    return os.path.isabs(text) or text.startswith("example:")


def _check_layer(name: str, pattern: str, layers: Sequence[str]) -> None:
    """A world that does not say its layers before it is loaded leaves the check to the method."""
    if layers and not any(fnmatchcase(layer, pattern) for layer in layers):
        example = f"such as {name}={layers[0]}"
        close = difflib.get_close_matches(pattern, layers, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]}?" if close else f"write one of its {len(layers)} tensors, {example}"
        raise LabError(f"{name} is {pattern!r}, and no layer is called so; {hint}")


def _range(option: Option) -> str:
    low, high = (f"{x:.0f}" if abs(x) >= 1e5 and x == math.floor(x) else f"{x:g}" for x in (option.low, option.high))
    if math.isinf(option.high):
        return f"from {low} on" if math.isfinite(option.low) else ""
    return f"from {low} to {high}"
