"""Recipes: the settings that tuning chose, or that the paper gives, kept as data. One JSON file for each world.

`<world>.json` has, for each scale, `grid` (what was tried), `outcome` (what each trial gave on ID validation) and
`recipe` (method to settings). `data_scripts/tune_digits.py` writes digits.json.
"""

import functools
import json
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


def tuned(world: str, scale: str = "quick") -> dict[str, Any]:
    """What was tuned at a scale; where nothing was, what was tuned at quick scale.

    >>> [len(tuned("digits", scale)["recipe"]) for scale in ("quick", "full")]
    [11, 11]
    """
    scales = sheet(world)
    tuning: dict[str, Any] = scales.get(scale) or scales.get("quick", {})
    return tuning


def recipe(world: str, method: str, scale: str = "quick") -> dict[str, Value]:
    """The settings chosen for a method in a world, at this scale or else at quick scale.

    >>> recipe("digits", "no such method")
    {}
    """
    chosen = [sheet(world).get(size, {}).get("recipe", {}) for size in (scale, "quick")]
    settings: dict[str, Value] = chosen[0].get(method) or chosen[1].get(method, {})
    return settings
