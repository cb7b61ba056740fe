"""The store's file: full, read-only, damaged, foreign, older, newer, removed; each time a sentence, no loss."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab.stores import RUN, SMALL, outputs, point, sound, told, writer

from ftp.lab.record import EvalEvent, Settings, StepEvent
from ftp.lab.store import Store, database, write_atomic


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "runs.db") as opened:
        opened.create(RUN, Settings(), name="first")
        yield opened


def alone(command: str) -> tuple[str, ...]:
    """A command line that mounts something for one process only; nothing is left to undo."""
    prefix = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")
    return (*prefix, "sh", "-ec", f'{command}; exec "$@"', "sh")


def can_mount(folder: Path) -> bool:
    if not shutil.which("unshare"):
        return False
    return subprocess.run([*alone(f"mount -t tmpfs tmpfs {folder}"), "true"], capture_output=True).returncode == 0


def test_a_full_database(store: Store) -> None:
    store.append(RUN, [point(1), SMALL])
    with store._reading() as db:
        db.execute("PRAGMA max_page_count=1")  # SQLite takes the present size instead
    sentence = f"the disk of {store.path} is full; what was stored before is kept: make room, then go on"
    assert told(store.append, RUN, [point(step) for step in range(2, 500)]) == sentence
    assert (store.load(RUN).points, store.load(RUN).evals) == ((point(1),), (SMALL,))
    with store._reading() as db:
        db.execute("PRAGMA max_page_count=100000")
    store.append(RUN, point(2))
    assert len(store.load(RUN).points) == 2


@pytest.mark.parametrize("how", ["limit", "tmpfs"])
def test_a_full_disk(tmp_path: Path, how: str) -> None:
    before: tuple[str, ...] = ()
    if how == "limit":
        pytest.importorskip("resource", reason="this system has no file size limit")
    elif can_mount(tmp_path):
        before = alone(f"mount -t tmpfs -o size=1m tmpfs {tmp_path}")
    else:
        pytest.skip("a small disk cannot be mounted here (that takes root, or unshare --user)")
    path = tmp_path / "runs.db"
    found = json.loads(outputs(writer("fill", path, how, before=before))[0])
    full = "the disk of {} is full; what was stored before is kept: make room, then go on"
    fault = (
        "the disk of {} does not take or give data (disk I/O error); what was stored before is kept: "
        "see whether it is full, over its quota or gone, then go on"
    )
    weights = tmp_path / "runs-weights" / f"{RUN}.safetensors"
    rows = (fault if how == "limit" else full).format(path)
    assert found["told"] == [rows, full.format(weights), rows]
    assert found["points"] == found["kept"] > 5
    assert found["later"] == found["kept"] + 1
    assert (found["evals"], found["old"], found["files"]) == (1, "old", [weights.name])
    assert found["error"] == rows


@pytest.mark.parametrize("what", ["a new file", "a store in use", "a closed store"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    path = folder / "runs.db"
    store = None
    if what != "a new file":
        store = Store(path)
        store.create(RUN, Settings())
        if what == "a closed store":
            store.close()
    before: tuple[str, ...] = ()
    if not hasattr(os, "geteuid"):
        pytest.skip("Windows has no read-only folders")
    if os.geteuid() != 0:
        folder.chmod(0o555)
        for file in folder.iterdir():
            file.chmod(0o444)
    elif can_mount(folder):  # root writes everywhere, but not on a read-only disk
        before = alone(f"mount --bind {folder} {folder}; mount -o remount,ro,bind {folder}")
    else:
        pytest.skip("root writes everywhere, and a read-only disk cannot be mounted here")
    content = path.exists() and path.read_bytes()
    try:
        said = outputs(writer("use", path, before=before))[0]
        assert said.startswith(f"{path} cannot be written (")
        assert said.endswith("); make it and its folder writable, or set FTP_STORE to another file")
        assert (path.exists() and path.read_bytes()) == content
    finally:
        folder.chmod(0o755)
        if store:
            store.close()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x", "too short"),
        (b"not a database, but my diary\n" * 500, "file is not a database"),
        (b"SQLite format 3\0" + b"\xff" * 4096, "file is not a database"),
    ],
)
def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(content)
    assert told(Store, path) == (
        f"{path} is damaged or no store of runs ({reason}), left as it is; "
        "move it elsewhere, or set FTP_STORE to another file"
    )
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["runs.db"]


def test_a_damaged_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(path) as store:
        store.create(RUN, Settings())
        store.append(RUN, [point(step) for step in range(1, 200)])
    content = bytearray(path.read_bytes())
    content[4096 * 3 :] = b"\xa5" * (len(content) - 4096 * 3)
    path.write_bytes(content)
    with Store(path) as store:
        said = told(store.load, RUN)
    assert said == (
        f"{path} is damaged or no store of runs (database disk image is malformed), left as it is; "
        "move it elsewhere, or set FTP_STORE to another file"
    )
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bookmarks (x)")
    db.close()
    content = path.read_bytes()
    assert told(Store, path) == (
        f"{path} is the database of another program, left as it is; set FTP_STORE to another file"
    )
    assert path.read_bytes() == content


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    Store(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version={database.VERSION + 1}")
    db.close()
    content = path.read_bytes()
    assert told(Store, path) == (
        f"{path} has version 4 and this ftp-kit knows versions up to 3, so it was left as it is; "
        "update ftp-kit, or set FTP_STORE to another file"
    )
    assert path.read_bytes() == content


VERSION_1 = """
PRAGMA application_id=1179930657;
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY, settings_json TEXT NOT NULL, settings_hash TEXT NOT NULL, code_version TEXT NOT NULL,
    status TEXT NOT NULL, created REAL NOT NULL, started REAL, ended REAL, heartbeat REAL,
    error TEXT NOT NULL DEFAULT '', layers_json TEXT NOT NULL DEFAULT '[]',
    provenance_json TEXT NOT NULL DEFAULT '{}', result_json TEXT);
CREATE TABLE points (
    run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step INTEGER NOT NULL, wall REAL NOT NULL,
    payload TEXT NOT NULL, PRIMARY KEY (run_id, step));
CREATE TABLE evaluations (
    run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step INTEGER NOT NULL, final INTEGER NOT NULL,
    wall REAL NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (run_id, step, final));
INSERT INTO runs (run_id, settings_json, settings_hash, code_version, status, created)
    VALUES ('0000000000000000', '{"world":"digits","method":"ftp","k":0.5}', 'x', 'y', 'stopped', 5.0);
INSERT INTO points VALUES ('0000000000000000', 7, 6.0,
    '{"step":7,"loss":null,"lr":0.1,"gamma":[],"distance":[],"boundary":[],"seconds":0.5}');
INSERT INTO evaluations VALUES ('0000000000000000', 7, 0, 6.0,
    '{"step":7,"accuracy":{"id":9.5},"corruptions":{},"ece":{},"lipschitz":{},"counts":{},"final":false}');
PRAGMA user_version=1;
"""


def old_store(path: Path) -> None:
    db = sqlite3.connect(path)
    db.executescript(VERSION_1)
    db.close()


def test_an_older_store_is_brought_up(tmp_path: Path) -> None:
    old_store(tmp_path / "runs.db")
    with Store(tmp_path / "runs.db") as store, Store(tmp_path / "new.db") as new:
        record = store.load(RUN)
        assert (record.settings.options["k"], record.status, record.created) == (0.5, "stopped", 5.0)
        assert (record.points[0].step, record.points[0].seconds) == (7, 0.5)
        assert record.evals == (EvalEvent(7, {"accuracy": {"id": 9.5}}),)
        assert (record.measures.main.axis, dict(record.measures.roles)) == ("accuracy (%)", {"id": "home"})
        store.rename(RUN, "old")
        assert store.claim(RUN)
        store.append(RUN, StepEvent(8, 1.0, 0.1, (), (), ()))
        question = "SELECT sql FROM sqlite_master UNION ALL SELECT user_version FROM pragma_user_version"
        with store._reading() as db, new._reading() as fresh:
            assert list(map(tuple, db.execute("SELECT metric, role, value FROM evals"))) == [("accuracy", "home", 9.5)]
            old, made = ({"".join(str(row[0]).split()) for row in d.execute(question)} for d in (db, fresh))
            assert old == made
    assert sound(tmp_path / "runs.db")


def test_an_upgrade_that_fails_changes_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "runs.db"
    old_store(path)
    monkeypatch.setattr(database, "STEPS", (*database.STEPS, ("CREATE TABLE new (x)", "no SQL")))
    monkeypatch.setattr(database, "VERSION", len(database.STEPS))
    with pytest.raises(sqlite3.OperationalError):  # a fault in the program: no sentence hides it
        Store(path)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert "name" not in [row[1] for row in db.execute("PRAGMA table_info(runs)")]
    db.close()


@pytest.mark.skipif(os.name != "posix", reason="SQLite has this way of locking on POSIX only")
def test_a_disk_that_cannot_share_memory(tmp_path: Path, monkeypatch: Any) -> None:
    path, connect = tmp_path / "runs.db", sqlite3.connect
    with Store(path) as store:  # made with WAL, then carried to such a disk
        store.create(RUN, Settings())
    # as on a network disk: with dot-files as locks SQLite has no shared memory
    monkeypatch.setattr(sqlite3, "connect", lambda p, **given: connect(f"file:{p}?vfs=unix-dotfile", uri=True, **given))
    for number, file in enumerate((path, tmp_path / "new.db")):
        with Store(file) as store:
            assert store.create(RUN, Settings()) is (number == 1)
            store.append(RUN, point(1))
            with store._reading() as db:
                asked = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
            assert asked == ["delete", 2]
            with Store(file) as second:  # and the lock is not kept
                second.append(RUN, point(2))
            assert len(store.load(RUN).points) == 2


def test_a_store_that_was_removed_is_not_written_into_the_void(store: Store) -> None:
    for file in store.path.parent.glob("runs.db*"):
        file.unlink()
    assert told(store.append, RUN, point(1)).startswith(f"there is no run {RUN}")
    with Store(store.path) as other:
        other.create(RUN, Settings())
    store.append(RUN, point(1))
    with Store(store.path) as other:
        assert len(other.load(RUN).points) == 1


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    assert told(Store, tmp_path) == f"{tmp_path} is a folder; name a file in it, such as {tmp_path / 'runs.db'}"
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "runs.db"
    assert told(Store, path).startswith(f"{path} cannot be written (")


def test_write_atomic(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "a" / "b.bin"
    write_atomic(path, b"old")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write_atomic(path, b"new")
    assert (path.read_bytes(), len(synced)) == (b"new", 2 if os.name == "posix" else 1)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert told(write_atomic, path, b"x") == (
        f"the disk of {path} is full; what was stored before is kept: make room, then go on"
    )
    assert (path.read_bytes(), os.listdir(path.parent)) == (b"new", ["b.bin"])
