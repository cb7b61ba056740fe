"""The page that `streamlit run app/main.py` shows: one row of two weights on its leash."""

import streamlit as st

from app import geometry

TITLE = "A row of weights on a leash"
QUESTION = "How far may a row of weights move from its anchor?"
PICTURE = (
    "The anchor **W₀** (the pre-trained row) is a post and **γ** is the length of a leash. "
    "The optimizer wants to take the row to **W̃**. Outside the diamond |x| + |y| = γ the row is pulled straight "
    "back toward the post, as far as the diamond; inside, nothing happens."
)
CIRCLE_HELP = (
    "Along an axis both leashes are equally long. On a diagonal the circle lets the row go 1.41 times as far: "
    "MARS counts the weights' moves |x| + |y|, not the straight-line distance."
)


def render() -> None:
    st.title(TITLE, anchor=False)
    st.header(QUESTION, anchor=False)
    controls, chart = st.columns(2, gap="medium")
    with controls:
        st.markdown(PICTURE)
        row, circle = _settings()
        answer = geometry.sentence(row)
        st.markdown("**" + answer.replace(" %", "\u00a0%") + "**")  # no line break inside "48 %"
    with chart:
        st.plotly_chart(
            geometry.figure(row, circle),
            key="picture",
            config={"displayModeBar": False, "showSendToCloud": False},
            alt=f"The diamond of size γ = {row.gamma:.2f} around the anchor. {answer}",
        )
    formula, numbers = st.columns(2, gap="medium")
    with formula:
        st.subheader("The formula (Eq. 10), with these numbers", anchor=False)
        st.latex(_formula(row))
    with numbers:
        _table(row)


def _settings() -> tuple[geometry.Projection, bool]:
    """The widgets; each key is a parameter of the URL, so a link shares the settings."""
    x = st.slider("W̃, first weight x", -2.0, 2.0, 1.5, 0.05, key="x", bind="query-params")
    y = st.slider("W̃, second weight y", -2.0, 2.0, 0.6, 0.05, key="y", bind="query-params")
    gamma = st.slider("γ, the length of the leash", 0.0, 2.0, 1.0, 0.05, key="gamma", bind="query-params")
    circle = st.checkbox("Compare with the l2 circle", key="circle", help=CIRCLE_HELP, bind="query-params")
    # a link may hold more digits than the page shows
    return geometry.project(round(x, 2), round(y, 2), round(gamma, 2)), circle


def _formula(row: geometry.Projection) -> str:
    """Eq. 10 in letters, with the numbers put in, and the result."""
    (dx, dy), (x, y) = row.unconstrained, row.projected
    lines = [
        rf"d &= \tilde w - w_0 = ({dx:.2f},\ {dy:.2f})",
        rf"\|d\|_1 &= \lvert {dx:.2f} \rvert + \lvert {dy:.2f} \rvert = {row.l1:.2f}",
        r"w &= w_0 + \min\left(1,\ \frac{\gamma}{\|d\|_1}\right) d",
    ]
    if row.l1:  # a row at its anchor has nothing to divide by
        lines += [
            rf"&= w_0 + \min\left(1,\ \frac{{{row.gamma:.2f}}}{{{row.l1:.2f}}}\right) d",
            rf"&= (0,\ 0) + {row.shrink:.3f} \cdot ({dx:.2f},\ {dy:.2f})",
        ]
    lines.append(rf"&= ({x:.2f},\ {y:.2f})")
    # without the thin space KaTeX overflows by two pixels and the browser makes it a scroll area
    return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}\,"


def _table(row: geometry.Projection) -> None:
    st.subheader(f"The numbers of the picture (γ = {row.gamma:.2f}, shrink = {row.shrink:.3f})", anchor=False)
    shown = [{k: v if isinstance(v, str) else f"{v:.2f}" for k, v in line.items()} for line in geometry.table(row)]
    st.table(shown)
    st.download_button("Download as CSV", geometry.to_csv(row), "projection.csv", "text/csv", on_click="ignore")


if __name__ == "__main__":  # true under `streamlit run`, false for a test that only imports
    st.set_page_config(page_title=TITLE, layout="wide")
    render()
