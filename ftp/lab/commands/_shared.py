"""What several commands do: open the store, find a run by its first letters, write files, print columns."""

import math
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ftp.lab.record import LabError, RunRecord
from ftp.lab.store import Store, default_path
from ftp.lab.summary import Metric

SHORTEST = 4  # letters of an id


def store_path(file: str | None) -> Path:
    """The file of --store, else the usual one."""
    return Path(file).expanduser().absolute() if file else default_path().absolute()


def stored(file: str | None) -> Store:
    """The store, if there is one: looking for a run never makes a file."""
    path = store_path(file)
    if not path.exists():
        raise LabError(f"there is no store at {path} yet; the first run makes it: {first_run()}")
    return Store(path)


def find_run(store: Store, prefix: str, *, deleted: bool = False) -> str:
    """The id of the one run that begins with these letters."""
    if len(prefix) < SHORTEST:
        raise LabError(
            f"RUN is {prefix!r}; give at least the first {SHORTEST} letters of an id that ftp-lab runs shows"
        )
    runs = [r for r in store.runs(text=prefix, limit=None, deleted=deleted) if r.run_id.startswith(prefix.lower())]
    if not runs:
        hint = "ftp-lab runs --deleted shows the bin" if deleted else "ftp-lab runs shows all"
        raise LabError(f"RUN is {prefix!r}; no {'deleted ' if deleted else ''}run begins so: {hint}")
    if len(runs) > 1:
        raise LabError(f"RUN is {prefix!r}; {len(runs)} runs begin so: write more letters, such as {runs[0].run_id}")
    return runs[0].run_id


def load_run(store: Store, prefix: str) -> RunRecord:
    """The run that begins with these letters, with all its points."""
    return store.load(find_run(store, prefix))


def check_target(name: str) -> None:
    """Refuse a file that cannot be written before the long work begins, not after it."""
    path = Path(name)
    if path.is_dir():
        raise LabError(f"{name} is a folder; name a file in it, such as {path / 'result.json'}")
    if not path.absolute().parent.is_dir():
        raise LabError(f"{name} lies in no folder that is there; make it first: mkdir -p {path.parent}")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise LabError(f"{name} cannot be written; name another file")


def write(name: str, content: str | bytes) -> None:
    """Write a file; what the disk has against it is a sentence."""
    try:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise LabError(f"{name} cannot be written ({error.strerror}); name another file") from None


def put(text: str, name: str | None = None) -> None:
    """Text to a file, or to standard output if the name is - or missing."""
    if name in (None, "-"):
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    else:
        write(str(name), text)


def number(value: float | None, digits: int = 2) -> str:
    """A score as text.

    >>> number(97.249), number(None)
    ('97.25', '-')
    """
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def with_unit(value: float | None, unit: str) -> str:
    """A score with its unit, for lists in which worlds may stand side by side.

    >>> with_unit(97.249, "%"), with_unit(12.3, "°"), with_unit(None, "%")
    ('97.25 %', '12.30°', '-')
    """
    return "-" if value is None else Metric("", unit).with_unit(value)


def first_run() -> str:
    """The call that a newcomer makes first.

    >>> first_run()
    'ftp-lab run digits --method ftp'
    """
    from ftp.lab.worlds import default

    return f"ftp-lab run {default()} --method ftp"


def columns(rows: Iterable[Sequence[str]], right: Iterable[int] = (), indent: str = "") -> str:
    """Rows of text under each other; the columns in `right` hold numbers.

    >>> print(columns([["ID", "97.2"], ["sketch", "8.5"]], right=[1]))
    ID      97.2
    sketch   8.5
    """
    lines = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))] if lines else []
    to_right = set(right)
    padded = (
        "  ".join(t.rjust(w) if i in to_right else t.ljust(w) for i, (t, w) in enumerate(zip(row, widths, strict=True)))
        for row in lines
    )
    return "\n".join((indent + line).rstrip() for line in padded)


def settings_text(values: Iterable[tuple[str, object]]) -> str:
    """Settings as they are written on the command line.

    >>> settings_text([("lr", 0.05), ("k", 1.0)])
    'lr=0.05 k=1.0'
    """
    return " ".join(f"{name}={value}" for name, value in values)


def differing(record: RunRecord) -> list[tuple[str, object]]:
    """The settings of a run that are not those that its method has by itself today."""
    from ftp.lab.settings import resolve

    settings = record.settings
    try:
        usual = resolve(settings.world, settings.method, {"seed": settings.seed}).as_dict()
    except LabError:  # a world or a method of another version
        return []
    return [(name, value) for name, value in settings.as_dict().items() if usual.get(name) != value]
