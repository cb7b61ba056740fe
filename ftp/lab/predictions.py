"""What a learner expected, and what came: kept in a small file, for the calibration plot of the last lesson.

A lesson waits: a cell that begins with `# waits for 00.elsewhere` runs only once that has been guessed here.
"""

import html
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError

WAITS = re.compile(r"# waits for (\S+)\s*$")
_guessed: set[str] = set()  # in this process, so that a notebook opened again waits again


def predict(
    key: str, value: Any, options: Sequence[Any] | None = None, sure: float = 50, path: Path | None = None
) -> None:
    """Write down what you expect before you see it, and how sure you are, in percent.

    As long as value is `...`, nothing is kept and the cells below wait; None shows them without a guess. Once the
    outcome is known, the first guess is the one that counts; `forget` takes it back. path: where it is predictions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     predict("coin", ..., options=("heads", "tails"), path=Path(folder) / "kept.json")
    ...     predict("coin", "heads", options=("heads", "tails"), sure=50, path=Path(folder) / "kept.json")
    ○ your guess first: write one of 'heads', 'tails' in place of the dots and run this cell again
    ✎ you expect: heads (50 % sure)
    """
    if value is ...:
        _guessed.discard(key)
        one = f"one of {', '.join(map(repr, options))}" if options is not None else "what you expect"
        print(f"○ your guess first: write {one} in place of the dots and run this cell again")
        return
    if value is None:
        _guessed.add(key)
        print("✎ no guess: the cells below show what happens, and nothing is kept")
        return
    if options is not None and value not in options:
        raise LabError(f"your prediction is {value!r}; choose one of {', '.join(map(repr, options))}")
    if not (isinstance(sure, int | float) and 0 <= sure <= 100):
        raise LabError(f"sure is {sure!r}; give a percentage from 0 to 100")
    if 0 < sure < 1:
        raise LabError(f"sure is {sure!r}, less than one percent; it is a percentage: write sure={100 * sure:g}")
    predictions = _predictions(path)
    entry = predictions.setdefault(key, {})
    known = "outcome" in entry
    if not known:
        entry |= {"value": value, "sure": sure, "options": list(options or ()), "time": round(time.time())}
    entry["latest"] = value
    _keep(predictions, path)
    _guessed.add(key)
    print(f"✎ you expect: {value} ({sure:g} % sure)")
    if known and (entry["value"], entry["sure"]) != (value, sure):
        print(f'  your first guess counts: {entry["value"]}, {entry["sure"]:g} % sure; forget("{key}") takes it back')


def outcome(key: str, value: Any, within: float = 0.0, path: Path | None = None) -> None:
    """Say what happened, and keep it beside the prediction; a number counts as right `within` a share of the outcome.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     predict("ratio", 2.0, sure=80, path=Path(folder) / "kept.json")
    ...     outcome("ratio", 2.1, within=0.1, path=Path(folder) / "kept.json")
    ✎ you expect: 2.0 (80 % sure)
    → it was: 2.1, as you expected
    """
    if key not in _guessed:
        wait(key)
        return
    predictions = _predictions(path)
    entry = predictions.get(key)
    if entry is None:  # shown without a guess, or the file could not be written
        print(f"→ it was: {value}")
        return
    entry.setdefault("right", _right(entry["value"], value, within))
    entry.setdefault("outcome", value)
    _keep(predictions, path)
    now = _right(entry["latest"], value, within)
    print(f"→ it was: {value}, " + ("as you expected" if now else f"and you expected {entry['latest']}"))


def forget(key: str | None = None, path: Path | None = None) -> None:
    """Take a prediction back, or all of them: what was guessed and what came is removed, and the lesson waits again.

    >>> forget("coin", path=Path("no such file"))
    there is no prediction 'coin'
    """
    predictions = _predictions(path)
    gone = [key] if key in predictions else [] if key is not None else list(predictions)
    for name in gone:
        del predictions[name]
    _guessed.difference_update(_guessed if key is None else {key})
    if gone:
        _keep(predictions, path)
        print(f"{len(gone)} prediction{'s are' if len(gone) > 1 else ' is'} forgotten: {', '.join(gone)}")
    else:
        print("there is no prediction" + (f" {key!r}" if key is not None else ""))


def wait(key: str) -> None:
    """What a cell says in place of its result as long as nothing has been guessed.

    >>> wait("00.elsewhere")
    ○ this cell waits for your guess "00.elsewhere": fill in `guess` above, run that cell, then this one
    """
    print(f'○ this cell waits for your guess "{key}": fill in `guess` above, run that cell, then this one')


def hold(lines: list[str]) -> list[str]:
    """The lines of a cell as IPython is to run them: those of a cell that waits are replaced by the line it says.

    >>> hold(["# waits for coin\\n", "toss()\\n"])
    ["__import__('ftp.lab.predictions').lab.predictions.wait('coin')\\n"]
    >>> hold(["toss()\\n"])
    ['toss()\\n']
    """
    waits = WAITS.match(lines[0]) if lines else None
    if waits is None or waits[1] in _guessed:
        return lines
    return [f"__import__('ftp.lab.predictions').lab.predictions.wait({waits[1]!r})\n"]


def hold_cells() -> None:
    """Have this notebook's cells wait for their guesses; outside a notebook nothing happens."""
    shell = notebook()
    if shell is not None and hold not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(hold)


def calibration(path: Path | None = None) -> list[dict[str, float]]:
    """How often you were right, for each percentage that you gave: the points of lesson 11's plot.

    >>> calibration(Path("no such file"))
    []
    """
    groups: dict[float, list[bool]] = {}
    for entry in _predictions(path).values():
        if "right" in entry:
            groups.setdefault(float(entry["sure"]), []).append(bool(entry["right"]))
    return [
        {"sure": sure, "right": 100 * sum(rights) / len(rights), "count": len(rights)}
        for sure, rights in sorted(groups.items())
    ]


def guesses(path: Path | None = None) -> tuple[str, ...]:
    """The keys of what was guessed on this machine.

    >>> guesses(Path("no such file"))
    ()
    """
    return tuple(_predictions(path))


def predictions_path() -> Path:
    """The file named by $FTP_PREDICTIONS, or predictions.json beside the store."""
    if file := os.environ.get("FTP_PREDICTIONS"):
        return Path(file).expanduser()
    from ftp.lab.store import default_path

    return default_path().with_name("predictions.json")


def _predictions(path: Path | None) -> dict[str, dict[str, Any]]:
    path = path or predictions_path()
    try:
        predictions = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        predictions = None
    if not isinstance(predictions, dict):
        raise LabError(f"{path} is not a file of predictions; move it away, and a new one is begun")
    return predictions


def _keep(predictions: dict[str, dict[str, Any]], path: Path | None) -> None:
    from ftp.lab.store import write_atomic

    try:
        write_atomic(path or predictions_path(), json.dumps(predictions, indent=1, default=str).encode())
    except (LabError, OSError) as error:  # a lesson goes on without it
        note(f"Your prediction could not be kept: {error}")


def _right(said: Any, was: Any, within: float) -> bool:
    if isinstance(said, int | float) and isinstance(was, int | float):
        return abs(said - was) <= within * abs(was) + 1e-12
    return bool(said == was)


def note(text: str, tag: str = "small") -> None:
    """Show what differs from machine to machine: as HTML in a notebook, which no test compares.

    tag: of the HTML, "pre" for a text of several lines.

    >>> note("2 threads")
    2 threads
    """
    if notebook() is None:
        print(text)
    else:
        sys.modules["IPython"].display.display({"text/html": f"<{tag}>{html.escape(text)}</{tag}>"}, raw=True)


def notebook() -> Any:
    """The running IPython, or None.

    >>> notebook() is None
    True
    """
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
