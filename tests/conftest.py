"""Shared by all tests: one thread and a fixed seed, so that a failure can be repeated."""

import sys
from collections.abc import Iterator

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    """Streamlit's AppTest leaves its script as `__main__`, and a process started later would run that script."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
