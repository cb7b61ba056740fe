"""Which runs a view shows: recorded seeds, their mean or one alone; and a finished run of the viewer's own, of which a
worker computes what the view needs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app import widgets, world
from app.limits import viewer
from app.supervisor import supervisor
from ftp.lab.jobs import Order
from ftp.lab.record import RunRecord

MOST = 50  # runs to choose from
WAITING = ("queued", "running")
LESSONS = Path(__file__).resolve().parent.parent / "notebooks"


MEAN = "mean of all"


def seed_of(seeds: Sequence[int]) -> int | None:
    """One recorded seed alone, or None for the mean of all of them; the address bar keeps the choice."""
    linked = st.query_params.get("seed", "")
    options = [MEAN, *(str(seed) for seed in seeds)]
    chosen = st.selectbox("Recorded seeds", options, options.index(linked) if linked in options else 0)
    widgets.remember({"seed": chosen}, {"seed": MEAN})
    return None if chosen in (None, MEAN) else int(chosen)


def choose(only: str | None = None, options: Mapping[str, Any] | None = None) -> RunRecord | None:
    """One of the finished runs whose weights are there; the address bar keeps the choice.

    only: of one method; options: of runs with these, such as the task of the world
    """
    store = supervisor().store
    done = store.runs(world=world.current().name, status="done", method=only, limit=MOST)
    fitting = [r for r in done if (options or {}).items() <= r.settings.options.items()]
    runs = {r.run_id: r for r in fitting if store.weights_path(r.run_id).exists()}
    linked = st.query_params.get("run", "")
    if not runs:
        return None
    names = {run: _label(record) for run, record in runs.items()}
    index = list(runs).index(linked) if linked in runs else None
    label = "A finished run of yours, beside the recorded ones"
    run: str | None = st.selectbox(label, list(runs), index=index, format_func=names.__getitem__)
    widgets.remember({"run": run}, {"run": None})
    return runs[run] if run else None


def _label(record: RunRecord) -> str:
    return f"{record.name or record.run_id[:6]}: {widgets.described(record.settings)}"


def ask(order: Order, is_computed: Callable[[], bool], label: str, about: str) -> None:
    """A button that has a worker do a job about a run; then wait for it, and show the page again."""
    if is_computed():
        return
    status = supervisor().job_status(order)
    if status in WAITING:
        _wait(order, is_computed)
        return
    if status != "missing":
        widgets.refuse(status)
    seconds = supervisor().estimates.of_order(order)
    if st.button(label, help=f"{about}; about {seconds:.0f} s in the background", key=f"{order.job} {order.run_id}"):
        supervisor().ask(order, viewer())
        st.rerun()


@st.fragment(run_every=1.0)
def _wait(order: Order, is_computed: Callable[[], bool]) -> None:
    """Look again each second."""
    if is_computed() or supervisor().job_status(order) not in WAITING:
        st.rerun()
    st.text("This is being computed in the background; it appears here by itself.")


def lesson(*numbers: str) -> str:
    """The first of these lessons that the course has.

    >>> lesson("03")
    '03_projection'
    """
    names = [path.stem for number in numbers for path in sorted(LESSONS.glob(f"{number}_*.ipynb"))]
    return names[0] if names else "README"
