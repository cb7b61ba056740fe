"""What must hold for every notebook, without running it."""

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from notebooks.lessons import COMPLETE, LEARNER, NOTEBOOKS, ROOT, SOURCES, code, load, number, read, text

from ftp.lab import exercises
from ftp.lab.lesson import VIEWS
from ftp.lab.predictions import WAITS

MAP = json.loads((NOTEBOOKS / "paper_map.json").read_text())
TAGS = {"signature"}
PLOTLY = "application/vnd.plotly.v1+json"
KINDS = {"Eq": "Eq. ", "Lemma": "Lemma ", "Alg": "Alg. ", "Tab": "Tab. ", "Fig": "Fig. "}
# "Eq. 14, 15", "Eq. 9-13", "Lemma 1 and 2"
NUMBERS = re.compile(r"\b(Eq|Lemma|Alg|Tab|Fig)s?\.?\s?(\d+(?:(?:, | and |-|–)\d+)*)")
LINK = re.compile(r"(?:\]\(|src=\")([^)\"\s]+)")

every = pytest.mark.parametrize("path", [*LEARNER, *COMPLETE], ids=lambda p: f"{p.parent.name}/{p.stem}")
complete = pytest.mark.parametrize("path", COMPLETE, ids=lambda p: p.stem)
learner = pytest.mark.parametrize("path", LEARNER, ids=lambda p: p.stem)
source = pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)


def cited(words: str) -> set[str]:
    """Every number of the paper that a text names."""
    found = set()
    for kind, listed in NUMBERS.findall(words):
        for part in re.split(r", | and ", listed):
            ends = [int(end) for end in re.split(r"[-–]", part)]
            found |= {f"{KINDS[kind]}{number}" for number in range(ends[0], ends[-1] + 1)}
    return found


def calls(notebook: Any, name: str) -> list[ast.Call]:
    nodes = [node for cell in code(notebook) for node in ast.walk(ast.parse(cell.source))]
    return [n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name]


def first(call: ast.Call) -> str:
    assert isinstance(call.args[0], ast.Constant)
    return str(call.args[0].value)


def test_there_are_lessons() -> None:
    assert {"01_lipschitz", "03_projection"} <= {path.stem for path in SOURCES}
    numbers = [number(path) for path in SOURCES]
    assert len(set(numbers)) == len(numbers)


@every
def test_small_and_free_of_errors_and_of_paths(path: Path) -> None:
    words = path.read_text(encoding="utf-8")
    assert len(words.encode()) < 1_000_000
    assert '"output_type": "error"' not in words
    assert "Traceback" not in words
    for place in (f"{ROOT}/", f"{Path.home()}/", "/home/", "/Users/", "/tmp/", "site-packages", "C:\\\\"):
        assert place not in words, place


@complete
def test_a_complete_notebook_is_executed_from_top_to_bottom(path: Path) -> None:
    cells = code(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        speaks = re.search(r"^\s*(print|claim|check|predict|outcome|begin|card)\(", cell.source, re.M)
        defines = re.match(r"(?s)def .*?\n    ", cell.source) and not re.search(r"^(?!def |\s|$)", cell.source, re.M)
        assert bool(cell.outputs) or not speaks or defines, cell.source
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], cell.source


@learner
def test_a_learner_s_notebook_has_neither_outputs_nor_solutions(path: Path) -> None:
    notebook = read(path)
    for cell in code(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None
    stubs = [
        c
        for c in code(notebook)
        if "NotImplementedError" in c.source or re.search(r"^my_\w+ = \.\.\.$", c.source, re.M)
    ]
    assert len(stubs) == len(calls(notebook, "check"))


@learner
def test_a_learner_s_notebook_holds_no_guess_and_waits_for_it(path: Path) -> None:
    cells = [cell.source for cell in code(read(path))]
    keys = [first(call) for call in calls(read(path), "predict")]
    assert [line for cell in cells for line in cell.splitlines() if line.startswith("guess = ")] == [
        "guess = ..."
    ] * len(keys)
    for key in keys:
        asked = next(at for at, cell in enumerate(cells) if f'predict("{key}"' in cell)
        told = next(at for at, cell in enumerate(cells) if f'outcome("{key}"' in cell)
        assert asked < told
        assert cells[told].startswith(f"# waits for {key}\n")
    waiting = [WAITS.match(cell.split("\n")[0]) for cell in cells]
    first_asked = min(at for at, cell in enumerate(cells) if "predict(" in cell)
    assert not any(waiting[: first_asked + 1])
    for at, cell in enumerate(cells[first_asked + 1 :], start=first_asked + 1):
        assert waiting[at] or re.search(r"^(def |class |check\(|progress\(|print\(app_link)", cell, re.M), cell


@every
def test_answers_and_the_code_of_figures_are_folded_away(path: Path) -> None:
    for cell in code(read(path)):
        tells = re.search(r"^(outcome|card)\(", cell.source, re.M)
        assert not tells or cell.metadata["jupyter"] == {"source_hidden": True}, cell.source


SAYS = re.compile(
    r"forgets|FTP keeps|for free|cannot break|never breaks|does not cost|goes nowhere|breaks neither", re.I
)


@learner
def test_headings_ask_and_do_not_tell(path: Path) -> None:
    """What a prediction asks for is neither in a heading nor in what the lesson says it is about."""
    words = text(read(path))
    headings = [line for line in words.splitlines() if line.startswith("#")]
    about = words.split("**Needs:**")[0]
    assert not SAYS.search("\n".join([*headings, about]))
    question = about.split("**The question of this lesson:**")[1].split("- **You will")[0]
    assert question.strip().endswith("?")


@complete
def test_the_form_of_a_lesson(path: Path) -> None:
    notebook = read(path)
    words = text(notebook)
    assert words.startswith(f"# {number(path)} · ")
    for part in (
        "**The question of this lesson:**",
        "**You will be able to**",
        "**Time:**",
        "**Needs:**",
        "**Exercises:**",
    ):
        assert part in words, part
    for part in ("## The picture", "Predict", "Explain", "Negative control", "## Where this stops being true"):
        assert part in words, part
    assert len(calls(notebook, "claim")) >= 4
    assert first(*calls(notebook, "begin")) == number(path)
    assert calls(notebook, "app_link")
    assert all(first(call) in VIEWS for call in calls(notebook, "app_link"))
    predicted = {first(call) for call in calls(notebook, "predict")}
    assert predicted == {first(call) for call in calls(notebook, "outcome")} != set()
    assert all(key.startswith(f"{number(path)}.") for key in predicted)


@complete
def test_the_signature_figure_is_one_and_is_shown_as_a_picture(path: Path) -> None:
    signed = [cell for cell in code(read(path)) if "signature" in cell.metadata.get("tags", [])]
    assert len(signed) == 1
    assert [True for output in signed[0].outputs if PLOTLY in output.get("data", {})] == [True]
    picture = NOTEBOOKS / "figures" / f"{path.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert 10_000 < picture.stat().st_size < 500_000
    assert f"](../figures/{path.stem}.png)" in text(read(path))


@complete
def test_every_figure_carries_its_card(path: Path) -> None:
    for cell in code(read(path)):
        for output in cell.outputs:
            if PLOTLY in output.get("data", {}):
                layout = output.data[PLOTLY]["layout"]
                cards = [note["text"] for note in layout["annotations"] if " · ftp " in note["text"]]
                assert len(cards) == 1, cell.source
                assert re.search(r" · \d+ threads? · torch .* · (live|replayed)$", cards[0])
                assert layout["paper_bgcolor"].startswith("#")


@complete
def test_the_exercises_of_a_lesson_are_those_of_the_registry(path: Path) -> None:
    notebook = read(path)
    checked = [first(call) for call in calls(notebook, "check")]
    registered = {name for name in exercises.names() if exercises.load(name).lesson == number(path)}
    assert sorted(checked) == sorted(registered)
    least = {"00": 0, "04": 1}.get(number(path), 2)
    assert least <= len(checked) <= 4
    sources = [cell.source for cell in code(notebook)]
    for name in checked:
        exercise = exercises.load(name)
        assert any(exercise.solution.strip() in cell for cell in sources), f"the lesson solves {name} in another way"
        assert f"`{name}`" in text(notebook)


@complete
def test_every_number_of_the_paper_exists(path: Path) -> None:
    numbers = cited(path.read_text(encoding="utf-8"))
    assert numbers
    assert numbers <= set(MAP), numbers - set(MAP)
    for one in numbers:
        assert (ROOT / MAP[one]["home"]).exists(), one


def test_the_paper_map_is_complete_and_in_words() -> None:
    assert {f"Eq. {n}" for n in range(1, 16)} | {"Lemma 1", "Lemma 2", "Alg. 1", "Alg. 2"} <= set(MAP)
    assert all(set(entry) == {"what", "home"} and len(entry["what"]) > 15 for entry in MAP.values())


def test_numbers_are_found_in_all_their_forms() -> None:
    words = "(Eq. 14, 15), Eq. 9-11 and Lemma 1 and 2; Alg. 2, Tab. 3 and Fig. 5."
    assert cited(words) == {
        *("Eq. 14", "Eq. 15", "Eq. 9", "Eq. 10", "Eq. 11"),
        *("Lemma 1", "Lemma 2", "Alg. 2", "Tab. 3", "Fig. 5"),
    }


@every
def test_every_link_resolves(path: Path) -> None:
    for target in LINK.findall(text(read(path))):
        if not target.startswith(("http:", "https:", "#")):
            assert (path.parent / target.split("#")[0]).exists(), target


@source
def test_cells_are_short_and_tags_are_known(path: Path) -> None:
    notebook = read(NOTEBOOKS / "complete" / f"{path.stem}.ipynb")
    for cell in notebook.cells:
        assert set(cell.metadata.get("tags", [])) <= TAGS
        if cell.cell_type == "code":
            lines = [line for line in cell.source.splitlines() if line.strip() and not WAITS.match(line)]
            assert len(lines) <= 10, f"{len(lines)} lines:\n{cell.source}"
            assert max(map(len, lines)) <= 120


RECALL = json.loads((NOTEBOOKS / "recall.json").read_text(encoding="utf-8"))


@every
def test_three_questions_end_a_lesson_and_come_again_two_lessons_on(path: Path) -> None:
    order = [number(one) for one in SOURCES]
    at = order.index(number(path))
    last = read(path).cells[-1].source
    questions = re.findall(r"<details><summary>(.+?)</summary>(.+?)</details>", last)
    asked = [order[at], *([order[at - 2]] if at >= 2 else [])]
    assert len(questions) == 3 * len(asked)
    bare = [re.sub("</?(em|code)>", "", question) for question, _ in questions]
    assert bare == [re.sub("[*`]", "", question) for lesson in asked for question, _ in RECALL[lesson]]
    assert "GLOSSARY.md" in last
    assert "GLOSSARY.md" in read(path).cells[0].source


def test_every_lesson_has_three_questions_to_recall() -> None:
    assert list(RECALL) == [number(path) for path in SOURCES]
    assert all(len(pairs) == 3 and all(question.endswith("?") for question, _ in pairs) for pairs in RECALL.values())


@source
def test_a_lesson_has_no_plumbing_for_tools(path: Path) -> None:
    words = path.read_text(encoding="utf-8")
    assert not re.search(r"# (noqa|fmt:|type: ignore)|import _|from \S+\._", words)


# claims about recorded runs that a lesson checks live nevertheless
CHECKED_LIVE = {
    "after a fifth of a run FTP already reads more elsewhere",
    "the weights of fine-tuning have walked more than half as far again",
}


def test_a_claim_about_recorded_runs_says_so() -> None:
    rows = json.loads((NOTEBOOKS / "margins" / "digits.json").read_text(encoding="utf-8"))["claims"]
    for path in COMPLETE:
        about_runs = {row["claim"] for row in rows if row["lesson"] == number(path)} - CHECKED_LIVE
        for call in calls(read(path), "claim"):
            if isinstance(call.args[0], ast.Constant) and first(call) in about_runs:
                assert [(word.arg, ast.unparse(word.value)) for word in call.keywords] == [("live", "TRAIN")], first(
                    call
                )
        said = "".join(output.get("text", "") for cell in code(read(path)) for output in cell.outputs)
        for sentence in about_runs:
            assert f"✓ {sentence} · computed from recorded runs\n" in said


PAGES = ("notebooks/README.md", "notebooks/GLOSSARY.md", "docs/authors.md", "docs/full_scale.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_about_the_course_resolves(page: str) -> None:
    for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        assert target.startswith(("http", "#")) or ((ROOT / page).parent / target.split("#")[0]).exists(), target


def test_the_contents_page_adds_up_the_minutes() -> None:
    page = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    minutes = {name: int(count) for name, count in re.findall(r"^\| (\w+) \| .* \| (\d+) \| \[", page, re.M)}
    assert list(minutes) == [number(path) for path in SOURCES]
    hours = re.search(r"\*\*It takes\*\* about ([\d.]+) hours in all", page)
    assert hours
    assert abs(sum(minutes.values()) / 60 - float(hours[1])) < 0.25
    for path in SOURCES:
        said = re.search(r"\*\*Time:\*\* (\d+) minutes", path.read_text(encoding="utf-8"))
        assert said
        assert int(said[1]) == minutes[number(path)]


def test_the_contents_page_names_every_lesson() -> None:
    page = (NOTEBOOKS / "README.md").read_text()
    for path in LEARNER:
        assert f"]({path.name})" in page, path.name
        assert f"](complete/{path.name})" in page, path.name
    for target in LINK.findall(page):
        assert target.startswith(("http", "#")) or (NOTEBOOKS / target.split("#")[0]).exists(), target


def test_nbval_leaves_alone_what_differs_from_machine_to_machine() -> None:
    conftest = load(NOTEBOOKS / "conftest.py")

    class Collector:
        skip_compare: tuple[str, ...] = ("metadata",)
        compare_outputs = None
        path = NOTEBOOKS / "complete" / "04_later.ipynb"

    collector = Collector()
    conftest.pytest_collectstart(collector)
    assert set(collector.skip_compare) == {"metadata", "text/html", "application/javascript", PLOTLY, "stderr"}
    assert collector.compare_outputs is False
    collector.path = NOTEBOOKS / "complete" / "03_projection.ipynb"
    conftest.pytest_collectstart(collector)
    assert collector.compare_outputs is True


def test_nbval_is_off_in_the_ordinary_tests() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    assert "-p no:nbval" in options
