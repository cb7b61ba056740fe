"""What the charts of the page fetch: JSON about runs, and the kit's copy of Plotly. No page is rerun for it."""

import contextlib
import functools
import gzip
import importlib
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.supervisor import supervisor
from ftp.lab.record import RUN_ID, LabError, RunRecord, event_dict, finite
from ftp.lab.recordings import find, recorded
from ftp.lab.store import Store

LAYER = re.compile(r"[A-Za-z0-9_.]{1,100}")
DIGITS = re.compile(r"-?[0-9]{1,18}")
NO_STORE = {"cache-control": "no-store"}
MOST = 500  # points of the class wall
Answer = Callable[[Request], dict[str, Any]]


def routes(wall: bool) -> list[Route]:
    """All routes; the class wall only on a server for a class."""
    paths: dict[str, Answer] = {
        "/api/health": health,
        "/api/run/{run_id}/tail": tail,
        "/api/run/{run_id}/wise": wise,
        "/api/run/{run_id}/microscope": microscope,
    }
    if wall:
        paths["/api/wall"] = class_wall
    found = [Route(path, _json(answer), methods=["GET"]) for path, answer in paths.items()]
    plotly = Route("/api/plotly.js", plotly_js, methods=["GET"])
    return [*found, plotly, Route("/api/{rest:path}", _json(nothing))]


class NotFound(LabError):
    """What was asked for is not there."""


class Malformed(LabError):
    """What was asked for cannot be there."""


def _json(answer: Answer) -> Callable[[Request], Response]:
    """A route that answers in JSON, errors included. It runs in a thread: the store may have to wait for a lock."""

    def route(request: Request) -> Response:
        try:
            return JSONResponse(answer(request), headers=NO_STORE)
        except NotFound as error:
            return JSONResponse({"error": str(error)}, 404, headers=NO_STORE)
        except Malformed as error:
            return JSONResponse({"error": str(error)}, 400, headers=NO_STORE)
        except LabError as error:  # the store is in trouble, perhaps not for long
            return JSONResponse({"error": str(error)}, 503, headers=NO_STORE)

    return route


def _run_id(request: Request) -> str:
    given = request.path_params["run_id"]
    if not RUN_ID.fullmatch(given):
        raise Malformed("a run's id has 16 hexadecimal digits; take the address from the page")
    return str(given)


def _since(request: Request, default: int = 0) -> int:
    given = request.query_params.get("since", str(default))
    if not DIGITS.fullmatch(given):
        raise Malformed("since must be a whole number, such as since=0")
    return int(given)


def nothing(request: Request) -> dict[str, Any]:
    raise NotFound("there is nothing at this address; the page's own links lead on")


def health(request: Request) -> dict[str, Any]:
    """That the server lives, and how busy it is."""
    return {"status": "ok", **supervisor().busy().__dict__}


def tail(request: Request) -> dict[str, Any]:
    """What a live chart of a run lacks that has all points up to step `since`."""
    run, since = _run_id(request), _since(request)
    own = supervisor()
    if request.query_params.get("recorded") == "1":  # a live run with the same settings has the same id
        return _recorded(run, since)
    try:
        found = own.store.tail(run, since)
    except LabError:
        own.store.runs(limit=1)  # says so if the store itself is in trouble
        return _recorded(run, since)
    about = _facts(own.store, run)
    own.watch(run)
    if (ended := own.ended(run)) is not None:
        found["status"], found["error"] = ended
    place = own.place(run) if found["status"] == "queued" else None
    return {**found, **about, "place": place.__dict__ if place else None}


def _recorded(run: str, since: int) -> dict[str, Any]:
    record = recording(run)
    if record is None:
        raise NotFound(f"there is no run {run} here; it may have been deleted: press Train to make it")
    return {**recorded_tail(record, since), **_about(record), "place": None, "expected": None}


@functools.lru_cache(2048)
def _facts(store: Store, run: str) -> dict[str, Any]:
    """What never changes in a run, so that 50 viewers do not read it each second."""
    record = store.load(run)
    return {**_about(record), "expected": supervisor().expected(record.settings)}


def _about(record: RunRecord) -> dict[str, Any]:
    settings = record.settings
    return {"steps": settings.steps, "method": settings.method, "seed": settings.seed, "world": settings.world}


@functools.lru_cache(256)
def recording(run: str) -> RunRecord | None:
    """The run of that id that comes with the kit, if it has points."""
    record = find(run)
    return record if record and record.points else None


def recorded_tail(record: RunRecord, since: int) -> dict[str, Any]:
    """The same form as `Store.tail` gives."""
    points = [event_dict(point) for point in record.points if point.step > since]
    evals = [event_dict(entry) for entry in record.evals if entry.step >= since]
    same = {key: getattr(record, key) for key in ("run_id", "status", "name", "error", "heartbeat")}
    layers = {"layers": list(record.layers)} if since < 1 else {}
    return {**same, **layers, "step": points[-1]["step"] if points else since, "points": points, "evals": evals}


def wise(request: Request) -> dict[str, Any]:
    """The WiSE curve of a run, or how far it is."""
    run = _run_id(request)
    return _job_file("wise", run, supervisor().store.weights_path(run).with_suffix(".wise.json"))


def microscope(request: Request) -> dict[str, Any]:
    """The steps of one layer under the microscope, or how far they are."""
    run, layer = _run_id(request), request.query_params.get("layer", "")
    if not LAYER.fullmatch(layer):
        raise Malformed("layer must be the name of a layer, such as layer=stem.weight")
    return _job_file("microscope", run, supervisor().store.weights_path(run).with_suffix(f".{layer}.microscope.json"))


def _job_file(kind: str, run: str, path: Path) -> dict[str, Any]:
    if path.exists():
        return {"status": "done", **finite(json.loads(path.read_bytes()))}
    supervisor().watch(run)
    status = supervisor().job_status(kind, run)
    return {"status": status} if status in ("queued", "running", "missing") else {"status": "failed", "error": status}


def class_wall(request: Request) -> dict[str, Any]:
    """Runs of the class that ended after `since` (seconds since 1970), as points in the plane of ID and OOD."""
    since = _since(request)
    runs = supervisor().store.runs(status="done", ended_after=since, limit=MOST)
    points = [
        {
            "run_id": r.run_id,
            "name": r.name,
            **_about(r),
            "ended": r.ended,
            **{k: r.result[k] for k in ("id", "ood_avg")},
        }
        for r in sorted(runs, key=lambda r: r.ended or 0)
        if r.result
    ]
    return {"points": points, "busy": supervisor().busy().__dict__}


def warm() -> None:
    """Read and import what the first viewer would wait for; what is missing is told by the view that needs it."""
    with contextlib.suppress(LabError, OSError, ImportError):
        _plotly()
        for module in ("app.views.live", "pandas"):  # Streamlit imports pandas when a component gets its first data
            importlib.import_module(module)
        inspect.stack()  # Streamlit asks for it once, and Python then reads where all modules lie
        recorded()


@functools.cache
def _plotly() -> tuple[bytes, bytes]:
    data = (Path(__file__).parent / "vendor" / "plotly-basic.min.js").read_bytes()
    return data, gzip.compress(data, 6)


def plotly_js(request: Request) -> Response:
    """The part of Plotly that draws lines and points, a quarter of the whole: the first chart comes seconds earlier."""
    plain, small = _plotly()
    headers = {"cache-control": "public, max-age=86400", "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(small, media_type="text/javascript", headers={**headers, "content-encoding": "gzip"})
    return Response(plain, media_type="text/javascript", headers=headers)
