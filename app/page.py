"""The script that Streamlit runs for every viewer: the navigation, and the chosen view inside an error border."""

import importlib
import logging
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import streamlit as st

from app.limits import class_mode
from app.parts import NUMBERS, plain
from ftp.lab.record import LabError

VIEWS = Path(__file__).resolve().parent / "views"
ORDER = ("live", "microscope", "race", "corruptions", "wise", "geometry", "runs", "paper", "wall")
LABELS = {"wise": "WiSE", "paper": "Paper map", "wall": "Class wall"}
SORRY = "Something went wrong in this view; the rest goes on."


def names() -> list[str]:
    """The views there are, in the order of the navigation; the class wall only on a server for a class.

    >>> "geometry" in names()
    True
    """
    there = [path.stem for path in VIEWS.glob("*.py") if not path.stem.startswith("_")]
    known = [name for name in ORDER if name in there] + sorted(set(there) - set(ORDER))
    return [name for name in known if name != "wall" or class_mode()]


def view(name: str) -> ModuleType:
    """The module of a view: TITLE, QUESTION and render()."""
    return importlib.import_module(f"app.views.{name}")


def show(name: str) -> None:
    """One view; what goes wrong in it is a sentence on the page and a traceback in the server's log."""
    try:
        view(name).render()
    except Exception as error:
        tell(error)


def tell(error: Exception) -> bool:
    """Say what went wrong; details are for the server's log alone."""
    if isinstance(error, LabError):
        st.error(plain(f"{error}."))
    else:
        logging.getLogger("app").error("a view failed", exc_info=error)
        st.error(SORRY)
    return True  # Streamlit need not show it once more


def tidy() -> None:
    """Take out of the address a number that is infinite or none: Streamlit's widgets for numbers fall over it."""
    endless = [key for key, value in st.query_params.items() if key in NUMBERS and not _is_finite(value)]
    for key in endless:
        del st.query_params[key]
    if endless:
        st.rerun()  # widgets take the address as it was when the script began


def _is_finite(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:  # a word
        return True


def main() -> None:
    """Navigation over all views; the address of each is its file's name."""
    st.set_page_config(page_title="FTP", layout="wide")
    there = names()
    # the default page has the address / alone, so the first view is there twice: links name it as they name the others
    home = st.Page(_shown(there[0]), title="FTP", default=True, visibility="hidden")
    pages = [st.Page(_shown(name), title=LABELS.get(name, name.capitalize()), url_path=name) for name in there]
    st.navigation([home, *pages], position="top").run()


def _shown(name: str) -> Callable[[], None]:
    def run() -> None:
        tidy()
        show(name)

    return run


if __name__ == "__main__":  # true when Streamlit runs it, false for a test that only imports
    main()
