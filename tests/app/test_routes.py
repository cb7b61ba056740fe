"""The JSON that the charts fetch, from a real store."""

import contextlib
import gzip
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import uvicorn
from servers import short, until
from starlette.applications import Starlette

from app import routes
from app.supervisor import Supervisor, supervisor
from ftp.lab.record import EvalEvent, StartEvent, StepEvent
from ftp.lab.recordings import recorded
from ftp.lab.run import identify

RUN = identify(short())
BAD = ["..", "0" * 15, "0" * 17, "0123456789ABCDEF", RUN + "%0a", "%2e%2e%2fetc", "g" * 16, "%00" * 16, "٣" * 16]


@dataclass
class Reply:
    status_code: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Client:
    port: int

    def get(self, path: str, method: str = "GET", params: dict[str, str] | None = None, **headers: str) -> Reply:
        address = quote(path, safe="/%?=&.") + (f"?{urlencode(params)}" if params else "")
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, address, headers=headers)
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())


@contextlib.contextmanager
def listening(wall: bool) -> Iterator[Client]:
    """The routes alone, on a real port."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        config = uvicorn.Config(Starlette(routes=routes.routes(wall=wall)), log_level="error", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        until(lambda: server.started)
        yield Client(bound.getsockname()[1])
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with listening(wall=True) as made:
        yield made


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    monkeypatch.setattr(Supervisor, "_begin", lambda self: None)  # nothing runs: the rows are made here
    return supervisor()


def make(own: Supervisor, points: int = 3, done: bool = False) -> None:
    own.store.create(RUN, short())
    assert own.store.claim(RUN)
    own.store.start(RUN, StartEvent(("stem", "head"), {}))
    for step in range(1, points + 1):
        own.store.append(RUN, StepEvent(step, float("nan"), 0.1, (0.1, None), (0.1, 0.2), (1.0, None)))
    if done:
        own.store.append(RUN, EvalEvent(points, {"id": 90.0, "sketch": 60.0, "typeset": 80.0}, final=True))
        own.store.finish(RUN, "done")


def test_tail_gives_only_what_is_new(own: Supervisor, client: Client) -> None:
    make(own)
    whole = client.get(f"/api/run/{RUN}/tail").json()
    assert [point["step"] for point in whole["points"]] == [1, 2, 3]
    assert whole["points"][0]["loss"] is None  # JSON has no NaN
    about = {k: whole[k] for k in ("status", "steps", "method", "seed", "world", "place", "layers")}
    layers = ["stem", "head"]
    assert about == {
        "status": "running",
        "steps": 6,
        "method": "ftp",
        "seed": 0,
        "world": "digits",
        "place": None,
        "layers": layers,
    }
    assert whole["expected"] > 0
    rest = client.get(f"/api/run/{RUN}/tail?since=2").json()
    assert [point["step"] for point in rest["points"]] == [3]
    assert client.get(f"/api/run/{RUN}/tail?since=3").json()["points"] == []
    assert client.get(f"/api/run/{RUN}/tail").headers["cache-control"] == "no-store"


def test_tail_tells_the_place_and_renews_the_lease(own: Supervisor, client: Client) -> None:
    own.submit(short(seed=1))
    own.submit(short())
    own._watched.clear()
    found = client.get(f"/api/run/{RUN}/tail").json()
    assert found["status"] == "queued"
    assert found["place"]["ahead"] == 1
    assert found["place"]["seconds"] > 0
    assert set(own._watched) == {RUN}


def test_tail_tells_an_end_that_the_store_could_not_take(own: Supervisor, client: Client) -> None:
    make(own)
    own._unsaid[RUN] = "failed", "the disk is full"
    found = client.get(f"/api/run/{RUN}/tail").json()
    assert (found["status"], found["error"]) == ("failed", "the disk is full")


def test_a_recording_has_the_form_of_a_run(own: Supervisor, client: Client) -> None:
    make(own, done=True)
    live = client.get(f"/api/run/{RUN}/tail").json()
    record = recorded(method="ftp", seed=0)[0]
    found = client.get(f"/api/run/{record.run_id}/tail").json()
    assert set(found) == set(live)
    assert len(found["points"]) == len(record.points) > 50
    assert (found["status"], found["place"], found["steps"]) == ("done", None, record.settings.steps)
    rest = client.get(f"/api/run/{record.run_id}/tail?since={found['step']}").json()
    assert rest["points"] == []
    assert "layers" not in rest
    assert [entry["step"] for entry in rest["evals"]] == [found["step"]]


def test_a_live_run_goes_before_its_recording(own: Supervisor, client: Client) -> None:
    record = recorded(method="ftp", seed=0)[0]
    own.store.create(record.run_id, record.settings)
    assert client.get(f"/api/run/{record.run_id}/tail").json()["status"] == "queued"
    assert client.get(f"/api/run/{record.run_id}/tail?recorded=1").json()["status"] == "done"


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("what", ["tail", "wise", "microscope?layer=stem"])
def test_bad_ids_are_refused(own: Supervisor, client: Client, bad: str, what: str) -> None:
    reply = client.get(f"/api/run/{bad}/{what}")
    assert reply.status_code in (400, 404)
    assert reply.json()["error"]
    assert own._watched == {}


@pytest.mark.parametrize("bad", ["", "x", "1.5", "1e3", "9" * 19, "0x1", "٣", " 1"])
def test_bad_since_is_refused(own: Supervisor, client: Client, bad: str) -> None:
    make(own)
    reply = client.get(f"/api/run/{RUN}/tail", params={"since": bad})
    assert (reply.status_code, reply.json()) == (400, {"error": "since must be a whole number, such as since=0"})


def test_a_name_is_no_id(own: Supervisor, client: Client) -> None:
    make(own)
    own.store.rename(RUN, "0" * 16)
    assert client.get(f"/api/run/{'0' * 16}/tail").status_code == 404


def test_a_store_in_trouble_is_a_sentence(own: Supervisor, client: Client) -> None:
    own.store.close()
    reply = client.get(f"/api/run/{RUN}/tail")
    assert reply.status_code == 503  # a chart asks again
    assert "is closed" in reply.json()["error"]


def test_what_is_not_there(own: Supervisor, client: Client) -> None:
    for path in (f"/api/run/{'0' * 16}/tail", "/api/nothing", "/api/", "/api/run"):
        reply = client.get(path)
        assert reply.status_code == 404
        assert set(reply.json()) == {"error"}
    make(own)
    own.store.finish(RUN, "stopped")
    own.store.delete(RUN)
    assert client.get(f"/api/run/{RUN}/tail").status_code == 404
    assert client.get(f"/api/run/{RUN}/tail", "POST").status_code == 405


def test_files_of_jobs(own: Supervisor, client: Client) -> None:
    assert client.get(f"/api/run/{RUN}/wise").json() == {"status": "missing"}
    own.job("wise", RUN)
    assert client.get(f"/api/run/{RUN}/wise").json() == {"status": "queued"}
    path = own.store.weights_path(RUN).with_suffix(".wise.json")
    path.parent.mkdir()
    path.write_text('{"alphas": [0.0, NaN]}')
    assert client.get(f"/api/run/{RUN}/wise").json() == {"status": "done", "alphas": [0.0, None]}
    own._failed["microscope", RUN] = "there is no layer x"
    reply = client.get(f"/api/run/{RUN}/microscope?layer=x")
    assert reply.json() == {"status": "failed", "error": "there is no layer x"}
    for bad in ("", "a/b", "../x", "a b", "x" * 101):
        assert client.get(f"/api/run/{RUN}/microscope", params={"layer": bad}).status_code == 400


def test_the_wall(own: Supervisor, client: Client) -> None:
    assert client.get("/api/wall").json()["points"] == []
    make(own, done=True)
    own.store.rename(RUN, "<b>anna</b>")
    points = client.get("/api/wall").json()["points"]
    assert [(p["run_id"], p["name"], p["id"], p["ood_avg"]) for p in points] == [(RUN, "<b>anna</b>", 90.0, 70.0)]
    assert client.get(f"/api/wall?since={int(points[0]['ended']) + 1}").json()["points"] == []


def test_the_wall_is_for_a_class() -> None:
    with listening(wall=False) as client:
        assert client.get("/api/wall").status_code == 404


def test_plotly_comes_from_this_server_and_is_the_version_of_the_figures(client: Client) -> None:
    import plotly

    own = client.get("/api/plotly.js").content
    small = client.get("/api/plotly.js", **{"accept-encoding": "gzip"})
    assert gzip.decompress(small.content) == own
    assert small.headers["cache-control"] == "public, max-age=86400"
    assert small.headers["content-type"].startswith("text/javascript")
    wheel = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()
    version = re.compile(rb"plotly\.js .*v([0-9.]+)")
    assert version.search(own[:200])[1] == version.search(wheel[:200])[1], "app/vendor/README.md says how to renew it"


def test_health(own: Supervisor, client: Client) -> None:
    own.submit(short())
    assert json.loads(client.get("/api/health").content) == {
        "status": "ok",
        "running": 0,
        "waiting": 1,
        "slots": own.slots,
    }
