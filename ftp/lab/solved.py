"""Which exercises were solved on this machine: a small file beside the predictions, for `ftp-lab progress`."""

import json
import time
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError


def solved_path() -> Path:
    """exercises.json, beside the file of predictions.

    >>> solved_path().name
    'exercises.json'
    """
    from ftp.lab.predictions import predictions_path

    return predictions_path().with_name("exercises.json")


def keep(name: str, path: Path | None = None) -> None:
    """Write down that an exercise was solved; the first time counts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keep("mars_norm", Path(folder) / "kept.json")
    ...     list(solved(Path(folder) / "kept.json"))
    ['mars_norm']
    """
    from ftp.lab.store import write_atomic

    path = path or solved_path()
    solved_at = solved(path)
    if name not in solved_at:
        solved_at[name] = round(time.time())
        write_atomic(path, json.dumps(solved_at, indent=1).encode())


def solved(path: Path | None = None) -> dict[str, int]:
    """The exercises that were solved, each with the time of the first right answer.

    >>> solved(Path("no such file"))
    {}
    """
    path = path or solved_path()
    try:
        solved_at: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        solved_at = None
    if not isinstance(solved_at, dict):
        raise LabError(f"{path} is not a file of solved exercises; move it away, and a new one is begun")
    return solved_at


def progress() -> str:
    """A line for each lesson: a dot for each exercise, filled if it was solved here, and the guesses made.

    >>> progress().splitlines()[-1].split(":")[0]
    'in all'
    """
    from ftp.lab import exercises
    from ftp.lab.predictions import guesses

    done, made = solved(), guesses()
    by_lesson: dict[str, list[str]] = {}
    for name in exercises.names():
        by_lesson.setdefault(exercises.load(name).lesson, []).append(name)
    for key in made:
        by_lesson.setdefault(key.partition(".")[0], [])
    lines = []
    for lesson, names in sorted(by_lesson.items()):
        dots = "".join("●" if name in done else "○" for name in names)
        count = sum(key.partition(".")[0] == lesson for key in made)
        open_ones = [name for name in names if name not in done]
        lines.append(f"{lesson:4}{dots:5} {_count(count, 'guess', 'guesses'):10} {_left(names, open_ones)}".rstrip())
    every = [name for names in by_lesson.values() for name in names]
    total = f"in all: {sum(name in done for name in every)} of {len(every)} exercises solved on this machine"
    return "\n".join([*lines, f"{total}, {_count(len(made), 'guess', 'guesses')} made"])


def _left(names: list[str], open_ones: list[str]) -> str:
    if not names:
        return ""
    return f"left: {', '.join(open_ones)}" if open_ones else "all solved"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
