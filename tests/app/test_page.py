"""The page as a visitor meets it, and the command that starts it."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

PAGE = str(Path(__file__).resolve().parents[2] / "app" / "main.py")


def open_page(**query):
    page = AppTest.from_file(PAGE, default_timeout=30)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def answer(page):
    return next(m.value for m in page.markdown if m.value.startswith("**The row")).replace("\u00a0", " ")


def traces(page):
    return [trace["name"] for trace in json.loads(page.get("plotly_chart")[0].proto.spec)["data"]]


def test_first_view():
    page = open_page()
    assert not page.exception
    assert page.header[0].value.endswith("?")
    assert "2.10 away" in answer(page)
    assert "48 % of its way" in answer(page)
    assert page.get("plotly_chart")[0].proto.alt.endswith("of its way.")
    assert "l2 circle, same γ" not in traces(page)


def test_moving_the_sliders_changes_sentence_formula_and_table():
    page = open_page()
    before = page.latex[0].value, page.table[0].value.to_csv()
    page.slider(key="gamma").set_value(2.0).run()
    page.slider(key="x").set_value(-0.5).run()
    assert not page.exception
    assert "1.10 away; the leash is 2.00 long, so it is within reach" in answer(page)
    assert r"\frac{2.00}{1.10}" in page.latex[0].value
    assert (page.latex[0].value, page.table[0].value.to_csv()) != before
    assert list(page.table[0].value["l1 distance"]) == ["0.00", "1.10", "1.10"]
    page.checkbox(key="circle").check().run()
    assert "l2 circle, same γ" in traces(page)


def test_row_at_its_anchor_divides_by_nothing():
    page = open_page(x="0", y="0", gamma="0")
    assert not page.exception
    assert "nothing to do" in answer(page)
    assert r"\frac{0.00}" not in page.latex[0].value


def test_a_link_carries_the_settings():
    page = open_page(x="-1.5", y="2", gamma="0.35", circle="true")
    assert [page.slider(key=k).value for k in ("x", "y", "gamma")] == [-1.5, 2.0, 0.35]
    assert page.checkbox(key="circle").value
    assert "pulled back to 10 %" in answer(page)


@pytest.mark.parametrize("bad", ["nan", "inf", "99", "-1e400", "", "<b>", "1,5", ["1", "2"]])
def test_bad_links_fall_back_to_the_defaults(bad):
    page = open_page(x=bad, y=bad, gamma=bad, circle=bad)
    assert not page.exception
    assert [page.slider(key=k).value for k in ("x", "y", "gamma")] == [1.5, 0.6, 1.0]


def test_the_server_never_imports_torch():
    code = f"""
import sys
from streamlit.testing.v1 import AppTest
page = AppTest.from_file({PAGE!r}, default_timeout=30).run()
assert not page.exception and page.slider
assert "app.geometry" in sys.modules
sys.exit("torch was imported" if "torch" in sys.modules else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def launched(port, cwd):
    """`python -m app` as a user starts it; killed at the end if it still runs."""
    command = [sys.executable, "-m", "app", "--port", str(port)]
    out = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=cwd, env={**os.environ, "CI": "true"}, **out) as app:
        try:
            yield app
        finally:
            app.kill()


def wait_until_healthy(port, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2) as reply,
        ):
            return reply.status
        time.sleep(0.2)
    return None


def handshake(port, host):
    """The status a browser gets that opens the app's socket under this host name."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    with contextlib.closing(connection):
        connection.request("GET", "/_stcore/stream", headers={"Host": host, **upgrade, **key})
        return connection.getresponse().status


@pytest.mark.slow
def test_config_holds_from_any_directory(tmp_path):
    port = free_port()
    with launched(port, tmp_path) as app:
        assert wait_until_healthy(port) == 200
        assert handshake(port, f"localhost:{port}") == 101
        assert handshake(port, "elsewhere.example") == 403  # server.allowedHosts was read
        app.terminate()
        app.communicate(timeout=10)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_launch_and_stop(stop, tmp_path):
    port = free_port()
    with launched(port, tmp_path) as app:
        assert wait_until_healthy(port) == 200
        app.send_signal(stop)
        output, _ = app.communicate(timeout=10)
    assert app.returncode == 0
    assert f"http://127.0.0.1:{port}" in output.splitlines()[0]
    assert "Traceback" not in output
    assert "warning" not in output.lower()


@pytest.mark.slow
def test_taken_port_means_the_next_one(tmp_path):
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        with launched(port, tmp_path) as app:
            said = [app.stdout.readline(), app.stdout.readline()]
            chosen = int(said[0].split()[-1].rstrip("."))
            assert chosen > port
            assert said[0] == f"Port {port} is taken, so this is on {chosen}.\n"
            assert f"http://127.0.0.1:{chosen}" in said[1]
            assert wait_until_healthy(chosen) == 200


@pytest.mark.parametrize("bad", ["abc", "80", "-1", "99999", "8.5", ""])
def test_bad_port_is_one_sentence(bad, tmp_path):
    command = [sys.executable, "-m", "app", "--port", bad]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"--port is {bad!r}; give a whole number from 1024 to 65535.\n"
