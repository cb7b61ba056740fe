"""Paper map: from an equation to its code, its lessons, its view and its tests, and back."""

import sys

import streamlit as st

from app import own, papermap, parts
from app.papermap import Entry

TITLE = "Paper map"
QUESTION = "Where does each equation of the paper live?"
PICTURE = (
    "Search by number (**Eq. 4**), by name (**gamma_grad**), by word (**projection**), by view or by test. The code, "
    "the lessons and the tests are checked to exist."
)


def render() -> None:
    parts.heading(sys.modules[__name__])
    st.markdown(PICTURE)
    words = st.text_input("Search", key="q", bind="query-params", max_chars=80, placeholder="Eq. 4") or ""
    found = [entry for entry in papermap.entries() if entry.matches(words)]
    parts.answer(answer(found, words))
    if found:
        st.table([row(entry) for entry in found])
    parts.data_table([plain_row(entry) for entry in found], "paper_map", label="As plain text, and download")
    parts.sharing("paper", {"q": words}, python_of(found), own.lesson("00", "01"))


def answer(found: list[Entry], words: str) -> str:
    """How many places there are, in words.

    >>> answer([], "x")
    'Nothing matches "x"; try a number such as Eq. 4, or one word.'
    """
    if not found:
        return f'Nothing matches "{words}"; try a number such as Eq. 4, or one word.'
    tested = sum(bool(entry.tests) for entry in found)
    which = f'places match "{words}"' if words.strip() else "numbered places of the paper"
    return f"{len(found)} {which}; {tested} of them have code and tests here."


def row(entry: Entry) -> dict[str, str]:
    """One line of the table, with links to the views."""
    return {
        "in the paper": f"**{entry.number}**",
        "what it says": entry.what,
        "code": " ".join(f"`{name}`" for name in entry.code) or f"`{entry.home}`",
        "lessons": " ".join(f"`{path}`" for path in entry.lessons) or "none yet",
        "view": f"[{entry.view}](/{entry.view})" if entry.view else "none",
        "tests": " ".join(f"`{_short(test)}`" for test in entry.tests) or "none yet",
    }


def plain_row(entry: Entry) -> dict[str, str]:
    """The same line for a file."""
    lists = {"code": entry.code, "lessons": entry.lessons, "tests": entry.tests}
    own_row = {"number": entry.number, "what": entry.what, "home": entry.home, "view": entry.view or ""}
    return own_row | {name: " ".join(values) for name, values in lists.items()}


def _short(test: str) -> str:
    return test.partition("::")[2]


def python_of(found: list[Entry]) -> str:
    """The code behind what was found, read in a notebook cell."""
    names = list(dict.fromkeys(name for entry in found for name in entry.code))[:3] or ["ftp.projection.project_mars"]
    return f"""import inspect
import pkgutil

for name in {names}:
    print(inspect.getsource(pkgutil.resolve_name(name)))"""
