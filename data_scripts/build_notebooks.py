"""Makes the notebooks from their sources: `python data_scripts/build_notebooks.py [01 03 ...] [--check]`.

One source per lesson, `notebooks/src/NN_name.py` (jupytext, py:percent), makes two notebooks: `notebooks/` for the
learner, with stubs and `guess = ...`, and `notebooks/complete/` with the solutions, executed. `--check` makes nothing
and fails where a notebook is not what its source says. The cell with the tag "signature" also becomes
`notebooks/figures/NN_name.png`.
"""

# mypy: allow-untyped-calls

import argparse
import ast
import hashlib
import html
import json
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jupytext  # type: ignore[import-untyped]
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
PLOTLY = "application/vnd.plotly.v1+json"
CELL_SECONDS = 600  # of a busy machine; a kernel that died is noticed at once
BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
# what is between the markers is the solution; below `# stub`, as comments, what the learner finds instead
REGION = re.compile(
    r"^(?P<indent> *)# region solution\n(?P<solution>.*?)^ *# stub\n(?P<stub>.*?)^ *# endregion\n?", re.M | re.S
)
GUESS = re.compile(r"^guess = .+$", re.M)
MARKER = re.compile(r"^ *# (region|endregion|stub)\b", re.M)
KEPT = ("tags", "jupyter")  # of the metadata of a cell
READY = {"check", "app_link", "progress"}  # what never waits for a guess
AFTER = "Open this when you have guessed and seen the answer"
FOLDED = {"card", "outcome"}  # a figure, or an answer: JupyterLab shows the code at a click, the output at once
LINK = re.compile(r"(\]\(|src=\")(?!https?:|#|/)([^)\"]+)")


def sources(wanted: list[str], folder: Path = NOTEBOOKS) -> list[Path]:
    """The sources of the lessons with these numbers; of all lessons if none is named."""
    found = sorted((folder / "src").glob("[0-9][0-9]*_*.py"))
    numbers = [number(path) for path in found]
    for name in wanted:
        if name not in numbers:
            sys.exit(f"there is no lesson {name}; there are {', '.join(numbers)}")
    return [path for path in found if not wanted or number(path) in wanted]


def number(path: Path) -> str:
    """The number of a lesson, from the name of its file: 04_learning_the_leash has 04, 04b_moving_the_leash 04b."""
    return path.name.partition("_")[0]


def learner(source: Path) -> NotebookNode:
    """The notebook with stubs and without guesses, without outputs."""
    notebook = _notebook(source, lambda match: textwrap.indent(_uncomment(match["stub"]), match["indent"]))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = GUESS.sub("guess = ...", cell.source)
    _fold_answers(notebook)
    return notebook


def complete(source: Path) -> NotebookNode:
    """The notebook with solutions, not yet executed. It lies one folder deeper, so its links go one up."""
    notebook = _notebook(source, lambda match: match["solution"])
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda link: link[1] + _one_up(link[2]), cell.source)
    return notebook


def _one_up(target: str) -> str:
    return target if target.endswith(".ipynb") and "/" not in target else f"../{target}"


def _notebook(source: Path, region: Callable[[re.Match[str]], str]) -> NotebookNode:
    notebook: NotebookNode = jupytext.read(source, fmt="py:percent")
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    ids: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.id = _identity(cell.source, ids)  # of the source: the same cell has the same id in both notebooks
            cell.source = REGION.sub(region, cell.source + "\n").rstrip("\n")
            if left := MARKER.search(cell.source):
                sys.exit(f"{source.name}: {left[0].strip()!r} without its partners (region solution, stub, endregion)")
        else:
            cell.id = _identity(cell.source, ids)
        cell.metadata = NotebookNode({name: cell.metadata[name] for name in KEPT if name in cell.metadata})
        if cell.cell_type == "code" and _calls(cell).keys() & FOLDED:
            cell.metadata["jupyter"] = NotebookNode(source_hidden=True)
    _wait_for_guesses(notebook)
    if questions := _recall(source):
        notebook.cells.append(nbformat.v4.new_markdown_cell(questions, id=_identity(questions, ids)))
    return notebook


def _recall(source: Path) -> str:
    """The last cell of a lesson: its three questions, and those of two lessons before, from recall.json."""
    path = source.parent.parent / "recall.json"
    if not path.exists():
        return ""
    asked = json.loads(path.read_text(encoding="utf-8"))
    order = [number(one) for one in sources([], path.parent)]
    at = order.index(number(source))
    if order[at] not in asked:
        sys.exit(f"{source.name}: {path.name} has no questions of lesson {order[at]}; add three, each with its answer")
    again = " They are asked again two lessons on." if at + 2 < len(order) else ""
    lines = ["## Recall", "", f"Answer each aloud, then open it.{again}"]
    for title, lesson in ((None, order[at]), ("From", order[at - 2] if at >= 2 else "")):
        if lesson:
            lines += ["", f"**From lesson {lesson}, two lessons ago**"] if title else []
            folded = "<details><summary>{}</summary>{}</details>"
            lines += ["", *(folded.format(*map(_html, pair)) for pair in asked[lesson])]
    lines += ["", "[Contents](README.md) · [Glossary](GLOSSARY.md) · `ftp-lab progress` says how far you are."]
    return "\n".join(lines)


def _html(words: str) -> str:
    """Inside a tag, Markdown is not read: `code` and *stress* as tags."""
    words = html.escape(words, quote=False)
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", re.sub(r"`(.+?)`", r"<code>\1</code>", words))


def _wait_for_guesses(notebook: NotebookNode) -> None:
    """Mark what comes after a prediction, down to the next one: it runs only when that was guessed.

    Exercises do not wait, nor cells that only define functions, nor the address at the end.
    """
    key = None
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        calls = _calls(cell)
        defines = all(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.parse(cell.source).body)
        if key is not None and not defines and not calls.keys() & READY:
            cell.source = f"# waits for {key}\n{cell.source}"
        if "predict" in calls:
            key = ast.literal_eval(calls["predict"].args[0])


def _fold_answers(notebook: NotebookNode) -> None:
    """Shut the words that come right after an answer, down to the next heading: text cannot wait."""
    told = False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            told = told or "outcome" in _calls(cell)
        elif told:
            told = False
            head, words, rest = re.fullmatch(r"(## Explain\n+)?(.*?)(\n*^## .*)?", cell.source, re.M | re.S).groups("")
            if words.strip():
                cell.source = f"{head}<details><summary>{AFTER}</summary>\n\n{words.strip()}\n\n</details>{rest}"


def _calls(cell: NotebookNode) -> dict[str, ast.Call]:
    """The functions that a cell calls by their name."""
    nodes = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    return {node.func.id: node for node in nodes if isinstance(node.func, ast.Name)}


def _identity(text: str, taken: set[str]) -> str:
    number = 0
    while (name := hashlib.sha256(f"{number}{text}".encode()).hexdigest()[:8]) in taken:
        number += 1
    taken.add(name)
    return name


def _uncomment(lines: str) -> str:
    return re.sub(r"^#( |$)", "", textwrap.dedent(lines), flags=re.M)


def execute(notebook: NotebookNode, folder: Path = NOTEBOOKS) -> NotebookNode:
    """Run all cells, with one thread and a file of predictions that is thrown away."""
    with tempfile.TemporaryDirectory() as scratch:
        given = {"OMP_NUM_THREADS": "1", "FTP_SCALE": "quick", "FTP_PREDICTIONS": f"{scratch}/predictions.json"}
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            client = NotebookClient(
                notebook,
                timeout=CELL_SECONDS,
                kernel_name="python3",
                record_timing=False,
                coalesce_streams=True,
                resources={"metadata": {"path": str(folder)}},
            )
            client.execute()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
    notebook.metadata.language_info = NotebookNode(name="python")  # else it holds this machine's Python
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if PLOTLY in data:
                data.pop("text/html", None)
    return notebook


def picture(notebook: NotebookNode, path: Path) -> str:
    """Draw the signature figure as a PNG, if there is a browser. Returns a word on what happened."""
    figures = [
        output.data[PLOTLY]
        for cell in notebook.cells
        if "signature" in cell.metadata.get("tags", [])
        for output in cell.outputs
        if PLOTLY in output.get("data", {})
    ]
    browser = next((name for name in BROWSERS if Path(name).exists()), None)
    if len(figures) != 1:
        return f"{len(figures)} signature figures where one is expected"
    if browser is None:
        return "no browser, so its picture is as it was"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_png(figures[0], browser))
    return f"picture {path.name}"


def _png(figure: dict[str, Any], browser: str) -> bytes:
    from playwright.sync_api import sync_playwright
    from plotly.offline import get_plotlyjs

    height = int(figure["layout"].get("height", 420))
    page_text = f"<body style='margin:0'><div id='f' style='width:860px;height:{height}px'></div></body>"
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox", "--enable-unsafe-swiftshader"])
        page = chromium.new_page(viewport={"width": 860, "height": height}, device_scale_factor=1.5)
        page.set_content(page_text)
        page.add_script_tag(content=get_plotlyjs())
        figure = {"data": figure["data"], "layout": {**figure["layout"], "autosize": True}}
        page.evaluate(f"Plotly.newPlot('f', {json.dumps({**figure, 'config': {'displayModeBar': False}})})")
        page.wait_for_timeout(500)
        image: bytes = page.screenshot()
        chromium.close()
    return image


def drift(source: Path, folder: Path = NOTEBOOKS) -> Iterator[str]:
    """One sentence for each notebook that is not what its source says. Outputs are not looked at."""
    command = f"python data_scripts/build_notebooks.py {number(source)}"
    for make, place in ((learner, folder), (complete, folder / "complete")):
        path = place / f"{source.stem}.ipynb"
        if not path.exists() or _cells(nbformat.read(path, 4)) != _cells(make(source)):
            yield f"{path.relative_to(folder.parent)} is not what src/{source.name} says; run: {command}"
    for path in (folder / "complete").glob("*.ipynb"):
        if not (folder / "src" / f"{path.stem}.py").exists():
            yield f"{path.relative_to(folder.parent)} has no source"


def _cells(notebook: NotebookNode) -> list[tuple[Any, ...]]:
    return [(cell.id, cell.cell_type, cell.source, dict(cell.metadata)) for cell in notebook.cells]


def write(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def build(source: Path, folder: Path = NOTEBOOKS) -> str:
    """Make both notebooks and the picture of one lesson."""
    write(learner(source), folder / f"{source.stem}.ipynb")
    executed = execute(complete(source), folder)
    write(executed, folder / "complete" / f"{source.stem}.ipynb")
    return f"{source.stem}: {picture(executed, folder / 'figures' / f'{source.stem}.png')}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the notebooks from notebooks/src.")
    parser.add_argument("lessons", nargs="*", help="numbers such as 01; all if none is given")
    parser.add_argument("--check", action="store_true", help="make nothing; fail where a notebook has drifted")
    options = parser.parse_args(argv)
    chosen = sources(options.lessons)
    if options.check:
        problems = sorted({problem for source in chosen for problem in drift(source)})
        print("\n".join(problems) or f"{len(chosen)} lessons are what their sources say")
        return 1 if problems else 0
    for source in chosen:
        try:
            print(build(source), flush=True)
        except CellExecutionError as error:
            print(f"{source.stem} stopped in a cell:\n{error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
