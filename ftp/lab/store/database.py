"""The file of the store: where it is, its tables and versions, how threads share it, what is said when that fails."""

import contextlib
import errno
import json
import os
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ftp.lab.record import LabError
from ftp.lab.store import serialisation

BUSY_SECONDS = 5.0  # how long a writer waits for another one
APPLICATION = 0x46545021  # "FTP!" in the file's header: no other program's database is taken for a store


def _add_measures(db: sqlite3.Connection) -> None:
    """Every run says what its scores mean; before, all were accuracies in percent."""
    for run_id, result_json in db.execute("SELECT run_id, result_json FROM runs").fetchall():
        rows = db.execute("SELECT step, final, payload FROM evaluations WHERE run_id = ?", (run_id,)).fetchall()
        payloads = [json.loads(payload) for _, _, payload in rows]
        for (step, final, _), payload in zip(rows, payloads, strict=True):
            new = serialisation.dump(serialisation.upgraded_eval(payload))
            where = (new, run_id, step, final)
            db.execute("UPDATE evaluations SET payload = ? WHERE run_id = ? AND step = ? AND final = ?", where)
        if not payloads:
            continue
        measures = serialisation.old_measures(name for payload in payloads for name in payload["accuracy"])
        result = result_json and serialisation.upgraded_result(json.loads(result_json), measures)
        columns = (serialisation.dump(measures.as_dict()), result and serialisation.dump(result), run_id)
        db.execute("UPDATE runs SET measures_json = ?, result_json = ? WHERE run_id = ?", columns)


# Entry n leads from version n to n + 1, so a new file walks the same way as an old one.
STEPS: tuple[tuple[str | Callable[[sqlite3.Connection], None], ...], ...] = (
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
    (
        "ALTER TABLE runs ADD COLUMN measures_json TEXT NOT NULL DEFAULT '{}'",
        """ALTER TABLE runs ADD COLUMN phases_json TEXT NOT NULL DEFAULT '[""]'""",
        _add_measures,
        "DROP VIEW evals",
        """CREATE VIEW evals (run_id, step, phase, final, metric, split, role, severity, value, n) AS
            SELECT e.run_id, e.step, json_extract(e.payload, '$.phase'), e.final, m.key, s.key,
                (SELECT o.value FROM json_each(r.measures_json, '$.roles') o WHERE o.key = s.key), NULL, s.value,
                (SELECT c.value FROM json_each(e.payload, '$.counts') c WHERE c.key = s.key)
            FROM evaluations e JOIN runs r USING (run_id), json_each(e.payload, '$.scores') m, json_each(m.value) s
            UNION ALL SELECT e.run_id, e.step, json_extract(e.payload, '$.phase'), e.final,
                json_extract(r.measures_json, '$.metrics[0].name'), k.key, 'corruption', s.key + 1, s.value, NULL
            FROM evaluations e JOIN runs r USING (run_id), json_each(e.payload, '$.corruptions') k,
                json_each(k.value) s""",
    ),
)
VERSION = len(STEPS)
OTHER = "set FTP_STORE to another file"
DAMAGED = f"{{path}} is damaged or no store of runs ({{error}}), left as it is; move it elsewhere, or {OTHER}"


class DamagedError(LabError):
    """The file of the store cannot be read; `Store.move_aside` keeps it under another name and begins a new one."""


def default_path() -> Path:
    """The file named by $FTP_STORE, or runs.db in the person's own data folder."""
    if file := os.environ.get("FTP_STORE"):
        return Path(file).expanduser()
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
        raise DamagedError(DAMAGED.format(path=path, error="too short"))
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
            for step in (*STEPS[number], f"PRAGMA user_version={number + 1}"):
                if isinstance(step, str):
                    db.execute(step)
                else:
                    step(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # the upper bits hold details


@contextlib.contextmanager
def errors_in_words(path: Path) -> Iterator[None]:
    """Turn what can happen to a file into one sentence; errors in the code itself pass.

    >>> with errors_in_words(Path("runs.db")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    ftp.lab.record.LabError: the disk of runs.db is full; what was stored before is kept: make room, then go on
    """
    try:
        yield
    except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
        if _is_damage(error):
            raise DamagedError(DAMAGED.format(path=path, error=error)) from error
        sentence = _sentence(path, error)
        if sentence is None:
            raise
        raise LabError(sentence) from error


def _is_damage(error: Exception) -> bool:
    """True if a file says what SQLite or the store cannot have written."""
    if isinstance(error, sqlite3.Error):
        # text that is no text has no code
        return _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) or "decode to UTF-8" in str(error)
    return isinstance(error, json.JSONDecodeError)


def _sentence(path: Path, error: Exception) -> str | None:
    code = _code(error) if isinstance(error, sqlite3.Error) else 0
    number = error.errno if isinstance(error, OSError) else 0
    reason = error.strerror if isinstance(error, OSError) else error
    if code == sqlite3.SQLITE_FULL or number in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", -1)):
        return f"the disk of {path} is full; what was stored before is kept: make room, then go on"
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
    with errors_in_words(path):
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
        with errors_in_words(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self.transaction():
            pass  # a file that cannot be used is told now

    def close(self) -> None:
        """Close the file; a thread that is still at work closes its connection when it is through."""
        self._closed = True
        self._drop()

    def move_aside(self) -> Path:
        """Keep the file under another name, with what SQLite keeps beside it; the next transaction makes a new one."""
        aside = self.path.with_stem(f"{self.path.stem}-damaged-{time.strftime('%Y%m%d-%H%M%S')}")
        self._drop()
        with errors_in_words(self.path):
            for end in ("-wal", "-shm", ""):  # the file itself last: without it the others would be the new one's
                with contextlib.suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + end).rename(aside.with_name(aside.name + end))
        return aside

    def _identity(self) -> tuple[int, ...]:
        """Process and file: after a fork, or when the file was removed, an open connection is of no use."""
        with contextlib.suppress(OSError):
            stat = self.path.stat()
            return os.getpid(), stat.st_dev, stat.st_ino
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
        with errors_in_words(self.path):
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
