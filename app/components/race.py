"""The race of methods in the plane of ID and OOD; it is drawn by race.js."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import streamlit as st

from app.components._look import script
from app.components.player import STYLE, look
from ftp.lab.figures.template import style
from ftp.lab.record import EvalEvent, RunRecord, finite
from ftp.lab.store import summarised
from ftp.lab.summary import Metric
from ftp.lab.table import spread

# the paper's table is wider than a phone: it scrolls by itself
WIDE = """
.ftp-race .plane { min-height: 300px; }
[data-testid=stMarkdownContainer]:has(> table) { overflow-x: auto; }
.st-key-race_view table { font-size: 0.85rem; line-height: 1.35; }
.st-key-race_view :is(th, td) { padding: 0.25rem 0.4rem; }
@media (max-width: 40rem) {
  .st-key-race_view [data-testid=stHorizontalBlock]:has(> [data-testid=stColumn]) { flex-direction: column-reverse;
    flex-wrap: nowrap; }
}
"""
_RACE = st.components.v2.component(
    "ftp_race", css=STYLE + WIDE, js=script("_common", "_plots", "race"),
    isolate_styles=False,
)  # fmt: skip


def race(racers: Sequence[Sequence[RunRecord]], metric: Metric, dark: bool, hold: bool = False) -> None:
    """Show methods as moving points: finished runs replay, the others are followed while they train.

    racers: the runs of each method; of several seeds the mean moves, with a bar of one standard deviation; of one
    seed, with one of one standard error.
    hold: finished ones wait at an early point until someone presses Play.
    """
    runs = [runner(records, dark) for records in racers]
    data = {"runs": runs, "metric": asdict(metric), "look": look(dark), "hold": hold}
    _RACE(key="race", data=data, default={"ended": ""}, on_ended_change=lambda: None)


def runner(records: Sequence[RunRecord], dark: bool) -> dict[str, Any]:
    """One method as the script takes it; only finished runs bring their evaluations along."""
    record = records[0]
    method_style = style(record.settings.method)
    return {
        "id": " ".join(run.run_id for run in records),
        "name": method_style.name,
        "color": method_style.color(dark),
        "marker": method_style.marker,
        "dash": method_style.dash,
        "steps": record.settings.steps * len(record.phases),
        "evals": _way(records) if all(run.status == "done" for run in records) else [],
    }


def _way(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Where the runs of a method are at each step that all of them were evaluated at: mean and standard deviation."""
    by_step: dict[int, list[dict[str, float | None]]] = {}
    for run in records:
        for entry in run.evals:
            by_step.setdefault(entry.step, []).append(summarised(entry.scores, run.measures))
    shared = {step: rows for step, rows in by_step.items() if len(rows) >= len(records)}
    way: list[dict[str, Any]] = []
    for step, rows in sorted(shared.items()):
        spreads = {name: spread(row[name] for row in rows[-len(records) :]) for name in ("home", "shift_mean")}
        means = {name: value.mean for name, value in spreads.items()}
        way.append({"step": step, "summary": means, "spread": {name: value.std for name, value in spreads.items()}})
    if len(records) == 1:
        errors = {entry.step: _errors(entry, records[0]) for entry in records[0].evals}
        way = [{**row, "spread": errors[row["step"]]} for row in way]
    return list(finite(way))


def _errors(entry: EvalEvent, run: RunRecord) -> dict[str, float]:
    """One standard error of a share of images, at home and of the mean over the shifts; nothing for other metrics.

    Two right and two wrong ones are added, else 200 of 200 would claim to be without any error.
    """
    metric = run.measures.main
    if metric.unit != "%" or not metric.per_picture or not entry.counts:
        return {}
    counted = {name: entry.counts[name] + 4 for name in entry.main if entry.counts.get(name)}
    shares = {name: ((n - 4) * entry.main[name] / 100 + 2) / n for name, n in counted.items()}
    errors = {name: 100 * math.sqrt(p * (1 - p) / counted[name]) for name, p in shares.items()}
    home, shifts = (
        [errors[name] for name in run.measures.splits(role) if name in errors] for role in ("home", "shift")
    )
    return {"home": home[0], "shift_mean": math.hypot(*shifts) / len(shifts)} if home and shifts else {}
