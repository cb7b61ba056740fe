"""`python -m app`: start the app on this machine and say where it is."""

import argparse
import contextlib
import os
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
FIRST, LAST = 1024, 65535
TRIES = 50


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m app", description="Start the app in your browser.")
    parser.add_argument("--port", default="8501", help="where to listen; the next free one if it is taken (8501)")
    asked = parser.parse_args(argv).port
    if not (asked.isascii() and asked.isdigit() and FIRST <= int(asked) <= LAST):
        print(f"--port is {asked!r}; give a whole number from {FIRST} to {LAST}.", file=sys.stderr)
        return 2
    port = free_port(int(asked))
    if port is None:
        print(f"Port {asked} and the next ones are taken; give another with --port.", file=sys.stderr)
        return 1
    if port != int(asked):
        print(f"Port {asked} is taken, so this is on {port}.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C while Streamlit is still being imported
        serve(port)
    return 0


def free_port(first: int) -> int | None:
    """The first port from `first` on that nobody listens on."""
    return next((port for port in range(first, min(first + TRIES, LAST + 1)) if is_free(port)), None)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        if os.name == "posix":  # else the port of an app ended a moment ago counts as taken
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def serve(port: int) -> None:
    """Run Streamlit in this process until Ctrl-C or SIGTERM; it opens the browser itself."""
    print(f"The app is at http://{HOST}:{port} (Ctrl-C ends it).", flush=True)
    os.chdir(ROOT)  # Streamlit looks for .streamlit/config.toml in the current directory
    from streamlit.web import cli  # slow to import, so only once the arguments are known to be good

    options = {"server.port": port, "server.headless": is_headless()}
    # the welcome repeats the address, and on a first start asks for an e-mail address
    options |= {"logger.hideWelcomeMessage": True, "server.showEmailPrompt": False}
    flags = [f"--{name}={str(value).lower()}" for name, value in options.items()]
    cli.main(["run", str(ROOT / "app" / "main.py"), *flags], standalone_mode=False)


def is_headless() -> bool:
    """True where no browser can or should open."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        return True
    return sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    sys.exit(main())
