"""`ftp-lab list`: the worlds, methods, corruptions and figures that there are."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable

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
    from ftp.lab.worlds import load, names

    lines = []
    for world in map(load, names()):
        lines.append(f"  {world.name}: {world.summary}")
        lines.append(f"    shifts: {', '.join(world.shifts) or 'none'}; measured: {world.metrics[0].axis}")
        lines += [f"    option {name}={option.default}: {option.help}" for name, option in world.options.items()]
        paper = f"; the paper's {world.paper}" if world.paper else ""
        lines.append(f"    {world.size}; {'offline' if world.offline else 'to download'}{paper}")
    return "\n".join(lines)


def _methods() -> str:
    from ftp.lab.methods import method, names

    rows = [(name, method(name).title, method(name).summary) for name in names()]
    wise = ("wise", "WiSE", "Over any finished run: between pre-trained and fine-tuned weights (ftp-lab wise RUN).")
    return columns([*rows, wise], indent="  ")


def _corruptions() -> str:
    from ftp.lab.catalogue import corruptions

    return columns([(name, kind.text) for name, kind in corruptions().items()], indent="  ")


def _figures() -> str:
    from ftp.lab.figures import FIGURES

    return columns([(name, figure.title, figure.question) for name, figure in FIGURES.items()], indent="  ")


PARTS: dict[str, Callable[[], str]] = {
    "worlds": _worlds,
    "methods": _methods,
    "corruptions": _corruptions,
    "figures": _figures,
}
