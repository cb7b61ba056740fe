"""Runs: find, compare, rename, replay, export, delete."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import streamlit as st

from app import run_filter, widgets
from app.limits import viewer
from app.sentences import shown
from app.supervisor import supervisor
from app.world import current
from ftp.lab import methods, recipes
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
LINK = {
    "of": (ANY, *methods.names()),
    "status": (ANY, *STATUSES),
    "picture": tuple(OVERLAYS),
    "order": tuple(run_filter.ORDERS),
}


def misfit(world: World) -> str:
    return ""


def render() -> None:
    _undo()
    chosen: list[RunRecord] = []
    text, method, status, recorded, order = _filter()
    words, conditions = run_filter.parse(text)
    runs = _fitting(words, method, status, recorded, current().name)
    problem = run_filter.problem(conditions, runs)
    if problem:
        widgets.refuse(problem)
    runs = run_filter.sort([run for run in runs if run_filter.fits(run, conditions)], order)
    if not runs:
        widgets.answer("No run fits; train one in Live, or show the recorded ones.")
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
                _all([run for run in runs if run.status == "done"])
        widgets.data_table([_line(run) for run in runs], "runs", label="All numbers: table and download")
    _bin()
    link = {"text": text, "of": method, "status": status, "recorded": recorded, "runs": [run.run_id for run in chosen]}
    link |= {"order": order if order != run_filter.NEWEST else None}
    if chosen:
        link["picture"] = st.session_state.get("picture")
    widgets.sharing("runs", link, PYTHON, LESSON)


PYTHON = """from ftp.lab.store import Store

for run in Store().runs():
    print(run.run_id, run.status, run.settings.method, run.name)"""


def _filter() -> tuple[str, str, str, bool, str]:
    shared: dict[str, Any] = {"bind": "query-params"}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input("Find", key="text", placeholder="ftp  OOD > 85  lr = 0.05", help=run_filter.HELP, **shared)
        titles = {ANY: ANY, **{name: methods.method(name).title for name in methods.names()}}
        method = widgets.choice("Method", list(titles), ANY, "of", titles.__getitem__)
        status = st.selectbox("Status", (ANY, *STATUSES), key="status", **shared)
        order = widgets.choice("Order", list(run_filter.ORDERS), run_filter.NEWEST, "order", str)
        recorded = st.toggle("recorded runs too", value=True, key="recorded", **shared)
    return text, method, status, recorded, order


def _fitting(text: str, method: str, status: str, recorded: bool, world: str) -> list[RunRecord]:
    of, state = (None if choice == ANY else choice for choice in (method, status))
    stored = supervisor().store.runs(world=world, method=of, status=state, text=text or None, limit=MOST)
    if not recorded or status not in (ANY, "done"):
        return stored
    words = text.casefold().strip()
    more = [
        run
        for run in widgets.recorded_runs(world)
        if run.points
        and of in (None, run.settings.method)
        and words in f"{run.run_id}\n{run.settings.world}\n{run.settings.method}".casefold()
        and not any(run.run_id == other.run_id for other in stored)
    ]
    return [*stored, *sorted(more, key=lambda run: -run.created)]


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


def _all(runs: Sequence[RunRecord]) -> None:
    """All runs of the table in one plane, until some are ticked; of other pictures, only those that fit the newest."""
    runs = [run for run in runs if _scored(run) == _scored(runs[0])]
    if runs and runs[0].measures.splits("shift"):
        with st.container(key="all"):
            widgets.chart(
                FIGURES["id_ood"].draw(runs, dark=widgets.dark(), each=True, height=HEIGHT),
                f"ID against OOD of {len(runs)} runs, one point each",
                key="plane of all",
            )


def _scored(run: RunRecord) -> tuple[Any, ...]:
    """What the two scores in the plane stand on; older recordings do not name the split that they trained on."""
    return run.measures.main, run.measures.home, sorted(run.measures.splits("shift"))


def _one(run: RunRecord) -> None:
    st.subheader("The chosen run", anchor=False)
    st.text(f"{run.name or 'without a name'}: {widgets.described(run.settings)} ({run.status})")
    if run.error:
        st.text(run.error)
    stored = widgets.in_store(run.run_id)
    may_change = stored and supervisor().may_change(run.run_id, viewer())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if st.button("Replay", type="primary", icon=":material/replay:", key="replay"):
            settings = {name: str(value) for name, value in run.settings.as_dict().items()}
            st.switch_page(_live(), query_params={**settings, "run": run.run_id})
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
    if not stored:
        st.caption("This run comes with the kit; it can be replayed and exported, not renamed or deleted.")
    elif not may_change:
        st.caption("This run is not yours alone; it can be replayed and exported, not renamed or deleted.")
    _overlay([run])


def _live() -> Any:
    """The page of the view Live; Streamlit knows a page by its address."""
    return st.Page(lambda: None, title="Live", url_path="live")


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
    labels = {name: label for name, label in OVERLAYS.items() if name in FIGURES and _fits(name, len(runs))}
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
    try:
        fig = FIGURES[name].draw(list(runs), dark=widgets.dark())
        lines = FIGURES[name].table(list(runs))
    except LabError as error:
        st.info(widgets.plain(f"{shown(error)}."))
        return
    alt = f"{FIGURES[name].title} of {', '.join(widgets.described(run.settings) for run in runs)}"
    widgets.chart(fig, alt, key=f"overlay {name}")
    widgets.data_table(lines, name)


def _fits(name: str, count: int) -> bool:
    return count == 1 if FIGURES[name].needs == "one" else name != "curves" or count > 1
