"""Paper map: from an equation to its code, its lessons, its view and its tests, and back."""

import streamlit as st

from app import papermap, run_chooser, widgets
from app.papermap import Entry
from ftp.lab.worlds import World

TITLE = "Paper map"
QUESTION = "Where does each equation of the paper live?"
PICTURE = (
    "Search by number (**Eq. 4**), by name (**gamma_grad**), by word (**projection**), by view or by test. The code, "
    "the lessons and the tests are checked to exist."
)


def misfit(world: World) -> str:
    return ""


def render() -> None:
    st.markdown(PICTURE)
    words = st.text_input("Search", key="q", bind="query-params", max_chars=80, placeholder="Eq. 4") or ""
    entries = [entry for entry in papermap.entries() if entry.matches(words)]
    widgets.answer(answer(entries, words))
    if entries:
        st.table([row(entry) for entry in entries])
    widgets.data_table([plain_row(entry) for entry in entries], "paper_map", label="As plain text, and download")
    widgets.sharing("paper", {"q": words}, python_of(entries), run_chooser.lesson("00", "01"))


def answer(entries: list[Entry], words: str) -> str:
    """How many places there are, in words.

    >>> answer([], "x")
    'Nothing matches "x"; try a number such as Eq. 4, or one word.'
    """
    if not entries:
        return f'Nothing matches "{words}"; try a number such as Eq. 4, or one word.'
    tested = sum(bool(entry.tests) for entry in entries)
    which = f'places match "{words}"' if words.strip() else "numbered places of the paper"
    return f"{len(entries)} {which}; {tested} of them have code and tests here."


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
    fields = {"number": entry.number, "what": entry.what, "home": entry.home, "view": entry.view or ""}
    return fields | {name: " ".join(values) for name, values in lists.items()}


def _short(test: str) -> str:
    return test.partition("::")[2]


def python_of(entries: list[Entry]) -> str:
    """The code behind what was found, read in a notebook cell."""
    names = list(dict.fromkeys(name for entry in entries for name in entry.code))[:3] or ["ftp.projection.project_mars"]
    return f"""import inspect
import pkgutil

for name in {names}:
    print(inspect.getsource(pkgutil.resolve_name(name)))"""
