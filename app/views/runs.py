"""Runs: find, compare, rename, replay, export, delete."""

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import streamlit as st

from app import parts
from app.limits import viewer
from app.supervisor import supervisor
from ftp.lab import methods, recordings
from ftp.lab.figures import FIGURES
from ftp.lab.record import STATUSES, LabError, RunRecord

TITLE = "Runs: all that was trained here"
QUESTION = "What has been run, and how do two runs differ?"
LESSON = "06_corrupt"
ANY = "any"
MOST, COMPARED, BINNED = 100, 6, 20
OVERLAYS = {
    "training": "training",
    "id_ood": "ID against OOD",
    "constraint_final": "leashes at the end",
    "distance": "distance from W₀",
}


def render() -> None:
    parts.heading(sys.modules[__name__])
    _undo()
    chosen: list[RunRecord] = []
    text, method, status, kept = _filter()
    runs = _found(text, method, status, kept)
    if not runs:
        parts.answer("No run fits; train one in Live, or show the recorded ones.")
    else:
        done = sum(run.status == "done" for run in runs)
        count = f"{len(runs)} runs, {done} of them done" if len(runs) > 1 else f"1 run, {runs[0].status}"
        parts.answer(f"{count}{_best(runs)}.")
        chosen = _pick(runs)
        if len(chosen) == 1:
            _one(chosen[0])
        elif chosen:
            _compare(chosen)
        else:
            st.caption("Tick a run to replay, rename, export or delete it; tick several to compare them.")
        parts.data_table([_line(run) for run in runs], "runs", label="All numbers: table and download")
    _bin()
    link = {"text": text, "of": method, "status": status, "recorded": kept, "runs": [run.run_id for run in chosen]}
    if chosen:
        link["picture"] = st.session_state.get("picture")
    parts.sharing("runs", link, PYTHON, LESSON)


PYTHON = """from ftp.lab.store import Store

for run in Store().runs():
    print(run.run_id, run.status, run.settings.method, run.name)"""


def _filter() -> tuple[str, str, str, bool]:
    shared: dict[str, Any] = {"bind": "query-params"}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input("Find", key="text", placeholder="a name, an id, a method", **shared)
        titles = {ANY: ANY, **{name: methods.method(name).title for name in methods.names()}}
        method = parts.choice("Method", list(titles), ANY, "of", titles.__getitem__)
        status = st.selectbox("Status", (ANY, *STATUSES), key="status", **shared)
        kept = st.toggle("recorded runs too", value=True, key="recorded", **shared)
    return text, method, status, kept


def _found(text: str, method: str, status: str, kept: bool) -> list[RunRecord]:
    of, state = (None if asked == ANY else asked for asked in (method, status))
    own = supervisor().store.runs(method=of, status=state, text=text or None, limit=MOST)
    if not kept or status not in (ANY, "done"):
        return own
    words = text.casefold()
    more = [
        run
        for run in recordings.recorded()
        if run.points
        and of in (None, run.settings.method)
        and words in f"{run.run_id}\n{run.settings.world}\n{run.settings.method}".casefold()
        and not any(run.run_id == mine.run_id for mine in own)
    ]
    return [*own, *more]


def _line(run: RunRecord) -> dict[str, Any]:
    result = run.result or {}
    made = datetime.fromtimestamp(run.created).strftime("%Y-%m-%d %H:%M") if run.created else ""
    return {
        "name": run.name,
        "run": parts.described(run.settings),
        "status": run.status,
        "ID": result.get("id"),
        "OOD": result.get("ood_avg"),
        "made": made,
        "id": run.run_id,
    }


def _best(runs: Sequence[RunRecord]) -> str:
    scored = [run for run in runs if run.result]
    if not scored:
        return ""
    best = max(scored, key=lambda run: run.result["ood_avg"] if run.result else 0.0)
    assert best.result
    has = "has the highest OOD accuracy" if len(runs) > 1 else "has the OOD accuracy"
    return f"; {parts.described(best.settings)} {has} {best.result['ood_avg']:.1f} %"


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
        height=min(38 * (len(runs) + 1), 300),
    )
    ticked = [ids[i] for i in event["selection"]["rows"] if i < len(ids)]
    st.session_state["ticked"] = ticked
    parts.link("runs", ticked, [])
    return [run for run in map(parts.record_of, ticked) if run is not None]


def _one(run: RunRecord) -> None:
    st.subheader("The chosen run", anchor=False)
    st.text(f"{run.name or 'without a name'}: {parts.described(run.settings)} ({run.status})")
    if run.error:
        st.text(run.error)
    own = parts.in_store(run.run_id)
    mine = own and supervisor().may_change(run.run_id, viewer())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if st.button("Replay", type=parts.emphasis(), icon=":material/replay:", key="replay"):
            settings = {name: str(value) for name, value in run.settings.as_dict().items()}
            st.switch_page(_live(), query_params={**settings, "run": run.run_id})
        st.download_button("Export as JSON", _json(run), f"{run.run_id}.json", "application/json", on_click="ignore")
        if mine:
            if st.button("Delete", key="delete") and parts.attempt(lambda: supervisor().delete(run.run_id, viewer())):
                st.session_state["deleted"] = run.run_id
                st.rerun()
            with st.form("rename", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
                name = st.text_input("Name", run.name, max_chars=100)
                if st.form_submit_button("Rename") and parts.attempt(
                    lambda: supervisor().store.rename(run.run_id, name)
                ):
                    st.rerun()
    if not own:
        st.caption("This run comes with the kit; it can be replayed and exported, not renamed or deleted.")
    elif not mine:
        st.caption("This run is not yours alone; it can be replayed and exported, not renamed or deleted.")
    _overlay([run])


def _live() -> Any:
    """The page of the view Live; Streamlit knows a page by its address."""
    return st.Page(lambda: None, title="Live", url_path="live")


def _json(run: RunRecord) -> str:
    try:
        return json.dumps(supervisor().store.export(run.run_id))
    except LabError:  # a recorded one
        from ftp.lab import _form

        return json.dumps(_form.to_form(run, str(run.provenance.get("code", ""))))


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
    there = supervisor().store.runs(deleted=True, limit=BINNED)
    there = [run for run in there if supervisor().may_change(run.run_id, viewer())]
    if not there:
        return
    with st.expander(f"Bin ({len(there)})"):
        for run in there:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(f"{run.name or run.run_id}: {parts.described(run.settings)} ({run.status})")
                if st.button("Put back", key=f"back {run.run_id}"):
                    supervisor().store.undelete(run.run_id)
                    st.session_state.pop("deleted", None)
                    st.rerun()
        st.caption("Runs stay here until `ftp-lab runs purge RUN`.")


def _compare(runs: Sequence[RunRecord]) -> None:
    st.subheader("The chosen runs in one picture", anchor=False)
    if len(runs) > COMPARED:
        st.caption(f"The first {COMPARED} of them.")
    _overlay(runs[:COMPARED])


def _overlay(runs: Sequence[RunRecord]) -> None:
    there = {name: label for name, label in OVERLAYS.items() if name in FIGURES and _fits(name, len(runs))}
    names = list(there)
    index = names.index(parts.linked("picture", names, names)[0])
    name = st.radio("Picture", names, index, format_func=there.__getitem__, horizontal=True, key="picture")
    parts.link("picture", [name], names[:1])
    try:
        fig = FIGURES[name].draw(list(runs), dark=parts.dark())
        lines = FIGURES[name].table(list(runs))
    except LabError as error:
        st.info(parts.plain(f"{error}."))
        return
    alt = f"{FIGURES[name].title} of {', '.join(parts.described(run.settings) for run in runs)}"
    parts.chart(fig, alt, key=f"overlay {name}")
    parts.data_table(lines, name)


def _fits(name: str, count: int) -> bool:
    return FIGURES[name].needs == "many" or count == 1
