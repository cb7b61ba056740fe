"""The paper map: every code name imports, every file and test exists, every view exists."""

import ast
import functools
import json
import pkgutil

import pytest
from app_views import open_view

from app.page import names
from app.papermap import LESSONS, ROOT, Entry, entries
from app.views import paper as view

every = pytest.mark.parametrize("entry", entries(), ids=lambda e: e.number)


@functools.cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@every
def test_code_files_and_tests_exist(entry: Entry):
    assert (ROOT / entry.home).exists()
    for name in entry.code:
        assert pkgutil.resolve_name(name) is not None
    for lesson in entry.lessons:
        assert (ROOT / lesson.replace("notebooks/", "notebooks/src/").replace(".ipynb", ".py")).exists()
    for test in entry.tests:
        file, _, name = test.partition("::")
        assert name in functions_of(file), test
    assert entry.view is None or entry.view in names()


@every
def test_what_has_an_equation_has_code_and_a_test(entry: Entry):
    if entry.number.split()[0] in ("Eq.", "Lemma", "Alg."):
        assert entry.code
        assert entry.tests


def test_both_files_have_the_same_numbers():
    what, links = (json.loads((LESSONS / f"paper_{name}.json").read_text()) for name in ("map", "links"))
    assert list(what) == list(links)


def test_lessons_are_found_by_what_they_cite():
    eq_10 = next(entry for entry in entries() if entry.number == "Eq. 10")
    assert "notebooks/03_projection.ipynb" in eq_10.lessons


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ("eq. 4", ["Eq. 4"]),
        ("gamma_grad", ["Eq. 4"]),
        ("wise.wise", ["Tab. 3", "Fig. 3"]),
        ("no such thing", []),
        ("(", None),
    ],
)
def test_search(words, numbers):
    page = open_view("paper", q=words)
    found = [cell.strip("*") for cell in page.table[-1].value["in the paper"]] if page.table else []
    if numbers is not None:
        assert found == numbers


def test_all_of_it():
    page = open_view("paper")
    assert len(page.table[0].value) == len(entries())
    assert page.get("download_button")


def test_the_copied_python_runs(capsys):
    exec(view.python_of([entry for entry in entries() if entry.number == "Eq. 5"]), {})
    assert "def anneal(" in capsys.readouterr().out
