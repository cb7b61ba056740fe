"""The scrubber along WiSE curves; its drawing is in wise.js."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from app.components._look import component
from ftp.lab.figures import WiseCurve
from ftp.lab.figures.template import style

STYLE = """
.plane { max-width: 42rem; cursor: crosshair; touch-action: none; }
.ends { display: flex; justify-content: space-between; font-size: 0.875rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: 0.75rem; }
.card { background: var(--faint); border-radius: 0.5rem; padding: 0.6rem 0.9rem; }
.bar { display: grid; grid-template-columns: 2.6rem 1fr 6.4rem; gap: 0.5rem; align-items: center; }
.bar .numbers { text-align: right; }
.track { height: 0.8rem; border-radius: 0.4rem; background: var(--line); overflow: hidden; }
.fill { height: 100%; }
.note { font-size: 0.875rem; min-height: 2.8em; }
"""
_COMPONENT = component("wise", STYLE, parts=("_alpha",))


@dataclass(frozen=True)
class Way:
    """A curve, and of the mean of several seeds the standard deviation of "id" and "ood" at each alpha."""

    mean: WiseCurve
    spread: Mapping[str, Sequence[float]] | None = None


def scrubber(ways: Sequence[Way], alpha: float, yours: WiseCurve | None = None, hold: bool = False) -> float:
    """Show the curves, the viewer's own dotted; the alpha at which the hand rested last comes back.

    hold: only the two ends are shown until there is a guess.
    """
    your_curve = [{**_drawn(Way(yours)), "name": f"yours ({style(yours.method).name})", "dash": "dot"}] if yours else []
    data = {"alpha": alpha, "hold": hold, "curves": [*(_drawn(way) for way in ways), *your_curve]}
    state = _COMPONENT(key="wise", data=data, default={"alpha": alpha}, on_alpha_change=lambda: None)
    sent = state["alpha"]
    # a browser may send anything
    return min(1.0, max(0.0, float(sent))) if isinstance(sent, int | float) else alpha


def _drawn(way: Way) -> dict[str, object]:
    curve = way.mean
    line = style(curve.method)
    look = {"name": line.name, "light": line.light, "dark": line.dark, "dash": line.dash}
    numbers = {"alphas": curve.alphas, "id": curve.id, "ood": curve.ood_avg, "spread": way.spread}
    return {**look, **numbers, "metric": asdict(curve.metric)}
