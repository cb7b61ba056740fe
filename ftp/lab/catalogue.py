"""The kinds of damage by name, read from the sources: importing them would wait for torch."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ftp.lab.record import LabError
from ftp.lab.registry import unknown

if TYPE_CHECKING:
    from ftp.lab.worlds import World

HOME = Path(__file__).resolve().parent / "corruptions"


@dataclass(frozen=True)
class Kind:
    """What a kind of damage does, in one line, and whether what was at one place is at another afterwards."""

    text: str
    moves_pixels: bool = False


@functools.cache
def corruptions() -> Mapping[str, Kind]:
    """Every kind of damage by its name.

    >>> corruptions()["contrast"].text.split(":")[0], corruptions()["zoom_blur"].moves_pixels
    ('A flat picture', True)
    """
    kinds: dict[str, Kind] = {}
    for path in sorted(HOME.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "corruption":
                    assert isinstance(node, ast.FunctionDef)
                    lines = (ast.get_docstring(node) or "").splitlines()
                    moves = any(word.arg == "moves_pixels" for word in mark.keywords)
                    kinds[str(ast.literal_eval(mark.args[0]))] = Kind(lines[0] if lines else "", moves)
    return kinds


def all_kinds(world: World) -> tuple[str, ...]:
    """Every kind of damage that fits a world: none if the world knows no corruptions.

    A kind that moves pixels would lay a dense target beside its picture, so it does not fit a dense world.

    >>> from ftp.lab.worlds import load
    >>> len(all_kinds(load("digits"))) == len(corruptions())
    True
    """
    if not world.corruptions:
        return ()
    return tuple(name for name, kind in corruptions().items() if not (world.dense and kind.moves_pixels))


def fitting_kinds(world: World, kinds: Iterable[str] | None = None) -> tuple[str, ...]:
    """The kinds of damage that a world is tested with: of its own list those that fit it, or those asked for by name.

    >>> from ftp.lab.worlds import load
    >>> fitting_kinds(load("digits"), ["fog", "zoom_blur"])
    ('fog', 'zoom_blur')
    """
    wanted = tuple(world.corruptions if kinds is None else kinds)
    for kind in wanted:
        if kind not in corruptions():
            raise LabError(unknown("kind", kind, corruptions()))
    fitting = all_kinds(world)
    if kinds is not None:
        for kind in wanted:
            if kind not in fitting:
                raise LabError(_misfit(world, kind, fitting))
    return tuple(kind for kind in wanted if kind in fitting)


def _misfit(world: World, kind: str, fitting: tuple[str, ...]) -> str:
    if not fitting:
        return f"{kind} does not fit the world {world.name}: it has no corruptions; leave the kinds of damage out"
    why = "its targets are maps, and this damage moves pixels"
    return f"{kind} does not fit the world {world.name}: {why}; the others fit: {', '.join(fitting)}"
