"""A finished run of the viewer's own in a view: choose it, and have a worker compute what the view needs of it."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app import parts
from app.limits import viewer
from app.supervisor import supervisor
from ftp.lab.methods import method
from ftp.lab.record import RunRecord

MOST = 50  # runs to choose from
WAITING = ("queued", "running")
LESSONS = Path(__file__).resolve().parent.parent / "notebooks"


def choose(only: str | None = None) -> RunRecord | None:
    """One of the finished runs (of one method) whose weights are there; the address bar keeps the choice."""
    store = supervisor().store
    done = store.runs(status="done", method=only, limit=MOST)
    runs = {r.run_id: r for r in done if store.weights_path(r.run_id).exists()}
    linked = st.query_params.get("run", "")
    if not runs:
        return None
    names = {run: _label(record) for run, record in runs.items()}
    index = list(runs).index(linked) if linked in runs else None
    label = "A finished run of yours, beside the recorded ones"
    run: str | None = st.selectbox(label, list(runs), index=index, format_func=names.__getitem__)
    if run:
        st.query_params["run"] = run
    elif linked:
        del st.query_params["run"]
    return runs[run] if run else None


def _label(record: RunRecord) -> str:
    s = record.settings
    return f"{record.name or record.run_id[:6]}: {method(s.method).title}, seed {s.seed}, lr {s.lr:g}"


def ask(kind: str, run: str, there: Callable[[], bool], label: str, about: str, **more: str | int) -> None:
    """A button that has a worker do a job about a run; then wait for it, and show the page again."""
    if there():
        return
    status = supervisor().job_status(kind, run)
    if status in WAITING:
        _wait(kind, run, there)
        return
    if status != "missing":
        st.error(parts.plain(status))
    if st.button(label, help=about, key=f"{kind} {run}"):
        supervisor().job(kind, run, viewer(), **more)
        st.rerun()


@st.fragment(run_every=1.0)
def _wait(kind: str, run: str, there: Callable[[], bool]) -> None:
    """Look again each second."""
    if there() or supervisor().job_status(kind, run) not in WAITING:
        st.rerun()
    st.text("This is being computed in the background; it appears here by itself.")


def lesson(*numbers: str) -> str:
    """The first of these lessons that the course has.

    >>> lesson("03")
    '03_projection'
    """
    found = [path.stem for number in numbers for path in sorted(LESSONS.glob(f"{number}_*.ipynb"))]
    return found[0] if found else "README"
