"""Runs: find, compare, rename, replay, export, delete."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import streamlit as st

from app import run_filter, widgets
from app.limits import viewer
from app.sentences import shown
from app.supervisor import supervisor
from app.world import TITLES, current
from ftp.lab import methods, recipes, worlds
from ftp.lab.figures import FIGURES
from ftp.lab.figures.curves import names
from ftp.lab.record import STATUSES, LabError, RunRecord
from ftp.lab.store import serialisation
from ftp.lab.table import differences
from ftp.lab.worlds import World

TITLE = "Runs: all that was trained here, or came recorded"
QUESTION = "What has been run, and how do two runs differ?"
LESSON = "06_corrupt"
ANY = "any"
MOST, COMPARED, BINNED = 100, 6, 20
HEIGHT = 460  # pixels of the table, and of the plane beside it: both fit on a small laptop
OVERLAYS = {
    "curves": "curves",
    "training": "training",
    "id_ood": "ID against OOD",
    "constraint_final": "leashes at the end",
    "distance": "distance from W₀",
}
OF_STEPS = ("training", "constraint_final", "distance")  # pictures that show every step, or the last one
LINK = {
    "of": (ANY, *methods.names()),
    "status": (ANY, *STATUSES),
    "picture": tuple(OVERLAYS),
    "order": tuple(run_filter.ORDERS),
}


def misfit(world: World) -> str:
    return ""


class Wanted(NamedTuple):
    """What the viewer looks for; ANY where a filter lets every run through."""

    text: str
    method: str
    status: str
    task: str  # a value of the option that the world's recipes are divided by
    order: str
    recorded: bool


def render() -> None:
    _undo()
    chosen: list[RunRecord] = []
    wanted = _filter()
    words, conditions = run_filter.parse(wanted.text)
    stored, recorded = _stored(wanted, words), _recorded(wanted, words)
    runs = [*stored, *(run for run in recorded if all(run.run_id != other.run_id for other in stored))]
    problem = run_filter.problem(conditions, runs)
    runs = run_filter.sort([run for run in runs if run_filter.fits(run, conditions)], wanted.order)
    if problem:
        widgets.refuse(problem)
    elif not runs:
        widgets.answer(_why_none(wanted, words, conditions))
    else:
        done = sum(run.status == "done" for run in runs)
        count = f"{len(runs)} runs, {done} of them done" if len(runs) > 1 else f"1 run, {runs[0].status}"
        widgets.answer(f"{count}{_best(runs)}.")
        left, right = st.columns([1, 1.15], gap="medium")
        with left:
            chosen = _pick(runs)
            st.caption("Tick a run to replay, rename, export or delete it; tick several to compare them.")
        with right:
            if len(chosen) == 1:
                _one(chosen[0])
            elif chosen:
                _compare(chosen)
            else:
                _all(runs, {run.run_id for run in stored}, wanted.task)
        widgets.data_table([_line(run) for run in runs], "runs", label="All numbers: table and download")
    _bin()
    link = {"text": wanted.text, "of": wanted.method, "status": wanted.status, "recorded": wanted.recorded}
    link |= {"runs": [run.run_id for run in chosen]}
    link |= {"order": wanted.order if wanted.order != run_filter.NEWEST else None}
    if chosen:
        link["picture"] = st.session_state.get("picture")
    widgets.sharing("runs", link, PYTHON, LESSON)


PYTHON = """from ftp.lab.store import Store

for run in Store().runs():
    print(run.run_id, run.status, run.settings.method, run.name)"""


def _filter() -> Wanted:
    shared: dict[str, Any] = {"bind": "query-params"}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input("Find", key="text", placeholder="ftp  OOD > 85  lr = 0.05", help=run_filter.HELP, **shared)
        titles = {ANY: ANY, **{name: methods.method(name).title for name in methods.names()}}
        method = widgets.choice("Method", list(titles), ANY, "of", titles.__getitem__)
        task = _task(current())
        status = st.selectbox("Status", (ANY, *STATUSES), key="status", **shared)
        order = widgets.choice("Order", list(run_filter.ORDERS), run_filter.NEWEST, "order", str)
        recorded = st.toggle("recorded runs too", value=True, key="recorded", **shared)
    return Wanted(text, method, status, task, order, recorded)


def _task(world: World) -> str:
    """One value of the option that divides the world's recipes, such as its task, or ANY; the address keeps it."""
    divided = recipes.divided_by(world.name)
    if not divided:
        return ANY
    names = [ANY, *(world.options[divided].choices or ())]
    start = names.index(widgets.linked(divided, names, [ANY])[0])
    # not the key of Live's own widget of this option, which knows no ANY
    key = f"runs of one {divided} in {world.name}"
    chosen: str = st.selectbox(divided.capitalize(), names, start, format_func=_task_title, key=key)
    widgets.link(divided, [chosen], [ANY])
    return chosen


def _task_title(name: str) -> str:
    return TITLES.get(name, name)


def _task_of(run: RunRecord) -> str:
    """What a run was trained for; "" in a world with one recipe for all."""
    divided = recipes.divided_by(run.settings.world)
    if not divided:
        return ""
    usual = worlds.world(run.settings.world).options[divided].default
    return str(run.settings.options.get(divided, usual))


def _stored(wanted: Wanted, words: str) -> list[RunRecord]:
    """The newest runs of this machine that fit; the store knows neither titles of methods nor tasks."""
    of, state = (None if choice == ANY else choice for choice in (wanted.method, wanted.status))
    limit = MOST if not words and wanted.task == ANY else None
    runs = supervisor().store.runs(world=current().name, method=of, status=state, limit=limit)
    return [run for run in runs if _fits_the_rest(run, wanted, words)][:MOST]


def _recorded(wanted: Wanted, words: str) -> list[RunRecord]:
    if not wanted.recorded or wanted.status not in (ANY, "done"):
        return []
    runs = (run for run in widgets.recorded_runs(current().name) if wanted.method in (ANY, run.settings.method))
    return sorted((run for run in runs if _fits_the_rest(run, wanted, words)), key=lambda run: -run.created)


def _fits_the_rest(run: RunRecord, wanted: Wanted, words: str) -> bool:
    return wanted.task in (ANY, _task_of(run)) and run_filter.has_words(run, words)


def _why_none(wanted: Wanted, words: str, conditions: Sequence[run_filter.Condition]) -> str:
    """Why the list is empty, and what would fill it."""
    narrowed = [f"the words '{words}'"] if words else []
    narrowed += [" ".join(condition) for condition in conditions]
    if wanted.method != ANY:
        narrowed.append(f"the method {methods.method(wanted.method).title}")
    if wanted.task != ANY:
        narrowed.append(f"the {recipes.divided_by(current().name)} {_task_title(wanted.task)}")
    if wanted.status != ANY:
        narrowed.append(f"the status {wanted.status}")
    hidden = not wanted.recorded and wanted.status in (ANY, "done") and widgets.recorded_runs(current().name)
    more = ", or show the recorded ones" if hidden else ""
    if not narrowed:
        return f"Nothing has been trained here yet; train a run in Live{more}."
    if len(narrowed) > 1:
        return f"No run fits {', '.join(narrowed[:-1])} and {narrowed[-1]} together; change one of them{more}."
    return f"No run fits {narrowed[0]}; {'clear them or try others' if words else 'clear it or try another'}{more}."


def _line(run: RunRecord) -> dict[str, Any]:
    result = run.result or {}
    made = datetime.fromtimestamp(run.created).strftime("%Y-%m-%d %H:%M") if run.created else ""
    scores = {"ID": result.get("id")} | ({"OOD": result.get("ood_avg")} if current().shifts else {})
    about = {"run": widgets.described(run.settings), "name": run.name, "status": run.status}
    return {**about, **scores, "made": made, "id": run.run_id}


def _best(runs: Sequence[RunRecord]) -> str:
    divided = recipes.divided_by(current().name)
    if divided and len({run.settings.options.get(divided) for run in runs if run.result}) > 1:
        return ""  # of different tasks nobody is the best
    metric = next((run.measures.main for run in runs if run.result), None)
    key = "ood_avg" if any((run.result or {}).get("ood_avg") is not None for run in runs) else "id"
    scored = {run.run_id: run.result[key] for run in runs if run.result and run.result.get(key) is not None}
    if metric is None or not scored:
        return ""
    top = metric.best(scored.values())
    best = next(run for run in runs if scored.get(run.run_id) == top)
    where = "OOD" if key == "ood_avg" else "ID"
    has = f"has the best {where} {metric.name}" if len(runs) > 1 else f"has the {where} {metric.name}"
    return f"; {widgets.described(best.settings)} {has} {metric.with_unit(top, 1)}"


def _pick(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """A table whose rows can be chosen, with the mouse or the keyboard; the address keeps which."""
    number = st.column_config.NumberColumn(format="%.1f")
    ids = [run.run_id for run in runs]
    # a tick belongs to a place in the table: other rows make another table, which begins with the same runs ticked
    key = f"table {' '.join(ids)}"
    if st.session_state.get("table", ("", []))[0] != key:
        wanted = st.session_state.get("ticked", st.query_params.get_all("runs"))
        st.session_state["table"] = key, [i for i, run_id in enumerate(ids) if run_id in wanted]
    event = st.dataframe(
        [_line(run) for run in runs],
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        selection_default={"selection": {"rows": st.session_state["table"][1]}},
        key=key,
        column_config={"ID": number, "OOD": number},
        placeholder="",
        height=min(36 * (len(runs) + 1), HEIGHT),
    )
    ticked = [ids[i] for i in event["selection"]["rows"] if i < len(ids)]
    st.session_state["ticked"] = ticked
    widgets.link("runs", ticked, [])
    return [run for run in map(widgets.record_of, ticked) if run is not None]


def _all(runs: Sequence[RunRecord], own: Collection[str], task: str) -> None:
    """The finished runs of the table in one plane, until some are ticked: of one task, and scored on the same pictures.

    own: the ids of the runs that were trained here; the newest of them decides what is shown.
    """
    done = sorted((run for run in runs if run.status == "done"), key=lambda run: (run.run_id not in own, -run.created))
    if not done:
        return
    shown_task = task if task != ANY else _task_to_show(done, own)
    same_task = [run for run in done if _task_of(run) == shown_task]
    plotted = [run for run in same_task if _scored(run) == _scored(same_task[0])]
    if not plotted[0].measures.splits("shift"):
        return
    fig = FIGURES["id_ood"].draw(plotted, dark=widgets.dark(), each=True, height=HEIGHT)
    points = sum(len(trace.x) for trace in fig.data)
    part = f"{points} of the {len(runs)} runs listed"
    if len(same_task) < len(done):
        divided = recipes.divided_by(current().name).capitalize()
        fig.update_layout(
            title_subtitle_text=f"{_task_title(shown_task)}: {part}; choose another {divided} to see its runs"
        )
    elif len(plotted) < len(done):
        fig.update_layout(title_subtitle_text=f"{part}; the others have scores on other pictures")
    elif points < len(done):
        fig.update_layout(title_subtitle_text=f"{part}; of equal settings and seeds the newest")
    fig.update_layout(dragmode=False)  # on a phone a finger then scrolls the plane, which is wider than the screen
    with st.container(key="all"):
        widgets.chart(fig, f"ID against OOD of {part}, one point each", key="plane of all")


def _task_to_show(done: Sequence[RunRecord], own: Collection[str]) -> str:
    """The task of the newest run that was trained here, else the world's usual one; "" where there are no tasks."""
    divided = recipes.divided_by(current().name)
    usual = str(current().options[divided].default) if divided else ""
    no_own = done[0].run_id not in own
    return usual if no_own and any(_task_of(run) == usual for run in done) else _task_of(done[0])


def _scored(run: RunRecord) -> tuple[Any, ...]:
    """What the two scores in the plane stand on; older recordings do not name the split that they trained on."""
    return run.measures.main, run.measures.home, sorted(run.measures.splits("shift"))


def _one(run: RunRecord) -> None:
    st.subheader("The chosen run", anchor=False)
    named = f"{run.name}: " if run.name else ""
    st.text(f"{named}{widgets.described(run.settings)} ({run.status})")
    if run.error:
        st.text(run.error)
    stored = widgets.in_store(run.run_id)
    may_change = stored and supervisor().may_change(run.run_id, viewer())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if _has_no_steps(run):
            if st.button("Train it in Live", type="primary", icon=":material/play_arrow:", key="train"):
                widgets.open_live(run.settings)
        elif st.button("Replay", type="primary", icon=":material/replay:", key="replay"):
            widgets.open_live(run.settings, run.run_id)
        st.download_button("Export as JSON", _json(run), f"{run.run_id}.json", "application/json", on_click="ignore")
        if may_change:
            if st.button("Delete", key="delete") and widgets.attempt(lambda: supervisor().delete(run.run_id, viewer())):
                st.session_state["deleted"] = run.run_id
                st.rerun()
            with st.form("rename", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
                name = st.text_input("Name", run.name, max_chars=100)
                if st.form_submit_button("Rename") and widgets.attempt(
                    lambda: supervisor().store.rename(run.run_id, name)
                ):
                    st.rerun()
    if _has_no_steps(run):
        st.caption("Of this run only the scores were recorded; train it yourself to watch every step.")
    elif not stored:
        st.caption("This run comes with the kit; it can be replayed and exported, not renamed or deleted.")
    elif not may_change:
        st.caption("This run is not yours alone; it can be replayed and exported, not renamed or deleted.")
    _overlay([run])


def _has_no_steps(run: RunRecord) -> bool:
    """True if only the scores of a finished run are there: to save room, most recordings leave the steps out."""
    return run.status == "done" and not run.points


def _json(run: RunRecord) -> str:
    try:
        return json.dumps(supervisor().store.export(run.run_id))
    except LabError:  # a recorded one
        return json.dumps(serialisation.to_form(run, str(run.provenance.get("code", ""))))


def _undo() -> None:
    run_id = st.session_state.get("deleted")
    if not run_id:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(f"Run {run_id} is in the bin.")
        if st.button("Undo", key="undo"):
            supervisor().store.undelete(run_id)
            del st.session_state["deleted"]
            st.rerun()


def _bin() -> None:
    """What was deleted, also before a reload, until someone empties the bin on the command line."""
    binned = supervisor().store.runs(world=current().name, deleted=True, limit=BINNED)
    binned = [run for run in binned if supervisor().may_change(run.run_id, viewer())]
    if not binned:
        return
    with st.expander(f"Bin ({len(binned)})"):
        for run in binned:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(f"{run.name or run.run_id}: {widgets.described(run.settings)} ({run.status})")
                if st.button("Put back", key=f"back {run.run_id}"):
                    supervisor().store.undelete(run.run_id)
                    st.session_state.pop("deleted", None)
                    st.rerun()
        st.caption("Runs stay here until `ftp-lab runs purge RUN`.")


def _compare(runs: Sequence[RunRecord]) -> None:
    if len(runs) > COMPARED:
        st.caption(f"The first {COMPARED} of them.")
    runs = runs[:COMPARED]
    _overlay(runs)
    _apart(runs)


def _apart(runs: Sequence[RunRecord]) -> None:
    """What the chosen runs differ in, and nothing else; then how they ended."""
    st.subheader("Where their settings differ", anchor=False)
    labels = names(runs)
    rows = [
        {
            "setting": name,
            **{label: "–" if value is None else value for label, value in zip(labels, values, strict=True)},
        }
        for name, values in differences([run.settings for run in runs]).items()
    ]
    if not rows:
        st.text("Their settings are the same; they were made by other code or data.")
    scores = [{"setting": f"→ {key}", **_ends(runs, labels, key)} for key in ("ID", "OOD")]
    widgets.plain_table([*rows, *(row for row in scores if len(row) > 1)])


def _ends(runs: Sequence[RunRecord], labels: Sequence[str], key: str) -> dict[str, Any]:
    values = {label: _line(run).get(key) for label, run in zip(labels, runs, strict=True)}
    return values if any(value is not None for value in values.values()) else {}


def _overlay(runs: Sequence[RunRecord]) -> None:
    labels = {name: label for name, label in OVERLAYS.items() if name in FIGURES and _fits(name, runs)}
    names = list(labels)
    index = names.index(widgets.linked("picture", names, names)[0])
    name = st.radio(
        "Picture",
        names,
        index,
        format_func=labels.__getitem__,
        horizontal=True,
        key="picture",
        label_visibility="collapsed",
    )
    widgets.link("picture", [name], names[:1])
    if name == "id_ood" and len({_task_of(run) for run in runs}) > 1:
        divided = recipes.divided_by(current().name)
        st.info(f"Runs of more than one {divided} have no common plane: their scores measure different things.")
        return
    try:
        fig = FIGURES[name].draw(list(runs), dark=widgets.dark())
        lines = FIGURES[name].table(list(runs))
    except LabError as error:
        st.info(widgets.plain(f"{shown(error)}."))
        return
    alt = f"{FIGURES[name].title} of {', '.join(widgets.described(run.settings) for run in runs)}"
    widgets.chart(fig, alt, key=f"overlay {name}")
    widgets.data_table(lines, name)


def _fits(name: str, runs: Sequence[RunRecord]) -> bool:
    """True for a picture of so many runs; a lone run's curves are in its picture of the training, if it has one."""
    without_steps = any(map(_has_no_steps, runs))
    if name in OF_STEPS and without_steps:
        return False
    if name == "curves":
        return len(runs) > 1 or without_steps
    return len(runs) == 1 or FIGURES[name].needs != "one"
