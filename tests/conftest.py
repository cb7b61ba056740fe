"""Shared by all tests: one thread and a fixed seed, so that a failure can be repeated."""

import sys
from collections.abc import Iterator

import pytest
import torch

torch.set_num_threads(1)
GET_ONE = "get one with: .venv/bin/playwright install --with-deps chromium (or apt install chromium), then make test"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test first: begun last, it would keep one core busy while the others have nothing left to do."""
    items.sort(key=lambda item: item.path.name != "test_toy.py")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests that were left out for want of a browser are said in one line, with a way to have them."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum("NOT TESTED in a browser" in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(f"{count} tests were left out: there is no Chromium here; {GET_ONE}", yellow=True)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    """Streamlit's AppTest leaves its script as `__main__`, and a process started later would run that script."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
