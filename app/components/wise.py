"""The scrubber along WiSE curves; its drawing is in wise.js."""

from collections.abc import Sequence

from app.components._look import component
from ftp.lab.figures import WiseCurve
from ftp.lab.figures._template import style

STYLE = """
.plane { max-width: 42rem; cursor: crosshair; touch-action: none; }
.ends { display: flex; justify-content: space-between; font-size: 0.875rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 0.75rem; }
.card { background: var(--faint); border-radius: 0.5rem; padding: 0.6rem 0.9rem; }
.bar { display: grid; grid-template-columns: 2.6rem 1fr 4.6rem; gap: 0.5rem; align-items: center; }
.bar .numbers { text-align: right; }
.track { height: 0.8rem; border-radius: 0.4rem; background: var(--line); overflow: hidden; }
.fill { height: 100%; }
.note { font-size: 0.875rem; min-height: 2.8em; }
"""
_COMPONENT = component("wise", STYLE)


def scrubber(curves: Sequence[WiseCurve], alpha: float, mine: WiseCurve | None = None) -> float:
    """Show the curves, the viewer's own dotted; the alpha at which the hand rested last comes back."""
    own = [{**_drawn(mine), "name": f"yours ({style(mine.method).name})", "dash": "dot"}] if mine else []
    data = {"alpha": alpha, "curves": [*(_drawn(curve) for curve in curves), *own]}
    state = _COMPONENT(key="wise", data=data, default={"alpha": alpha}, on_alpha_change=lambda: None)
    held = state["alpha"]
    # a browser may send anything
    return min(1.0, max(0.0, float(held))) if isinstance(held, int | float) else alpha


def _drawn(curve: WiseCurve) -> dict[str, object]:
    own = style(curve.method)
    look = {"name": own.name, "light": own.light, "dark": own.dark, "dash": own.dash}
    return {**look, "alphas": curve.alphas, "id": curve.id, "ood": curve.ood_avg}
