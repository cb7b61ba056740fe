"""Damage in a world of the person's own data, of which nothing can be recorded: their pictures, and their runs."""

from typing import Any

import streamlit as st

from app import run_chooser, widgets
from app.components.corruptions import severity_dial
from app.supervisor import supervisor
from ftp.lab.figures.template import style
from ftp.lab.jobs import Order
from ftp.lab.record import RunRecord
from ftp.lab.worlds import World

NO_RUN = "No run is finished here yet. Train one in Live, then come back: this view damages your own test pictures."
PICTURE = (
    "Your own test pictures, damaged alike for every run. None of the networks saw a damaged picture while it was "
    "fine-tuned. **Turn the dial**: the pictures and all bars follow."
)


def show(world: World, severity: int, start: int) -> dict[str, Any]:
    """Pictures and bars of the finished runs; what was chosen, for the address."""
    left, right = st.columns([1, 3], gap="medium")
    with left:
        chosen = run_chooser.choose()
    if chosen is None:
        widgets.answer(NO_RUN if not _finished(world) else "Choose a finished run, and its damage is shown here.")
        return {"run": None}
    order = Order("damage", chosen.run_id)
    sheets = order.result(supervisor().store)
    if sheets is None:
        about = "All 19 kinds at five severities, on your test pictures"
        with left:
            run_chooser.ask(order, lambda: order.path(supervisor().store).exists(), "Damage my pictures", about)
        return {"run": chosen.run_id}
    kinds = list(sheets["pictures"])
    with left:
        linked = st.query_params.get("kind", "")
        kind = st.selectbox("Kind of damage", kinds, kinds.index(linked) if linked in kinds else 0, format_func=_spoken)
        st.markdown(PICTURE)
    rows = [_row(record, kind) for record in (chosen, *_alike(world, chosen)) if kind in _damaged(record)]
    with right:
        rested = severity_dial(
            _spoken(kind), sheets["pictures"][kind], sheets["labels"], rows, severity, world.metrics[0], False
        )
        st.caption(
            "One bar for each finished run on these pictures with this network; one seed cannot tell who is better."
        )
    widgets.remember({"kind": kind, "severity": rested}, {"kind": kinds[0], "severity": start})
    return {"run": chosen.run_id, "kind": kind, "severity": rested}


def _spoken(kind: str) -> str:
    return kind.replace("_", " ").capitalize()


def _finished(world: World) -> list[RunRecord]:
    return supervisor().store.runs(world=world.name, status="done", limit=run_chooser.MOST)


def _damaged(record: RunRecord) -> dict[str, Any]:
    damaged: dict[str, Any] = (record.result or {}).get("corruptions") or {}
    return damaged


def _alike(world: World, chosen: RunRecord) -> list[RunRecord]:
    """Other finished runs with the same pictures and the same network."""
    names = [name for name, option in world.options.items() if option.private or name in ("size", "crop")]
    same = [chosen.settings.options.get(name) for name in names]
    others = (record for record in _finished(world) if record.run_id != chosen.run_id)
    return [record for record in others if [record.settings.options.get(name) for name in names] == same]


def _row(record: RunRecord, kind: str) -> dict[str, Any]:
    line, settings = style(record.settings.method), record.settings
    look = {"name": f"{line.name}, seed {settings.seed}", "light": line.light, "dark": line.dark, "dash": line.dash}
    values = [(record.result or {})["id"], *_damaged(record)[kind]]
    return {**look, "strong": settings.method == "ftp", "values": values, "spread": None}
