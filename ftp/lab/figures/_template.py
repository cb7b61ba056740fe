"""The look of all figures: a light and a dark theme, one colour, dash and marker for each method, the layout.

Everything is said in the layout itself, nothing is left to plotly's default template, which Streamlit replaces.
Text has the theme's own colour, never a method's: some of those are too light to read.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Any

from plotly.colors import sample_colorscale

from ftp.lab.figures._data import plain
from ftp.lab.table import Group, title

FONT = "Source Sans Pro, Source Sans 3, Segoe UI, Helvetica Neue, Arial, Liberation Sans, sans-serif"
MARGIN = {"l": 70, "r": 30, "t": 84, "b": 62}


@dataclass(frozen=True)
class Theme:
    paper: str
    text: str
    muted: str  # second-rate text and reference lines, at least 4.5 : 1
    grid: str
    cut: tuple[float, float]  # of the sequential scale: what of it can be seen on this paper


LIGHT = Theme("#FFFFFF", "#1F2430", "#5B6270", "#E4E7EC", (0.0, 0.7))
DARK = Theme("#171614", "#F2F1EE", "#B3B0A9", "#363430", (0.35, 1.0))  # on Streamlit's own dark background

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"  # Okabe-Ito
SKY, PURPLE = "#56B4E9", "#CC79A7"
GREY = "#858585"
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "hexagon", "cross", "x")


@dataclass(frozen=True)
class Style:
    """How a method is drawn everywhere."""

    name: str
    light: str
    dark: str
    dash: str
    marker: str

    def color(self, dark: bool) -> str:
        return self.dark if dark else self.light


# seven colours of Okabe-Ito (no yellow on white) and five found by search: under each kind of colour blindness any
# two are at least as far apart as the nearest two of Okabe-Ito
METHOD_STYLE = {
    "finetune": Style(title("finetune"), "#000000", "#FFFFFF", "solid", "circle"),
    "linear_probe": Style(title("linear_probe"), SKY, SKY, "dot", "triangle-down"),
    "partial_fusion": Style(title("partial_fusion"), "#112288", "#7A4DFF", "dashdot", "pentagon"),
    "bitfit": Style(title("bitfit"), "#663311", "#DDAAAA", "dash", "triangle-left"),
    "adapter": Style(title("adapter"), "#88BB66", "#AAFF88", "longdash", "triangle-right"),
    "llrd": Style(title("llrd"), "#554455", "#F0E442", "longdashdot", "hexagon"),
    "l2_sp": Style(title("l2_sp"), ORANGE, ORANGE, "dash", "square"),
    "mars_sp": Style(title("mars_sp"), GREEN, GREEN, "dot", "triangle-up"),
    "lp_ft": Style(title("lp_ft"), PURPLE, PURPLE, "dashdot", "cross"),
    "tpgm": Style(title("tpgm"), BLUE, BLUE, "dash", "diamond"),
    "ftp": Style(title("ftp"), VERMILLION, VERMILLION, "solid", "star"),
    "wise": Style("WiSE", "#8800FF", "#BB66FF", "longdash", "x"),
}


def theme(dark: bool) -> Theme:
    return DARK if dark else LIGHT


def style(method: str) -> Style:
    """How a method is drawn; one that is not known is grey, always with the same dash and marker.

    >>> style("ftp").name, style("ftp").light, style("mine").light
    ('FTP', '#D55E00', '#858585')
    """
    if method in METHOD_STYLE:
        return METHOD_STYLE[method]
    number = zlib.crc32(method.encode())
    return Style(plain(method), GREY, GREY, DASHES[number % len(DASHES)], MARKERS[number // 7 % len(MARKERS)])


def styles(groups: list[Group]) -> list[Style]:
    """A style for each group; several settings of one method share its colour, not its marker and dash."""
    seen: dict[str, int] = {}
    out = []
    for group in groups:
        again = seen[group.method] = seen.get(group.method, -1) + 1
        own = replace(style(group.method), name=plain(group.name))
        if again:
            others = [marker for marker in MARKERS if marker != own.marker]
            dashes = [dash for dash in DASHES if dash != own.dash]
            own = replace(own, marker=others[again % len(others)], dash=dashes[again % len(dashes)])
        out.append(own)
    return out


def depth_colors(count: int, dark: bool) -> list[str]:
    """A colour for each layer: early ones dark, late ones light, all of them legible.

    >>> depth_colors(2, dark=False)
    ['rgb(13, 8, 135)', 'rgb(241, 132, 76)']
    """
    low, high = theme(dark).cut
    places = [low + (high - low) * i / max(1, count - 1) for i in range(count)]
    return [str(color) for color in sample_colorscale("Plasma", places)]


def faint(color: str, opacity: float) -> str:
    """A colour of the form #rrggbb, made transparent.

    >>> faint("#D55E00", 0.2)
    'rgba(213, 94, 0, 0.2)'
    """
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def axis(text: str, dark: bool, **more: Any) -> dict[str, Any]:
    """An axis with its title; `more` overrides."""
    look = theme(dark)
    own: dict[str, Any] = {"title": {"text": text, "font": {"size": 14, "color": look.text}, "standoff": 10}}
    own |= {"color": look.text, "tickfont": {"size": 13, "color": look.text}, "zeroline": False, "automargin": False}
    own |= {"showgrid": True, "gridcolor": look.grid, "gridwidth": 1, "showline": True, "linecolor": look.muted}
    return own | {"ticks": "outside", "tickcolor": look.muted, "ticklen": 4} | more


def layout(text: str, subtitle: str, dark: bool, *, height: int = 460, **more: Any) -> dict[str, Any]:
    """The layout of a figure: short title, a line below it, explicit background; `more` adds axes and the like."""
    look = theme(dark)
    small = {"size": 13, "color": look.muted, "family": FONT}
    heading: dict[str, Any] = {"text": text, "font": {"size": 18, "color": look.text, "family": FONT, "weight": 600}}
    heading |= {"subtitle": {"text": subtitle, "font": small}, "x": 0.0, "xref": "container", "xanchor": "left"}
    heading |= {"y": 1.0, "yref": "container", "yanchor": "top", "pad": {"l": 16, "t": 16}}
    own: dict[str, Any] = {
        "template": {"layout": {"colorway": [s.color(dark) for s in METHOD_STYLE.values()]}},
        "title": heading,
        "height": height,
        "margin": {**MARGIN, "autoexpand": False},
        "paper_bgcolor": look.paper,
        "plot_bgcolor": look.paper,
        "font": {"family": FONT, "size": 14, "color": look.text},
        "hoverlabel": {"bgcolor": look.paper, "bordercolor": look.muted, "font": {"color": look.text, "family": FONT}},
        "modebar": {"bgcolor": "rgba(0, 0, 0, 0)", "color": look.muted, "activecolor": look.text},
        "showlegend": False,
        "hovermode": "closest",
    }
    return own | more


def colorbar(text: str, dark: bool, **more: Any) -> dict[str, Any]:
    """A narrow colour bar at the right."""
    look = theme(dark)
    own: dict[str, Any] = {"title": {"text": text, "font": {"size": 14, "color": look.text}}, "thickness": 14}
    own |= {"len": 0.9, "outlinewidth": 0, "tickfont": {"size": 13, "color": look.text}, "tickcolor": look.muted}
    return own | {"x": 1.02, "xpad": 4} | more


def note(x: float | None, y: float | None, text: str, dark: bool, **more: Any) -> dict[str, Any]:
    """A text at a point of the picture, without an arrow unless `more` asks for one."""
    look = theme(dark)
    own: dict[str, Any] = {"x": x, "y": y, "text": text, "showarrow": False, "font": {"size": 13, "color": look.text}}
    own |= {
        "arrowcolor": look.muted,
        "arrowwidth": 1,
        "arrowhead": 0,
        "arrowside": "none",
        "borderpad": 1,
        "align": "left",
    }
    return own | more
