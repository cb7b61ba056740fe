"""The builder: one source, two notebooks; a notebook that drifts from its source is found."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat import NotebookNode
from notebooks.lessons import NOTEBOOKS, ROOT, SOURCES, builder, code, number, read

SOURCE = """# %% [markdown]
# # 77 · A lesson
# See [the next](78_next.ipynb), [the map](paper_map.json) and ![it](figures/77_mini.png), or [there](https://x.org).

# %%
def my_sum(a, b):
    # region solution
    return a + b
    # stub
    # # your turn
    # raise NotImplementedError("the sum")
    # endregion


print(2)

# %% tags=["signature"]
# region solution
my_point = 1
# stub
# my_point = ...
# endregion
print(my_point)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    (tmp_path / "notebooks" / "src" / "77_mini.py").write_text(SOURCE)
    return tmp_path / "notebooks"


def test_the_learner_gets_stubs_and_the_complete_one_solutions(folder: Path) -> None:
    source = folder / "src" / "77_mini.py"
    stub, solved = builder.learner(source), builder.complete(source)
    first = 'def my_sum(a, b):\n    # your turn\n    raise NotImplementedError("the sum")\n\n\nprint(2)'
    assert [cell.source for cell in code(stub)] == [first, "my_point = ...\nprint(my_point)"]
    first = "def my_sum(a, b):\n    return a + b\n\n\nprint(2)"
    assert [cell.source for cell in code(solved)] == [first, "my_point = 1\nprint(my_point)"]
    assert [cell.id for cell in stub.cells] == [cell.id for cell in solved.cells]
    assert dict(code(solved)[1].metadata) == {"tags": ["signature"]}


GUESSES = """# %%
guess = "two"
predict("77.sum", guess, options=("one", "two"))

# %%
outcome("77.sum", my_sum(1, 1))

# %%
def later():
    return 3

# %%
my_point = 1
check("77_point", my_point)

# %%
print(later())
guess = 2
predict("77.more", guess)

# %% jupyter={"source_hidden": true} slow=1
print(later())

# %%
print(app_link("live"))
"""


def test_what_comes_after_a_prediction_waits_for_it_and_the_learner_has_none(folder: Path) -> None:
    source = folder / "src" / "77_mini.py"
    source.write_text(GUESSES)
    stub, solved = (code(make(source)) for make in (builder.learner, builder.complete))
    assert stub[0].source == 'guess = ...\npredict("77.sum", guess, options=("one", "two"))'
    assert solved[0].source == 'guess = "two"\npredict("77.sum", guess, options=("one", "two"))'
    first_lines = [cell.source.splitlines()[0] for cell in stub]
    sums, more = "# waits for 77.sum", "# waits for 77.more"
    assert first_lines == ["guess = ...", sums, "def later():", "my_point = 1", sums, more, 'print(app_link("live"))']
    assert [dict(cell.metadata) for cell in stub] == [
        {"jupyter": {"source_hidden": True}} if at in (1, 5) else {} for at in range(7)
    ]


TOLD = """# %%
outcome("77.sum", 2)

# %% [markdown]
# It is **two**.
#
# Always.
#
# ## The next thing
#
# And so on.

# %% [markdown]
# Not folded.

# %%
outcome("77.more", 3)

# %% [markdown]
# ## Explain
#
# Three.

# %%
outcome("77.most", 4)

# %% [markdown]
# ## Another thing
"""


def test_words_right_after_an_answer_are_shut_for_the_learner(folder: Path) -> None:
    source = folder / "src" / "77_mini.py"
    source.write_text(TOLD)
    shut = f"<details><summary>{builder.AFTER}</summary>\n\n{{}}\n\n</details>"
    words = [cell.source for cell in builder.learner(source).cells if cell.cell_type == "markdown"]
    assert words == [
        shut.format("It is **two**.\n\nAlways.") + "\n\n## The next thing\n\nAnd so on.",
        "Not folded.",
        "## Explain\n\n" + shut.format("Three."),
        "## Another thing",
    ]
    assert "<details>" not in "".join(cell.source for cell in builder.complete(source).cells)


def test_links_of_the_complete_one_go_one_folder_up_but_stay_among_lessons(folder: Path) -> None:
    words = builder.complete(folder / "src" / "77_mini.py").cells[0].source
    assert "[the next](78_next.ipynb)" in words
    assert "[the map](../paper_map.json)" in words
    assert "![it](../figures/77_mini.png)" in words
    assert "[there](https://x.org)" in words


def test_a_marker_without_its_partner_is_one_sentence(folder: Path) -> None:
    source = folder / "src" / "77_mini.py"
    source.write_text(SOURCE.replace("    # endregion\n", "", 1))
    with pytest.raises(SystemExit) as error:
        builder.learner(source)
    sentence = "77_mini.py: '# region' without its partners (region solution, stub, endregion)"
    assert str(error.value) == sentence


def test_a_lesson_without_questions_is_one_sentence(folder: Path) -> None:
    (folder / "recall.json").write_text("{}")
    with pytest.raises(SystemExit) as error:
        builder.learner(folder / "src" / "77_mini.py")
    sentence = "77_mini.py: recall.json has no questions of lesson 77; add three, each with its answer"
    assert str(error.value) == sentence


def test_drift_is_found(folder: Path) -> None:
    source = folder / "src" / "77_mini.py"
    assert len(list(builder.drift(source, folder))) == 2  # nothing is built yet
    builder.write(builder.learner(source), folder / "77_mini.ipynb")
    builder.write(builder.complete(source), folder / "complete" / "77_mini.ipynb")
    assert list(builder.drift(source, folder)) == []
    source.write_text(SOURCE.replace("return a + b", "return b + a"))
    command = "python data_scripts/build_notebooks.py 77"
    assert list(builder.drift(source, folder)) == [
        f"notebooks/77_mini.ipynb is not what src/77_mini.py says; run: {command}",
        f"notebooks/complete/77_mini.ipynb is not what src/77_mini.py says; run: {command}",
    ]
    source.write_text(SOURCE)
    shutil.copy(folder / "77_mini.ipynb", folder / "complete" / "78_other.ipynb")
    assert list(builder.drift(source, folder)) == ["notebooks/complete/78_other.ipynb has no source"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_no_lesson_has_drifted(source: Path) -> None:
    assert list(builder.drift(source)) == []


def test_check_says_so_on_the_command_line() -> None:
    script = ROOT / "data_scripts" / "build_notebooks.py"
    result = subprocess.run([sys.executable, script, "01", "--check"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "1 lessons are what their sources say\n")
    result = subprocess.run([sys.executable, script, "99"], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("there is no lesson 99; there are 00")


def _shown(notebook: NotebookNode) -> NotebookNode:
    """The same for somebody who does not want to guess."""
    for cell in code(notebook):
        cell.source = cell.source.replace("guess = ...", "guess = None")
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
# the kernel's client leaves sockets to the garbage collector
@pytest.mark.filterwarnings("ignore")
def test_a_learner_s_notebook_runs_to_its_end_and_says_what_is_missing(source: Path, tmp_path: Path) -> None:
    before = dict(os.environ)
    # in one kernel, as at a desk: first without an answer, then again, by somebody who does not want to guess
    waiting, notebook = builder.learner(source), _shown(builder.learner(source))
    for cell in notebook.cells:
        cell.id += "-again"
    waiting.cells += notebook.cells
    builder.execute(waiting, NOTEBOOKS)
    assert dict(os.environ) == before
    told = "".join(o.get("text", "") for cell in code(waiting)[: len(code(notebook))] for o in cell.outputs)
    assert told.count("○ your guess first: write one of ") == 1  # the later ones wait for the first
    assert not re.search("^(→|✎)", told, re.M)
    assert "○ this cell waits for your guess " in told
    printed = "".join(o.get("text", "") for cell in code(notebook) for o in cell.outputs)
    stubs = re.findall(r"^○ (\w+): not attempted yet; missing: (.+)\. Stuck\? hint\(\"(\w+)\", 1\)$", printed, re.M)
    checks = re.findall(r'^check\("(\w+)"', "\n".join(cell.source for cell in code(notebook)), re.M)
    assert [stub[0] for stub in stubs] == checks
    assert bool(checks) == (number(source) != "00")
    assert "✗" not in printed
    claims = sum(line.startswith("✓ ") for line in printed.splitlines())
    assert claims >= 4
    stored = read(NOTEBOOKS / "complete" / f"{source.stem}.ipynb")
    theirs = "".join(o.get("text", "") for cell in code(stored) for o in cell.outputs)
    assert claims == sum(line.startswith("✓ ") for line in theirs.splitlines()) - len(checks)
