"""The page around the views: its navigation, its error border, and what every view has to be."""

import doctest
import importlib
import logging
import sys
from pathlib import Path
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest

from app import page
from ftp.lab.lesson import VIEWS
from ftp.lab.record import LabError

PAGE = str(Path(page.__file__))
SHOW = "from app.page import show; show({!r})"


def opened(script: str) -> AppTest:
    return AppTest.from_string(script, default_timeout=300).run()


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A view that fails as a test wants it to."""
    view = ModuleType("app.views.broken")
    monkeypatch.setitem(sys.modules, "app.views.broken", view)
    return view


@pytest.mark.parametrize("name", page.names())
def test_every_view(name: str) -> None:
    """What the navigation and the lessons rely on."""
    view = page.view(name)
    assert isinstance(view.TITLE, str)
    assert view.TITLE
    assert view.QUESTION.endswith("?")
    assert callable(view.render)
    shown = opened(f"from app.views import {name}; {name}.render()")
    assert not shown.exception
    assert [title.value for title in shown.title] == [view.TITLE]
    assert view.QUESTION in [header.value for header in shown.header]


def test_views_come_in_order_and_lessons_link_only_to_views() -> None:
    there = [name for name in page.ORDER if (page.VIEWS / f"{name}.py").exists()]
    assert page.names() == [name for name in there if name != "wall"]
    assert set(page.names()) <= set(VIEWS)


def test_the_wall_is_for_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "wall" not in page.names()
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    assert ("wall" in page.names()) == (page.VIEWS / "wall.py").exists()


def test_the_first_view_opens() -> None:
    shown = AppTest.from_file(PAGE, default_timeout=300).run()
    assert not shown.exception
    assert shown.title[0].value == page.view(page.names()[0]).TITLE


def test_a_sentence_for_people_is_shown_as_text(broken: ModuleType) -> None:
    def render() -> None:
        raise LabError("lr is '![](http://evil.example/x)'; it must be a number")

    broken.render = render  # type: ignore[attr-defined]
    shown = opened(SHOW.format("broken"))
    assert not shown.exception
    assert [error.value.replace("\\", "") for error in shown.error] == [
        "lr is '![](http://evil.example/x)'; it must be a number."
    ]
    assert "](" not in shown.error[0].value


def test_any_other_error_is_for_the_log_alone(broken: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    def render() -> None:
        raise RuntimeError("/home/anna/secret.txt")

    broken.render = render  # type: ignore[attr-defined]
    with caplog.at_level(logging.ERROR):
        shown = opened(SHOW.format("broken"))
    assert not shown.exception
    assert [error.value for error in shown.error] == [page.SORRY]
    assert "secret.txt" in caplog.text


def test_the_page_goes_on_beside_a_broken_view(broken: ModuleType) -> None:
    def render() -> None:
        import streamlit as st

        st.title("before")
        raise ZeroDivisionError

    broken.render = render  # type: ignore[attr-defined]
    shown = opened(SHOW.format("broken") + "\nimport streamlit as st\nst.text('after')")
    assert shown.title[0].value == "before"
    assert shown.text[0].value == "after"


@pytest.mark.parametrize("name", ["limits", "page", "parts", "queueing", "routes", "security", "supervisor", "workers"])
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(f"app.{name}")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("bad", ["inf", "-Infinity", "nan", "1e999"])
def test_an_address_with_an_endless_number_opens_all_the_same(bad: str) -> None:
    shown = AppTest.from_file(PAGE, default_timeout=300)
    shown.query_params["seed"] = bad
    shown.query_params["name"] = "infinity pool"
    shown.query_params["other"] = "12345e6789012345"  # a run's id
    shown.run()
    assert not shown.exception
    assert not shown.error
    assert "seed" not in shown.query_params
    assert shown.query_params["name"] == "infinity pool"
    assert shown.query_params["other"] == "12345e6789012345"


@pytest.mark.parametrize(("view", "field"), [("paper", "Search"), ("runs", "Find")])
@pytest.mark.parametrize("words", ["nan", "inf"])
def test_words_that_read_as_numbers_can_be_looked_for(view: str, field: str, words: str) -> None:
    shown = opened(f"from app import page\npage._shown({view!r})()")
    next(text for text in shown.text_input if text.label == field).set_value(words).run()
    assert not shown.exception
    assert not shown.error
    assert shown.title[0].value == page.view(view).TITLE
