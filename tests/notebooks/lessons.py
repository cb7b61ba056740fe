"""What the tests of the notebooks share: the builder, and the notebooks as they lie in the repository."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"


def load(path: Path) -> ModuleType:
    """A module that belongs to no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


builder = load(ROOT / "data_scripts" / "build_notebooks.py")
SOURCES: list[Path] = builder.sources([])
number = builder.number
LEARNER = [NOTEBOOKS / f"{source.stem}.ipynb" for source in SOURCES]
COMPLETE = [NOTEBOOKS / "complete" / path.name for path in LEARNER]


def read(path: Path) -> Any:
    return nbformat.read(path, 4)  # type: ignore[no-untyped-call]


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text(notebook: Any) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
