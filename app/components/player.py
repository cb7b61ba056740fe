"""The player of a run, live or recorded; it is drawn by player.js."""

import functools
from typing import Any

import streamlit as st

from app.components._look import script
from ftp.lab.figures.template import DASHES, FONT, depth_colors
from ftp.lab.palette import palette

DEPTHS = 64  # colours of the scale from early to late layers

STYLE = """
.ftp-player { font-family: var(--st-font); color: var(--st-text-color); }
.ftp-player .says { font-weight: 600; margin: 0 0 0.4rem; min-height: 1.5em; font-variant-numeric: tabular-nums; }
.ftp-player .charts { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 1fr); gap: 0.5rem; }
.ftp-player .large { display: flex; gap: 0.8rem; }
.ftp-player .drawn { flex: 1 1 0; min-width: 0; }
.ftp-player .strip { flex: none; width: 9.6rem; font-size: 0.8rem; line-height: 1.12; }
.ftp-player .strip .head { font-weight: 600; font-size: 0.85rem; line-height: 1.2; margin: 0 0 0.15rem; }
.ftp-player .strip .set + .head { margin-top: 0.35rem; }
.ftp-player .strip .set { display: block; margin-bottom: 0.15rem; }
.ftp-player .strip .row { display: flex; gap: 0.25rem; }
.ftp-player .strip .cell { flex: 1 1 0; min-width: 0; }
.ftp-player .strip .tile { display: block; aspect-ratio: 1; border-radius: 3px; }
.ftp-player .strip .said { display: block; text-align: center; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; border-radius: 3px; min-height: 1.12em; font-variant-numeric: tabular-nums; }
.ftp-player .strip .key { float: right; }
.ftp-player .strip.mapped { width: 15.2rem; }
.ftp-player .strip.mapped .row { gap: 0.6rem; clear: right; }
.ftp-player .strip.mapped .cell { display: grid; grid-template-columns: repeat(3, 1fr); gap: 2px; }
.ftp-player .strip.mapped .said { aspect-ratio: 1;
  background-color: color-mix(in srgb, var(--st-text-color) 8%, transparent); }
.ftp-player .strip .wrong { background: var(--st-text-color); color: var(--st-background-color); font-weight: 700; }
.ftp-player .main { height: 372px; }
.ftp-player .net { display: block; width: 100%; height: auto; max-height: 372px; font-family: var(--st-font); }
.ftp-player .picture { display: flex; gap: 0.4rem; margin-bottom: 0.2rem; }
.ftp-player .picture button { min-height: 1.7rem; padding: 0 0.6rem; }
.ftp-player .accuracy { height: 200px; }
.ftp-player .small { height: 85px; }
.ftp-player .loss { height: 85px; }
.ftp-player .side label select { font-weight: 600; border-color: transparent; padding: 0 0.2rem; min-height: 1.6rem;
  max-width: 100%; margin-left: 1.4rem; }
.ftp-player .bar { display: flex; flex-wrap: wrap; gap: 0.4rem 0.6rem; align-items: center; margin-top: 0.5rem; }
.ftp-player .bar label { display: flex; gap: 0.35rem; align-items: center; font-size: 0.9rem; }
.ftp-player .bar .scrub { flex: 1 1 10rem; min-width: 8rem; }
.ftp-player .bar output { min-width: 5.2rem; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
.ftp-player input[type=range] { width: 100%; accent-color: var(--st-primary-color); }
.ftp-player button, .ftp-player select { font: inherit; font-size: 0.9rem; color: var(--st-text-color);
  background: var(--st-background-color); border-radius: 0.5rem; padding: 0.2rem 0.6rem; min-height: 2rem;
  border: 1px solid color-mix(in srgb, var(--st-text-color) 25%, transparent); cursor: pointer; max-width: 13rem; }
.ftp-player button:hover, .ftp-player select:hover { border-color: var(--st-primary-color); }
.ftp-player button[aria-pressed=true] { border-color: var(--st-primary-color); font-weight: 600; }
.ftp-player :is(button, select, input):focus-visible { outline: 3px solid var(--st-primary-color);
  outline-offset: 2px; }
.ftp-player .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
@media (max-width: 50rem) {
  .ftp-player .charts { grid-template-columns: minmax(0, 1fr); }
  .ftp-player .large { flex-direction: column; }
  .ftp-player .drawn { flex: none; }
  .ftp-player .strip, .ftp-player .strip.mapped { width: auto; display: grid; gap: 0 0.8rem;
    grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .ftp-player .strip .head { grid-column: 1 / -1; }
  .ftp-player .bar .scrub { flex-basis: 100%; order: -1; }
}
@media (max-width: 40rem) {
  .st-key-live [data-testid=stHorizontalBlock]:has(> [data-testid=stColumn]) { flex-direction: column;
    flex-wrap: nowrap; }
  .st-key-live [data-testid=stColumn]:has(.st-key-live_guess),
  .st-key-live [data-testid=stColumn] > [data-testid=stVerticalBlock]:has(> * .st-key-live_guess) { display: contents; }
  .st-key-live [data-testid=stColumn]:not(:has(.st-key-live_guess)) { order: 1; }
  .st-key-live [data-testid=stColumn] > [data-testid=stVerticalBlock] > :not(:has(.st-key-live_guess)) { order: 2; }
}
"""


# its charts need the page's styles, so it is not isolated; every rule begins with its own class instead
_PLAYER = st.components.v2.component(
    "ftp_player",
    css=STYLE,
    js=script("_common", "_plots", "_player_parts", "_network", "_strip", "player"),
    isolate_styles=False,
)


@functools.cache  # a rerun needs it, and it never changes
def look(dark: bool) -> dict[str, Any]:
    """The colours of the charts, as plain data.

    >>> look(dark=False)["paper"], len(look(dark=True)["depth"])
    ('#FFFFFF', 64)
    """
    colors = palette(dark)
    return {
        "paper": colors.paper,
        "text": colors.text,
        "muted": colors.muted,
        "grid": colors.grid,
        "font": FONT,
        "depth": depth_colors(DEPTHS, dark),
        "id": colors.id,
        "ood": colors.ood,
        "shifts": [colors.ood],  # a shift is told from the others by its dash
        "dashes": DASHES[1:],
    }


def player(
    run: str,
    status: str,
    dark: bool,
    *,
    other: str = "",
    layer: str = "",
    replay: bool = True,
    turn: int = 0,
    idle: bool = False,
    recorded: bool = False,
    hold: bool = False,
) -> str:
    """Show a run, and dotted another one; the layer that is chosen. When the run leaves `status`, the page runs again.

    replay: a run that has ended plays from its start. turn: another number makes it ask again, as when a run goes on.
    idle: the run waits, and nobody will train it unless asked. recorded: take the run that came with the kit.
    hold: a run that has ended waits at a quarter of its way, until there is a guess or someone presses Play.
    """
    data = {
        "run": run,
        "status": status,
        "other": other,
        "layer": layer,
        "replay": replay,
        "turn": turn,
        "idle": idle,
        "recorded": recorded,
        "hold": hold,
        "look": look(dark),
    }
    state = _PLAYER(
        key="player",
        data=data,
        default={"status": "", "layer": layer},
        on_status_change=lambda: None,
        on_layer_change=lambda: None,
    )
    return state["layer"] or ""
