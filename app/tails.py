"""The whole of a run for everybody who opens it: every point is written as JSON and compressed once, not per viewer.

A class that follows one link asks for the same run at the same moment. So the compressed stream of its points is kept,
and grows as the run does; the few facts that change (status, place, evaluations) are added to a copy of its end.
"""

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ftp.lab.store import Store

MOST = 64  # runs that are kept, about 100 kB each
LEVEL, GZIP = 6, 31  # zlib's usual effort; 31 means the format gzip


class Stream:
    """The points of one run as the beginning of a JSON object, compressed; `whole` adds the rest."""

    def __init__(self) -> None:
        self.step = -1
        self.points = 0
        self._compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        self._packed = self._compressor.compress(b'{"points":[')

    def grow(self, points: list[dict[str, Any]]) -> None:
        """Take in the points that came after `step`."""
        for point in points:
            text = _json(point)
            self._packed += self._compressor.compress((f",{text}" if self.points else text).encode())
            self.step, self.points = point["step"], self.points + 1

    def whole(self, rest: str) -> bytes:
        """All points, then the rest, the text of a JSON object, as one gzip file.

        >>> import gzip
        >>> stream = Stream()
        >>> stream.grow([{"step": 1}, {"step": 2}])
        >>> gzip.decompress(stream.whole('{"status":"running"}'))
        b'{"points":[{"step":1},{"step":2}],"status":"running"}'
        """
        end = self._compressor.copy()
        return self._packed + end.compress(f"],{rest[1:]}".encode()) + end.flush()


@dataclass(frozen=True)
class Whole:
    """A run as it is sent: compressed, and a tag that is the same as long as nothing has changed."""

    packed: bytes
    tag: str


class _Run:
    """What is kept of one run."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.text, self.sent = "", Whole(b"", "")
        self.forget("")

    def forget(self, maker: str) -> None:
        self.maker, self.stream = maker, Stream()
        self.facts: dict[str, Any] = {}
        self.evals: dict[tuple[int, bool], dict[str, Any]] = {}

    def take_in(self, news: dict[str, Any]) -> None:
        """What `Store.tail` gave: the points after the last one, evaluations perhaps once more."""
        self.stream.grow(news.pop("points"))
        self.evals |= {(entry["step"], entry["final"]): entry for entry in news.pop("evals")}
        del news["step"]
        self.facts |= news

    def send(self, more: Mapping[str, Any]) -> Whole:
        """Everything, and some facts more; the same bytes as before if nothing has changed."""
        text = _json({**self.facts, "evals": list(self.evals.values()), **more})
        if text != self.text or not self.sent.packed:
            self.text = text
            self.sent = Whole(self.stream.whole(text), f'"{self.stream.step}-{zlib.crc32(text.encode()):08x}"')
        return self.sent


class Tails:
    """The runs of a store that were asked for last."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def whole(self, run_id: str, more: Callable[[dict[str, Any]], Mapping[str, Any]]) -> Whole:
        """A run with all its points, and what `more` adds to, or puts in place of, what the store says of it."""
        with self._lock:
            run = self._runs.setdefault(run_id, _Run())
            self._runs.move_to_end(run_id)
            while len(self._runs) > MOST:
                self._runs.popitem(last=False)
        with run.lock:  # of many who ask at once, one reads what is new
            maker = self.store.owner(run_id)
            news = self.store.tail(run_id, run.stream.step)
            if maker != run.maker or news["started"] != run.facts.get("started"):  # made anew, or gone on with
                run.forget(maker)
                news = self.store.tail(run_id, -1)
            run.take_in(news)
            return run.send({"step": run.stream.step, **more(run.facts)})


def whole_of(news: dict[str, Any]) -> Whole:
    """A run that does not change any more, in the same form; `news` is what a tail gives for step -1."""
    run = _Run()
    run.take_in(dict(news))
    return run.send({"step": run.stream.step})


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
