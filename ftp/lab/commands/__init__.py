"""The commands of `ftp-lab`, one file each; a new file beside them is found by itself.

A module offers `HELP` (one line), `EXAMPLE` (a call that works), `arguments(parser)` and `main(options) -> int`, the
exit code. What a person can mend is raised as a `LabError`. torch is imported inside `main`: help is there at once.
"""

import importlib
from argparse import ArgumentParser, Namespace
from typing import Protocol, cast

from ftp.lab.record import LabError
from ftp.lab.registry import modules, unknown


class Command(Protocol):
    """What a module of this package offers."""

    HELP: str
    EXAMPLE: str

    def arguments(self, parser: ArgumentParser) -> None: ...

    def main(self, options: Namespace) -> int: ...


# the order in which a newcomer needs them; commands of your own come last
_ORDER = (
    "list",
    "doctor",
    "run",
    "table",
    "compare",
    "sweep",
    "wise",
    "recipe",
    "runs",
    "export",
    "corrupt",
    "example",
)


def names() -> tuple[str, ...]:
    """The names of all commands.

    >>> names()[0], "run" in names()
    ('list', True)
    """
    module_names = modules(__name__)
    return tuple(sorted(module_names, key=[*_ORDER, *module_names].index))


def command(name: str) -> Command:
    """The command of that name.

    >>> command("run").EXAMPLE
    'ftp-lab run digits --method ftp --seed 0'
    >>> command("rnu")
    Traceback (most recent call last):
    ftp.lab.record.LabError: command is 'rnu'; did you mean run?
    """
    if name not in names():
        raise LabError(unknown("command", name, names()))
    return cast(Command, importlib.import_module(f"{__name__}.{name}"))
