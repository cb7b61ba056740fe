"""What proves who somebody is: a secret beside the store signs the viewers' cookies and makes the teacher's token."""

import functools
import hashlib
import hmac
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

COOKIE = "ftp_viewer"
SIGNED = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{32})")
LENGTH = 32  # bytes of the secret


def sign(name: str, secret: bytes) -> str:
    """The cookie of a viewer: the name, and what only the holder of the secret can write after it."""
    return f"{name}.{_digest('viewer', name, secret)}"


def name_in(cookie: str, secret: bytes) -> str:
    """The viewer's name in a cookie that this server has signed; empty for any other text.

    >>> cookie = sign("0123456789abcdef" * 2, b"secret")
    >>> name_in(cookie, b"secret"), name_in(cookie, b"another"), name_in("0" * 32, b"secret")
    ('0123456789abcdef0123456789abcdef', '', '')
    """
    parts = SIGNED.fullmatch(cookie)
    return parts[1] if parts and hmac.compare_digest(parts[2], _digest("viewer", parts[1], secret)) else ""


def teacher_token(secret: bytes) -> str:
    """What opens the teacher's page; it stays the same for a store, so that a bookmark goes on working.

    >>> len(teacher_token(b"secret"))
    32
    """
    return _digest("teacher", "", secret)


def is_teacher_token(text: str, secret: bytes) -> bool:
    """True for the teacher's token; how long this takes tells nothing about it."""
    return hmac.compare_digest(text.encode(errors="replace"), teacher_token(secret).encode())


def _digest(purpose: str, text: str, secret: bytes) -> str:
    return hmac.new(secret, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()[:32]


@functools.lru_cache(8)
def secret_of(store: Path) -> bytes:
    """The secret beside a store, made on the first call; where nothing can be written, one for this process alone."""
    path = store.with_name(f"{store.stem}-secret")
    fresh = secrets.token_bytes(LENGTH)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path, fresh)
        if len(kept := path.read_bytes()) == LENGTH:
            return kept
    return fresh


def _make(path: Path, secret: bytes) -> None:
    """Write the secret for its owner's eyes alone, unless there is one: of two servers at once, one makes it."""
    if path.exists():
        return
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
        with suppress(FileExistsError):
            os.link(temporary, path)  # whole or not at all, and never in place of another
    finally:
        temporary.unlink(missing_ok=True)
