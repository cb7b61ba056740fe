"""Who may ask for how much: a person at home, or one of a class on a shared server."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from app.cookies import COOKIE, is_teacher_token, name_in, secret_of, teacher_token
from ftp.lab.store import default_path

TOKEN = "token"  # the parameter of the teacher's address


@dataclass(frozen=True)
class Limits:
    """The most that is done: in one run, for one viewer, for one address, and in the queue."""

    steps: int = 20_000
    batch: int = 4096
    seconds: float = 3600.0  # of one run, from the moment it gets a worker
    each: int = 50  # requests of one viewer that wait or run; a race is one of them
    address: int = 500  # runs of all viewers at one address
    queue: int = 500
    lease: float = 600.0  # a run that nobody watches for so many seconds is stopped


HOME = Limits()
# A whole class may sit behind one address: fifty students with two runs each. The rest of the queue is for the others.
CLASS = Limits(steps=2000, batch=256, seconds=300.0, each=3, address=100, queue=200)


@dataclass(frozen=True)
class Viewer:
    """Who asks: the name in a signed cookie, and the address, which many may share."""

    name: str
    address: str = field(default="", compare=False)  # a laptop that moves to another network is the same viewer
    is_teacher: bool = field(default=False, compare=False)


NOBODY = Viewer("")


def class_mode() -> bool:
    """True on a server that was started for a class."""
    return os.environ.get("FTP_APP_CLASS") == "1"


def limits() -> Limits:
    """The limits of this server."""
    return CLASS if class_mode() else HOME


def store_path() -> Path:
    """The file that keeps this server's runs: $FTP_APP_STORE, or the person's own."""
    return Path(os.environ.get("FTP_APP_STORE") or default_path()).expanduser().absolute()


def secret() -> bytes:
    """The secret of this server."""
    return secret_of(store_path())


def viewer() -> Viewer:
    """Who looks at the page: the cookie that this server signed for the browser, else the address alone.

    So a client with cookies of its own making is one viewer, however many it makes.
    """
    address = str(st.context.ip_address or "")
    name = name_in(str(st.context.cookies.get(COOKIE, "")), secret())
    return Viewer(name or f"address {address}", address, is_teacher())


def is_teacher() -> bool:
    """True in a session whose address has, or had, the teacher's token; only a server for a class has a teacher."""
    if not class_mode():
        return False
    if is_teacher_token(str(st.query_params.get(TOKEN, "")), secret()):
        st.session_state["teacher"] = True
    return bool(st.session_state.get("teacher"))


def teacher_path() -> str:
    """The address of the teacher's page, from the server's name on."""
    return f"/teacher?{TOKEN}={teacher_token(secret())}"
