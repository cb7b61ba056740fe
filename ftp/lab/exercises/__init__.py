"""The exercises of the lessons: `check` an answer, ask for a `hint`, read the `solution`.

Each exercise is one file of this package that holds an `EXERCISE`; a new file is found by itself. Its known
mistakes and accepted variants are walked by a test.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab import registry
from ftp.lab.predictions import note, notebook
from ftp.lab.record import LabError
from ftp.lab.solved import keep

if TYPE_CHECKING:
    from ftp.lab.exercises._exercise import Exercise

SIGNS = {"right": "✓", "wrong": "✗", "not attempted": "○"}


@dataclass(frozen=True)
class Outcome:
    """What `check` found. True only if the answer is right."""

    name: str
    status: str  # "right", "wrong" or "not attempted"
    message: str

    def __bool__(self) -> bool:
        return self.status == "right"

    def _ipython_display_(self) -> None:
        """Show nothing: `check` has printed it, and a cell would repeat its last value."""


def names() -> tuple[str, ...]:
    """All exercises, in the order of the alphabet."""
    return registry.modules(__name__)


def load(name: str) -> "Exercise":
    """The exercise of that name.

    >>> load("mars_norm").lesson
    '01'
    """
    exercise: Exercise = registry.find(__name__, "EXERCISE", name, "exercise")
    return exercise


def check(name: str, answer: Any) -> Outcome:
    """Judge an answer and say in one or two lines what was found: right, wrong or not attempted.

    >>> bool(check("mars_norm", lambda weight: weight.abs().sum(dim=1).max()))
    ✓ mars_norm: right. One row decides: the one whose weights have the largest total size.
    True
    >>> check("mars_norm", lambda weight: weight.abs().sum()).status
    ✗ mars_norm: you took the norm of the whole tensor; MARS is per row.
      W = [[3, -4, 2], [1, 1, -1]]: expected 9, yours gave 12
    'wrong'
    """
    from ftp.lab.exercises._exercise import NOT_ATTEMPTED, RIGHT, examine

    status, message = examine(load(name), answer)
    line = f"{SIGNS[status]} {name}: {message}"
    if status == RIGHT:
        line = f"{SIGNS[status]} {name}: right. {message}"
    elif status == NOT_ATTEMPTED:
        line = f'{SIGNS[status]} {name}: not attempted yet; {message}. Stuck? hint("{name}", 1)'
    print(line)
    if status == RIGHT and notebook() is not None and Path.cwd().name != "complete":  # there, all are solved by us
        try:
            keep(name)
        except (LabError, OSError) as error:  # an exercise is right without it
            note(f"That it is solved could not be kept: {error}")
    return Outcome(name, status, message)


def hint(name: str, number: int | str = 1) -> None:
    """Print a hint: 1 is a nudge, 2 says how, 3 is nearly the answer.

    >>> hint("mars_norm", 1)
    hint 1 of 3: take one row at a time: how large can the sum w_1 x_1 + w_2 x_2 + ... get if each x is 1 or -1?
    """
    hints = load(name).hints
    numbered = {str(n): text for n, text in enumerate(hints, start=1)}
    if str(number) not in numbered:
        raise LabError(f"hint {number} of {name} does not exist; ask for 1 to {len(hints)}")
    print(f"hint {number} of {len(hints)}: {numbered[str(number)]}")


def solution(name: str) -> None:
    """Print the solution; it can be pasted into the exercise's cell.

    >>> solution("mars_norm")
    def my_mars_norm(weight):
        return weight.abs().sum(dim=1).max()
    """
    print(load(name).solution.strip())
