"""A link whose values make no sense is told so, and opens all the same: nothing is swallowed.

A view says in `LINK` what the values of its address may be: names, the ends of a range, or a function that gives the
names for the name of a world. The settings of a run are
checked against the world and the method of the address.
"""

import difflib
import math
from collections.abc import Callable, Collection, Mapping
from types import ModuleType

import streamlit as st

from app.sentences import shown
from app.widgets import MOST_STEPS, plain
from app.world import name_chosen
from ftp.lab import methods, worlds
from ftp.lab.options import Option
from ftp.lab.record import LabError
from ftp.lab.settings import known, parse

Allowed = Collection[str] | tuple[float, float]
MOST = 12  # names that a sentence lists
KEY = "what is wrong with the link"  # in the session: the page runs more than once before anybody can read


def mistakes(view: ModuleType, query: Mapping[str, list[str]]) -> dict[str, str]:
    """What is wrong with the values of an address, a sentence for each of its keys."""
    own: dict[str, Allowed | Callable[[str], Allowed]] = getattr(view, "LINK", {})
    place = query.get("world", [worlds.default()])[-1]
    allowed: dict[str, Allowed] = {"world": worlds.names(), "method": methods.names()}
    allowed |= {key: names(place) if callable(names) else names for key, names in own.items()}
    options = _options(query)
    problems = {}
    for key, values in query.items():
        if key in allowed:
            problems[key] = next(filter(None, (_problem(key, value, allowed[key]) for value in values)), "")
        elif key in options and values:
            problems[key] = _setting(key, values[-1], options[key])
    return {key: sentence for key, sentence in problems.items() if sentence}


def _options(query: Mapping[str, list[str]]) -> dict[str, Option]:
    """The settings that the address may have: those of its method, and of others, which it may come to."""
    world = query.get("world", [worlds.default()])[-1]
    if world not in worlds.names():
        return {}
    names = [name for name in methods.names() if name not in query.get("method", ["ftp"])] + query.get(
        "method", ["ftp"]
    )
    rows = {row.name: row.option for name in names if name in methods.names() for row in known(world, name)}
    return {name: option for name, option in rows.items() if not option.layer}


def _problem(key: str, value: str, allowed: Allowed) -> str:
    if isinstance(allowed, tuple) and isinstance(allowed[0], float):
        low, high = allowed
        inside = _is_number(value) and float(low) <= float(value) <= float(high)
        return "" if inside else f"{key} is {value!r} in this link; it must be a number from {low:g} to {high:g}"
    names = [str(name) for name in allowed]
    if value in names:
        return ""
    close = difflib.get_close_matches(value, names, n=1)
    some = f"one of {len(names)}, such as {names[0]}" if len(names) > MOST else ", ".join(names)
    hint = f"did you mean {close[0]}?" if close else f"it may be {some}"
    return f"{key} is {value!r} in this link, and nothing is called so; {hint}"


def _setting(key: str, value: str, option: Option) -> str:
    try:
        number = parse(key, value, option)
    except LabError as error:
        return str(error)
    if isinstance(number, float) and not math.isfinite(number):
        return f"{key} is {value!r}; it must be a finite number"
    most = key == "steps" and isinstance(number, int) and number > MOST_STEPS
    return f"steps is {value!r}; this page trains at most {MOST_STEPS}, and the command line more" if most else ""


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def check(name: str, view: ModuleType) -> None:
    """Take what makes no sense out of the address, once, and say it on the page until somebody has read it."""
    told = st.session_state.get(KEY, ("", []))
    if told[0] not in ("", name):  # another view
        st.session_state[KEY] = ("", [])
    query = {key: st.query_params.get_all(key) for key in st.query_params}
    wrong = mistakes(view, {"world": [name_chosen()], **query})
    for key in wrong:
        del st.query_params[key]
    if wrong:
        st.session_state[KEY] = (name, list(wrong.values()))
        st.rerun()  # widgets take the address as it was when the script began


def tell() -> None:
    """The sentences about the link, and a button that takes them away."""
    sentences = st.session_state.get(KEY, ("", []))[1]
    if not sentences:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(plain(" ".join(f"{shown(s)}{'' if s[-1] in '?.' else '.'}" for s in sentences)))
        st.button("OK", key="link read", on_click=lambda: st.session_state.pop(KEY, None))
