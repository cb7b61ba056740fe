"""Fixtures of the command line: a store of its own, calls in this process, and a store with a few runs."""

import shutil
from pathlib import Path

import pytest
from lab.cli import Call, caller, environment, fill


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return environment(tmp_path, monkeypatch)


@pytest.fixture
def lab(path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "runs.db"
    fill(path)
    return path


@pytest.fixture
def filled(path: Path, template: Path) -> Path:
    shutil.copy(template, path)
    return path
