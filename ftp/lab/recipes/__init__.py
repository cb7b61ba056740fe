"""Recipes: the settings that tuning chose, or that the paper gives, kept as data. One JSON file for each world.

`<world>.json` has, for each scale, `grid` (what was tried), `outcome` (what each trial gave on ID validation) and
`recipe` (method to settings). Where an option of the world asks for other settings, the scale has `divided_by`, the
option's name, and `parts`, such a sheet for each of its values. A sheet of published settings has `published`, a
sentence, in place of trials, and in `source` what each setting stands on: "paper", "released code" or "assumed".
`data_scripts/tune_digits.py` writes digits.json.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftp.lab.record import Value

HOME = Path(__file__).resolve().parent


@functools.cache
def sheet(world: str) -> dict[str, Any]:
    """All that is known of a world's recipes; empty if nothing is.

    >>> sheet("no such world")
    {}
    """
    path = HOME / f"{world}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def tuned(world: str, scale: str = "quick", options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What was tuned at a scale; where nothing was, what was tuned at quick scale.

    options: of the world, for recipes that differ with one of them.

    >>> [len(tuned("digits", scale)["recipe"]) for scale in ("quick", "full")]
    [11, 11]
    """
    scales = sheet(world)
    return part_for(scales.get(scale) or scales.get("quick", {}), options)


def recipe(world: str, method: str, scale: str = "quick", options: Mapping[str, Any] | None = None) -> dict[str, Value]:
    """The settings chosen for a method in a world, at this scale or else at quick scale.

    >>> recipe("digits", "no such method")
    {}
    """
    chosen = [part_for(sheet(world).get(size, {}), options).get("recipe", {}) for size in (scale, "quick")]
    settings: dict[str, Value] = chosen[0].get(method) or chosen[1].get(method, {})
    return settings


def divided_by(world: str) -> str:
    """The option of a world that its recipes differ with; "" if they do not.

    >>> divided_by("digits")
    ''
    """
    return str(sheet(world).get("quick", {}).get("divided_by", ""))


def part_for(tuning: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Of a tuning that is `divided_by` an option of its world the part for these options; the first if none is named.

    >>> tuning = {"divided_by": "task", "parts": {"a": {"recipe": {}}, "b": {"budget": {}}}}
    >>> part_for(tuning), part_for(tuning, {"task": "b"}), part_for({"recipe": {}})
    ({'recipe': {}}, {'budget': {}}, {'recipe': {}})
    """
    if "divided_by" not in tuning:
        return dict(tuning)
    parts: dict[str, dict[str, Any]] = tuning["parts"]
    wanted = (options or {}).get(tuning["divided_by"], next(iter(parts)))
    return parts.get(str(wanted), {})
