"""`python -m app`: start the app on this machine and say where it is."""

import argparse
import contextlib
import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOST, EVERY = "127.0.0.1", "0.0.0.0"
NAME = re.compile(r"(?:\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]{0,252})")
FIRST, LAST = 1024, 65535
TRIES = 50


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m app", description="Start the app in your browser.")
    parser.add_argument("--port", default="8501", help="where to listen; the next free one if it is taken (8501)")
    parser.add_argument("--store", help="the file that keeps the runs (the person's own, or $FTP_STORE)")
    parser.add_argument("--class", dest="shared", action="store_true", help="one server for a class; needs --host")
    parser.add_argument("--host", nargs="+", default=[], help="with --class: the names under which it is reached")
    parser.add_argument("--address", default=EVERY, help="with --class: listen there only (127.0.0.1 behind a proxy)")
    options = parser.parse_args(argv)
    problem = _problem(options)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    address = options.address if options.shared else HOST
    port = free_port(int(options.port), address)
    if port is None:
        print(f"Port {options.port} and the next ones are taken; give another with --port.", file=sys.stderr)
        return 1
    if port != int(options.port):
        print(f"Port {options.port} is taken, so this is on {port}.", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # sent again by uvicorn once all has ended in order
    with contextlib.suppress(KeyboardInterrupt):
        serve(port, address, options.host if options.shared else [])
    return 0


def _problem(options: argparse.Namespace) -> str:
    """What is wrong with the arguments, in one sentence; empty if nothing is."""
    if not (options.port.isascii() and options.port.isdigit() and FIRST <= int(options.port) <= LAST):
        return f"--port is {options.port!r}; give a whole number from {FIRST} to {LAST}."
    if options.shared and not options.host:
        return "--class needs the name under which students reach this machine: write --host NAME."
    if options.host and not options.shared:
        return "--host is for a class; write --class --host NAME, or leave it out."
    wrong = [name for name in options.host if not NAME.fullmatch(name)]
    if wrong:
        return f"--host is {wrong[0]!r}; give a name such as lab.example.org, without http:// and without a port."
    from ftp.lab.record import LabError
    from ftp.lab.store import Store

    try:
        path = options.store or os.environ.get("FTP_APP_STORE") or None
        with Store(path) as store:  # a file that cannot be used is told now, not in the browser
            os.environ["FTP_APP_STORE"] = str(store.path)
    except LabError as error:
        return f"{error}."
    os.environ["FTP_APP_CLASS"] = "1" if options.shared else "0"
    return ""


def free_port(first: int, address: str = HOST) -> int | None:
    """The first port from `first` on that nobody listens on."""
    return next((port for port in range(first, min(first + TRIES, LAST + 1)) if is_free(port, address)), None)


def is_free(port: int, address: str) -> bool:
    with socket.socket() as probe:
        if os.name == "posix":  # else the port of an app ended a moment ago counts as taken
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def serve(port: int, address: str, hosts: list[str]) -> None:
    """Run Streamlit in this process until Ctrl-C or SIGTERM; it opens the browser itself."""
    where = hosts[0] if hosts else HOST
    print(f"The app is at http://{where}:{port} (Ctrl-C ends it).", flush=True)
    if hosts:
        from app.limits import teacher_path

        print(f"For the teacher alone: http://{where}:{port}{teacher_path()}", flush=True)
    os.chdir(ROOT)  # Streamlit looks for .streamlit/config.toml in the current directory
    import click
    from streamlit.web import cli  # slow to import, so only once the arguments are known to be good

    options: dict[str, Any] = {"server.port": port, "server.headless": bool(hosts) or is_headless()}
    # the welcome repeats the address, and on a first start asks for an e-mail address
    options |= {"logger.hideWelcomeMessage": True, "server.showEmailPrompt": False}
    flags = [f"--{name}={str(value).lower()}" for name, value in options.items()]
    if hosts:
        flags += [f"--server.address={address}", f"--browser.serverAddress={where}"]
        flags += [f"--server.allowedHosts={name}" for name in (*hosts, HOST, "localhost")]
    with contextlib.suppress(click.Abort):  # what becomes of Ctrl-C there
        cli.main(["run", str(ROOT / "app" / "main.py"), *flags], standalone_mode=False)


def is_headless() -> bool:
    """True where no browser can or should open."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        return True
    return sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    sys.exit(main())
