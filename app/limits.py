"""Who may ask for how much: a person at home, or one of a class on a shared server."""

import os
import re
from dataclasses import dataclass

import streamlit as st

COOKIE = "ftp_viewer"
VIEWER = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Limits:
    """The most that is done: in one run, for one viewer, and in the queue."""

    steps: int = 20_000
    batch: int = 4096
    seconds: float = 3600.0  # of one run, from the moment it gets a worker
    each: int = 50  # runs of one viewer that wait or run
    queue: int = 500
    lease: float = 600.0  # a run that nobody watches for so many seconds is stopped


HOME = Limits()
CLASS = Limits(steps=2000, batch=256, seconds=300.0, each=3, queue=200)


def class_mode() -> bool:
    """True on a server that was started for a class."""
    return os.environ.get("FTP_APP_CLASS") == "1"


def limits() -> Limits:
    """The limits of this server."""
    return CLASS if class_mode() else HOME


def viewer() -> str:
    """Who looks at the page: the cookie that this server gave to the browser, else its address."""
    cookie = str(st.context.cookies.get(COOKIE, ""))
    return cookie if VIEWER.fullmatch(cookie) else str(st.context.ip_address or "")
