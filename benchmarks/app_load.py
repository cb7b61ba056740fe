"""A class of viewers at once: sessions on one server while one worker trains.

Every viewer opens the Live view, asks each second for what is new in the run, and now and then moves a slider. Then
all of them ask at the same moment for the whole of a long run, as a class does that follows one link. The viewers, the
server and the worker share this machine, so the times are those of a worse case.
"""

import argparse
import asyncio
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from app import promises
from app.__main__ import free_port
from ftp.lab.record import StartEvent, StepEvent
from ftp.lab.recordings import recorded
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.store import Store

TARGETS = {
    "live_p95_ms": 50,
    "widget_p95_ms": 200,
    "whole_p95_ms": 200,
    "cpu_percent": 60,
    "rss_mb": 400,
    "growth_mb": 50,
}
ROUNDS = 5  # times that all ask for the whole run at once
EVERY = 5  # seconds between two moves of a slider
RENEW = 30  # seconds between two words that somebody looks
PATIENCE = 120.0
SETTLE = 3.0  # seconds after the last has come; the rush at the door is in opened_p95_ms


@dataclass
class Times:
    """What all viewers saw, in seconds."""

    opened: list[float] = field(default_factory=list)
    live: list[float] = field(default_factory=list)
    widget: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


async def through(socket: ClientConnection) -> tuple[str, float]:
    """Read until the script is through; the id of a slider in it, if there is one, and its value."""
    slider, value = "", 0.0
    while True:
        received = await asyncio.wait_for(socket.recv(), PATIENCE)
        assert isinstance(received, bytes)
        message = ForwardMsg.FromString(received)
        element = message.delta.new_element
        if element.WhichOneof("type") == "slider" and not slider:
            slider, value = element.slider.id, element.slider.min
        if element.WhichOneof("type") == "exception":
            raise RuntimeError(element.exception.message)
        if message.WhichOneof("type") == "script_finished":
            return slider, value


Pipe = list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]


async def fetch(port: int, path: str, pipe: Pipe, method: str = "GET") -> bytes:
    """One question over a connection that stays open, as a browser does it."""
    if not pipe:
        pipe.append(await asyncio.open_connection("127.0.0.1", port))
    reader, writer = pipe[0]
    head = f"Host: 127.0.0.1:{port}\r\nContent-Length: 0\r\nAccept-Encoding: gzip"
    writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
    await writer.drain()
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
    fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line)
    body = await reader.readexactly(int(fields[b"content-length"]))
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{path}: {answer.splitlines()[0].decode()} {body[:200]!r}")
    return body


async def whole(sessions: int, port: int, run: str, server: psutil.Process) -> dict[str, float]:
    """All viewers ask for the whole run at the same moment, several times; what an answer costs the server."""
    pipes: list[Pipe] = [[] for _ in range(sessions)]
    for pipe in pipes:
        await fetch(port, "/api/health", pipe)  # the connection is open, as that of a page is
    seconds: list[float] = []

    async def ask(pipe: Pipe) -> int:
        asked = time.perf_counter()
        body = await fetch(port, f"/api/run/{run}/tail?since=-1", pipe)
        seconds.append(time.perf_counter() - asked)
        return len(body)

    used = sum(server.cpu_times()[:2])
    for _ in range(ROUNDS):
        sizes = await asyncio.gather(*(ask(pipe) for pipe in pipes))
        await asyncio.sleep(1)
    used = sum(server.cpu_times()[:2]) - used
    for pipe in pipes:
        pipe[0][1].close()
    cpu = round(1e3 * used / len(seconds), 1)
    return {"whole_p95_ms": p95(seconds), "whole_cpu_ms": cpu, "whole_kb": round(sizes[0] / 1e3)}


async def viewer(number: int, port: int, run: str, end: float, times: Times, steady: float = 0.0) -> None:
    """One session from its first message to the end; what it asks for before `steady` is not counted."""
    pipe: Pipe = []
    began = time.perf_counter()
    try:
        address, protocols = f"ws://127.0.0.1:{port}/_stcore/stream", [Subprotocol("streamlit")]
        async with connect(address, subprotocols=protocols, max_size=None, open_timeout=PATIENCE) as socket:
            message = BackMsg()
            message.rerun_script.page_name = "live"
            await socket.send(message.SerializeToString())
            slider, low = await through(socket)
            times.opened.append(time.perf_counter() - began)
            since, tick = 0, number % EVERY
            while time.perf_counter() < end:
                asked = time.perf_counter()
                tail = json.loads(unpacked(await fetch(port, f"/api/run/{run}/tail?since={since}", pipe)))
                if asked > steady:
                    times.live.append(time.perf_counter() - asked)
                since, tick = tail["step"], tick + 1
                if tick % RENEW == 0:
                    await fetch(port, f"/api/run/{run}/watch", pipe, "POST")
                if tick % EVERY == 0 and slider:
                    state = message.rerun_script.widget_states.widgets
                    del state[:]
                    moved = state.add(id=slider)
                    moved.double_array_value.data.append(low + 0.01 * (tick % 7))
                    asked = time.perf_counter()
                    await socket.send(message.SerializeToString())
                    await through(socket)
                    if asked > steady:
                        times.widget.append(time.perf_counter() - asked)
                await asyncio.sleep(max(0.0, 1.0 - (time.perf_counter() - asked)))
    except Exception as error:
        times.errors.append(f"viewer {number}: {type(error).__name__}: {error}")
    finally:
        for _, writer in pipe:
            writer.close()


def unpacked(body: bytes) -> bytes:
    """A body as it was before the server compressed it, if it did."""
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


async def crowd(sessions: int, seconds: float, port: int, run: str, server: psutil.Process) -> dict[str, float]:
    """All viewers; what they saw, and what the server used meanwhile."""
    times, warm = Times(), Times()
    await viewer(0, port, run, time.perf_counter() + 1, warm)
    before, lasting = server.memory_info().rss, max(2.0, sessions / 10)  # they come one after the other, as people do
    steady = time.perf_counter() + lasting + SETTLE
    end = steady + seconds
    viewers = []
    for number in range(sessions):
        viewers.append(asyncio.create_task(viewer(number, port, run, end, times, steady)))
        await asyncio.sleep(lasting / sessions)
    await asyncio.sleep(SETTLE)
    used, since = sum(server.cpu_times()[:2]), time.perf_counter()
    await asyncio.sleep(max(1.0, end - time.perf_counter() - 1))
    cpu = 100 * (sum(server.cpu_times()[:2]) - used) / (time.perf_counter() - since)
    rss = server.memory_info().rss
    await asyncio.gather(*viewers)
    for line in (*warm.errors, *times.errors):
        print(line, file=sys.stderr)
    return {
        "sessions": sessions,
        "errors": len(warm.errors) + len(times.errors),
        "asked": len(times.live),
        "moved": len(times.widget),
        "opened_p95_ms": p95(times.opened),
        "live_p95_ms": p95(times.live),
        "widget_p95_ms": p95(times.widget),
        "cpu_percent": round(cpu, 1),
        "rss_mb": round(rss / 1e6, 1),
        "growth_mb": round((rss - before) / 1e6, 1),
    }


def p95(seconds: list[float]) -> float:
    """The 95th percentile, in milliseconds."""
    return round(1e3 * statistics.quantiles([*seconds, *seconds], n=20)[-1], 1) if seconds else float("nan")


def long_run(store: Store) -> str:
    """A stopped run with as many points and layers as a long one has, every number with all its digits."""
    settings, model = resolve("digits", "ftp", {"steps": 1999}), recorded(method="ftp", seed=0)[0]
    run = identify(settings)

    def full(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
        return tuple(value if value is None else value * 1.000000123456789 for value in values)

    store.create(run, settings)
    assert store.claim(run)
    store.start(run, StartEvent(model.layers, {}, measures=model.measures))
    points: list[StepEvent] = [
        replace(p, gamma=full(p.gamma), distance=full(p.distance), boundary=full(p.boundary))  # type: ignore[arg-type]
        for p in model.points
    ]
    store.append(run, [*points, *(entry for entry in model.evals if not entry.final)])
    store.finish(run, "stopped")
    return run


def measure(sessions: int, seconds: float) -> dict[str, float]:
    """Start a server and one run, and let the crowd in."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = Store(Path(folder) / "runs.db")
        settings = resolve("digits", "ftp", {"steps": 2000})
        run = identify(settings)
        store.create(run, settings)
        promises.make(store, run)  # the server takes it up
        ended = long_run(store)
        port = free_port(20000 + os.getpid() % 20000)
        command = [sys.executable, "-m", "app", "--port", str(port), "--store", str(store.path)]
        with subprocess.Popen(command, env={**os.environ, "CI": "true"}, stdout=subprocess.DEVNULL) as server:
            try:
                deadline = time.monotonic() + 3 * PATIENCE
                while not store.tail(run, 0)["points"]:
                    assert server.poll() is None
                    assert time.monotonic() < deadline, "the run did not start"
                    time.sleep(0.2)
                assert port is not None
                found = asyncio.run(crowd(sessions, seconds, port, run, psutil.Process(server.pid)))
                found |= asyncio.run(whole(sessions, port, ended, psutil.Process(server.pid)))
                return {**found, "trained_steps": store.tail(run, 0)["step"]}
            finally:
                server.terminate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.sessions, asked.seconds)
    if asked.json:
        print(json.dumps(found))
    else:
        print(f"{asked.sessions} sessions for {asked.seconds:g} s, one worker training")
        for name, value in found.items():
            target = f"   target < {TARGETS[name]}" if name in TARGETS else ""
            print(f"  {name:14} {value:>8g}{target}")
    return 1 if found["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
