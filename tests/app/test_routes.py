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
from app import supervisor as supervisors
from app.dispatcher import Dispatcher
from app.limits import NOBODY
from app.supervisor import Supervisor
from ftp.lab import worlds
from ftp.lab.jobs import Order
from ftp.lab.record import EvalEvent, LabError, StartEvent, StepEvent
from ftp.lab.recordings import recorded
from ftp.lab.recordings.extras import extra, has_extra
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
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    monkeypatch.setattr(Dispatcher, "wake", lambda self: None)  # nothing runs: the rows are made here
    return supervisors.supervisor()


def make(supervisor: Supervisor, points: int = 3, done: bool = False) -> None:
    supervisor.store.create(RUN, short())
    assert supervisor.store.claim(RUN)
    supervisor.store.start(RUN, StartEvent(("stem", "head"), {}, measures=worlds.load("digits").measures))
    for step in range(1, points + 1):
        supervisor.store.append(RUN, StepEvent(step, float("nan"), 0.1, (0.1, None), (0.1, 0.2), (1.0, None)))
    if done:
        supervisor.store.append(
            RUN, EvalEvent(points, {"accuracy": {"id": 90.0, "sketch": 60.0, "typeset": 80.0}}, final=True)
        )
        supervisor.store.finish(RUN, "done")


def test_tail_gives_only_what_is_new(supervisor: Supervisor, client: Client) -> None:
    make(supervisor)
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
    assert client.get(f"/api/run/{RUN}/tail?since=3").headers["cache-control"] == "no-store"


def test_the_whole_of_a_run_is_compressed_once_and_grows(supervisor: Supervisor, client: Client) -> None:
    make(supervisor, points=1)
    path, store = f"/api/run/{RUN}/tail?since=-1", supervisor.store
    for points in (1, 2, 3):
        if points > 1:
            store.append(RUN, StepEvent(points, 1.0, 0.1, (0.1, None), (0.1, 0.2), (1.0, None)))
        small = client.get(path, **{"accept-encoding": "gzip"})
        assert small.headers["content-encoding"] == "gzip"
        assert gzip.decompress(small.content) == client.get(path).content
        whole, plain = client.get(path).json(), store.tail(RUN, -1)
        assert {key: whole[key] for key in plain} == plain
    same = client.get(path, **{"if-none-match": small.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    store.append(RUN, EvalEvent(3, {"accuracy": {"id": 90.0, "sketch": 60.0, "typeset": 80.0}}, final=True))
    store.finish(RUN, "done")
    news = client.get(path, **{"if-none-match": small.headers["etag"]})
    assert (news.status_code, news.json()["status"], len(news.json()["evals"])) == (200, "done", 1)
    packed = supervisor.tails.whole(RUN, lambda facts: {}).packed
    assert packed is supervisor.tails.whole(RUN, lambda facts: {}).packed  # nobody has to compress it again


def test_a_run_that_is_made_anew_begins_anew(supervisor: Supervisor, client: Client) -> None:
    make(supervisor, done=True)
    assert len(client.get(f"/api/run/{RUN}/tail").json()["points"]) == 3
    supervisor.store.delete(RUN)
    supervisor.store.purge()
    supervisor.store.create(RUN, short())
    again = client.get(f"/api/run/{RUN}/tail?since=-1").json()
    assert (again["status"], again["points"], again["evals"], again["step"]) == ("queued", [], [], -1)
    make(supervisor, points=2)
    assert len(client.get(f"/api/run/{RUN}/tail").json()["points"]) == 2


def test_looking_changes_nothing_and_watching_renews_the_lease(supervisor: Supervisor, client: Client) -> None:
    supervisor.submit(short(seed=1))
    supervisor.submit(short())
    task = supervisor.queue.tasks[1]
    task.watched = 0.0
    news = client.get(f"/api/run/{RUN}/tail").json()
    assert news["status"] == "queued"
    assert news["place"]["ahead"] == 1
    assert news["place"]["seconds"] > 0
    assert task.watched == 0.0
    assert client.get(f"/api/run/{RUN}/watch").status_code == 404  # there is nothing to look at
    assert task.watched == 0.0
    assert client.get(f"/api/run/{RUN}/watch", "POST").json() == {"renewed": True}
    assert task.watched > 0.0
    assert client.get(f"/api/run/{'0' * 16}/watch", "POST").json() == {"renewed": False}
    for bad in BAD:
        assert client.get(f"/api/run/{bad}/watch", "POST").status_code in (400, 404, 405)


def refuse(*_: str) -> None:
    raise LabError("the disk is full")


def test_tail_tells_an_end_that_the_store_could_not_take(
    supervisor: Supervisor, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(supervisor)
    task = supervisor.queue.add(Order("run", RUN), {NOBODY}, 1.0)
    with monkeypatch.context() as broken:
        broken.setattr(supervisor.store, "finish", refuse)
        supervisor.dispatcher.stop(task, "the time is over")
    assert supervisor.store.status(RUN) == "running"
    news = client.get(f"/api/run/{RUN}/tail").json()
    assert (news["status"], news["error"]) == ("stopped", "the time is over")


def test_a_recording_has_the_form_of_a_run(supervisor: Supervisor, client: Client) -> None:
    make(supervisor, done=True)
    live = client.get(f"/api/run/{RUN}/tail").json()
    record = recorded(method="ftp", seed=0)[0]
    replay = client.get(f"/api/run/{record.run_id}/tail").json()
    assert set(replay) == set(live)
    assert len(replay["points"]) == len(record.points) > 50
    assert (replay["status"], replay["place"], replay["steps"]) == ("done", None, record.settings.steps)
    rest = client.get(f"/api/run/{record.run_id}/tail?since={replay['step']}").json()
    assert rest["points"] == []
    assert "layers" not in rest
    assert [entry["step"] for entry in rest["evals"]] == [replay["step"]]


def test_the_pictures_of_a_run_are_those_of_its_world(supervisor: Supervisor, client: Client) -> None:
    make(supervisor)
    sheet = client.get(f"/api/run/{RUN}/pictures").json()
    assert sheet["sets"] == ["id", *worlds.load("digits").shifts]
    assert client.get(f"/api/run/{recorded(method='ftp', seed=0)[0].run_id}/pictures").json() == sheet
    assert client.get(f"/api/run/{'0' * 16}/pictures").status_code == 404


def test_a_live_run_goes_before_its_recording(supervisor: Supervisor, client: Client) -> None:
    record = recorded(method="ftp", seed=0)[0]
    supervisor.store.create(record.run_id, record.settings)
    assert client.get(f"/api/run/{record.run_id}/tail").json()["status"] == "queued"
    assert client.get(f"/api/run/{record.run_id}/tail?recorded=1").json()["status"] == "done"


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("what", ["tail", "pictures", "wise", "microscope?layer=stem"])
def test_bad_ids_are_refused(supervisor: Supervisor, client: Client, bad: str, what: str) -> None:
    reply = client.get(f"/api/run/{bad}/{what}")
    assert reply.status_code in (400, 404)
    assert reply.json()["error"]


@pytest.mark.parametrize("bad", ["", "x", "1.5", "1e3", "9" * 19, "0x1", "٣", " 1"])
def test_bad_since_is_refused(supervisor: Supervisor, client: Client, bad: str) -> None:
    make(supervisor)
    reply = client.get(f"/api/run/{RUN}/tail", params={"since": bad})
    assert (reply.status_code, reply.json()) == (400, {"error": "Since must be a whole number, such as since=0"})


def test_a_name_is_no_id(supervisor: Supervisor, client: Client) -> None:
    make(supervisor)
    supervisor.store.rename(RUN, "0" * 16)
    assert client.get(f"/api/run/{'0' * 16}/tail").status_code == 404


def test_a_store_in_trouble_is_a_sentence(supervisor: Supervisor, client: Client) -> None:
    supervisor.store.close()
    reply = client.get(f"/api/run/{RUN}/tail")
    assert reply.status_code == 503  # a chart asks again
    assert "is closed" in reply.json()["error"]


def test_what_is_not_there(supervisor: Supervisor, client: Client) -> None:
    for path in (f"/api/run/{'0' * 16}/tail", "/api/nothing", "/api/", "/api/run"):
        reply = client.get(path)
        assert reply.status_code == 404
        assert set(reply.json()) == {"error"}
    make(supervisor)
    supervisor.store.finish(RUN, "stopped")
    supervisor.store.delete(RUN)
    assert client.get(f"/api/run/{RUN}/tail").status_code == 404
    assert client.get(f"/api/run/{RUN}/tail", "POST").status_code == 405


def test_results_of_jobs(supervisor: Supervisor, client: Client) -> None:
    order = Order("wise", RUN)
    assert client.get(f"/api/run/{RUN}/wise").json() == {"status": "missing"}
    supervisor.ask(order)
    assert client.get(f"/api/run/{RUN}/wise").json() == {"status": "queued"}
    order.path(supervisor.store).parent.mkdir()
    order.path(supervisor.store).write_text('{"alphas": [0.0, NaN]}')
    assert client.get(f"/api/run/{RUN}/wise").json() == {"status": "done", "alphas": [0.0, None]}
    supervisor.queue.note_failure(Order("microscope", RUN, "x"), "there is no layer x")
    reply = client.get(f"/api/run/{RUN}/microscope?layer=x")
    assert reply.json() == {"status": "failed", "error": "There is no layer x"}
    assert client.get(f"/api/run/{RUN}/microscope?layer=y").json() == {"status": "missing"}
    for bad in ("", "a/b", "../x", "a b", "x" * 101):
        assert client.get(f"/api/run/{RUN}/microscope", params={"layer": bad}).status_code == 400
    assert client.get(f"/api/run/{RUN}/corruptions").status_code == 404  # they are in the run


def test_the_wall(supervisor: Supervisor, client: Client) -> None:
    assert client.get("/api/wall").json()["points"] == []
    make(supervisor, done=True)
    supervisor.store.rename(RUN, "<b>anna</b>")
    points = client.get("/api/wall").json()["points"]
    assert [(p["run_id"], p["name"], p["id"], p["ood_avg"]) for p in points] == [(RUN, "<b>anna</b>", 90.0, 70.0)]
    assert client.get(f"/api/wall?since={int(points[0]['ended']) + 1}").json()["points"] == []


def test_the_wall_is_for_a_class() -> None:
    with listening(wall=False) as client:
        assert client.get("/api/wall").status_code == 404


def test_plotly_comes_from_this_server_and_is_the_version_of_the_figures(client: Client) -> None:
    import plotly

    plain = client.get("/api/plotly.js").content
    small = client.get("/api/plotly.js", **{"accept-encoding": "gzip"})
    assert gzip.decompress(small.content) == plain
    assert small.headers["cache-control"] == "public, max-age=86400"
    assert small.headers["content-type"].startswith("text/javascript")
    wheel = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()
    version = re.compile(rb"plotly\.js .*v([0-9.]+)")
    assert version.search(plain[:200])[1] == version.search(wheel[:200])[1], "app/vendor/README.md says how to renew it"


def test_health(supervisor: Supervisor, client: Client) -> None:
    supervisor.submit(short())
    assert json.loads(client.get("/api/health").content) == {
        "status": "ok",
        "running": 0,
        "waiting": 1,
        "slots": supervisor.queue.slots,
    }


def test_the_sheets_of_a_recorded_scene(client: Client) -> None:
    world = next(name for name in worlds.names() if has_extra("dense", name))
    data = extra("dense", world)
    task, last = next(iter(data["tasks"])), len(data["scene_list"]) - 1
    reply = client.get(f"/api/dense/{world}/{task}/{last}")
    assert reply.status_code == 200
    assert reply.json()["picture"] == data["pictures"][last]
    assert reply.json()["said"] == [run["said"][last] for run in data["tasks"][task]["runs"]]
    for path in (f"{world}/{task}/{last + 1}", f"{world}/{task}/-1", f"{world}/{task}/x", f"{world}/depth/0", "x/y/0"):
        refused = client.get(f"/api/dense/{path}")
        assert refused.status_code == 404
        assert "Traceback" not in refused.json()["error"]
    assert client.get(f"/api/dense/{worlds.default()}/{task}/0").status_code == 404
