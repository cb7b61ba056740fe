"""The class wall: everyone's finished runs in one plane; it is drawn by wall.js."""

import streamlit as st

from app.components.player import STYLE, look, script
from ftp.lab import methods
from ftp.lab.figures._template import style

_WALL = st.components.v2.component(
    "ftp_wall",
    css=STYLE + ".ftp-wall .plane { height: 520px; }",
    js=script("_common", "_plots", "wall"),
    isolate_styles=False,
)


def wall(dark: bool) -> None:
    """Show the wall; it asks for news by itself."""
    own = {name: style(name) for name in methods.names()}
    styles = {name: {"name": s.name, "color": s.color(dark), "marker": s.marker} for name, s in own.items()}
    styles[""] = {"name": "", "color": style("").color(dark), "marker": "circle"}  # a method of one's own
    _WALL(key="wall", data={"look": look(dark), "styles": styles})
