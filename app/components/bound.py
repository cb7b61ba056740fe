"""Lemma 2 as a contest: move the input and try to beat L_d; its drawing is in bound.js."""

from collections.abc import Sequence

from app.components._look import component
from app.geometry import Matrix, bound

STYLE = """
table { border-collapse: collapse; width: 100%; margin-bottom: 0.75rem; }
th, td { text-align: right; padding: 0.2rem 0.5rem; font-weight: 400; }
tr.lead td, tr.lead th { background: color-mix(in srgb, var(--walk) 22%, transparent); font-weight: 700; }
"""
_COMPONENT = component("bound", STYLE)


def break_the_bound(difference: Matrix, x: Sequence[float]) -> list[float]:
    """Show the contest; the input at which the hand rested last comes back."""
    lemma = bound(difference)
    data = {"matrix": difference, "l_d": lemma.l_d, "worst": lemma.worst, "x": list(x)}
    state = _COMPONENT(key="bound", data=data, default={"input": list(x)}, on_input_change=lambda: None)
    return state["input"] or list(x)
