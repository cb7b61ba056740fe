"""The forms of a run as plain JSON data: in the rows of the store, and as a recorded run that is shipped."""

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

from ftp.lab.record import (
    RUN_ID,
    STATUSES,
    EvalEvent,
    LabError,
    RunRecord,
    Settings,
    StepEvent,
    event_dict,
    finite,
    settings_from_dict,
)

FORMAT = "ftp-lab run 1"
NAME_LENGTH = 100
SAME = ("run_id", "status", "name", "error", "created", "started", "ended", "provenance", "result")  # in every form


def dump(value: Any) -> str:
    """Compact JSON without NaN and infinity.

    >>> dump({"loss": math.inf})
    '{"loss":null}'
    """
    return json.dumps(finite(value), allow_nan=False, separators=(",", ":"))


def _real(value: float | None) -> float:
    return math.nan if value is None else value


def step_event(data: Mapping[str, Any]) -> StepEvent:
    """The event out of `event_dict`; a number that was not finite is NaN.

    >>> step_event(event_dict(StepEvent(1, math.inf, 0.1, (None,), (0.5,), (None,)))).loss
    nan
    """
    return StepEvent(
        step=data["step"],
        loss=_real(data["loss"]),
        lr=_real(data["lr"]),
        gamma=tuple(data["gamma"]),
        distance=tuple(map(_real, data["distance"])),
        boundary=tuple(data["boundary"]),
        seconds=_real(data["seconds"]),
    )


def eval_event(data: Mapping[str, Any]) -> EvalEvent:
    """The event out of `event_dict`; a number that was not finite is NaN.

    >>> eval_event(event_dict(EvalEvent(2, {"id": 90.0}, {"fog": (80.0, math.nan)}))).corruptions
    {'fog': (80.0, nan)}
    """
    return EvalEvent(
        step=data["step"],
        accuracy={key: _real(value) for key, value in data["accuracy"].items()},
        corruptions={key: tuple(map(_real, values)) for key, values in data["corruptions"].items()},
        ece={key: _real(value) for key, value in data["ece"].items()},
        **{key: data[key] for key in ("lipschitz", "counts", "final")},
    )


def checked(run_id: str) -> str:
    """The id itself, if it is one: ids come from web addresses and become file names.

    >>> checked("../../etc/passwd")
    Traceback (most recent call last):
    ftp.lab.record.LabError: '../../etc/passwd' is no run id; an id is 16 digits of 0-9 and a-f, see `ftp-lab runs`
    """
    if not isinstance(run_id, str) or not RUN_ID.fullmatch(run_id):
        raise LabError(f"{run_id!r:.80} is no run id; an id is 16 digits of 0-9 and a-f, see `ftp-lab runs`")
    return run_id


def named(name: str) -> str:
    """The name itself, if it is one line of text.

    >>> named("k = 0.5 ![x](y)")
    'k = 0.5 ![x](y)'
    """
    if not isinstance(name, str) or len(name) > NAME_LENGTH or not name.isprintable():
        raise LabError(f"{name!r:.80} is no name for a run; write one line of up to {NAME_LENGTH} letters")
    return name


def storable(text: str) -> str:
    r"""The text in a form that can be stored: a file name in it may be no Unicode.

    >>> storable("no file \udcff")
    'no file ?'
    """
    return text.encode(errors="replace").decode()


def to_form(record: RunRecord, code_version: str = "") -> dict[str, Any]:
    """A run as plain JSON data, as recorded runs are shipped.

    >>> to_form(RunRecord("0" * 16, Settings()))["status"]
    'queued'
    """
    form = {"format": FORMAT, **{key: getattr(record, key) for key in SAME}}
    form |= {"settings": record.settings.as_dict(), "layers": record.layers, "code_version": code_version}
    events = {"points": [event_dict(e) for e in record.points], "evals": [event_dict(e) for e in record.evals]}
    return {**finite(form), **events}


def from_form(data: Any) -> RunRecord:
    """The run out of `to_form`. Everything is checked, for the data may come from anywhere.

    >>> from_form({"format": "a poem"})
    Traceback (most recent call last):
    ftp.lab.record.LabError: this is no recorded run (format must be 'ftp-lab run 1'); write one with Store.export
    """

    most = sys.float_info.max

    def need(ok: bool, what: str) -> None:
        if not ok:
            raise LabError(f"this is no recorded run ({what}); write one with Store.export")

    def table(value: Any, fits: Any) -> bool:
        return isinstance(value, dict) and all(isinstance(key, str) and fits(entry) for key, entry in value.items())

    def several(value: Any, fits: Any) -> bool:
        return isinstance(value, list) and all(map(fits, value))

    def whole(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63

    def real(value: Any) -> bool:
        if type(value) is float:  # nearly all of them
            return -most <= value <= most
        return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= most)

    def percent(value: Any) -> bool:
        return value is None or (real(value) and 0 <= value <= 100)

    need(isinstance(data, dict) and data.get("format") == FORMAT, f"format must be {FORMAT!r}")
    data = finite(data)
    for key in to_form(RunRecord("", Settings())):
        need(key in data, f"{key} is missing")
    checked(data["run_id"])
    named(data["name"])
    need(data["status"] in STATUSES, f"status must be one of {', '.join(STATUSES)}")
    need(isinstance(data["error"], str), "error must be text")
    need(isinstance(data["code_version"], str) and data["code_version"].isascii(), "code_version must be plain text")
    for key in ("created", "started", "ended"):
        need(real(data[key]) and (key, data[key]) != ("created", None), f"{key} must be a number")
    need(table(data["provenance"], lambda _: True), "provenance must be a table")
    need(data["result"] is None or table(data["result"], lambda _: True), "result must be a table")
    flat = table(data["settings"], lambda entry: isinstance(entry, str | bool) or (entry is not None and real(entry)))
    need(flat, "settings must be a flat table")
    for key, value in Settings().common().items():
        kind, found = type(value), type(data["settings"].get(key))
        word = {str: "text", int: "a whole number", float: "a number"}[kind]
        need(found is kind or (found, kind) == (int, float), f"the setting {key} must be {word}")
    need(several(data["layers"], lambda layer: isinstance(layer, str)), "layers must be names")
    need(several(data["points"], lambda e: isinstance(e, dict)), "points must be a list of tables")
    for event in data["points"]:
        need(whole(event.get("step")) and all(real(event.get(k, "")) for k in ("loss", "lr", "seconds")), "a bad point")
        for key in ("gamma", "distance", "boundary"):
            need(several(event.get(key), real) and len(event[key]) == len(data["layers"]), f"a point with a bad {key}")
    need(several(data["evals"], lambda e: isinstance(e, dict)), "evals must be a list of tables")
    for event in data["evals"]:
        need(whole(event.get("step")) and isinstance(event.get("final"), bool), "an evaluation without step or final")
        forms = {"accuracy": percent, "ece": percent, "counts": whole, "lipschitz": lambda _: True}
        forms["corruptions"] = lambda values: several(values, percent)
        for key, fits in forms.items():
            need(table(event.get(key), fits), f"an evaluation with a bad {key}")
    ends = [event for event in data["evals"] if event["final"]]
    need(all("id" in event["accuracy"] for event in ends), "a final evaluation without id")
    need(bool(ends) or data["status"] != "done", "done without a final evaluation")
    for key in ("created", "started", "ended"):
        data[key] = None if data[key] is None else float(data[key])
    return RunRecord(
        settings=settings_from_dict(data["settings"]),
        layers=tuple(data["layers"]),
        points=tuple(map(step_event, data["points"])),
        evals=tuple(map(eval_event, data["evals"])),
        **{key: data[key] for key in SAME},
    )
