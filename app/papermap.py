"""Where each number of the paper lives: code, lessons, view and tests, out of two data files and the lessons' text."""

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "notebooks"
# "Eq. 14, 15", "Eq. 9-13", "Lemma 1 and 2"
NUMBERS = re.compile(r"\b(Eq|Lemma|Alg|Tab|Fig)s?\.?\s?(\d+(?:(?:, | and |-|–)\d+)*)")


@dataclass(frozen=True)
class Entry:
    """One equation, lemma, algorithm, table or figure of the paper."""

    number: str
    what: str
    home: str
    code: tuple[str, ...]
    lessons: tuple[str, ...]  # paths from the root of the kit
    view: str | None
    tests: tuple[str, ...]

    def matches(self, words: str) -> bool:
        """Does every word that was searched for occur somewhere in it? "eq. 4" is not "Eq. 14".

        >>> one = Entry("Eq. 4", "the gradient of γ", "ftp/constraint.py", ("ftp.constraint.gamma_grad",), (), None, ())
        >>> one.matches("GAMMA_grad"), one.matches("eq. 4"), one.matches("eq. 14"), one.matches("gradient wise")
        (True, True, False, False)
        """
        parts = (self.number, self.what, self.home, *self.code, *self.lessons, self.view or "", *self.tests)
        text = " ".join(parts).lower()
        return all(re.search(rf"(?<![0-9]){re.escape(w)}(?![0-9])", text) for w in words.lower().split())


def cited(words: str) -> set[str]:
    """Every number of the paper that a text names.

    >>> sorted(cited("Eq. 9-11, Lemma 1 and 2"))
    ['Eq. 10', 'Eq. 11', 'Eq. 9', 'Lemma 1', 'Lemma 2']
    """
    numbers = set()
    for kind, listed in NUMBERS.findall(words):
        for part in re.split(r", | and ", listed):
            ends = [int(end) for end in re.split(r"[-–]", part)]
            numbers |= {f"{kind}{' ' if kind == 'Lemma' else '. '}{n}" for n in range(ends[0], ends[-1] + 1)}
    return numbers


@functools.cache
def entries() -> tuple[Entry, ...]:
    """The whole map, in the order of its file."""
    what = json.loads((LESSONS / "paper_map.json").read_text(encoding="utf-8"))
    links = json.loads((LESSONS / "paper_links.json").read_text(encoding="utf-8"))
    sources = sorted((LESSONS / "src").glob("[0-9][0-9]*_*.py"))
    named = {f"notebooks/{path.stem}.ipynb": cited(path.read_text(encoding="utf-8")) for path in sources}
    return tuple(
        Entry(
            number,
            one["what"],
            one["home"],
            tuple(links[number]["code"]),
            tuple(lesson for lesson, numbers in named.items() if number in numbers),
            links[number]["view"],
            tuple(links[number]["tests"]),
        )
        for number, one in what.items()
    )
