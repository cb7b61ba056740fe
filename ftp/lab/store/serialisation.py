"""The forms of a run as plain JSON data: in the rows of the store, and as a recorded run that is shipped."""

import json
import math
import sys
from collections.abc import Iterable, Mapping
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
from ftp.lab.summary import ROLES, Measures, Metric, measures_from_dict

FORMAT, OLD_FORMAT = "ftp-lab run 2", "ftp-lab run 1"
NAME_LENGTH = 100
MOST_DIGITS = 12  # after the point
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
        phase=data.get("phase", 0),
    )


def eval_event(data: Mapping[str, Any]) -> EvalEvent:
    """The event out of `event_dict`; a number that was not finite is NaN.

    >>> eval_event(event_dict(EvalEvent(2, {"accuracy": {"id": 90.0}}, {"fog": (80.0, math.nan)}))).corruptions
    {'fog': (80.0, nan)}
    """
    return EvalEvent(
        step=data["step"],
        scores={name: {key: _real(value) for key, value in row.items()} for name, row in data["scores"].items()},
        corruptions={key: tuple(map(_real, values)) for key, values in data["corruptions"].items()},
        **{key: data[key] for key in ("lipschitz", "counts", "final", "phase", "whole")},
        answers={split: tuple(labels) for split, labels in data.get("answers", {}).items()},
        maps=dict(data.get("maps", {})),
    )


def old_measures(names: Iterable[str]) -> Measures:
    """What the scores of the first format meant: accuracy and its calibration error in percent, home called id."""
    roles = {"id": "home", "val": "val"}
    metrics = (Metric("accuracy"), Metric("ece", higher_is_better=False))
    return Measures(metrics, {name: roles.get(name, "shift") for name in dict.fromkeys(names)})


def upgraded_eval(data: Mapping[str, Any]) -> dict[str, Any]:
    """An evaluation of the first format in the present one.

    >>> upgraded_eval({"step": 1, "accuracy": {"id": 9.0}, "ece": {}, "final": False})
    {'step': 1, 'final': False, 'scores': {'accuracy': {'id': 9.0}}, 'phase': 0, 'whole': False}
    """
    scores = {"accuracy": data["accuracy"]} | ({"ece": data["ece"]} if data["ece"] else {})
    rest = {key: value for key, value in data.items() if key not in ("accuracy", "ece")}
    return {**rest, "scores": scores, "phase": 0, "whole": data["final"]}


def upgraded_result(result: Mapping[str, Any], measures: Measures) -> dict[str, Any]:
    """A result of the first format in the present one."""
    main = measures.main
    metric = {"name": main.name, "unit": main.unit, "higher_is_better": main.higher_is_better}
    home_and_val = {name: result[name] for name in ("val", "id") if result.get(name) is not None}
    scores = {"accuracy": {**home_and_val, **result["ood"]}} | ({"ece": result["ece"]} if result.get("ece") else {})
    rest = {key: value for key, value in result.items() if key != "ece"}
    return {**rest, "metric": metric, "scores": scores}


def _upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """A run of the first format in the present one; what is wrong with it is found later."""
    try:
        evals = [upgraded_eval(event) for event in data["evals"]]
        measures = old_measures(name for event in data["evals"] for name in event["accuracy"])
        result = data["result"] and upgraded_result(data["result"], measures)
    except (KeyError, TypeError, AttributeError):
        raise LabError("this is no recorded run (an evaluation is broken); write one with Store.export") from None
    news = {"format": FORMAT, "evals": evals, "result": result, "measures": measures.as_dict(), "phases": [""]}
    return {**data, **news}


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
    """A run as plain JSON data, as recorded runs are shipped."""
    form = {"format": FORMAT, **{key: getattr(record, key) for key in SAME}}
    form |= {"settings": record.settings.as_dict(), "layers": record.layers, "code_version": code_version}
    form |= {"measures": record.measures.as_dict(), "phases": record.phases}
    events = {"points": [event_dict(e) for e in record.points], "evals": [event_dict(e) for e in record.evals]}
    return {**finite(form), **events}


def from_form(data: Any) -> RunRecord:
    """The run out of `to_form`. Everything is checked, for the data may come from anywhere.

    >>> from_form({"format": "a poem"})
    Traceback (most recent call last):
    ftp.lab.record.LabError: this is no recorded run (format must be 'ftp-lab run 2'); write one with Store.export
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

    need(isinstance(data, dict) and data.get("format") in (FORMAT, OLD_FORMAT), f"format must be {FORMAT!r}")
    data = finite(data)
    if data["format"] == OLD_FORMAT:
        data = _upgraded(data)
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
        kind, actual = type(value), type(data["settings"].get(key))
        word = {str: "text", int: "a whole number", float: "a number"}[kind]
        need(actual is kind or (actual, kind) == (int, float), f"the setting {key} must be {word}")
    need(several(data["layers"], lambda layer: isinstance(layer, str)), "layers must be names")
    need(several(data["points"], lambda e: isinstance(e, dict)), "points must be a list of tables")
    need(several(data["phases"], lambda name: isinstance(name, str)) and data["phases"] != [], "phases must be names")
    measures = _measures(data["measures"])
    need(measures is not None, "measures must be metrics and roles")
    assert measures is not None
    limits = {metric.name: (metric.low, metric.high) for metric in measures.metrics}

    def scored(metric: str) -> Any:
        low, high = limits[metric]
        return lambda value: value is None or (real(value) and low <= value <= high)

    for event in data["points"]:
        need(whole(event.get("phase", 0)), "a point with a bad phase")
        need(whole(event.get("step")) and all(real(event.get(k, "")) for k in ("loss", "lr", "seconds")), "a bad point")
        for key in ("gamma", "distance", "boundary"):
            need(several(event.get(key), real) and len(event[key]) == len(data["layers"]), f"a point with a bad {key}")
    need(several(data["evals"], lambda e: isinstance(e, dict)), "evals must be a list of tables")
    for event in data["evals"]:
        need(whole(event.get("step")) and isinstance(event.get("final"), bool), "an evaluation without step or final")
        need(whole(event.get("phase")) and isinstance(event.get("whole"), bool), "an evaluation without phase or whole")
        forms = {"scores": lambda row: isinstance(row, dict), "counts": whole, "lipschitz": lambda _: True}
        forms["corruptions"] = lambda values: several(values, scored(measures.main.name) if measures else real)
        for key, fits in forms.items():
            need(table(event.get(key), fits), f"an evaluation with a bad {key}")
        need(table(event.get("answers", {}), lambda labels: several(labels, whole)), "an evaluation with bad answers")
        need(table(event.get("maps", {}), lambda text: isinstance(text, str)), "an evaluation with bad maps")
        for metric, row in event["scores"].items():
            need(metric in limits and table(row, scored(metric)), f"an evaluation with a bad {metric}")
            need(all(name in measures.roles for name in row), "an evaluation of a split without a role")
    ends = [event for event in data["evals"] if event["final"]]
    home = [event["scores"].get(measures.main.name, {}) for event in ends]
    need(all(measures.home in row for row in home), "a final evaluation without its home score")
    need(bool(ends) or data["status"] != "done", "done without a final evaluation")
    for key in ("created", "started", "ended"):
        data[key] = None if data[key] is None else float(data[key])
    return RunRecord(
        settings=settings_from_dict(data["settings"]),
        layers=tuple(data["layers"]),
        points=tuple(map(step_event, data["points"])),
        evals=tuple(map(eval_event, data["evals"])),
        measures=measures,
        phases=tuple(data["phases"]),
        **{key: data[key] for key in SAME},
    )


def _measures(data: Any) -> Measures | None:
    """The measures, if the data are some."""
    try:
        measures = measures_from_dict(data)
        for metric in measures.metrics:
            words = isinstance(metric.name, str) and isinstance(metric.unit, str)
            digits = type(metric.digits) is int and 0 <= metric.digits <= MOST_DIGITS
            limits = all(isinstance(limit, int | float) for limit in (metric.low, metric.high))
            if not (words and digits and limits and isinstance(metric.higher_is_better, bool)):
                return None
    except (TypeError, AttributeError, ValueError):
        return None
    right = all(isinstance(name, str) and role in ROLES for name, role in measures.roles.items())
    return measures if right else None
