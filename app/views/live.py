"""Live: train, and watch every layer's leash grow."""

import contextlib
import functools
from typing import Any

import streamlit as st

from app import widgets
from app.cache import cached
from app.components.player import player
from app.limits import viewer
from app.supervisor import supervisor
from app.world import current
from ftp.lab import recordings, worlds
from ftp.lab.figures import FIGURES
from ftp.lab.record import LabError, RunRecord, Settings
from ftp.lab.settings import resolve
from ftp.lab.summary import average
from ftp.lab.worlds import World

TITLE = "Live: watch the leash grow"
QUESTION = "How far may each layer walk away from what it knew?"
PICTURE = (
    "A leash of length γ ties each layer to its pre-trained weights W₀, so that it learns the new task (ID) "
    "and forgets little else"
)
SHIFTED = " (OOD: pictures that look different)"
LEARNED = ". FTP learns every γ while it trains."
LOST = "The run of this link is not on this machine; press Train to make it."
TRAINED_ANEW = (
    "Trained with its answers for this view, on another machine than the runs of Race: processors round differently, "
    "so the same seed ends a little elsewhere."
)
LESSON = "04_learning_the_leash"
GUESS = "First guess: which layers will get the longest leash?"
NO_LEASH = "First guess: which layers will walk farthest from W₀?"
YOUR_RUN = "your last run"  # in the session, which outlives a visit to another view
WHAT_IFS = {"frozen": "frozen", "free": "unconstrained"}
EARLY, LATE = "early layers", "late layers"
ENDED = {"failed": "This run failed", "interrupted": "This run was interrupted", "stopped": "This run was stopped"}


def misfit(world: World) -> str:
    return ""


def render() -> None:
    _back_to_your_run()
    st.caption(PICTURE + (SHIFTED if current().shifts else "") + LEARNED)
    with st.container(key="live"):  # by these names player.py puts the guess first on a phone, then the charts
        left, right = st.columns([1, 3.6], gap="medium")
    with left:
        first = st.container(key="live_guess")
        top = st.container()  # Train stands above the settings, which a small screen cuts off
        settings = _settings({name: st.query_params.get(name, "") for name in WHAT_IFS})
        _leave_what_if(top, settings)
        if top.button("Train", type="primary", icon=":material/play_arrow:", width="stretch"):
            with top:
                widgets.attempt(lambda: _train(settings))
    with right:
        record = _chosen(settings)
    if record is None:
        with right:
            st.info("Nothing is recorded in this world yet; press Train, and watch your own run here.")
        widgets.sharing("live", settings.as_dict(), widgets.python_of(settings), LESSON)
        return
    if record.settings != settings:
        top.caption("The run on the right has other settings; Train starts one with these.")
    with first:
        guess = widgets.predict("guess", GUESS if _has_gamma(record) else NO_LEASH, (EARLY, LATE))
    with right:
        with st.container(gap="xsmall"):
            _status(record)
            layer = _play(record, widgets.waits(guess))
        _answer(record, guess)  # above the what-if: a small screen cuts off what comes later
        _what_if(record, layer)
    shown = {name: st.query_params.get(name, "") for name in ("run", "other")}
    widgets.sharing("live", {**settings.as_dict(), **shown}, widgets.python_of(record.settings), LESSON)
    _tables(record)


def _back_to_your_run() -> None:
    """Who left this view while a run was under way comes back to that run; the navigation has an empty address."""
    run_id = st.session_state.get(YOUR_RUN, "")
    if not run_id or st.query_params.keys() - {"world"} or not widgets.in_store(run_id):
        return
    record = supervisor().store.load(run_id)
    if record.settings.world == current().name and record.status in ("queued", "running"):
        widgets.open_live(record.settings, run_id)


def _settings(extra: dict[str, str]) -> Settings:
    """The widgets' settings; a what-if belongs to FTP alone, so another method drops it."""
    method = st.session_state.get("method", st.query_params.get("method", "ftp"))
    changes = {name: value for name, value in extra.items() if value and method == "ftp"}
    for name, value in list(changes.items()):
        if not widgets.attempt(lambda name=name, value=value: resolve(current().name, changes={name: value})):  # type: ignore[misc]
            del changes[name]
    recorded = widgets.replays(current().name)
    return widgets.run_settings(current(), changes, {"seed": recorded[0].settings.seed} if recorded else {})


def _leave_what_if(top: Any, settings: Settings) -> None:
    """A what-if stays in the address, for links; here it is seen, and left."""
    what = [f"{settings.options[name]} {word}" for name, word in WHAT_IFS.items() if settings.options.get(name)]
    if what and top.button(f"What-if: {', '.join(what)}", icon=":material/close:", help="Leave this what-if"):
        for name in WHAT_IFS:
            _put(name, "")
        st.rerun()


def _train(settings: Settings, other: str = "") -> None:
    """Ask for a run; its id in the address lets a reload, or a friend, come back to it."""
    st.query_params["run"] = st.session_state[YOUR_RUN] = supervisor().submit(settings, viewer())
    _put("other", other)
    for name in WHAT_IFS:
        _put(name, str(settings.options.get(name, "")))
    st.session_state["turn"] = st.session_state.get("turn", 0) + 1


def _put(name: str, value: str) -> None:
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)


def _chosen(settings: Settings) -> RunRecord | None:
    """The run of the address; else a recorded one with these settings, or FTP's; None in a world without recordings."""
    asked = st.query_params.get("run", "")
    if asked:
        record = widgets.record_of(asked)
        st.session_state["lost"] = _lost(record, settings)  # the page runs more than once before anybody can read
        if record is not None and not st.session_state["lost"]:
            return record
        st.query_params.pop("run", None)
    replayed = widgets.replays(settings.world)
    if lost := st.session_state.get("lost"):
        st.info(widgets.plain(f"{lost} Here is a recorded one." if replayed else lost))
    alike = [run for run in replayed if run.settings == settings]
    usual = [run for run in replayed if run.settings.method == "ftp"]
    return (*alike, *usual, *(_newest(settings) if current().own else []), None)[0]


def _newest(settings: Settings) -> list[RunRecord]:
    """The newest finished run of this machine in the same world with the same options: there is none recorded."""
    world_options = worlds.world(settings.world).options
    for run in supervisor().store.runs(world=settings.world, status="done", limit=50):
        if all(run.settings.options.get(name) == settings.options.get(name) for name in world_options):
            st.query_params["run"] = run.run_id  # a run of this machine is known by its address
            return [supervisor().store.load(run.run_id)]
    return []


def _lost(record: RunRecord | None, settings: Settings) -> str:
    """Why the run of a link cannot be shown here; "" if it can."""
    if record is None:
        return LOST
    name = record.settings.world
    if name == settings.world:
        return ""
    place = worlds.world(name).title if name in worlds.names() else name
    return f"The run of this link took place in another world, {place}; choose that world above to see its runs."


def _status(record: RunRecord) -> None:
    """What is shown, and how to stop it or go on with it."""
    kind = "Recorded run" if _is_recorded(record) else "Run"
    idle, again = widgets.nobody_trains(record), False
    over = record.status in ENDED or idle
    with st.container(horizontal=True, vertical_alignment="center"):
        name = f" “{record.name}”" if record.name else ""
        text = f"{kind}{name}: {widgets.described(record.settings)}{_why_this_seed(record)}"
        anew = kind == "Recorded run" and any(event.answers for event in record.evals)
        st.text(text, width="content" if over else "stretch", help=TRAINED_ANEW if anew else None)
        if over:  # in the same row, so that the charts stay on a small screen
            why = f": {record.error}" if record.error else ""
            end = f"{ENDED.get(record.status, '')}{why}. What is done is kept."
            st.warning(widgets.plain("This run waits, but nobody trains it. Go on trains it here." if idle else end))
            again = st.button("Go on", key="resume")
        stops = record.status in ("queued", "running") and not idle and st.button("Stop", key="stop")
        if record.status == "queued":
            seconds = supervisor().expected(record.settings)
            st.caption(f"takes about {seconds:.0f} s")
    if stops:
        widgets.attempt(lambda: supervisor().stop(record.run_id, viewer()))
    if again and widgets.attempt(lambda: _train(record.settings, st.query_params.get("other", ""))):
        st.rerun()


def _why_this_seed(record: RunRecord) -> str:
    """Why this seed is the one that Live opens with, so that nobody takes it for the best one."""
    world, seed = record.settings.world, record.settings.seed
    seeds = {run.settings.seed for run in widgets.recorded_runs(world)}
    if len(seeds) < 3 or not _is_recorded(record) or seed != recordings.typical_seed(world):
        return ""
    return f"; of {len(seeds)} seeds the one nearest to the mean"


def _is_recorded(record: RunRecord) -> bool:
    """True for a run that came with the kit; one of this machine with the same settings may have the same id."""
    return st.query_params.get("run", "") != record.run_id or not widgets.in_store(record.run_id)


def _play(record: RunRecord, hold: bool) -> str:
    turn = st.session_state.get("turn", 0)
    before = widgets.record_of(st.query_params.get("other", ""))
    if before is not None:
        st.caption(widgets.plain(f"Dotted, for comparison: {widgets.described(before.settings)}"))
    other, idle = before.run_id if before else "", widgets.nobody_trains(record)
    layer = player(
        record.run_id,
        record.status,
        widgets.dark(),
        other=other,
        turn=turn,
        idle=idle,
        recorded=_is_recorded(record),
        hold=hold,
    )
    return layer if layer in record.layers else ""


def _what_if(record: RunRecord, layer: str) -> None:
    """The same run with one layer frozen or without a leash, beside the one that is shown."""
    if not layer:
        st.caption("Click a layer, or choose one below the chart, for its history and a what-if.")
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
    values = {k: v for k, v in record.settings.as_dict().items() if k not in ("world", "method", "frozen", "free")}
    _train(resolve(record.settings.world, record.settings.method, {**values, **change}), other=record.run_id)
    st.rerun()


def _answer(record: RunRecord, guess: str | None) -> None:
    if record.status != "done" or not record.points:
        goes_on = "press Go on" if record.status in ENDED else "watch the leashes until then"
        widgets.answer(f"The answer comes when the run is done; {goes_on}.")
        return
    if guess is None:
        widgets.answer("Watch the leashes, make your guess, and the answer stands here in words.")
    else:
        widgets.answer(sentence(record, guess))
    other = widgets.record_of(st.query_params.get("other", ""))
    if other is not None and other.final and record.final:
        widgets.answer(difference(record, other))


def sentence(record: RunRecord, guess: str) -> str:
    """What happened to the leashes, or without them, in words."""
    last = record.points[-1]
    gammas = [gamma for gamma in last.gamma if gamma is not None]
    values = gammas or list(last.distance)
    half = (len(values) + 1) // 2
    early, late = average(values[:half]), average(values[half:])
    longer = LATE if late > early else EARLY
    verdict = "You guessed it" if guess == longer else f"Not as you guessed ({guess})"
    what = "leashes grew to" if gammas else "there is no leash: layers moved"
    return f"{verdict}: {what} {early:.2f} in early layers and {late:.2f} in late ones; {_scores(record)}."


def difference(record: RunRecord, other: RunRecord) -> str:
    """A run against the one that it varies."""
    frozen, free = (str(record.settings.options.get(name, "")) for name in ("frozen", "free"))
    what = f"With {frozen} frozen" if frozen else f"With {free} unconstrained" if free else "This time"
    return f"{what}: {_scores(record)}; before: {_scores(other)}."


def _scores(record: RunRecord) -> str:
    if record.final is None:
        return "it was not evaluated"
    summary, metric = record.summary(), record.measures.main
    shifted = f", OOD {metric.with_unit(summary.shift_mean, 1)}" if summary.shifts else ""
    return f"ID {metric.with_unit(summary.home, 1)}{shifted}"


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


def _has_gamma(record: RunRecord) -> bool:
    """True if its layers have a leash; before the first step, if those of a recorded run of its method have.

    A method of one's own has no recordings: until its first step it counts as one without a leash.
    """
    alike = [run for run in widgets.replays(record.settings.world) if run.settings.method == record.settings.method]
    points = next((run.points for run in (record, *alike) if run.points), ())
    return any(gamma is not None for point in points[-1:] for gamma in point.gamma)


def _tables(record: RunRecord) -> None:
    """All who watch a run read the same numbers: they are made once for each new step."""
    now = record.run_id, len(record.points), len(record.evals)
    figure = "constraint_growth" if record.points and _has_gamma(record) else "distance"
    for label, name in {"Layers": figure, "Scores": "scores", "Loss": "loss"}.items():
        # only an open one is filled: a table costs the browser more than the first chart can wait
        with (
            widgets.menu(),
            st.expander(f"{label}: table and download", key=f"numbers {label}", on_change="rerun") as box,
        ):
            if box.open:
                numbers = cached(("table", name, *now), functools.partial(_numbers, record, name))
                if numbers is None:
                    st.text("There are no numbers yet.")
                else:
                    widgets.prepared(numbers, f"{name}-{record.run_id}")


def _numbers(record: RunRecord, name: str) -> Any:
    """One table of a run, ready to be shown; None where there is no number yet."""
    if name == "scores":
        rows = [{"step": entry.step, **entry.main} for entry in record.evals]
    elif name == "loss":
        rows = [{"step": point.step, "loss": point.loss, "learning rate": point.lr} for point in record.points]
    else:
        with contextlib.suppress(LabError):  # no step yet
            return widgets.prepare(FIGURES[name].table(record), _at_the_end(record))
        return None
    return widgets.prepare(rows) if rows else None
