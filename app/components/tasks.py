"""Tasks in a row: the matrix R as it fills, the task at hand, every old task over time; tasks.js draws it."""

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from app.components._look import component
from ftp.lab import methods
from ftp.lab.figures.template import depth_colors, style
from ftp.lab.summary import Metric
from ftp.lab.worlds import TILES

STYLE = """
.says { margin: 0; min-height: 1.5em; }
.top { display: grid; grid-template-columns: minmax(17rem, 21rem) minmax(0, 1fr); gap: 0.25rem 1.5rem; }
table { border-collapse: separate; border-spacing: 2px; width: 100%; table-layout: fixed; font-size: 0.8rem; }
caption { text-align: left; font-size: 0.9rem; font-weight: 600; }
th { font-weight: 400; padding: 0; }
th.side { width: 2rem; text-align: right; padding-right: 0.3rem; }
th button { padding: 0; width: 100%; min-height: 1.5rem; font-size: 0.8rem; border-radius: 4px; }
th button[aria-pressed=true], .runs button[aria-pressed=true] { border: 2px solid var(--st-primary-color);
  font-weight: 700; }
td { text-align: center; height: 1.4rem; padding: 0; border-radius: 3px; font-variant-numeric: tabular-nums;
  overflow: hidden; }
td.many { height: 0.7rem; font-size: 0; }
.time { display: flex; gap: 0.6rem; align-items: center; margin: 0.25rem 0; }
.time label { flex: 1; margin: 0; }
h3 { font-size: 0.95rem; margin: 0 0 0.2rem; font-weight: 600; }
.tiles { display: flex; flex-wrap: wrap; gap: 3px; }
.tile { width: 36px; text-align: center; font-size: 0.75rem; line-height: 1.2; }
.ink { width: 32px; height: 32px; margin: 0 auto; background-repeat: no-repeat; image-rendering: auto;
  border-radius: 4px; border: 1px solid var(--line); box-sizing: content-box; }
.dark .ink { filter: invert(1) hue-rotate(180deg); }
.wrong { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; margin-top: 0.3rem; font-size: 0.85rem; }
.wrong span.pair { display: inline-flex; gap: 0.25rem; align-items: center; }
.note { font-size: 0.85rem; margin: 0.25rem 0; }
.runs { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.6rem, 1fr)); gap: 0.25rem 0.6rem;
  margin-top: 0.25rem; }
.runs button { padding: 0 0.5rem; font-size: 0.875rem; min-height: 1.6rem; max-width: 100%; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; }
.runs svg text { font-size: 15px; }
@media (max-width: 46rem) {
  .top { grid-template-columns: minmax(0, 1fr); }
  .runs { grid-template-columns: repeat(2, minmax(0, 1fr)); }
}
"""
_COMPONENT = component("tasks", STYLE, parts=("_plots",))


@dataclass(frozen=True)
class ShownRun:
    """One run: R as far as it is, the mean gamma of each task so far, and its mistakes by task if they are known."""

    run_id: str
    name: str
    method: str
    status: str
    matrix: Sequence[Sequence[float]]
    gamma: Sequence[float | None] = ()
    mistakes: dict[str, Any] = field(default_factory=dict)
    askable: bool = False  # its weights are here, so a worker can look for its mistakes


@dataclass(frozen=True)
class ShownTasks:
    """The tasks of these runs: names, labels of each, the names of all labels, and a sheet with a tile of each."""

    names: Sequence[str]
    labels: Sequence[Sequence[int]]
    classes: Sequence[str]
    tiles: bytes
    metric: Metric


def tasks(shown: ShownTasks, runs: Sequence[ShownRun], main: str, dark: bool, hold: bool) -> tuple[str, str, str]:
    """Show the runs; the ids of the one whose matrix is chosen, of one that has ended, of one to look at, come back.

    hold: only the first task is shown until there is a guess.
    """
    sheet = base64.b64encode(shown.tiles).decode() if shown.tiles else ""
    look = [
        {"color": style(run.method).color(dark), **asdict(run), "about": methods.method(run.method).summary}
        for run in runs
    ]
    data = {
        "tasks": {"names": shown.names, "labels": shown.labels, "classes": shown.classes},
        "tiles": sheet,
        "across": TILES,
        "metric": asdict(shown.metric),
        "runs": look,
        "main": main,
        "colors": depth_colors(len(shown.names), dark),
        "dark": dark,
        "hold": hold,
    }
    state = _COMPONENT(
        key="tasks",
        data=data,
        default={"main": main, "ended": "", "asked": ""},
        on_main_change=lambda: None,
        on_ended_change=lambda: None,
        on_asked_change=lambda: None,
    )
    ids = [run.run_id for run in runs]
    chosen = state["main"] if state["main"] in ids else main  # a browser may send anything
    asked = state["asked"] if state["asked"] in ids else ""
    return chosen, str(state["ended"] or ""), asked
