"""Geometry: drag a row of weights and its leash (Eq. 10), then try to break the bound of Lemma 2."""

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import geometry, widgets
from app.components.bound import break_the_bound
from app.components.geometry import geometry as picture
from ftp.lab.worlds import World

TITLE = "A row of weights on a leash"
QUESTION = "How far may a row of weights move from its anchor?"
PICTURE = (
    "The anchor **W₀** (the pre-trained row) is a post and **γ** is the length of a leash. The optimizer wants to take "
    "the row to **W̃**. Outside the diamond |x| + |y| = γ the row is pulled straight back toward the post; inside, "
    "nothing happens. **Drag W̃ or the corner γ**, or choose one with Tab and use the arrow keys."
)
LEMMA = (
    "Many rows, one leash: **D = W − W₀** has two rows here, both pulled to within γ. Shake the input by x, and the "
    "layer's answer changes by D x. Lemma 2 says: in the max norm that is never more than **L_d**, the longest row's "
    "l1 norm, times the largest entry of x. And L_d ≤ γ. **Move x and try to beat it.**"
)
LIMITS = {"x": (-2.0, 2.0, 1.5), "y": (-2.0, 2.0, 0.6), "gamma": (0.0, 2.0, 1.0)}
INPUTS = dict.fromkeys(("x1", "x2", "x3"), (-1.0, 1.0, 0.5))
LINK = {name: limits[:2] for name, limits in {**LIMITS, **INPUTS}.items()}
MATRICES = [str(number) for number in range(20)]  # as text: Streamlit cannot take "inf" for a whole number
GUESSES = ("The circle, by far", "Both alike", "The diamond")


def misfit(world: World) -> str:
    return ""


def render() -> None:
    start = {name: _number(name, *limits) for name, limits in {**LIMITS, **INPUTS}.items()}
    leash, lemma = st.tabs(["The leash of a row", "Break the bound (Lemma 2)"])
    with leash:
        left, right = st.columns([1, 2.6], gap="medium")
    with left:
        question = "On a diagonal, x = y: which leash of the same γ lets the row go farther?"
        guess = widgets.predict("geometry_guess", question, GUESSES)
        st.markdown(PICTURE)
    with right:
        dragged = picture(start["x"], start["y"], start["gamma"], st.query_params.get("circle") == "true")
    # a browser may send anything: what comes back is checked like a link
    x, y, gamma = (_within(dragged.get(name), *limits) for name, limits in LIMITS.items())
    row, circle = geometry.project(x, y, gamma), bool(dragged.get("circle"))
    if guess:
        left.markdown(
            f"{'Right' if guess == GUESSES[0] else 'Look again'}: along an axis both are equally long; on a diagonal "
            "the circle lets the row go 1.41 times as far. MARS counts the weights' moves |x| + |y|, because an input "
            "with the right signs adds them all up."
        )
    with lemma:
        st.markdown(LEMMA)
        number = int(st.selectbox("Matrix D", MATRICES, key="matrix", bind="query-params", width=200) or 0)
        difference = geometry.matrix(number, gamma)
        moved = break_the_bound(difference, [start[name] for name in INPUTS])
    by_input = dict(zip(INPUTS, moved, strict=False))
    inputs = [_within(by_input.get(name), *limits) for name, limits in INPUTS.items()]
    settings: dict[str, Any] = {"x": x, "y": y, "gamma": gamma, "circle": str(circle).lower(), "matrix": number}
    settings |= dict(zip(INPUTS, inputs, strict=True))
    usual = {name: limits[2] for name, limits in {**LIMITS, **INPUTS}.items()} | {"circle": "false"}
    widgets.remember({name: settings[name] for name in usual}, usual)
    with right:
        widgets.answer(
            f"{sentence(row)} So a shaken input can shake the layer's change by at most {gamma:.2f} times as much."
        )
    widgets.data_table(geometry.table(row), "projection")
    widgets.data_table(_lemma_table(difference, inputs), "lemma2", label="Lemma 2: table and download")
    widgets.sharing("geometry", settings, python_of(row, difference), "03_projection")


def sentence(row: geometry.Projection) -> str:
    """The answer in words; the picture says the same while it is dragged.

    >>> sentence(geometry.project(1.5, 0.6, gamma=1.0))
    'A row that wanted to go 2.10 away is held at 1.00, the length of its leash.'
    """
    if row.pulled:
        return f"A row that wanted to go {row.l1:.2f} away is held at {row.gamma:.2f}, the length of its leash."
    return f"A row that goes {row.l1:.2f} away is within the {row.gamma:.2f} of its leash and stays where it is."


def python_of(row: geometry.Projection, difference: geometry.Matrix) -> str:
    """The same numbers with `ftp`, for a notebook cell."""
    rows = [[round(value, 4) for value in line] for line in difference]
    return f"""import torch
from ftp.projection import mars_norm, project_mars, row_l1

# Eq. 10: one row of two weights, its anchor at zero
wanted = torch.tensor([{list(row.unconstrained)}])
projected = project_mars(wanted, torch.zeros(1, 2), gamma={row.gamma})
print(projected, row_l1(projected))

# Lemma 2: the signs of the longest row are the worst input
d = torch.tensor({rows})
l_d = mars_norm(d)
x = d[row_l1(d).argmax()].sign()
print((d @ x).abs().max() / x.abs().max(), l_d)"""


def _lemma_table(difference: geometry.Matrix, x: Sequence[float]) -> list[dict[str, Any]]:
    lemma = geometry.bound(difference)
    tried = {"your x": tuple(x), "the worst x": lemma.worst}
    return [
        {"input": name, **dict(zip(INPUTS, values, strict=True))}
        | {"|D x| / |x|": geometry.slope(difference, values), "L_d": lemma.l_d}
        for name, values in tried.items()
    ]


def _number(name: str, low: float, high: float, default: float) -> float:
    return _within(st.query_params.get(name), low, high, default)


def _within(value: Any, low: float, high: float, default: float) -> float:
    """A number of a link or a browser, on the picture's grid; anything else counts as the default."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return default
    return round(number, 2) if math.isfinite(number) and low <= number <= high else default
