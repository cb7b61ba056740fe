"""A real server for tests: `python -m app` on a free port with a store of its own, and ways to ask it things."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from ftp.lab.record import Settings
from ftp.lab.settings import resolve

PATIENCE = 300.0  # a loaded machine is slow; nothing here decides by time


def short(method: str = "ftp", **given: Any) -> Settings:
    return resolve("digits", method, {"steps": 6, "batch": 16, **given})


def long(**given: Any) -> Settings:
    """A run that does not end by itself while a test looks."""
    return short(**{"steps": 2000, "batch": 2, **given})


def until(condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "it") -> Any:
    """The first true value of a condition; an assertion error after some patience."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds:g} s"
        time.sleep(0.02)
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A running `python -m app`."""

    process: subprocess.Popen[str]
    port: int
    store: Path
    up_seconds: float = 0.0
    lines: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (in small letters) and body."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()

    def json(self, path: str) -> Any:
        return json.loads(self.get(path)[2])

    def handshake(self, **headers: str) -> int:
        """The status a browser gets that opens the app's socket."""
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        key = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("GET", "/_stcore/stream", headers={**upgrade, **key, **headers})
            return connection.getresponse().status

    def session(self, query: str = "", page: str = "", shut_down: bool = False) -> list[ForwardMsg]:
        """What a browser hears that opens a page, up to the end of the script."""
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.page_name = page
        heard: list[ForwardMsg] = []
        address = f"ws://127.0.0.1:{self.port}/_stcore/stream"
        with connect(address, subprotocols=[Subprotocol("streamlit")], max_size=None, open_timeout=60) as socket:
            if shut_down:
                evil = BackMsg()
                evil.debug_shutdown_runtime = True
                socket.send(evil.SerializeToString())
            socket.send(message.SerializeToString())
            while not heard or heard[-1].WhichOneof("type") != "script_finished":
                received = socket.recv(timeout=PATIENCE)
                assert isinstance(received, bytes)
                heard.append(ForwardMsg.FromString(received))
        return heard

    def workers(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.process.pid).children()
            return [child for child in children if "ftp.lab.worker" in child.cmdline()]
        return []

    def log(self) -> str:
        return "".join(self.lines)


@contextlib.contextmanager
def serving(store: Path, *more: str, wait: bool = True, **environment: str) -> Iterator[Server]:
    """The app as a user starts it; ended, with its workers, at the end."""
    port = free_port()
    command = [sys.executable, "-m", "app", "--port", str(port), "--store", str(store), *more]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FTP_")}
    settings = {**clean, "CI": "true", "PYTHONUNBUFFERED": "1", **environment}
    began = time.monotonic()
    out: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=store.parent, env=settings, **out) as process:
        server = Server(process, port, store)
        reader = threading.Thread(target=_read, args=(server,), daemon=True)
        reader.start()
        try:
            if wait:
                until(lambda: _healthy(server), what=f"the server (it said: {server.lines})")
                server.up_seconds = time.monotonic() - began
            yield server
        finally:
            _end(server)
            reader.join(10)


def _read(server: Server) -> None:
    assert server.process.stdout is not None
    for line in server.process.stdout:
        server.lines.append(line)


def _healthy(server: Server) -> bool:
    assert server.process.poll() is None, server.log()
    with (
        contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
        urllib.request.urlopen(f"{server.url}/api/health", timeout=5) as reply,
    ):
        return bool(reply.status == 200)
    return False


def _end(server: Server) -> None:
    if server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
        try:
            server.process.wait(20)
        except subprocess.TimeoutExpired:
            server.process.kill()


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder for the store of a server that serves a whole module."""
    path = Path(tempfile.mkdtemp(prefix="ftp-app-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
