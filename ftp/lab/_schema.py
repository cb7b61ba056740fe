"""The file of the store: where it is, its tables and versions, how threads share it, what is said when that fails."""

import contextlib
import errno
import json
import os
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ftp.lab.record import LabError

BUSY_SECONDS = 5.0  # how long a writer waits for another one
APPLICATION = 0x46545021  # "FTP!" in the file's header: no other program's database is taken for a store

# Entry n leads from version n to n + 1, so a new file walks the same way as an old one.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        f"PRAGMA application_id={APPLICATION}",
        """CREATE TABLE runs (
            run_id TEXT PRIMARY KEY, settings_json TEXT NOT NULL, settings_hash TEXT NOT NULL,
            code_version TEXT NOT NULL, status TEXT NOT NULL, created REAL NOT NULL, started REAL, ended REAL,
            heartbeat REAL, error TEXT NOT NULL DEFAULT '', layers_json TEXT NOT NULL DEFAULT '[]',
            provenance_json TEXT NOT NULL DEFAULT '{}', result_json TEXT)""",
        """CREATE TABLE points (
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step INTEGER NOT NULL, wall REAL NOT NULL,
            payload TEXT NOT NULL, PRIMARY KEY (run_id, step))""",
        """CREATE TABLE evaluations (
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step INTEGER NOT NULL, final INTEGER NOT NULL,
            wall REAL NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (run_id, step, final))""",
    ),
    (
        "ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN deleted REAL",
        "ALTER TABLE runs ADD COLUMN owner TEXT",  # the process that claimed it last
        # a view: one row for each number, without keeping any number twice
        """CREATE VIEW evals (run_id, step, final, kind, severity, value, n) AS
            SELECT e.run_id, e.step, e.final, CASE WHEN a.key IN ('id', 'val') THEN a.key ELSE 'ood:' || a.key END,
                NULL, a.value, (SELECT c.value FROM json_each(e.payload, '$.counts') c WHERE c.key = a.key)
            FROM evaluations e, json_each(e.payload, '$.accuracy') a
            UNION ALL SELECT e.run_id, e.step, e.final, 'corruption:' || k.key, s.key + 1, s.value, NULL
            FROM evaluations e, json_each(e.payload, '$.corruptions') k, json_each(k.value) s
            UNION ALL SELECT e.run_id, e.step, e.final, 'ece:' || c.key, NULL, c.value, NULL
            FROM evaluations e, json_each(e.payload, '$.ece') c""",
    ),
)
VERSION = len(STEPS)
OTHER = "set FTP_STORE to another file"
DAMAGED = f"{{path}} is damaged or no store of runs ({{error}}), left as it is; move it elsewhere, or {OTHER}"


def default_path() -> Path:
    """The file named by $FTP_STORE, or runs.db in the person's own data folder.

    >>> default_path().suffix
    '.db'
    """
    if given := os.environ.get("FTP_STORE"):
        return Path(given).expanduser()
    home = Path.home()
    folders = {
        "darwin": home / "Library" / "Application Support",
        "win32": Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"),
    }
    return folders.get(sys.platform, home / ".local" / "share") / "ftp-kit" / "runs.db"


def connect(path: Path) -> sqlite3.Connection:
    """An open connection to a file of the present version; the file is made, or brought up to it, if need be."""
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        db.row_factory = sqlite3.Row
        db.create_function("casefold", 1, lambda text: str(text).casefold(), deterministic=True)
        version = _version(db, path)
        # NORMAL loses no commit when a process dies; without WAL a power cut could break the file, hence FULL
        db.execute(f"PRAGMA synchronous={'NORMAL' if _set_wal(db) else 'FULL'}")
        db.execute("PRAGMA foreign_keys=ON")
        if version < VERSION:
            _upgrade(db)
    except BaseException:
        db.close()
        raise
    return db


def _version(db: sqlite3.Connection, path: Path) -> int:
    """The file's version, 0 if it is empty. Nothing is written, unless a disk forbids even to read otherwise."""
    if 0 < path.stat().st_size < 512:  # SQLite would take it for empty
        raise LabError(DAMAGED.format(path=path, error="too short"))
    try:
        version, owner, tables = _header(db)
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_CANTOPEN:
            raise
        try:  # a WAL file on a disk that cannot share memory opens for one program alone, which can turn WAL off
            for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=DELETE", "locking_mode=NORMAL"):
                db.execute(f"PRAGMA {pragma}").fetchone()
        except sqlite3.OperationalError:
            raise error from None
        version, owner, tables = _header(db)
    if (version or owner or tables) and owner != APPLICATION:
        raise LabError(f"{path} is the database of another program, left as it is; {OTHER}")
    if version > VERSION:
        raise LabError(
            f"{path} has version {version} and this ftp-kit knows versions up to {VERSION}, so it was left as it is; "
            f"update ftp-kit, or {OTHER}"
        )
    return int(version)


def _header(db: sqlite3.Connection) -> list[int]:
    """Version, program and number of tables, in one go: another process may be making the file just now."""
    db.execute("BEGIN")
    try:
        questions = ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
        return [db.execute(question).fetchone()[0] for question in questions]
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _set_wal(db: sqlite3.Connection) -> bool:
    """Turn WAL on; False where the file system cannot (network disks), which leaves it at DELETE."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return bool(db.execute("PRAGMA journal_mode=WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:  # a change of the mode does not wait for others by itself
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _upgrade(db: sqlite3.Connection) -> None:
    """All steps or none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]  # again: another process may have been quicker
        for number in range(version, VERSION):
            for statement in (*STEPS[number], f"PRAGMA user_version={number + 1}"):
                db.execute(statement)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # the upper bits hold details


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what can happen to a file into one sentence; errors in the code itself pass.

    >>> with told(Path("runs.db")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    ftp.lab.record.LabError: the disk of runs.db is full; what was stored before is kept: make room, then go on
    """
    try:
        yield
    except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
        sentence = _sentence(path, error)
        if sentence is None:
            raise
        raise LabError(sentence) from error


def _sentence(path: Path, error: Exception) -> str | None:
    code = _code(error) if isinstance(error, sqlite3.Error) else 0
    number = error.errno if isinstance(error, OSError) else 0
    reason = error.strerror if isinstance(error, OSError) else error
    if code == sqlite3.SQLITE_FULL or number in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", -1)):
        return f"the disk of {path} is full; what was stored before is kept: make room, then go on"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) or isinstance(error, json.JSONDecodeError):
        return DAMAGED.format(path=path, error=error)
    if path.is_dir():
        return f"{path} is a folder; name a file in it, such as {path / 'runs.db'}"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM) or number:
        return f"{path} cannot be written ({reason}); make it and its folder writable, or {OTHER}"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return f"{path} was held by another program for {BUSY_SECONDS:g} s ({error}); close that one, or try again"
    if code == sqlite3.SQLITE_IOERR:
        return (
            f"the disk of {path} does not take or give data ({error}); what was stored before is kept: "
            "see whether it is full, over its quota or gone, then go on"
        )
    return None


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: a reader, also after a crash, finds the old content or the new.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder) / "new" / "a.bin", b"abc")
    ...     (Path(folder) / "new" / "a.bin").read_bytes()
    b'abc'
    """
    with told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        with contextlib.suppress(OSError):  # the new name lies in the folder; not every system lets one sync that
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


class Pool:
    """Connections to one file, each used by one thread at a time; none is opened while an idle one will do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._closed = False
        self._idle: list[tuple[tuple[int, ...], sqlite3.Connection]] = []
        self._inherited: list[sqlite3.Connection] = []
        with told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self.transaction():
            pass  # a file that cannot be used is told now

    def close(self) -> None:
        """Close the file; a thread that is still at work closes its connection when it is through."""
        self._closed = True
        self._drop()

    def _identity(self) -> tuple[int, ...]:
        """Process and file: after a fork, or when the file was removed, an open connection is of no use."""
        with contextlib.suppress(OSError):
            found = self.path.stat()
            return os.getpid(), found.st_dev, found.st_ino
        return (os.getpid(),)

    def _take(self) -> tuple[tuple[int, ...], sqlite3.Connection]:
        with contextlib.suppress(IndexError):
            opened, db = self._idle.pop()
            if opened == self._identity():
                return opened, db
            self._idle.append((opened, db))
            self._drop()
        db = connect(self.path)
        return self._identity(), db

    def _drop(self) -> None:
        with contextlib.suppress(IndexError):  # no look before: two threads may both see the last one
            while True:
                opened, db = self._idle.pop()
                if opened[0] == os.getpid():
                    db.close()
                else:
                    self._inherited.append(db)  # SQLite forbids even closing what a parent process opened

    @contextlib.contextmanager
    def transaction(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        """All that is done in it is stored, or nothing; `BEGIN IMMEDIATE` is for writing."""
        if self._closed:
            raise LabError(f"the store {self.path} is closed; open it again with Store({str(self.path)!r})")
        with told(self.path):
            identity, db = self._take()
            try:
                db.execute(begin)
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            finally:
                self._idle.append((identity, db))
                if self._closed:
                    self.close()
