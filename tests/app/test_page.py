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
    view.misfit = lambda world: ""  # type: ignore[attr-defined]
    view.TITLE, view.QUESTION = "Broken", "Does the rest go on?"  # type: ignore[attr-defined]
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
    shown = opened(f"from app.page import show; show({name!r})")
    assert not shown.exception
    assert [title.value for title in shown.title] == [view.TITLE]
    assert view.QUESTION in [header.value for header in shown.header]


def test_views_come_in_order_and_lessons_link_only_to_views() -> None:
    there = [name for name in page.ORDER if (page.VIEWS / f"{name}.py").exists()]
    known = [name for name in there if name not in ("wall", "teacher")]
    assert page.names()[: len(known)] == known  # views of one's own come last
    assert set(known) <= set(VIEWS)


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
        "Lr is '![](http://evil.example/x)'; it must be a number."
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
    assert shown.title[0].value == "Broken"
    assert shown.text[0].value == "after"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "cookies",
            "dispatcher",
            "estimates",
            "limits",
            "page",
            "promises",
            "queueing",
            "routes",
            "run_chooser",
            "security",
            "sentences",
        ),
        *("supervisor", "tails", "widgets", "workers"),
    ],
)
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
    assert shown.warning[0].value.replace("\\", "").startswith(f"Seed is '{bad}'")
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


@pytest.mark.parametrize(
    ("view", "key", "value", "sentence"),
    [
        ("live", "method", "fpt", "Method is 'fpt' in this link, and nothing is called so; did you mean ftp?"),
        ("live", "lr", "fast", "Lr is 'fast'; it must be a number"),
        ("live", "steps", "5000", "Steps is '5000'; this page trains at most 2000"),
        ("live", "optimizer", "sdg", "Optimizer is 'sdg'; it must be sgd"),
        ("race", "methods", "adpter", "Methods is 'adpter' in this link, and nothing is called so; did you mean adapt"),
        ("race", "seeds", "all of them", "Seeds is 'all of them' in this link"),
        ("corruptions", "severity", "9", "Severity is '9' in this link; it must be a number from 0 to 5."),
        ("corruptions", "kind", "fogg", "Kind is 'fogg' in this link, and nothing is called so; did you mean fog?"),
        ("wise", "alpha", "half", "Alpha is 'half' in this link; it must be a number from 0 to 1."),
        ("geometry", "gamma", "7", "Gamma is '7' in this link; it must be a number from 0 to 2."),
        ("runs", "status", "ready", "Status is 'ready' in this link"),
    ],
)
def test_a_bad_value_in_a_link_is_told_and_the_view_opens(view: str, key: str, value: str, sentence: str) -> None:
    shown = AppTest.from_string(SHOW.format(view), default_timeout=300)
    shown.query_params[key] = value
    shown.run()
    assert not shown.exception
    assert not shown.error
    assert shown.warning[0].value.replace("\\", "").startswith(sentence)
    assert shown.query_params.get(key, [""])[-1] != value
    shown.run()
    assert shown.warning  # the page runs more than once before anybody can read
    next(button for button in shown.button if button.label == "OK").click().run()
    assert not shown.warning
