"""The registry: what a figure is, and the decorator that makes a function one."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go

from ftp.lab.formats import to_csv
from ftp.lab.record import LabError

Needs = Literal["one", "many", "wise", "task run", "task runs"]
Lines = list[dict[str, Any]]
Draw = Callable[..., go.Figure]
Table = Callable[..., Lines]


@dataclass(frozen=True)
class Figure:
    """One kind of picture. It needs one run or many, of tasks in a row perhaps, or curves of WiSE.

    A picture that needs a "task run" draws one run of a world with tasks, one that needs "task runs" draws several.
    """

    name: str
    title: str
    question: str
    needs: Needs
    function: Draw
    lines: Table

    @property
    def options(self) -> dict[str, Any]:
        """What can be chosen besides `dark`, and what is chosen if nothing is said."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "dark"}

    def draw(self, data: Any, *, dark: bool = False, **options: Any) -> go.Figure:
        """The picture of a run, of several runs, or of curves; one and a list of one are the same."""
        return self.function(self._one_or_several(data), dark=dark, **options)

    def table(self, data: Any, **options: Any) -> Lines:
        """The numbers of the picture, one dict per line; all lines have the same keys. None is a missing number."""
        return self.lines(self._one_or_several(data), **options)

    def csv(self, data: Any, **options: Any) -> str:
        """The table for a spreadsheet."""
        return to_csv(self.table(data, **options))

    def _one_or_several(self, data: Any) -> Any:
        several = list(data) if isinstance(data, Iterable) else [data]
        if not several:
            raise LabError(f"the figure {self.name} was given nothing to draw; give at least one run")
        if self.needs not in ("one", "task run"):
            return several
        if len(several) > 1:
            raise LabError(f"the figure {self.name} draws one run and {len(several)} were given; choose one of them")
        return several[0]


REGISTRY: dict[str, Figure] = {}


def figure(name: str, *, title: str, question: str, needs: Needs, table: Table) -> Callable[[Draw], Draw]:
    """Register a function data, *, dark=False, ... -> plotly figure under a name, with the function for its table.

    >>> @figure("dot", title="A dot", question="Where is it?", needs="one", table=lambda run: [{"x": 1}])
    ... def draw(run, *, dark=False, size=3):
    ...     return go.Figure()
    >>> REGISTRY["dot"].options, REGISTRY.pop("dot").csv(["a run"])
    ({'size': 3}, 'x\\n1\\n')
    """
    if name in REGISTRY:
        raise ValueError(f"two figures are called {name!r}; they are found by name: choose another one")

    def register(function: Draw) -> Draw:
        REGISTRY[name] = Figure(name, title, question, needs, function, table)
        return function

    return register
