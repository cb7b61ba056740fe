"""The script that Streamlit runs for every viewer: the navigation, and the chosen view inside an error border."""

import importlib
import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Literal

import streamlit as st

from app import links, widgets, world
from app.limits import class_mode, is_teacher
from app.supervisor import supervisor
from app.widgets import refuse
from ftp.lab.palette import palette
from ftp.lab.record import LabError

VIEWS = Path(__file__).resolve().parent / "views"
ORDER = (
    *("live", "microscope", "race", "corruptions", "wise", "ask", "tasks", "dense"),
    *("geometry", "runs", "paper", "wall", "teacher"),
)
LABELS = {"wise": "WiSE", "dense": "Scenes", "paper": "Paper map", "wall": "Class wall"}
STYLE = """
[data-testid=stMainBlockContainer] { padding: 4.2rem 2rem 1.5rem; }
.st-key-heading h1 { font-size: 1.3rem; padding: 0; }
.st-key-heading h2 { font-size: 1rem; font-weight: 400; padding: 0; opacity: 0.85; }
.st-key-heading [data-testid=stSelectbox] { min-width: 11rem; }
[data-testid=stPopoverBody]:has(.st-key-menu) { width: min(44rem, 94vw); max-height: 80vh; }
@media (max-width: 40rem) {
  [data-testid=stMainBlockContainer] { padding: 4.2rem 1rem 1.5rem; }
  .st-key-all { overflow-x: auto; }
  .st-key-all::before { content: "Swipe the plane sideways to see all of it."; font-size: 0.875rem; }
  .st-key-all::before { position: sticky; left: 0; }
  .st-key-all > [data-testid=stElementContainer] { min-width: 40rem; }
  .st-key-heading [data-testid=stElementContainer]:has(> .stSpace) { display: none; }
}
@media (hover: none) { .modebar-container, [data-testid=stElementToolbar] { display: none; } }
"""
# white letters on the light button of the dark theme could not be read
DARK_STYLE = f"[data-testid=stBaseButton-primary] {{ color: {palette(dark=True).paper}; }}"
SORRY = "Something went wrong in this view; the rest goes on."


def names() -> list[str]:
    """The views for everybody, in the order of the navigation; the class wall only where a class has it switched on.

    >>> "geometry" in names()
    True
    """
    view_names = [path.stem for path in VIEWS.glob("*.py") if not path.stem.startswith("_")]
    known = [name for name in ORDER if name in view_names] + sorted(set(view_names) - set(ORDER))
    wall = class_mode() and supervisor().wall_is_on
    return [name for name in known if name != "teacher" and (name != "wall" or wall)]


def view(name: str) -> ModuleType:
    """The module of a view: TITLE, QUESTION, misfit(world), render(); LINK if its address has values of its own."""
    return importlib.import_module(f"app.views.{name}")


def show(name: str) -> None:
    """One view in the chosen world; what goes wrong in it is a sentence on the page and a traceback in the log."""
    try:
        module = view(name)
        world.lead(module)
        links.check(name, module)
        with widgets.heading(module):
            chosen = world.choose()
        links.tell()
        problem = chosen.missing() or module.misfit(chosen)
        if problem:
            world.elsewhere(module, chosen, problem)
        else:
            module.render()
    except Exception as error:
        tell(error)


def tell(error: Exception) -> bool:
    """Say what went wrong; details are for the server's log alone."""
    if isinstance(error, LabError):
        refuse(error)
    else:
        logging.getLogger("app").error("a view failed", exc_info=error)
        st.error(SORRY)
    return True  # Streamlit need not show it once more


def main() -> None:
    """Navigation over all views; the address of each is its file's name."""
    st.set_page_config(page_title="FTP", layout="wide")
    st.html(f"<style>{STYLE}{DARK_STYLE if widgets.dark() else ''}</style>")
    view_names = names()
    # the default page has the address / alone, so the first view is there twice: links name it as they name the others
    home = st.Page(_shown(view_names[0]), title="FTP", default=True, visibility="hidden")
    pages = [st.Page(_shown(name), title=LABELS.get(name, name.capitalize()), url_path=name) for name in view_names]
    if class_mode():  # it refuses who comes without the token; only who came with it has it in the navigation
        seen: Literal["visible", "hidden"] = "visible" if is_teacher() else "hidden"
        pages.append(st.Page(_shown("teacher"), title="Teacher", url_path="teacher", visibility=seen))
    st.navigation([home, *pages], position="top").run()


def _shown(name: str) -> Callable[[], None]:
    def run() -> None:
        show(name)

    return run


if __name__ == "__main__":  # true when Streamlit runs it, false for a test that only imports
    main()
