"""What every lesson needs: claims that are checked, predictions that are kept, figures that say how they were made.

Whatever differs from machine to machine (threads, seconds, versions) is shown as HTML or in a figure, never
printed, so that the printed lines of a lesson are the same everywhere.
"""

import base64
import io
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import ftp
from ftp.lab import solved
from ftp.lab.answers import coloured
from ftp.lab.figures import template as look
from ftp.lab.formats import counted
from ftp.lab.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, method_color
from ftp.lab.predictions import calibration, forget, hold_cells, note, outcome, predict
from ftp.lab.record import LabError, RunRecord, Settings
from ftp.lab.recordings import SEEDS, described, recorded, use
from ftp.lab.recordings.controls import use_controls
from ftp.lab.settings import rate, scale

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "PURPLE", "SKY", "VERMILLION"]
__all__ += [
    "app_link",
    "band",
    "begin",
    "calibration",
    "card",
    "claim",
    "coloured",
    "doctor",
    "figure",
    "forget",
    "outcome",
]
__all__ += ["method_color", "pictures", "plan", "predict", "progress", "retrain", "runs"]

FONT = "Helvetica, Arial, sans-serif"
CARD = 26  # pixels below a figure for the card
VIEWS = ("live", "microscope", "race", "corruptions", "wise", "ask", "tasks", "dense", "geometry", "runs", "paper")
APP = "http://127.0.0.1:8501"
_trained: set[str] = set()  # the scales at which this process was asked to train runs in place of the recorded ones
PROBE_SECONDS = 0.002  # what `_probe` takes on the machine on which the lessons were timed


def begin(lesson: str, seconds: float, full: float | None = None) -> None:
    """The first line of a lesson: where it runs, at which scale, and how long that takes on this machine.

    seconds: of the whole lesson on one ordinary core, with its recorded runs. full: the same at full scale, where the
    cells are the same and whatever is trained, live or instead of replaying, has GPU-sized settings.

    >>> begin("01", seconds=3)  # doctest: +ELLIPSIS
    Lesson 01 · ...
    """
    import plotly.io as pio
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    size = scale()
    needed = full if full and size == "full" else seconds
    expected = f"all cells together take about {_duration(needed * _probe() / PROBE_SECONDS)} here"
    if size == "full":
        expected += ", less with a GPU; what is trained is GPU-sized"
    hold_cells()
    note(f"Lesson {lesson} · {device} · {_threads()} · scale {size} · {expected}")
    if "plotly_mimetype" in str(pio.renderers.default):
        pio.renderers.default = "plotly_mimetype"  # alone: with HTML, the first figure brings 5 MB of script
    pio.renderers["plotly_mimetype"].config["scrollZoom"] = False  # else the wheel shrinks a 3-D figure to a dot


def doctor() -> None:
    """What `ftp-lab doctor` says: what this machine has, and how long things take here."""
    command = [sys.executable, "-m", "ftp.lab", "doctor"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    note((answer.stdout or answer.stderr).replace(str(Path.home()), "~"), tag="pre")


def progress() -> None:
    """What `ftp-lab progress` says: the exercises solved on this machine, and the guesses made."""
    note(solved.progress(), tag="pre")


def claim(sentence: str, condition: Any, live: bool = True) -> None:
    """Assert that a sentence holds here and now, and print it, with what it stands on.

    live: False if it was computed here from recorded runs, and not from something that has just run.

    What the lessons claim about training was measured at quick scale. So once runs have been trained here at full
    scale, a sentence that does not hold for them is a finding: it is printed with a ✗, and the lesson goes on.

    >>> claim("two and two are four", 2 + 2 == 4)
    ✓ two and two are four · checked live
    >>> claim("two and two are five", 2 + 2 == 5)
    Traceback (most recent call last):
    AssertionError: this does not hold: two and two are five
    """
    holds = bool(condition)
    if not holds and "full" not in _trained:
        raise AssertionError(f"this does not hold: {sentence}")
    stands_on = "checked live" if live else "computed from recorded runs"
    print(f"✓ {sentence} · {stands_on}" if holds else f"✗ not at full scale: {sentence}")


def runs(
    group: str = "methods",
    *,
    method: str | None = None,
    seed: int | None = None,
    train: bool = False,
    world: str | None = None,
) -> list[RunRecord]:
    """The runs behind a figure: the recorded ones at once, or with train=True made here, into your own store.

    What your store holds is not trained again.

    >>> len(runs("methods", method="ftp"))
    10
    """
    if not train:
        return recorded(world, group=group, method=method, seed=seed)
    from ftp.lab.progress import Progress
    from ftp.lab.store import Store
    from ftp.lab.sweep import Outcome, sweep

    _trained.add(scale())
    wanted, ended = plan(group, method=method, seed=seed, world=world), []
    with Store() as store, Progress(len(wanted), "runs") as progress:

        def tell(outcome: Outcome) -> None:
            ended.append(outcome)
            progress.at(len(ended), f"{outcome.settings.method} seed {outcome.settings.seed}")

        sweep(wanted, store, on_outcome=tell)
        failed = [outcome.error for outcome in ended if outcome.error]
        if failed:
            raise LabError(f"{len(failed)} of {len(wanted)} runs failed, the first one with: {failed[0]}")
        ids = {outcome.settings: outcome.run_id for outcome in ended}
        return [store.load(ids[settings]) for settings in wanted]


def retrain(methods: Sequence[str], groups: Sequence[str] = ("methods",), controls: Sequence[str] = ()) -> None:
    """Train the runs of a lesson here: from now on all its cells use them in place of the recorded ones.

    It trains what the groups have of these methods, and then the controls, ten seeds each; what your store (or the
    folder beside it) holds is not trained again.
    """
    for group in groups:
        methods_of_group = [method for method in methods if method in (described()[group].methods or methods)]
        use([run for method in methods_of_group for run in runs(group, method=method, train=True)], group)
    if controls:
        from ftp.lab.controls import train_controls
        from ftp.lab.progress import Progress
        from ftp.lab.store import default_path

        trained: list[Any] = []
        with Progress(len(controls) * len(SEEDS), "controls") as progress:
            for run in train_controls(controls, default_path().parent / "controls", SEEDS):
                trained.append(run)
                progress.at(len(trained), f"{run['control']} seed {run['seed']}")
        use_controls(trained)


def plan(group: str, *, method: str | None = None, seed: int | None = None, world: str | None = None) -> list[Settings]:
    """The settings of a group of recorded runs, by seed and then by method; at full scale, their large versions.

    >>> [settings.options["k"] for settings in plan("kappa", seed=0)]
    [0.0, 0.5]
    """
    from ftp.lab import methods
    from ftp.lab.registry import unknown
    from ftp.lab.sweep import grid

    if group not in described(world):
        raise LabError(unknown("group", group, described(world)))
    what = described(world)[group]
    chosen = what.methods or methods.PAPER
    if method is not None and method not in chosen:
        raise LabError(unknown(f"the method of the recordings {group!r}", method, chosen))
    seeds = what.seeds if seed is None else [seed]
    changes = dict(what.given)
    if "lr" in changes:
        changes["lr"] = rate(changes["lr"], world)
    return grid([method] if method else chosen, world=world, seeds=seeds, over=what.over, changes=changes)


def figure(title: str, x: str = "", y: str = "", *, height: int = 440, panels: Sequence[str] = ()) -> Any:
    """An empty plotly figure in the lab's style. It brings its own paper, so the page may be light or dark.

    panels: a heading for each of several pictures side by side; the second one's axes are x2 and y2, and so on.

    >>> figure("A title").layout.title.text, len(figure("Two", panels=("left", "right")).layout.annotations)
    ('A title', 2)
    """
    import plotly.graph_objects as go

    legend = {"orientation": "h", "x": 0, "yref": "container", "y": 1 - 36 / height, "yanchor": "top"}
    legend |= {"font": {"size": 13, "family": FONT}}
    page = look.layout(title, "", False, height=height, showlegend=True, legend=legend)
    width, headings = 1 / max(1, len(panels)), []
    for n in range(max(1, len(panels))):
        number = str(n + 1) if n else ""
        domain = [n * width + (0.04 if n else 0), (n + 1) * width - (0.04 if n < len(panels) - 1 else 0)]
        page[f"xaxis{number}"] = look.axis(x, False, domain=domain, anchor=f"y{number}")
        page[f"yaxis{number}"] = look.axis("" if n else y, False, anchor=f"x{number}", title_standoff=4)
        if panels:
            place = {"xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom"}
            headings.append(look.note(sum(domain) / 2, 1, panels[n], False, **place))
    return go.Figure(layout=page | {"annotations": headings})


def band(fig: Any, x: Sequence[float], rows: Any, name: str, color: str, *, panel: int = 1) -> None:
    """Draw the mean over seeds as a line, and from the lowest to the highest seed as a band.

    rows: one row for each x, one column for each seed. The legend is that of the first panel.

    >>> fig = figure("A title")
    >>> band(fig, [1, 2], [[0.1, 0.3], [0.2, 0.6]], "random", BLUE)
    >>> fig.data[0].y, fig.data[1].y
    ((0.3, 0.6, 0.2, 0.1), (0.2, 0.4))
    """
    values = [[float(value) for value in row] for row in rows]
    forth, back = list(x), list(x)[::-1]
    edge = [max(row) for row in values] + [min(row) for row in values][::-1]
    middle = [sum(row) / len(row) for row in values]
    place = {"legendgroup": name, "xaxis": f"x{panel}", "yaxis": f"y{panel}"}
    shade = {"mode": "none", "fill": "toself", "fillcolor": look.faint(color, 0.2), "hoverinfo": "skip"}
    fig.add_scatter(x=forth + back, y=edge, showlegend=False, **shade, **place)
    line = {"color": color, "width": 3}
    fig.add_scatter(x=forth, y=middle, name=name, line=line, showlegend=panel == 1, **place)


def pictures(title: str, rows: Mapping[str, Any]) -> Any:
    """A figure of images, one row for each name; a row is a tensor (count, 3, height, width) in [0, 1].

    >>> import torch
    >>> pictures("Two rows", {"black": torch.zeros(4, 3, 8, 8), "white": torch.ones(4, 3, 8, 8)}).layout.yaxis.ticktext
    ('black', 'white')
    """
    first = next(iter(rows.values()))
    count, height, width = len(rows), first.shape[2], len(first) * first.shape[3]
    fig = figure(title, height=130 + 50 * count)
    fig.add_image(source=sheet(list(rows.values())), hoverinfo="skip")
    middles = [height * (n + 0.5) for n in range(count)]
    fig.update_yaxes(tickvals=middles, ticktext=list(rows), range=[count * height, 0], showgrid=False)
    fig.update_xaxes(visible=False, range=[0, width], constrain="domain")
    fig.update_layout(margin_l=110, margin_t=50, margin_b=10, yaxis_scaleanchor="x")
    return fig


def sheet(rows: Sequence[Any]) -> str:
    """Rows of images below each other as the source of an image: a PNG, written as an address.

    >>> import torch
    >>> sheet([torch.zeros(4, 3, 8, 8)]).partition(",")[0]
    'data:image/png;base64'
    """
    import torch
    from PIL import Image

    strips = [torch.cat(list(images), dim=2) for images in rows]
    pixels = torch.cat(strips, dim=1).clamp(0, 1).mul(255).round().to(torch.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def card(fig: Any, seeds: int | Iterable[int] | None = None, live: bool | str = True) -> Any:
    """Write below a figure how it was made; returns the figure, so that it can end a cell.

    seeds: the one or the ones that were used, None if nothing is random. live: False if recorded runs
    are replayed, or how it was made in words.

    >>> card(figure("A title"), seeds=range(10)).layout.annotations[-1].text.split(" · ")[0]
    'seeds 0-9'
    """
    import torch

    parts = [_seeds(seeds), _threads(), f"torch {torch.__version__.split('+')[0]}", f"ftp {ftp.__version__}"]
    how = live if isinstance(live, str) else "live" if live else "replayed"
    text = " · ".join([*parts, how])
    bottom = (fig.layout.margin.b if fig.layout.margin.b is not None else look.MARGIN["b"]) + CARD
    fig.update_layout(margin_b=bottom, height=(fig.layout.height or 440) + CARD)
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "yshift": CARD - 4 - bottom}
    fig.add_annotation(look.note(0, 0, text, False, font={"size": 11, "color": look.theme(dark=False).muted}, **place))
    return fig


def app_link(view: str, **settings: Any) -> str:
    """The address that opens a view of the app (`make app`) with these settings; a list names several of one kind.

    >>> app_link("geometry", x=1.5, y=0.6, gamma=1)
    'http://127.0.0.1:8501/geometry?x=1.5&y=0.6&gamma=1'
    >>> app_link("race", methods=["tpgm", "ftp"])
    'http://127.0.0.1:8501/race?methods=tpgm&methods=ftp'
    """
    if view not in VIEWS:
        raise LabError(f"view is {view!r}; the app has {', '.join(VIEWS)}")
    return f"{APP}/{view}" + (f"?{urlencode(settings, doseq=True)}" if settings else "")


def _seeds(seeds: int | Iterable[int] | None) -> str:
    if seeds is None:
        return "nothing random"
    listed = [seeds] if isinstance(seeds, int) else list(seeds)
    if len(listed) == 1:
        return f"seed {listed[0]}"
    if len(listed) > 2 and listed == list(range(listed[0], listed[-1] + 1)):
        return f"seeds {listed[0]}-{listed[-1]}"
    return f"seeds {', '.join(map(str, listed))}"


def _threads() -> str:
    import torch

    count = torch.get_num_threads()
    return counted(count, "thread")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _probe() -> float:
    """Seconds for a fixed piece of work, so that an expected time can be said for this machine."""
    import torch

    matrix = torch.ones(256, 256, dtype=torch.float64)
    times = []
    for _ in range(16):  # the best of many: others may be at work here too
        begun = time.perf_counter()
        for _ in range(4):
            matrix @ matrix
        times.append(time.perf_counter() - begun)
    return min(times)
