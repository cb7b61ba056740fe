"""No world is known by name outside its own file and its data: every other file asks, so a new world is one file."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ftp.lab import worlds

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted(path for folder in ("ftp", "app") for path in (ROOT / folder).rglob("*.py"))
SCRIPTS = sorted((ROOT / "app" / "components").glob("*.js"))
TORCH = "is_current_stream_capturing"  # of CUDA; another kind of stream
COUNTED = re.compile(r"\b(\d+|hexadecimal|decimal|significant) digits\b")  # the English word, of a number
ENGLISH = {"folder"}  # names that are words too: they count where a world is meant, not in prose


def words(text: str) -> set[str]:
    """The words of a text or a name: "digits/methods.json" and digits_test have the word digits."""
    return set(re.split(r"[\W_]+", COUNTED.sub("", text).replace(TORCH, "")))


def is_named(world: str, text: str) -> bool:
    """Whether a text or a name means a world."""
    if world not in ENGLISH:
        return world in words(text)
    return bool(re.search(rf"^{world}(?:$|[/.])|(?:ftp-lab \w+|worlds|world) ?[./ ]{world}\b", text))


def texts_and_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and content of every text and every name in code; docstrings and comments are for people.

    A lone name such as `digits` may count the places after the point, unless it is imported or asked of `worlds`.
    """
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, f"{getattr(node, 'module', '')} {alias.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "worlds":
            yield node.lineno, f"worlds.{node.attr}"
        for field in ("id", "attr", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str) and "_" in name.strip("_"):
                yield getattr(node, "lineno", 0), name


@pytest.mark.parametrize("world", worlds.names())
def test_no_world_is_named_outside_its_own_file(world: str) -> None:
    mine = ROOT / "ftp" / "lab" / "worlds" / f"{world}.py"
    mentions = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in FILES
        if path != mine
        for line, text in texts_and_names(path.read_text(encoding="utf-8"))
        if is_named(world, text)
    ]
    assert mentions == []


@pytest.mark.parametrize("world", worlds.names())
def test_no_world_is_named_in_the_scripts_of_the_page(world: str) -> None:
    assert SCRIPTS
    for path in SCRIPTS:
        for text in re.findall(r'"[^"\n]*"|\'[^\'\n]*\'|`[^`]*`', path.read_text(encoding="utf-8")):
            assert not is_named(world, re.sub(r"\$\{[^}]*\}", "", text).strip("\"'`")), f"{path.name}: {text}"


@pytest.mark.parametrize(
    "code",
    [
        'x = "captions"',
        'x = f"ftp-lab run captions --seed {x}"',
        'open("captions/methods.json.gz")',
        "from ftp.lab.worlds import captions",
        "from ftp.lab.worlds.captions import WORLD",
        "import ftp.lab.worlds.captions",
        "x = worlds.captions",
        "def results_captions(): ...",
        "f(captions_seed=1)",
    ],
)
def test_the_guard_sees_a_name(code: str) -> None:
    assert any("captions" in words(text) for _, text in texts_and_names(code))


@pytest.mark.parametrize("text", ["folder", "folder/methods.json", "ftp-lab run folder --seed 0", "worlds.folder"])
def test_a_world_with_an_english_name_is_seen_where_it_is_meant(text: str) -> None:
    assert is_named("folder", text)
    assert not is_named("folder", "no folder is there; make a folder for it, then name the folder")


@pytest.mark.parametrize(
    "code",
    [
        '"""About digits."""',
        "x = 1  # digits",
        'def f():\n    """digits"""',
        "round(x, digits)",
        'x = "16 digits of it"',
    ],
)
def test_the_guard_lets_words_for_people_and_counts_pass(code: str) -> None:
    assert not any("digits" in words(text) for _, text in texts_and_names(code))
