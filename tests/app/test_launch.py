"""The command that starts the app."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from servers import serving, until


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_launch_and_stop(stop: signal.Signals, tmp_path: Path) -> None:
    with serving(tmp_path / "runs.db") as server:
        print(f"the server was up after {server.up_seconds:.1f} s")
        until(server.workers, what="a warm worker")
        worker = server.workers()[0]
        server.process.send_signal(stop)
        assert server.process.wait(60) in (0, -stop)  # tidied up; uvicorn may then pass the signal on
        until(lambda: not worker.is_running(), what="the end of the worker")
    assert server.lines[0] == f"The app is at http://127.0.0.1:{server.port} (Ctrl-C ends it).\n"
    assert "Traceback" not in server.log()
    assert "warning" not in server.log().lower()


@pytest.mark.slow
def test_taken_port_means_the_next_one(tmp_path: Path) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        with serving(tmp_path / "runs.db", "--port", str(port), wait=False) as server:
            until(lambda: len(server.lines) >= 2, what="its two lines")
            said = re.fullmatch(rf"Port {port} is taken, so this is on ([0-9]+)\.\n", server.lines[0])
            assert said, server.log()
            assert int(said[1]) > port
            assert f"http://127.0.0.1:{said[1]}" in server.lines[1]


def refused(folder: Path, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "app", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("bad", ["abc", "80", "99999", "8.5", ""])
def test_bad_port_is_one_sentence(bad: str, tmp_path: Path) -> None:
    assert refused(tmp_path, "--port", bad) == f"--port is {bad!r}; give a whole number from 1024 to 65535.\n"


def test_bad_class_and_store_are_one_sentence(tmp_path: Path) -> None:
    needs = "--class needs the name under which students reach this machine: write --host NAME.\n"
    assert refused(tmp_path, "--class") == needs
    assert "--host is for a class" in refused(tmp_path, "--host", "lab")
    for bad in ("http://lab", "lab:8501", "lab/x", ""):
        assert refused(tmp_path, "--class", "--host", bad).startswith(f"--host is {bad!r}; give a name such as")
    (tmp_path / "no.db").write_bytes(b"x" * 2000)
    said = refused(tmp_path, "--store", str(tmp_path / "no.db"))
    assert "is damaged or no store of runs" in said
    assert said.count("\n") == 1
