"""A scene with truth, prediction and errors of every pixel, and a dial; its drawing is in dense.js."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from app.components._look import component
from ftp.lab.figures.template import style
from ftp.lab.map_sheets import COLUMNS
from ftp.lab.palette import label_colors, palette
from ftp.lab.summary import Metric

STYLE = """
.top { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0.25rem 1.2rem; align-items: center; }
.strip { display: grid; grid-template-columns: repeat(5, 3.4rem); gap: 4px; }
.thumb { width: 3.4rem; height: 2.9rem; padding: 0; border-width: 2px; border-radius: 6px; image-rendering: pixelated;
  position: relative; overflow: hidden; background-repeat: no-repeat; background-clip: padding-box; }
.thumb span { position: absolute; left: 0; right: 0; bottom: 0; font-size: 0.72rem; line-height: 1.25;
  background: var(--st-background-color); color: var(--st-text-color); }
.turn { min-width: 0; }
.kinds { display: grid; grid-template-columns: auto 1fr; gap: 0.2rem 0.6rem; align-items: center; }
.choices { display: flex; flex-wrap: wrap; gap: 0.3rem; align-items: center; }
.choices button { padding: 0 0.55rem; min-height: 1.7rem; font-size: 0.9rem; }
button[aria-pressed=true] { border: 2px solid var(--st-primary-color); font-weight: 700; }
.dial { display: flex; gap: 0.8rem; align-items: center; margin-top: 0.2rem; }
.dial strong { min-width: 4rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.dial button { flex: none; padding: 0 0.6rem; min-width: 5.6rem; }
.four { display: grid; grid-template-columns: repeat(4, minmax(0, 12.9rem)); gap: 0.2rem 0.8rem; margin: 0.25rem 0; }
figure { margin: 0; }
figcaption { font-size: 0.9rem; font-weight: 600; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.frame { position: relative; line-height: 0; }
.map { width: 100%; aspect-ratio: 1; image-rendering: pixelated; border-radius: 6px; border: 1px solid var(--line);
  box-sizing: border-box; touch-action: pan-y; }
.map.picture { cursor: grab; }
.cross { position: absolute; width: 13px; height: 13px; margin: -7px 0 0 -7px; border-radius: 50%; pointer-events: none;
  border: 2px solid white; outline: 2px solid black; box-sizing: border-box; }
.legend { display: flex; flex-wrap: wrap; gap: 0.1rem 0.9rem; font-size: 0.875rem; align-items: center; }
.entry { display: inline-flex; gap: 0.35rem; align-items: center; }
.chip { width: 0.9rem; height: 0.9rem; border-radius: 3px; border: 1px solid var(--line); }
.ramp { width: 6rem; height: 0.8rem; border-radius: 3px; border: 1px solid var(--line); }
.ball { width: 22px; height: 22px; }
.note { font-size: 0.875rem; margin: 0; }
.says { margin: 0.2rem 0 0; }
.here { min-height: 1.5em; }
.below { display: grid; grid-template-columns: minmax(13rem, 17rem) minmax(0, 28rem) minmax(9rem, 1fr);
  gap: 0.3rem 1.2rem; align-items: center; }
.about { font-size: 0.875rem; line-height: 1.4; margin: 0; max-width: 44rem;
  color: color-mix(in srgb, var(--st-text-color) 75%, var(--st-background-color)); }
.methods { display: grid; gap: 0.25rem; }
.methods button { display: grid; grid-template-columns: 34px 1fr auto; gap: 0.6rem; align-items: center;
  text-align: left; padding: 0 0.6rem; min-height: 1.75rem; font-size: 0.925rem; }
@media (max-width: 76rem) {
  .below { grid-template-columns: minmax(13rem, 17rem) minmax(0, 28rem); }
  .about { grid-column: 1 / -1; }
}
@media (max-width: 46rem) {
  .top, .below { grid-template-columns: minmax(0, 1fr); }
  .strip { grid-template-columns: repeat(5, minmax(0, 1fr)); }
  .thumb { width: 100%; height: 2.9rem; }
  .four { grid-template-columns: repeat(2, minmax(0, 1fr)); }
}
"""
_COMPONENT = component("dense", STYLE)
NAMES = {"linear_probe": "Frozen encoder"}  # what that method is where the read-out is a whole decoder
YOURS = "yours"  # stands where recorded runs have their method


@dataclass(frozen=True)
class Place:
    """What is looked at: a scene by its number, a method, a dial and the place of the hand on it."""

    scene: int
    method: str
    dial: str
    place: int


@dataclass(frozen=True)
class ShownDense:
    """A task of a world with its recorded scenes, dials and runs, as data_scripts/record_dense.py wrote them."""

    world: str
    task: str
    metric: Metric
    data: Mapping[str, Any]
    scenes: Sequence[tuple[str, str, str]]  # a short name, a whole one, and what a scene of this kind looks like
    nothing: str  # why a picture may count nothing
    not_counted: str  # which pixels have no truth
    standing: str  # what the scores stand on
    your_run: Mapping[str, Any] | None = None  # what a worker has computed of a run of the viewer's own

    @property
    def of_task(self) -> Mapping[str, Any]:
        recorded: Mapping[str, Any] = self.data["tasks"][self.task]
        return recorded

    @property
    def runs(self) -> dict[str, Mapping[str, Any]]:
        """The recorded runs by their methods, then the viewer's own."""
        runs = {run["method"]: run for run in self.of_task["runs"]}
        return {**runs, YOURS: self.your_run} if self.your_run else runs


def dense(
    shown: ShownDense, start: Place, turn: int, dark: bool, *, hold: bool, on_rest: Callable[[Place], None]
) -> None:
    """Show a place, and tell `on_rest` where the hand rests after it was moved.

    turn: a new number has the browser go to `start`; with the old one the hand stays where it is.
    hold: no damage until there is a guess.
    """
    task, data = shown.of_task, shown.data
    colors = palette(dark)
    runs = []
    for key, run in shown.runs.items():
        line = style(run["method"])
        name, dash = NAMES.get(run["method"], line.name), line.dash
        look = {"name": f"Yours: {name}" if key == YOURS else name, "dash": "dot" if key == YOURS else dash}
        look |= {"light": line.light, "dark": line.dark, "run_id": run["run_id"] if key == YOURS else ""}
        runs.append({**look, "method": key, "side": run["side"], "scores": run["scores"]})
    sent = {
        "world": shown.world,
        "task": shown.task,
        "side": data["side"],
        "across": COLUMNS,
        "scene_list": [{"name": name, "title": title, "about": about} for name, title, about in shown.scenes],
        "thumbs": data["thumbs"],
        "dials": data["dials"],
        "poses": data["poses"],
        "classes": task["classes"],
        "colors": label_colors(len(task["classes"])),
        "metric": asdict(shown.metric),
        "runs": runs,
        "start": asdict(start),
        "turn": turn,
        "look": {"right": colors.grid, "wrong": colors.loss, "ignored": colors.anchor, "hatch": colors.paper},
        "nothing": shown.nothing,
        "not_counted": shown.not_counted,
        "standing": shown.standing,
        "dark": dark,
        "hold": hold,
    }

    def rested() -> None:
        on_rest(checked(st.session_state["dense"].get("rested"), shown, start))

    _COMPONENT(key="dense", data=sent, on_rested_change=rested)


def checked(sent: Any, shown: ShownDense, start: Place) -> Place:
    """What a browser sent, which may be anything; what makes no sense is as it was."""
    if not isinstance(sent, Mapping):
        return start
    scene, method, name, place = (sent.get(key) for key in ("scene", "method", "dial", "place"))
    methods = list(shown.runs)
    dial = next((dial for dial in shown.data["dials"] if dial["name"] == name), None)
    good = type(scene) is int and 0 <= scene < len(shown.scenes) and method in methods and dial is not None
    if not (good and type(place) is int and 0 <= place < len(dial["values"])):  # type: ignore[index]
        return start
    return Place(scene, method, dial["name"], place)  # type: ignore[arg-type,index]
