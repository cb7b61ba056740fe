"""Answers side by side: three networks for every set, and a scrubber from W0 to W that moves them; see ask.js."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.components._look import component
from ftp.lab.ask import Cell
from ftp.lab.worlds import TILES

STYLE = """
.scrub { display: flex; gap: 1rem; align-items: center; }
.scrub label { flex: 1; margin: 0; gap: 0; }
.scrub button { flex: none; }
.line { display: flex; gap: 0.7rem; align-items: center; font-size: 0.85rem; white-space: nowrap; }
.line input { min-width: 0; flex: 1; }
.sets { display: grid; grid-template-columns: 6.2rem repeat(var(--sets), minmax(0, 1fr)); gap: 0 0.6rem;
  margin-top: 0.4rem; }
.set, .names { display: grid; grid-template-rows: 5.5rem repeat(var(--networks), 5.5rem); gap: 0.3rem; }
.asked.words .set, .asked.words .names { grid-template-rows: 2.2rem repeat(var(--networks), 5.5rem); }
.names > div { font-size: 0.85rem; line-height: 1.25; border-left: 4px solid var(--mine); padding-left: 0.4rem; }
.names strong, .cell .who { font-weight: 600; }
.names .sum { font-size: 0.8rem; }
.head { text-align: center; font-size: 0.8rem; line-height: 1.15; overflow: hidden; align-self: start; }
.picture { background-repeat: no-repeat; border-radius: 6px; margin: 0 auto 0.15rem; }
.head .picture { width: 58px; height: 58px; }
.cell .who { display: none; font-size: 0.75rem; }
.cell { background: var(--faint); border-radius: 6px; padding: 0.2rem 0.3rem; min-width: 0; }
ol { list-style: none; margin: 0; padding: 0; display: grid; gap: 1px; }
.asked:not(.words) li { position: relative; display: flex; gap: 0.25rem; justify-content: space-between;
  font-size: 0.8rem; line-height: 1.3rem; border-radius: 3px; overflow: hidden; padding: 0 0.2rem; }
li .fill { position: absolute; inset: 0 auto 0 0; background: color-mix(in srgb, var(--mine) 24%, transparent); }
li .what { position: relative; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
li .much { position: relative; flex: none; }
li.right .what { font-weight: 700; }
.all { font-size: 0.75rem; line-height: 1.15rem; padding: 0 0.2rem; }
.words .all { text-align: center; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
.words ol { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 3px; }
.words li { text-align: center; font-size: 0.75rem; line-height: 1.1rem; }
.words li button { display: block; width: 100%; max-width: 52px; aspect-ratio: 1; padding: 0; margin: 0 auto;
  border-color: transparent; background-repeat: no-repeat; }
.words li.right button { outline: 2px solid var(--st-primary-color); outline-offset: 0; }
.held { text-align: center; font-size: 1.4rem; line-height: 4.8rem; }
.palette { display: grid; grid-template-columns: repeat(auto-fill, 26px); gap: 2px; justify-content: space-between;
  margin-top: 0.5rem; }
.palette button { width: 26px; height: 26px; padding: 0; border: 0; border-radius: 4px; background-color: white;
  background-repeat: no-repeat; }
.palette button[aria-checked=true] { outline: 3px solid var(--st-primary-color); outline-offset: 0; z-index: 1; }
.dark .palette button[aria-checked=true], .dark .words li.right button { box-shadow: inset 0 0 0 2px black; }
@media (max-width: 46rem) {
  .scrub { position: sticky; top: 3.75rem; z-index: 2; background: var(--st-background-color); padding: 0.2rem 0; }
  .sets { grid-template-columns: minmax(0, 1fr); gap: 0.8rem; }
  .names { display: none; }
  .asked { display: flex; flex-direction: column; }
  .palette { order: -1; grid-auto-flow: column; grid-template: repeat(3, 34px) / none; grid-auto-columns: 34px;
    justify-content: start; overflow-x: auto; padding: 3px; position: relative; }
  .palette button { width: 34px; height: 34px; }
  .set, .asked.words .set { grid-template-columns: repeat(var(--networks), minmax(0, 1fr)); grid-template-rows: auto;
    grid-auto-rows: minmax(5.5rem, auto); }
  .head { grid-column: 1 / -1; text-align: left; font-weight: 600; display: flex; gap: 0.5rem; align-items: center; }
  .head .picture { margin: 0; }
  .cell .who { display: block; }
}
"""
_COMPONENT = component("ask", STYLE, parts=("_alpha",))


@dataclass(frozen=True)
class Network:
    """A row of answers: a network, where it stands (None: on the scrubber), its cells and how often it is right."""

    name: str
    light: str
    dark: str
    cells: Sequence[Cell]
    right: Sequence[Sequence[int]] = ()  # by set and alpha, of all things
    fixed: float | None = None


@dataclass(frozen=True)
class Shown:
    """What is asked: the sets with their titles, names of all things, and which of them would be right."""

    world: str
    sets: Sequence[str]
    titles: Sequence[str]
    things: Sequence[str]
    alphas: Sequence[float]
    targets: Sequence[int]
    words: bool  # a caption is asked for pictures, else a picture for its name
    version: str  # of the sheets, so that a browser may keep them
    across: int


def answers(
    shown: Shown, networks: Sequence[Network], alpha: float, hold: bool, on_pick: Callable[[], None]
) -> tuple[float, int | None]:
    """Show the answers; the alpha at which the hand rested last and the thing that was picked last come back.

    hold: only a network that is fixed answers until there is a guess.
    """
    data: dict[str, Any] = {**asdict(shown), "networks": [asdict(network) for network in networks]}
    data |= {"alpha": alpha, "hold": hold, "tiles": TILES}
    state = _COMPONENT(
        key="ask",
        data=data,
        default={"alpha": alpha, "picked": None},
        on_alpha_change=lambda: None,
        on_picked_change=on_pick,
    )
    sent = state["alpha"]
    # a browser may send anything
    moved = min(1.0, max(0.0, float(sent))) if isinstance(sent, int | float) and sent == sent else alpha
    return moved, checked(state["picked"], len(shown.things))


def checked(picked: Any, things: int) -> int | None:
    """The number of the thing that a browser says was picked, [thing, clicks so far]; None for anything else.

    >>> checked([3, 1], 150), checked([150, 1], 150), checked(["3", 1], 150), checked(None, 150)
    (3, None, None, None)
    """
    thing = picked[0] if isinstance(picked, list) and picked else None
    return thing if isinstance(thing, int) and not isinstance(thing, bool) and 0 <= thing < things else None
