"""The severity dial with its pictures, bars and curves; its drawing is in corruptions.js."""

from collections.abc import Sequence
from typing import Any

from app.components._look import component

STYLE = """
.dial { display: flex; gap: 1.5rem; align-items: center; max-width: 42rem; }
.dial label { flex: 1; }
.dial button { flex: none; }
.marks { display: flex; justify-content: space-between; font-size: 0.875rem; }
.tiles { display: grid; grid-template-columns: repeat(8, 1fr); gap: 4px; max-width: 42rem; margin: 0.5rem 0 1rem; }
.tile { aspect-ratio: 1; background-size: 800% 600%; image-rendering: pixelated; border-radius: 4px; }
.bar { display: grid; grid-template-columns: 8.5rem 1fr 4.2rem; gap: 0.6rem; align-items: center; line-height: 1.55; }
.bar.strong { font-weight: 700; }
.bar .numbers { text-align: right; }
.track { height: 0.85rem; border-radius: 0.4rem; background: var(--line); overflow: hidden; }
.fill { height: 100%; transition: width 0.25s; }
@media (prefers-reduced-motion: reduce) { .fill { transition: none; } }
"""
_COMPONENT = component("corruptions", STYLE)


def severity_dial(
    title: str, picture: str, digits: Sequence[int], runs: Sequence[dict[str, Any]], severity: int
) -> int:
    """Show one kind of corruption; the severity at which the hand rested last comes back.

    picture: WebP in base64, six rows (clean, 1 to 5) of eight digits. runs: name, light, dark, dash, strong, and six
    values in percent.
    """
    data = {"title": title, "picture": picture, "digits": list(digits), "runs": list(runs), "severity": severity}
    state = _COMPONENT(key="corruptions", data=data, default={"severity": severity}, on_severity_change=lambda: None)
    held = state["severity"]
    # a browser may send anything
    return held if isinstance(held, int) and 0 <= held <= 5 else severity
