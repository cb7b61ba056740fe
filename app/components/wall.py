"""The class wall: everyone's finished runs in one plane; it is drawn by wall.js."""

from dataclasses import asdict

import streamlit as st

from app.components._look import script
from app.components.player import STYLE, look
from ftp.lab import methods
from ftp.lab.figures.template import style
from ftp.lab.worlds import World

_WALL = st.components.v2.component(
    "ftp_wall",
    css=STYLE + ".ftp-wall .plane { min-height: 320px; }",
    js=script("_common", "_plots", "wall"),
    isolate_styles=False,
)


def wall(world: World, dark: bool) -> None:
    """Show the wall; it asks for news by itself."""
    method_styles = {name: style(name) for name in methods.names()}
    styles = {name: {"name": s.name, "color": s.color(dark), "marker": s.marker} for name, s in method_styles.items()}
    styles[""] = {"name": "", "color": style("").color(dark), "marker": "circle"}  # a method of one's own
    data = {"look": look(dark), "styles": styles, "world": world.name, "metric": asdict(world.metrics[0])}
    _WALL(key=f"wall {world.name}", data=data)
