"""The race of methods in the plane of ID and OOD accuracy; it is drawn by race.js."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.components.player import STYLE, look, script
from ftp.lab.figures._template import style
from ftp.lab.record import EvalEvent, RunRecord

# the paper's table is wider than a phone: it scrolls by itself
WIDE = """
.ftp-race .plane { height: 440px; }
[data-testid=stMarkdownContainer]:has(> table) { overflow-x: auto; }
"""
_RACE = st.components.v2.component(
    "ftp_race", css=STYLE + WIDE, js=script("_common", "_plots", "race"),
    isolate_styles=False,
)  # fmt: skip


def race(records: Sequence[RunRecord], dark: bool, hold: bool = False) -> None:
    """Show runs as moving points: finished ones replay, the others are followed while they train.

    hold: finished ones wait at an early point until someone presses Play.
    """
    data = {"runs": [runner(record, dark) for record in records], "look": look(dark), "hold": hold}
    _RACE(key="race", data=data, default={"ended": ""}, on_ended_change=lambda: None)


def runner(record: RunRecord, dark: bool) -> dict[str, Any]:
    """One run as the script takes it; only a finished one brings its evaluations along."""
    own = style(record.settings.method)
    return {
        "id": record.run_id,
        "name": own.name,
        "color": own.color(dark),
        "marker": own.marker,
        "dash": own.dash,
        "steps": record.settings.steps,
        "evals": [_plain(entry) for entry in record.evals] if record.status == "done" else [],
    }


def _plain(entry: EvalEvent) -> dict[str, Any]:
    return {"step": entry.step, "accuracy": dict(entry.accuracy)}
