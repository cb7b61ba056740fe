"""What a learner expected, and what came: kept in a small file, for the calibration plot of the last lesson."""

import html
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError


def predict(
    key: str, value: Any, options: Sequence[Any] | None = None, sure: float = 50, path: Path | None = None
) -> None:
    """Write down what you expect before you see it, and how sure you are, in percent.

    Once the outcome is known, the first prediction is the one that counts. path: where it is kept.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     predict("coin", "heads", options=("heads", "tails"), sure=50, path=Path(folder) / "kept.json")
    ✎ you expect: heads (50 % sure)
    """
    if options is not None and value not in options:
        raise LabError(f"your prediction is {value!r}; choose one of {', '.join(map(repr, options))}")
    if not (isinstance(sure, int | float) and 0 <= sure <= 100):
        raise LabError(f"sure is {sure!r}; give a percentage from 0 to 100")
    if 0 < sure < 1:
        raise LabError(f"sure is {sure!r}, less than one percent; it is a percentage: write sure={100 * sure:g}")
    kept = _predictions(path)
    entry = kept.setdefault(key, {})
    if "outcome" not in entry:
        entry |= {"value": value, "sure": sure, "options": list(options or ()), "time": round(time.time())}
    entry["latest"] = value
    _keep(kept, path)
    print(f"✎ you expect: {value} ({sure:g} % sure)")


def outcome(key: str, value: Any, within: float = 0.0, path: Path | None = None) -> None:
    """Say what happened, and keep it beside the prediction; a number counts as right `within` a share of the outcome.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     predict("ratio", 2.0, sure=80, path=Path(folder) / "kept.json")
    ...     outcome("ratio", 2.1, within=0.1, path=Path(folder) / "kept.json")
    ✎ you expect: 2.0 (80 % sure)
    → it was: 2.1, as you expected
    """
    kept = _predictions(path)
    entry = kept.get(key)
    if entry is None:  # the cell above was left out, or the file could not be written
        print(f"→ it was: {value}")
        return
    entry.setdefault("right", _right(entry["value"], value, within))
    entry.setdefault("outcome", value)
    _keep(kept, path)
    now = _right(entry["latest"], value, within)
    print(f"→ it was: {value}, " + ("as you expected" if now else f"and you expected {entry['latest']}"))


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


def predictions_path() -> Path:
    """The file named by $FTP_PREDICTIONS, or predictions.json beside the store.

    >>> predictions_path().suffix
    '.json'
    """
    if given := os.environ.get("FTP_PREDICTIONS"):
        return Path(given).expanduser()
    from ftp.lab.store import default_path

    return default_path().with_name("predictions.json")


def _predictions(path: Path | None) -> dict[str, dict[str, Any]]:
    path = path or predictions_path()
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        kept = None
    if not isinstance(kept, dict):
        raise LabError(f"{path} is not a file of predictions; move it away, and a new one is begun")
    return kept


def _keep(kept: dict[str, dict[str, Any]], path: Path | None) -> None:
    from ftp.lab.store import write_atomic

    try:
        write_atomic(path or predictions_path(), json.dumps(kept, indent=1, default=str).encode())
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
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        print(text)
    else:
        sys.modules["IPython"].display.display({"text/html": f"<{tag}>{html.escape(text)}</{tag}>"}, raw=True)
