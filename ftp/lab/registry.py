"""Registries: a folder of modules, each of which offers one thing under its own name. Adding one is adding a file.

The file may also lie outside the kit: $FTP_PLUGINS names a folder (or several, as in $PATH) whose subfolders `worlds`
and `methods` are searched too, so that a world of your own needs no copy of the kit.
"""

import difflib
import functools
import importlib
import os
import pkgutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError


def plugin_folders(kind: str) -> list[Path]:
    """The folders of $FTP_PLUGINS that hold "worlds" or "methods"; the packages so named add them to their path."""
    named = os.environ.get("FTP_PLUGINS", "").split(os.pathsep)
    return [folder for name in named if name and (folder := Path(name).expanduser() / kind).is_dir()]


@functools.cache
def modules(package: str) -> tuple[str, ...]:
    """The names of the public modules of a package, sorted.

    >>> "fog" in modules("ftp.lab.worlds"), "digits" in modules("ftp.lab.worlds")
    (False, True)
    """
    path = importlib.import_module(package).__path__
    return tuple(sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_")))


def find(package: str, attribute: str, name: str, what: str) -> Any:
    """What the module `name` of a package offers as `attribute`; a name that is not there is a sentence.

    >>> find("ftp.lab.worlds", "WORLD", "digits", "world").title
    'Handwritten digits'
    >>> find("ftp.lab.worlds", "WORLD", "digitz", "world")
    Traceback (most recent call last):
    ftp.lab.record.LabError: world is 'digitz'; did you mean digits?
    """
    names = modules(package)
    if not isinstance(name, str) or name not in names:
        raise LabError(unknown(what, name, names))
    return getattr(importlib.import_module(f"{package}.{name}"), attribute)


def unknown(what: str, name: object, names: Iterable[str]) -> str:
    """One sentence for a name that is not there, with the nearest that are.

    >>> unknown("method", "fpt", ["ftp", "tpgm"])
    "method is 'fpt'; did you mean ftp?"
    >>> unknown("method", "xyz", ["ftp", "tpgm"])
    "method is 'xyz'; it must be one of ftp, tpgm"
    """
    return f"{what} is {name!r}; {nearest(name, names)}"


def nearest(name: object, names: Iterable[str]) -> str:
    """What may be meant by a name that is not there.

    >>> nearest("fpt", ["ftp", "tpgm"]), nearest("xyz", ["ftp", "tpgm"])
    ('did you mean ftp?', 'it must be one of ftp, tpgm')
    """
    known = list(names)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"it must be one of {', '.join(known)}"
