"""The one choice of world, above all views; the address keeps it, and the world's own options with it."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Literal

import streamlit as st

from app import widgets
from app.sentences import shown
from ftp.lab import worlds
from ftp.lab.record import LabError
from ftp.lab.settings import parse
from ftp.lab.worlds import World

KEY, LAST = "world", "last world"  # the second outlives the widget, which every view has anew
LED = "world that a view was led to"
WIDE = 200  # pixels: the longest title
TITLES = {"semseg": "Things", "parts": "Parts", "normals": "Normals"}  # of values of options, for people


def first() -> str:
    """The world that the page opens with: the person's own pictures where they were given, as by make app DATA=PATH."""
    given = (name for name in worlds.names() if worlds.world(name).own and not worlds.load(name).missing())
    return next(given, worlds.default())


def choose() -> World:
    """The world that the viewer has chosen; the choice is shown where there is more than one."""
    names = worlds.names()
    if len(names) > 1:
        last = st.session_state.get(LAST, first())
        if KEY not in st.query_params and last != first():
            st.query_params[KEY] = last  # the navigation opens another view with an empty address
        look: dict[str, Any] = {"label_visibility": "collapsed", "width": WIDE}
        chosen = widgets.choice("World", names, _usual(), KEY, _title, _renew, **look)
        if chosen != st.session_state.get(LED):
            st.session_state[LAST] = chosen
    return current()


def lead(view: ModuleType) -> None:
    """Open a view in the first world that it fits, as long as the viewer has not chosen another.

    The address does not say so: a view writes nothing into it by itself, or the browser's Back would come back to it.
    """
    last = st.session_state.get(LAST, first())
    if KEY in st.query_params or KEY in st.session_state or last != first():
        return
    st.session_state[LED] = _home(view)


def _usual() -> str:
    """The world that a view is in as long as nobody chooses: where it was led to, else the first one."""
    is_free = st.session_state.get(LAST, first()) == first()
    return (st.session_state.get(LED) if is_free else "") or first()


def name_chosen() -> str:
    """The name of the chosen world; a name that is not there means the usual one."""
    name = st.session_state.get(KEY) or st.query_params.get(KEY, "")
    return name if name in worlds.names() else _usual()


def current() -> World:
    """The chosen world with the options that the address gives; one that makes no sense is told, and left out."""
    kind = worlds.world(name_chosen())
    options = {}
    for name, option in kind.options.items():
        if name in st.query_params and not option.private:
            try:
                options[name] = parse(name, st.query_params[name], option)
            except LabError as error:
                st.warning(widgets.plain(f"{shown(error)}."))
    return worlds.load(name_chosen(), options)


def choose_option(world: World, name: str, values: Sequence[str]) -> World:
    """The same world with one of these values of an option, such as its task; the address keeps the choice."""
    usual, asked = str(world.options[name].default), str(world.option(name))
    look: dict[str, Any] = {"format_func": lambda value: TITLES.get(value, value), "key": f"option {name}"}
    start = asked if asked in values else usual
    chosen = st.segmented_control(name.capitalize(), values, default=start, required=True, **look) or usual
    widgets.link(name, [chosen], [usual])
    return worlds.load(world.name, {**world.chosen, name: chosen})


def elsewhere(view: ModuleType, world: World, problem: str) -> None:
    """A view that does not fit the chosen world: why, and a way to one that it fits."""
    st.info(widgets.plain(f"{shown(problem)}."))
    other: str = view.instead(world) if hasattr(view, "instead") else ""
    if other and st.button("Open that view", type="primary"):
        st.switch_page(st.Page(lambda: None, title=other, url_path=other), query_params={KEY: world.name})
    if home := _home(view, besides=world.name):
        look: Literal["primary", "secondary"] = "secondary" if other else "primary"
        st.button(f"Show it in: {_title(home)}", on_click=_go, args=(home,), type=look)
    with widgets.menu():
        widgets.share_link(view.__name__.rpartition(".")[-1], {})


def _home(view: ModuleType, besides: str = "") -> str:
    """The first world that a view fits; none if there is none."""
    others = (worlds.load(name) for name in worlds.names() if name != besides)
    return next((other.name for other in others if not (other.missing() or view.misfit(other))), "")


def _title(name: str) -> str:
    return worlds.world(name).title


def _renew() -> None:
    """Another world has other runs, other options and other tuned settings: the address begins anew."""
    if KEY not in st.session_state:  # the view was left the same moment, and its widgets with it
        return
    st.query_params.from_dict({KEY: st.session_state[KEY]})
    widgets.to_recipe(kept=("labels",))
    st.session_state.pop("seed", None)  # each view begins with the seed that is typical of its world


def _go(name: str) -> None:
    st.session_state[KEY] = name
    _renew()
