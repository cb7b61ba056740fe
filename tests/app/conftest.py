"""Every test of the app has a store of its own, and leaves no process behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.supervisor import close


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "app.db"
    monkeypatch.setenv("FTP_APP_STORE", str(path))
    monkeypatch.delenv("FTP_APP_CLASS", raising=False)
    yield path
    close()
