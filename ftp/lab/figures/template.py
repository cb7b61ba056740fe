"""The look of all figures: one dash and marker for each method, the layout; colours come from `ftp.lab.palette`.

Everything is said in the layout itself, nothing is left to plotly's default template, which Streamlit replaces.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Any

from plotly.colors import sample_colorscale

from ftp.lab.figures.data import plain
from ftp.lab.palette import GREY, METHODS, TASK_METHODS, Palette, palette
from ftp.lab.table import Group, title

# the page's font first; "Source Sans 3" would need quotes: without them browsers drop the whole list
FONT = "Source Sans, Source Sans Pro, Segoe UI, Helvetica Neue, Arial, Liberation Sans, sans-serif"
MARGIN = {"l": 70, "r": 30, "t": 84, "b": 62}
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


# dash and marker
LOOKS = {
    "finetune": ("solid", "circle"),
    "linear_probe": ("dot", "triangle-down"),
    "partial_fusion": ("dashdot", "pentagon"),
    "bitfit": ("dash", "triangle-left"),
    "adapter": ("longdash", "triangle-right"),
    "llrd": ("longdashdot", "hexagon"),
    "l2_sp": ("dash", "square"),
    "mars_sp": ("dot", "triangle-up"),
    "lp_ft": ("dashdot", "cross"),
    "tpgm": ("dash", "diamond"),
    "ftp": ("solid", "star"),
    "wise": ("longdash", "x"),
}
TASK_LOOKS = {
    "ft_plus": ("dash", "triangle-left"),
    "lwf_mc": ("dashdot", "cross"),
    "l2p": ("longdash", "triangle-right"),
    "dualprompt": ("dashdot", "pentagon"),
    "coda_prompt": ("longdashdot", "hexagon"),
    "ewc": ("dash", "diamond"),
    "ftp_ewc": ("solid", "x"),
    "nearest_mean": ("dot", "triangle-up"),
}
METHOD_STYLE = {
    name: Style("WiSE" if name == "wise" else title(name), *METHODS[name], *look) for name, look in LOOKS.items()
}
TASK_STYLE = {name: Style(title(name), *TASK_METHODS[name], *look) for name, look in TASK_LOOKS.items()}


def theme(dark: bool) -> Palette:
    return palette(dark)


def style(method: str) -> Style:
    """How a method is drawn; one that is not known is grey, always with the same dash and marker.

    >>> style("ftp").name, style("ftp").light, style("mine").light
    ('FTP', '#D55E00', '#858585')
    """
    if method in METHOD_STYLE or method in TASK_STYLE:
        return METHOD_STYLE.get(method) or TASK_STYLE[method]
    number = zlib.crc32(method.encode())
    return Style(plain(method), GREY, GREY, DASHES[number % len(DASHES)], MARKERS[number // 7 % len(MARKERS)])


def styles(groups: list[Group]) -> list[Style]:
    """A style for each group; several settings of one method share its colour, not its marker and dash."""
    last_number: dict[str, int] = {}
    out = []
    for group in groups:
        number = last_number[group.method] = last_number.get(group.method, -1) + 1
        group_style = replace(style(group.method), name=plain(group.name))
        if number:
            others = [marker for marker in MARKERS if marker != group_style.marker]
            dashes = [dash for dash in DASHES if dash != group_style.dash]
            group_style = replace(group_style, marker=others[number % len(others)], dash=dashes[number % len(dashes)])
        out.append(group_style)
    return out


def depth_colors(count: int, dark: bool) -> list[str]:
    """A colour for each layer: early ones dark, late ones light, all of them legible.

    >>> depth_colors(2, dark=False)
    ['rgb(10, 42, 58)', 'rgb(72, 156, 147)']
    """
    places = [i / max(1, count - 1) for i in range(count)]
    return [str(color) for color in sample_colorscale(list(theme(dark).layers), places)]


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
    base: dict[str, Any] = {"title": {"text": text, "font": {"size": 14, "color": look.text}, "standoff": 10}}
    base |= {"color": look.text, "tickfont": {"size": 13, "color": look.text}, "zeroline": False, "automargin": False}
    base |= {"showgrid": True, "gridcolor": look.grid, "gridwidth": 1, "showline": True, "linecolor": look.muted}
    return base | {"ticks": "outside", "tickcolor": look.muted, "ticklen": 4} | more


def layout(text: str, subtitle: str, dark: bool, *, height: int = 460, **more: Any) -> dict[str, Any]:
    """The layout of a figure: short title, a line below it, explicit background; `more` adds axes and the like."""
    look = theme(dark)
    small = {"size": 13, "color": look.muted, "family": FONT}
    heading: dict[str, Any] = {"text": text, "font": {"size": 18, "color": look.text, "family": FONT, "weight": 600}}
    heading |= {"subtitle": {"text": subtitle, "font": small}, "x": 0.0, "xref": "container", "xanchor": "left"}
    heading |= {"y": 1.0, "yref": "container", "yanchor": "top", "pad": {"l": 16, "t": 16}}
    base: dict[str, Any] = {
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
    return base | more


def colorbar(text: str, dark: bool, **more: Any) -> dict[str, Any]:
    """A narrow colour bar at the right."""
    look = theme(dark)
    base: dict[str, Any] = {"title": {"text": text, "font": {"size": 14, "color": look.text}}, "thickness": 14}
    base |= {"len": 0.9, "outlinewidth": 0, "tickfont": {"size": 13, "color": look.text}, "tickcolor": look.muted}
    return base | {"x": 1.02, "xpad": 4} | more


def note(x: float | None, y: float | None, text: str, dark: bool, **more: Any) -> dict[str, Any]:
    """A text at a point of the picture, without an arrow unless `more` asks for one."""
    look = theme(dark)
    base: dict[str, Any] = {"x": x, "y": y, "text": text, "showarrow": False, "font": {"size": 13, "color": look.text}}
    base |= {
        "arrowcolor": look.muted,
        "arrowwidth": 1,
        "arrowhead": 0,
        "arrowside": "none",
        "borderpad": 1,
        "align": "left",
    }
    return base | more
