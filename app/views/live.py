"""Live: train, and watch every layer's leash grow."""

import contextlib
import functools
import sys
from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import parts
from app.components.player import player
from app.kept import kept
from app.limits import viewer
from app.supervisor import supervisor
from ftp.lab import recordings
from ftp.lab.figures import FIGURES
from ftp.lab.record import EvalEvent, LabError, RunRecord, Settings, average
from ftp.lab.settings import resolve

TITLE = "Live: watch the leash grow"
QUESTION = "How far may each layer walk away from what it knew?"
PICTURE = (
    "A leash of length γ ties each layer to its pre-trained weights W₀; FTP learns γ while it trains. "
    "ID: accuracy on the new task. OOD: on pictures that look different."
)
LESSON = "04_learning_the_leash"
GUESS = "First guess: which layers will get the longest leash?"
NO_LEASH = "First guess: which layers will walk farthest from W₀?"
WHAT_IFS = {"frozen": "frozen", "free": "unconstrained"}
EARLY, LATE = "early layers", "late layers"
ENDED = {"failed": "This run failed", "interrupted": "This run was interrupted", "stopped": "This run was stopped"}


def render() -> None:
    parts.heading(sys.modules[__name__])
    st.caption(PICTURE)
    with st.container(key="live"):  # by this name player.py puts the charts first on a phone
        left, right = st.columns([1, 3.6], gap="medium")
    with left:
        first = st.container()
        top = st.container()  # Train stands above the settings, which a small screen cuts off
        settings = _settings({name: st.query_params.get(name, "") for name in WHAT_IFS})
        _leave_what_if(top, settings)
        if top.button("Train", type=parts.emphasis(), icon=":material/play_arrow:", width="stretch"):
            with top:
                parts.attempt(lambda: _train(settings))
    with right:
        record = _chosen(settings)
    if record.settings != settings:
        top.caption("The run beside has other settings; Train runs these.")
    with first:
        guess = parts.predict("guess", GUESS if _leashed(record) else NO_LEASH, (EARLY, LATE))
    with right:
        with st.container(gap="xsmall"):
            _status(record)
            layer = _play(record)
        _what_if(record, layer)
        _answer(record, guess)
    shown = {name: st.query_params.get(name, "") for name in ("run", "other")}
    parts.sharing("live", {**settings.as_dict(), **shown}, parts.python_of(record.settings), LESSON)
    _tables(record)


def _settings(extra: dict[str, str]) -> Settings:
    """The widgets' settings; a what-if belongs to FTP alone, so another method drops it."""
    method = st.session_state.get("method", st.query_params.get("method", "ftp"))
    given = {name: value for name, value in extra.items() if value and method == "ftp"}
    for name, value in list(given.items()):
        if not parts.attempt(lambda name=name, value=value: resolve(given={name: value})):  # type: ignore[misc]
            del given[name]
    return parts.run_settings(extra=given)


def _leave_what_if(top: Any, settings: Settings) -> None:
    """A what-if stays in the address, for links; here it is seen, and left."""
    what = [f"{settings.options[name]} {word}" for name, word in WHAT_IFS.items() if settings.options.get(name)]
    if what and top.button(f"What-if: {', '.join(what)}", icon=":material/close:", help="Leave this what-if"):
        for name in WHAT_IFS:
            _put(name, "")
        st.rerun()


def _train(settings: Settings, other: str = "") -> None:
    """Ask for a run; its id in the address lets a reload, or a friend, come back to it."""
    st.query_params["run"] = supervisor().submit(settings, viewer())
    _put("other", other)
    for name in WHAT_IFS:
        _put(name, str(settings.options.get(name, "")))
    st.session_state["turn"] = st.session_state.get("turn", 0) + 1


def _put(name: str, value: str) -> None:
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)


def _chosen(settings: Settings) -> RunRecord:
    """The run of the address; else a recorded one with these settings; else FTP, so that nobody meets an empty page."""
    asked = st.query_params.get("run", "")
    if asked:
        found = parts.record_of(asked)
        st.session_state["lost"] = found is None  # the page runs more than once before anybody can read
        if found is not None:
            return found
        st.query_params.pop("run", None)
    if st.session_state.get("lost"):
        st.info("The run of this link is not on this machine; press Train to make it. Here is a recorded one.")
    kept = [run for run in recordings.recorded() if run.points]
    return next((run for run in kept if run.settings == settings), None) or _first(kept)


def _first(kept: Sequence[RunRecord]) -> RunRecord:
    return next(run for run in kept if run.settings.method == "ftp" and run.settings.seed == 0)


def _status(record: RunRecord) -> None:
    """What is shown, and how to stop it or go on with it."""
    kind = "Recorded run" if _is_recorded(record) else "Run"
    with st.container(horizontal=True, vertical_alignment="center"):
        name = f" “{record.name}”" if record.name else ""
        st.text(f"{kind}{name}: {parts.described(record.settings)}", width="stretch")
        idle = parts.nobody_trains(record)
        stops = record.status in ("queued", "running") and not idle and st.button("Stop", key="stop")
        if record.status == "queued":
            seconds = supervisor().expected(record.settings)
            st.caption(f"takes about {seconds:.0f} s")
    if stops:
        parts.attempt(lambda: supervisor().stop(record.run_id, viewer()))
    if record.status in ENDED or idle:
        why = f": {record.error}" if record.error else ""
        end = f"{ENDED.get(record.status, '')}{why}. What is done is kept."
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(parts.plain("This run waits, but nobody trains it. Go on trains it here." if idle else end))
            again = st.button("Go on", key="resume")
        if again and parts.attempt(lambda: _train(record.settings, st.query_params.get("other", ""))):
            st.rerun()


def _is_recorded(record: RunRecord) -> bool:
    """True for a run that came with the kit; one of this machine with the same settings may have the same id."""
    return st.query_params.get("run", "") != record.run_id or not parts.in_store(record.run_id)


def _play(record: RunRecord) -> str:
    turn = st.session_state.get("turn", 0)
    before = parts.record_of(st.query_params.get("other", ""))
    if before is not None:
        st.caption(parts.plain(f"Dotted, for comparison: {parts.described(before.settings)}"))
    other, idle = before.run_id if before else "", parts.nobody_trains(record)
    _, layer = player(record.run_id, parts.dark(), other=other, turn=turn, idle=idle, recorded=_is_recorded(record))
    return layer if layer in record.layers else ""


def _what_if(record: RunRecord, layer: str) -> None:
    """The same run with one layer frozen or without a leash, beside the one that is shown."""
    if not layer:
        st.caption("Click a line, or choose a layer below the chart, for its history and a what-if.")
        return
    if record.settings.method != "ftp":
        st.caption("A what-if needs a run of FTP: choose the method FTP at the left.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(f"What if {layer} were …")
        if st.button("frozen: a leash of no length", key="frozen_what_if"):
            _compare(record, {"frozen": layer})
        if st.button("unconstrained: no leash", key="free_what_if"):
            _compare(record, {"free": layer})


def _compare(record: RunRecord, change: dict[str, str]) -> None:
    given = {k: v for k, v in record.settings.as_dict().items() if k not in ("world", "method", "frozen", "free")}
    _train(resolve(record.settings.world, record.settings.method, {**given, **change}), other=record.run_id)
    st.rerun()


def _answer(record: RunRecord, guess: str | None) -> None:
    if record.status != "done" or not record.points:
        parts.answer("The answer comes when the run is done; watch the lines until then.")
        return
    if guess is None:
        parts.answer("Watch the lines, make your guess, and the answer stands here in words.")
    else:
        parts.answer(sentence(record, guess))
    other = parts.record_of(st.query_params.get("other", ""))
    if other is not None and other.final and record.final:
        parts.answer(difference(record, other))


def sentence(record: RunRecord, guess: str) -> str:
    """What happened to the leashes, or without them, in words."""
    last = record.points[-1]
    leashes = [gamma for gamma in last.gamma if gamma is not None]
    values = leashes or list(last.distance)
    half = (len(values) + 1) // 2
    early, late = average(values[:half]), average(values[half:])
    longer = LATE if late > early else EARLY
    verdict = "You guessed it" if guess == longer else f"Not as you guessed ({guess})"
    what = "leashes grew to" if leashes else "there is no leash: layers moved"
    return f"{verdict}: {what} {early:.2f} in early layers and {late:.2f} in late ones; {_scores(record.final)}."


def difference(record: RunRecord, other: RunRecord) -> str:
    """A run against the one that it varies."""
    frozen, free = (str(record.settings.options.get(name, "")) for name in ("frozen", "free"))
    what = f"With {frozen} frozen" if frozen else f"With {free} unconstrained" if free else "This time"
    return f"{what}: {_scores(record.final)}; before: {_scores(other.final)}."


def _scores(final: EvalEvent | None) -> str:
    if final is None:
        return "it was not evaluated"
    shifts = {name: value for name, value in final.accuracy.items() if name not in ("id", "val")}
    return f"ID {final.accuracy['id']:.1f} %, OOD {average(shifts):.1f} %"


def _at_the_end(record: RunRecord) -> list[dict[str, str | int | float | None]]:
    """Every layer after the last step that there is."""
    if not record.points:
        return []
    last = record.points[-1]
    numbers = zip(record.layers, last.gamma, last.distance, last.boundary, strict=True)
    return [
        {"layer": name, "step": last.step, "γ": gamma, "distance from W₀": away, "rows on the boundary": share}
        for name, gamma, away, share in numbers
    ]


def _leashed(record: RunRecord) -> bool:
    """True if its layers have a leash; before the first step, if those of a recorded run of its method have."""
    kept = recordings.recorded(method=record.settings.method) if not record.points else []
    points = next((run.points for run in (record, *kept) if run.points), ())
    return any(gamma is not None for point in points[-1:] for gamma in point.gamma)


def _tables(record: RunRecord) -> None:
    """All who watch a run read the same numbers: they are made once for each new step."""
    now = record.run_id, len(record.points), len(record.evals)
    figure = "constraint_growth" if record.points and _leashed(record) else "distance"
    for label, name in {"Layers": figure, "Accuracies": "accuracy", "Loss": "loss"}.items():
        # only an open one is filled: a table costs the browser more than the first chart can wait
        with st.expander(f"{label}: table and download", key=f"numbers {label}", on_change="rerun") as box:
            if box.open:
                made = kept(("table", name, *now), functools.partial(_numbers, record, name))
                if made is None:
                    st.text("There are no numbers yet.")
                else:
                    parts.prepared(made, f"{name}-{record.run_id}")


def _numbers(record: RunRecord, name: str) -> Any:
    """One table of a run, ready to be shown; None where there is no number yet."""
    if name == "accuracy":
        rows = [{"step": entry.step, **entry.accuracy} for entry in record.evals]
    elif name == "loss":
        rows = [{"step": point.step, "loss": point.loss, "learning rate": point.lr} for point in record.points]
    else:
        with contextlib.suppress(LabError):  # no step yet
            return parts.prepare(FIGURES[name].table(record), _at_the_end(record))
        return None
    return parts.prepare(rows) if rows else None
