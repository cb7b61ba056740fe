"""The draggable picture of Eq. 10; its drawing is in geometry.js."""

from collections.abc import Mapping
from typing import Any

from app.components._look import component

STYLE = """
.board { max-width: 30rem; margin: 0 auto; overflow: visible; }
.handle { cursor: grab; touch-action: none; }
.handle:active { cursor: grabbing; }
.handle:focus { outline: none; }
.handle:focus-visible .grip { stroke: var(--st-primary-color); stroke-width: 3; }
.formula { background: var(--faint); border-radius: 0.5rem; padding: 0.75rem 1rem; overflow-x: auto; }
.formula div { min-height: 1.6em; }
.check { display: flex; gap: 0.5rem; align-items: center; }
"""
_COMPONENT = component("geometry", STYLE)


def geometry(x: float, y: float, gamma: float, circle: bool) -> Mapping[str, Any]:
    """Show the picture; the settings at which the hand rested last come back."""
    start = {"x": x, "y": y, "gamma": gamma, "circle": circle}
    state = _COMPONENT(key="geometry", data=start, default={"row": start}, on_row_change=lambda: None)
    return state["row"] or start
