"""`ftp-lab list`: the worlds, methods, corruptions and figures that there are."""

import ast
import importlib.util
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from ftp.lab.commands._parser import choice
from ftp.lab.commands._shared import columns, put

HELP = "the worlds, methods, corruptions and figures that there are"
EXAMPLE = "ftp-lab list methods"


def arguments(parser: ArgumentParser) -> None:
    kind = choice("list", tuple(PARTS))
    parser.add_argument("part", metavar="PART", nargs="?", type=kind, help=f"{', '.join(PARTS)} (all)")


def main(options: Namespace) -> int:
    parts = [options.part] if options.part else list(PARTS)
    put("\n\n".join(f"{part}\n{PARTS[part]()}" for part in parts))
    return 0


def _worlds() -> str:
    from ftp.lab.worlds import info, names

    lines = []
    for world in map(info, names()):
        lines.append(f"  {world.name}: {world.summary}")
        lines.append(f"    shifts: {', '.join(world.shifts)}")
        lines.append(f"    {world.size}; {'offline' if world.offline else 'to download'}; the paper's {world.paper}")
    return "\n".join(lines)


def _methods() -> str:
    from ftp.lab.methods import method, names

    rows = [(name, method(name).title, method(name).summary) for name in names()]
    wise = ("wise", "WiSE", "Over any finished run: between pre-trained and fine-tuned weights (ftp-lab wise RUN).")
    return columns([*rows, wise], indent="  ")


def _corruptions() -> str:
    return columns([(kind, text) for kind, text in corruptions().items()], indent="  ")


def corruptions() -> dict[str, str]:
    """Every corruption and its one line, read from the sources: importing them would wait for torch.

    >>> corruptions()["contrast"].split(":")[0]
    'A flat picture'
    """
    spec = importlib.util.find_spec("ftp.lab.corruptions")
    folders = spec.submodule_search_locations if spec else None
    found = {}
    for path in sorted(path for folder in folders or () for path in Path(folder).glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "corruption":
                    assert isinstance(node, ast.FunctionDef)
                    lines = (ast.get_docstring(node) or "").splitlines()
                    found[str(ast.literal_eval(mark.args[0]))] = lines[0] if lines else ""
    return found


def _figures() -> str:
    from ftp.lab.figures import FIGURES

    return columns([(name, figure.title, figure.question) for name, figure in FIGURES.items()], indent="  ")


PARTS: dict[str, Callable[[], str]] = {
    "worlds": _worlds,
    "methods": _methods,
    "corruptions": _corruptions,
    "figures": _figures,
}
