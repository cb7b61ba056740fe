"""Which code decides a run: the files that its world and its method import, the engine and the core, and no others.

Its hash is part of a run's id. A new world, method, figure or view changes no other run's id; neither does a comment,
a docstring or layout. Files are read, never imported: the dashboard's server asks too, and must not load torch.
"""

import ast
import functools
import hashlib
from pathlib import Path

from ftp.lab.registry import plugin_folders

ROOT = Path(__file__).resolve().parent.parent.parent
ENGINE = "ftp.lab.train"
DAMAGE = "ftp.lab.corruptions"  # its modules are found by a loop over its folder, so all of them count
# They check, name, find or keep what is decided elsewhere: a change in them changes no number.
BOOKKEEPING = {
    *(
        "ftp.lab",
        "ftp.lab.record",
        "ftp.lab.summary",
        "ftp.lab.settings",
        "ftp.lab.options",
        "ftp.lab.registry",
        "ftp.lab.catalogue",
    ),
    *("ftp.lab.store", "ftp.lab.recipes", "ftp.lab.checkpoint", "ftp.lab.code", "ftp.lab.worlds", "ftp.lab.methods"),
}


def code_version(world: str, method: str, damages: bool = True) -> str:
    """The hash of the code that decides a run; `damages`: corruptions are part of its evaluation.

    >>> code_version("digits", "ftp") == code_version("digits", "ftp") != code_version("digits", "finetune")
    True
    """
    return _version(frozenset(decisive(world, method, damages)))


def decisive(world: str, method: str, damages: bool = True) -> list[str]:
    """The names of the modules that decide a run.

    >>> names = decisive("digits", "ftp")
    >>> "ftp.lab.worlds._glyphs" in names, "ftp.projection" in names, "ftp.lab.methods.tpgm" in names
    (True, True, False)
    """
    closure: set[str] = set()
    waiting = [ENGINE, f"ftp.lab.worlds.{world}", f"ftp.lab.methods.{method}"]
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if name in closure or path is None or _is_bookkeeping(name) or (not damages and name.startswith(DAMAGE)):
            continue
        closure.add(name)
        waiting += _imports(path)
        if name == DAMAGE:
            waiting += [f"{DAMAGE}.{module.stem}" for module in path.parent.glob("*.py") if module.stem != "__init__"]
    return sorted(closure)


def _is_bookkeeping(name: str) -> bool:
    return name in BOOKKEEPING or name.startswith("ftp.lab.store.")


def _path(module: str) -> Path | None:
    """The file of a module of ftp, also of one in a plug-in folder; None for a name that is no module."""
    parts = module.split(".")
    if parts[0] != "ftp":
        return None
    places = [ROOT.joinpath(*parts)]
    if parts[:2] == ["ftp", "lab"] and len(parts) == 4:
        places += [folder / parts[3] for folder in plugin_folders(parts[2])]
    files = (file for place in places for file in (place.with_suffix(".py"), place / "__init__.py"))
    return next((file for file in files if file.is_file()), None)


@functools.cache
def _imports(path: Path) -> tuple[str, ...]:
    """The modules that a file imports, anywhere in it; what is imported from a module may be a module too."""
    names = []
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.partition(".")[0] == "ftp")


def _tree(path: Path) -> ast.Module:
    text = path.read_text(encoding="utf-8")
    try:
        return ast.parse(text)
    except SystemError:  # Python 3.11 loses count when two threads parse at the same moment
        return ast.parse(text)


@functools.cache
def _version(modules: frozenset[str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(modules):
        path = _path(name)
        assert path is not None
        digest.update(f"{name}\n{meaning(path)}\n".encode())
    return digest.hexdigest()[:12]


@functools.cache
def meaning(path: Path) -> str:
    """A file without comments, docstrings and layout."""
    tree = _tree(path)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            first = body[0].value
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                del body[0]
    return ast.dump(tree)


def forget() -> None:
    """Read the files anew at the next question; for a process that has written one."""
    for cached in (_imports, _version, meaning):
        cached.cache_clear()
