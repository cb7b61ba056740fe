"""A store with broken pages, and a disk without room: told at once, with a way on, and nothing is thrown away."""

import shutil
import sqlite3
from collections import namedtuple
from pathlib import Path

import pytest
from app_views import keep
from servers import short
from streamlit.testing.v1 import AppTest

from app import supervisor as supervisors
from app.cookies import teacher_token
from app.dispatcher import Dispatcher
from app.limits import secret
from ftp.lab.record import LabError
from ftp.lab.store import DamagedError, Store

LABEL = "Move it aside, and begin with an empty one"


def break_pages(path: Path) -> None:
    """Garbage in all pages but the first, as a dying disk leaves it."""
    store = supervisors.supervisor().store
    for number in range(3):
        keep(run_id=f"00000000000000a{number}")
    store._pool._drop()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * (size - 8192))


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dispatcher, "wake", lambda self: None)


def opened(view: str, token: str = "") -> AppTest:
    page = AppTest.from_string(f"from app.page import show; show({view!r})", default_timeout=300)
    if token:
        page.query_params["token"] = token
    page.run()
    assert not page.exception
    return page


def test_broken_pages_are_told_and_moved_aside(own_store: Path) -> None:
    break_pages(own_store)
    broken = own_store.read_bytes()
    page = opened("runs")
    said = page.error[0].value.replace("\\", "")
    assert said.startswith(f"{own_store} is damaged or no store of runs (")
    next(button for button in page.button if button.label == LABEL).click().run()
    assert not page.exception
    assert not page.error
    (kept,) = own_store.parent.glob("app-damaged-*.db")
    assert kept.read_bytes() == broken
    own = supervisors.supervisor()
    assert own.store.runs() == []
    assert own.store.status(own.submit(short())) == "queued"  # and it is trained as ever


def test_in_a_class_only_the_teacher_moves_it(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_pages(own_store)
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    student = opened("runs")
    assert [error.value for error in student.error] == [
        "The runs of this server cannot be read; the teacher's page can mend that."
    ]
    assert not [button for button in student.button if button.label == LABEL]
    teacher = opened("teacher", teacher_token(secret()))
    next(button for button in teacher.button if button.label == LABEL).click().run()
    assert not teacher.exception
    assert not teacher.error
    assert list(own_store.parent.glob("app-damaged-*.db"))


def test_a_moved_store_takes_its_journal_along(tmp_path: Path) -> None:
    """What was written last may be in the file beside it; both stay together, and can be read together."""
    with Store(tmp_path / "runs.db") as store:
        store.create("0" * 16, short(), name="before")
        reader = sqlite3.connect(store.path)  # so that the journal stays
        reader.execute("SELECT * FROM runs").fetchone()
        aside = store.move_aside()
        assert aside.with_name(f"{aside.name}-wal").exists()
        assert store.runs() == []
        reader.close()
    with Store(aside) as kept:
        assert [run.name for run in kept.runs()] == ["before"]


def test_text_that_is_no_text_is_damage(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        store.create("0" * 16, short())
        with store._writing() as db:
            db.execute("UPDATE runs SET name = CAST(x'ff00ff' AS TEXT)")
        with pytest.raises(DamagedError) as error:
            store.runs()
    assert "is damaged or no store of runs (Could not decode to UTF-8" in str(error.value)


def test_a_full_disk_is_told_before_the_first_step(monkeypatch: pytest.MonkeyPatch, own_store: Path) -> None:
    """A small write may still fit into the store; the run would fail when its weights do not."""
    own, usage = supervisors.supervisor(), namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 1000, 1000))
    with pytest.raises(LabError) as error:
        own.submit(short())
    assert str(error.value) == f"the disk of {own_store} is full, so nothing can be trained; make room, then go on"
    assert own.store.runs() == []
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    page = AppTest.from_string(
        "from app import widgets\nfrom app.supervisor import supervisor\nfrom servers import short\n"
        "widgets.attempt(lambda: supervisor().submit(short()))",
        default_timeout=300,
    ).run()
    assert [error.value for error in page.error] == [
        "The disk of the store of runs is full, so nothing can be trained; make room, then go on."
    ]
