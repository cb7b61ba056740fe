"""What a stranger on the network, another site in the same browser, or an odd name must not be able to do."""

import ast
import http.client
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from servers import Server, folder, serving, short
from streamlit.testing.v1 import AppTest

from app import page
from app.cookies import COOKIE, SIGNED
from app.security import HEADERS, POLICY
from app.supervisor import supervisor
from ftp.lab import worlds
from ftp.lab.record import EvalEvent, StartEvent, StepEvent
from ftp.lab.run import identify

ROOT = Path(__file__).resolve().parents[2]
PATHS = ["/", "/live", "/api/health", "/api/plotly.js", f"/api/run/{'0' * 16}/tail", "/_stcore/health", "/nowhere"]
EVIL = "![x](http://evil.example/x.png) <img src=http://evil.example/y.png> [a](javascript:alert(1))"


@pytest.fixture(scope="module")
def home() -> Iterator[Server]:
    with folder() as place, serving(place / "runs.db") as server:
        yield server


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with folder() as place, serving(place / "runs.db", "--class", "--host", "lab.example", "--address", "0.0.0.0") as s:
        yield s


def addresses(server: Server) -> set[str]:
    found = psutil.Process(server.process.pid).net_connections("tcp")
    return {entry.laddr.ip for entry in found if entry.status == psutil.CONN_LISTEN}


@pytest.mark.slow
def test_home_listens_on_this_machine_only(home: Server) -> None:
    assert addresses(home) == {"127.0.0.1"}


@pytest.mark.slow
def test_a_class_is_an_explicit_choice(shared: Server) -> None:
    assert addresses(shared) == {"0.0.0.0"}
    assert shared.get("/api/wall")[0] == 200
    assert shared.get("/", Host="lab.example")[0] == 200
    assert shared.handshake(Host="lab.example", Origin="https://lab.example") == 101
    assert shared.get("/", Host="other.example")[0] == 403
    assert shared.handshake(Host="other.example") == 403


@pytest.mark.slow
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil", "", "a@b"]
)
def test_other_names_for_this_machine_are_refused(home: Server, host: str) -> None:
    for path in PATHS:
        status, headers, body = home.get(path, Host=host)
        assert status == 403, path
        assert b"This server does not answer to that name" in body
        assert headers["content-security-policy"]
    assert home.handshake(Host=host) in (400, 403)


@pytest.mark.slow
def test_the_socket_is_for_its_own_pages(home: Server) -> None:
    here = f"127.0.0.1:{home.port}"
    assert home.handshake(Host=here, Origin=f"http://{here}") == 101
    for origin in ("http://evil.example", "https://127.0.0.1.evil.example", "null"):
        assert home.handshake(Host=here, Origin=origin) == 403


@pytest.mark.slow
def test_a_change_is_for_its_own_pages(home: Server) -> None:
    """A page of another site can send a POST without asking; a browser always says where it comes from."""
    here, path = f"127.0.0.1:{home.port}", f"/api/run/{'0' * 16}/watch"
    for origin in (None, f"http://{here}", f"https://{here}"):  # no browser; this page; this page behind a proxy
        headers = {"Origin": origin} if origin else {}
        assert home.get(path, "POST", Host=here, **headers)[::2] == (200, b'{"renewed":false}')
    for origin in ("http://evil.example", f"http://{here}.evil.example", "http://127.0.0.1:1", "null", "", "x://["):
        status, headers, body = home.get(path, "POST", Host=here, Origin=origin)
        assert (status, body) == (403, b"This server takes that from its own pages only.")
        assert headers["content-security-policy"]
        assert home.get("/api/health", Host=here, Origin=origin)[0] == 200  # looking changes nothing


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers(home: Server, path: str) -> None:
    _, headers, _ = home.get(path)
    assert {name: headers.get(name) for name in HEADERS} == HEADERS
    assert POLICY["default-src"] == "'self'"
    assert POLICY["frame-ancestors"] == "'self'"
    assert "http" not in headers["content-security-policy"]


@pytest.mark.slow
def test_the_viewers_cookie(home: Server) -> None:
    given = home.get("/")[1]["set-cookie"]
    found = re.search(rf"{COOKIE}=([0-9a-f.]+); Path=/; HttpOnly; SameSite=Lax", given)
    assert found
    assert SIGNED.fullmatch(found[1])
    assert COOKIE not in home.get("/", Cookie=f"{COOKIE}={found[1]}")[1].get("set-cookie", "")
    for forged in ("../../etc", "0" * 32, f"{'0' * 32}.{'0' * 32}", found[1][:-1] + "x", found[1][::-1]):
        assert COOKIE in home.get("/", Cookie=f"{COOKIE}={forged}")[1].get("set-cookie", ""), forged
    assert COOKIE not in home.get("/api/health")[1].get("set-cookie", "")
    assert "Secure" not in given
    behind_tls = home.get("/", **{"X-Forwarded-Proto": "https"})[1]["set-cookie"]
    assert behind_tls.endswith("SameSite=Lax; Secure")


@pytest.mark.slow
def test_nothing_is_uploaded_and_no_agent_drives_the_app(home: Server) -> None:
    for method, path in (
        ("PUT", "/_stcore/upload_file/a/b"),
        ("PUT", "//_stcore/upload_file/a/b"),
        ("POST", "/_stcore/agent/interact"),
        ("POST", "/_stcore/agent/mcp"),
        ("POST", "/api/health"),
        ("DELETE", f"/api/run/{'0' * 16}/tail"),
    ):
        with closing(http.client.HTTPConnection("127.0.0.1", home.port, timeout=60)) as connection:
            connection.request(method, path, body=b"{}", headers={"Content-Type": "application/json"})
            assert 400 <= connection.getresponse().status < 500, path


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/run/..%2f..%2f/tail", "//etc/passwd"]
)
def test_no_file_of_the_machine_is_given_away(home: Server, path: str) -> None:
    assert b"root:" not in home.get(path)[2]
    assert home.get("/app/main.py")[2] == home.get("/")[2]  # an unknown address is the page itself


@pytest.mark.slow
def test_no_telemetry_no_details_no_torch(home: Server) -> None:
    """Asked of the server as a browser does it, with a message that must not end it."""
    heard = home.session(shut_down=True)
    config = next(m.new_session.config for m in heard if m.WhichOneof("type") == "new_session")
    assert not config.gather_usage_stats
    assert config.show_error_links == config.SHOW_ERROR_LINKS_FALSE
    assert not config.allow_run_on_save
    assert not any(m.delta.new_element.HasField("exception") for m in heard)
    for name in page.names():
        home.session(page=name)
    assert home.json("/api/health")["status"] == "ok"
    loaded = [entry.path for entry in psutil.Process(home.process.pid).memory_maps()]
    assert loaded
    assert not [path for path in loaded if "torch" in path]
    assert "Traceback" not in home.log()


def shown_as_markdown(view: AppTest) -> list[str]:
    kinds = ("markdown", "caption", "title", "header", "subheader", "error", "warning", "info", "success")
    found = [element.value for kind in kinds for element in getattr(view, kind)]
    labelled = ("button", "selectbox", "radio", "checkbox", "multiselect", "slider", "text_input", "toggle", "expander")
    return found + [element.label for kind in labelled for element in getattr(view, kind)]


@pytest.mark.parametrize("name", page.names())
def test_names_are_text(name: str) -> None:
    """A run's name is somebody else's text: as markdown it could make every viewer's browser call out."""
    store, settings = supervisor().store, short()
    run = identify(settings)
    store.create(run, settings, name=EVIL)
    assert store.claim(run)
    store.start(run, StartEvent(("stem.weight",), {}, measures=worlds.load("digits").measures))
    store.append(run, StepEvent(6, 1.0, 0.1, (0.1,), (0.1,), (1.0,)))
    store.append(run, EvalEvent(6, {"accuracy": {"id": 90.0, "sketch": 60.0, "typeset": 70.0}}, final=True))
    store.finish(run, "done")
    view = AppTest.from_string(f"from app.page import show; show({name!r})", default_timeout=300)
    view.query_params["run"] = run
    view.run()
    assert not view.exception
    for text in shown_as_markdown(view):
        assert "](http" not in str(text)
        assert "](javascript" not in str(text)
        assert "<img" not in str(text)


def unsafe(path: Path) -> Iterator[str]:
    """Lines that could run what a file says."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            harmless = isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} == {"UnpicklingError"}
            names = set() if harmless else {getattr(node, "module", "") or "", *(alias.name for alias in node.names)}
            if names & {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}:
                yield f"{path}: {ast.unparse(node)}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.load", "np.load", "numpy.load"):
            given = {word.arg: ast.unparse(word.value) for word in node.keywords}
            if given.get("weights_only") != "True" and given.get("allow_pickle") != "False":
                yield f"{path}: {ast.unparse(node)}"


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    files = [*(ROOT / "ftp").rglob("*.py"), *(ROOT / "app").rglob("*.py")]
    assert [line for path in files for line in unsafe(path)] == []
    (tmp_path / "bad.py").write_text("import pickle\nfrom dill import loads\ntorch.load(x)\nnp.load(y)\n")
    assert len(list(unsafe(tmp_path / "bad.py"))) == 4
