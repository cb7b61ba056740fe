"""What the charts of the page fetch: JSON about runs, and the kit's copy of Plotly. No page is rerun for it.

A GET only looks. What changes something is a POST, and `app.security` takes it from this server's own pages alone.
"""

import contextlib
import functools
import gzip
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.sentences import shown, without_paths
from app.supervisor import supervisor
from app.tails import Whole, whole_of
from ftp.lab import methods, worlds
from ftp.lab.answers import known_pictures
from ftp.lab.ask import asking
from ftp.lab.jobs import JOBS, Order
from ftp.lab.record import RUN_ID, LabError, RunRecord, Settings, event_dict, finite
from ftp.lab.recordings import find, recorded
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.store import DamagedError, Store, summarised

DIGITS = re.compile(r"-?[0-9]{1,18}")
NO_STORE = {"cache-control": "no-store"}
TILES = "tiles"  # beside the names of sets
MOST = 500  # points of the class wall
Answer = Callable[[Request], dict[str, Any] | Response]


def routes(wall: bool) -> list[Route]:
    """All routes; the class wall only on a server for a class."""
    looks: dict[str, Answer] = {"/api/health": health, "/api/run/{run_id}/tail": tail}
    looks["/api/run/{run_id}/pictures"] = pictures
    looks["/api/sheet/{world}/{name}"] = sheet
    looks["/api/dense/{world}/{task}/{scene}"] = dense
    looks |= {f"/api/run/{{run_id}}/{job.name}": _result_of(job.name) for job in JOBS.values() if job.suffix}
    if wall:
        looks["/api/wall"] = class_wall
    return [
        *(Route(path, _json(answer), methods=["GET"]) for path, answer in looks.items()),
        Route("/api/run/{run_id}/watch", _json(watch), methods=["POST"]),
        Route("/api/plotly.js", plotly_js, methods=["GET"]),
        Route("/api/{rest:path}", _json(nothing)),
    ]


class NotFound(LabError):
    """What was asked for is not there."""


class Malformed(LabError):
    """What was asked for cannot be there."""


def _json(answer: Answer) -> Callable[[Request], Response]:
    """A route that answers in JSON, errors included. It runs in a thread: the store may have to wait for a lock."""

    def route(request: Request) -> Response:
        try:
            found = answer(request)
            return found if isinstance(found, Response) else JSONResponse(found, headers=NO_STORE)
        except NotFound as error:
            return JSONResponse({"error": shown(error)}, 404, headers=NO_STORE)
        except Malformed as error:
            return JSONResponse({"error": shown(error)}, 400, headers=NO_STORE)
        except LabError as error:  # the store is in trouble, perhaps not for long
            return JSONResponse({"error": shown(error)}, 503, headers=NO_STORE)

    return route


def _run_id(request: Request) -> str:
    run = str(request.path_params["run_id"])
    if not RUN_ID.fullmatch(run):
        raise Malformed("a run's id has 16 hexadecimal digits; take the address from the page")
    return run


def _since(request: Request, default: int = 0) -> int:
    since = request.query_params.get("since", str(default))
    if not DIGITS.fullmatch(since):
        raise Malformed("since must be a whole number, such as since=0")
    return int(since)


def nothing(request: Request) -> dict[str, Any]:
    raise NotFound("there is nothing at this address; the page's own links lead on")


def health(request: Request) -> dict[str, Any]:
    """That the server lives, and how busy it is."""
    return {"status": "ok", **supervisor().busy().__dict__}


def tail(request: Request) -> dict[str, Any] | Response:
    """What a live chart of a run lacks that has all points up to step `since`."""
    run, since = _run_id(request), _since(request)
    if request.query_params.get("recorded") == "1":  # a live run with the same settings has the same id
        return _recorded(request, run, since)
    store = supervisor().store
    try:
        if since < 1:
            return _send(request, supervisor().tails.whole(run, functools.partial(_changing, run)))
        news = store.tail(run, since)
    except DamagedError:
        raise
    except LabError:
        store.runs(limit=1)  # says so if the store itself is in trouble
        return _recorded(request, run, since)
    return {**news, **_changing(run, news)}


def pictures(request: Request) -> dict[str, Any] | Response:
    """The first pictures of every set of a run's world, one sheet for all; nothing for a world without them."""
    try:
        world = worlds.of(_settings_of(supervisor().store, _run_id(request)))
        sheet = known_pictures(world, supervisor().store)
    except (NotFound, Malformed, DamagedError):
        raise
    except LabError:  # a world, or data, that are no longer here
        sheet = None
    return JSONResponse(sheet or {}, headers={"cache-control": "private, max-age=600"} if sheet else NO_STORE)


def sheet(request: Request) -> Response:
    """The recorded pictures of a set of a world, or a tile of each of its labels, as one picture."""
    world, name = str(request.path_params["world"]), str(request.path_params["name"])
    if world not in worlds.names() or not has_extra("ask", world) or name not in (TILES, *asking(world).sets):
        raise NotFound("there are no such pictures; the page's own links lead on")
    data = asking(world).tiles if name == TILES else asking(world).sheet(name)
    kind = "image/png" if name == TILES else "image/webp"
    return Response(
        data, media_type=kind, headers={"cache-control": "private, max-age=86400"}
    )  # the page asks by version


def dense(request: Request) -> Response:
    """The sheets of one recorded scene: its pictures, the truth, and what each network says of every pixel."""
    world, task, scene = (str(request.path_params[key]) for key in ("world", "task", "scene"))
    if world not in worlds.names() or not has_extra("dense", world):
        raise NotFound("nothing of this world was recorded for this view")
    data = extra("dense", world)
    if task not in data["tasks"] or not DIGITS.fullmatch(scene) or not 0 <= int(scene) < len(data["scene_list"]):
        raise NotFound("there is no such scene; the page's own buttons lead to all of them")
    of_task, n = data["tasks"][task], int(scene)
    said = [run["said"][n] for run in of_task["runs"]]
    sheets = {"picture": data["pictures"][n], "truth": of_task["truth"][n], "said": said}
    return JSONResponse(sheets, headers={"cache-control": "private, max-age=600"})


@functools.lru_cache(2048)
def _settings_of(store: Store, run: str) -> Settings:
    """The settings of a run, here or recorded: they never change, so a class does not read them for everybody."""
    try:
        return store.load(run).settings
    except DamagedError:
        raise
    except LabError:
        if record := find(run):
            return record.settings
        raise NotFound(f"there is no run {run} here; it may have been deleted: press Train to make it") from None


def _changing(run: str, news: dict[str, Any]) -> dict[str, Any]:
    """What the store does not know of a run: an end it could not take yet, and the place in the queue."""
    unsaved = supervisor().unsaved_end(run)
    status, error = unsaved or (news["status"], news["error"])
    place = supervisor().place(run) if status == "queued" else None
    facts = _facts(supervisor().store, run)
    return {"status": status, "error": without_paths(error), **facts, "place": place.__dict__ if place else None}


def _send(request: Request, whole: Whole) -> Response:
    """The whole of a run, compressed once for all; a browser that has it already is told so."""
    headers = {"cache-control": "no-cache", "etag": whole.tag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == whole.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(whole.packed), media_type="application/json", headers=headers)
    return Response(whole.packed, media_type="application/json", headers={**headers, "content-encoding": "gzip"})


def watch(request: Request) -> dict[str, Any]:
    """Renew the lease of a run, for somebody looks at it; a run that is over, or made elsewhere, has none."""
    return {"renewed": supervisor().watch(_run_id(request))}


def _recorded(request: Request, run: str, since: int) -> dict[str, Any] | Response:
    record = recording(run)
    if record is None:
        raise NotFound(f"there is no run {run} here; it may have been deleted: press Train to make it")
    return _send(request, _whole_recording(run)) if since < 1 else _replay(record, since)


@functools.lru_cache(64)
def _whole_recording(run: str) -> Whole:
    record = recording(run)
    assert record is not None
    return whole_of(_replay(record, -1))


def _replay(record: RunRecord, since: int) -> dict[str, Any]:
    return {**recorded_tail(record, since), **_about(record), "place": None, "expected": None}


@functools.lru_cache(2048)
def _facts(store: Store, run: str) -> dict[str, Any]:
    """What never changes in a run, so that 50 viewers do not read it each second."""
    record = store.load(run)
    return {**_about(record), "expected": supervisor().expected(record.settings)}


def _about(record: RunRecord) -> dict[str, Any]:
    settings = record.settings
    try:
        phases = [phase.name for phase in worlds.of(settings).phases]  # also of a run that has not begun
    except LabError:  # a world that is no longer here
        phases = list(record.phases)
    same = {"method": settings.method, "seed": settings.seed, "world": settings.world}
    return {**same, "steps": settings.steps * len(phases), "phases": phases}


@functools.lru_cache(256)
def recording(run: str) -> RunRecord | None:
    """The run of that id that comes with the kit, if it has points."""
    record = find(run)
    return record if record and record.points else None


def recorded_tail(record: RunRecord, since: int) -> dict[str, Any]:
    """The same form as `Store.tail` gives."""
    points = [event_dict(point) for point in record.points if point.step > since]
    evals = [event_dict(entry) for entry in record.evals if entry.step >= since]
    same = {key: getattr(record, key) for key in ("run_id", "status", "name", "error", "started", "heartbeat")}
    for event in evals:
        event["summary"] = summarised(event["scores"], record.measures)
    layers = {"layers": list(record.layers), "measures": record.measures.as_dict()} if since < 1 else {}
    return {**same, **layers, "step": points[-1]["step"] if points else since, "points": points, "evals": evals}


def _result_of(job: str) -> Answer:
    def result(request: Request) -> dict[str, Any]:
        run = _run_id(request)
        try:
            order = Order(job, run, request.query_params.get("layer", ""))
        except LabError as error:
            raise Malformed(str(error)) from error
        data = order.result(supervisor().store)
        if data is not None:
            return {"status": "done", **finite(data)}
        status = supervisor().job_status(order)
        waits = status in ("queued", "running", "missing")
        return {"status": status} if waits else {"status": "failed", "error": shown(status)}

    result.__doc__ = f"The result of the job {job}, or how far it is."
    return result


def class_wall(request: Request) -> dict[str, Any]:
    """Runs of one world that ended after `since` (seconds since 1970), as points in the plane of ID and OOD."""
    if not supervisor().wall_is_on:
        raise LabError("the class wall is off for now; it comes back when the teacher switches it on")
    since, world = _since(request), request.query_params.get("world", worlds.default())
    if world not in worlds.names():
        raise Malformed(f"world must be one of {', '.join(worlds.names())}")
    runs = supervisor().store.runs(world=world, status="done", ended_after=since, limit=MOST)
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
        identify(resolve(worlds.default(), methods.names()[0]))  # reads the code: the first Train need not wait for it
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
