"""Figures: runs in, plotly figures out. Notebooks, the app and the command line draw with the same functions.

    draw("constraint_growth", run).show()
    draw("id_ood", runs, dark=True)
    FIGURES["id_ood"].table(runs)  # its numbers; .csv(runs) for a file

Each figure is one module with a `@figure` line; a new file beside them is found by itself. Nothing here needs torch.
Figures bring all their colours along, for Streamlit changes plotly's default template.
"""

import importlib
import pkgutil
from typing import Any

import plotly.graph_objects as go

from ftp.lab.figures._registry import REGISTRY, Figure, figure
from ftp.lab.figures.data import WiseCurve
from ftp.lab.figures.template import METHOD_STYLE
from ftp.lab.record import LabError
from ftp.lab.registry import unknown

__all__ = ["FIGURES", "METHOD_STYLE", "Figure", "WiseCurve", "draw", "figure", "find"]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

FIGURES: dict[str, Figure] = {name: REGISTRY[name] for name in sorted(REGISTRY)}


def find(name: str) -> Figure:
    """The figure of that name.

    >>> find("id_ood").needs
    'many'
    >>> find("id_odd")
    Traceback (most recent call last):
    ftp.lab.record.LabError: figure is 'id_odd'; did you mean id_ood?
    """
    if name not in FIGURES:
        raise LabError(unknown("figure", name, FIGURES))
    return FIGURES[name]


def draw(name: str, data: Any, *, dark: bool = False, **options: Any) -> go.Figure:
    """The figure of that name, drawn.

    >>> from ftp.lab.figures.data import example
    >>> [trace.name for trace in draw("id_ood", [example("finetune"), example("ftp")]).data]
    ['Vanilla FT', 'FTP']
    """
    return find(name).draw(data, dark=dark, **options)
