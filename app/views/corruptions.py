"""Corruptions: one dial damages the pictures and moves every method's accuracy (Fig. 6)."""

import base64
import functools
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from app import run_chooser, widgets
from app.components.corruptions import severity_dial
from app.supervisor import supervisor
from app.views import _damaged
from app.world import current
from ftp.lab import damage, noise
from ftp.lab.catalogue import all_kinds, corruptions
from ftp.lab.figures.template import style
from ftp.lab.jobs import Order
from ftp.lab.record import RunRecord
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.summary import Metric, average
from ftp.lab.worlds import World

TITLE = "Damaged pictures"
QUESTION = "Who still reads in fog, noise and blur?"
PICTURE = (
    "None of these networks saw a damaged picture while it was fine-tuned. The pre-trained one had seen many. "
    "**Turn the dial**: the pictures and all bars follow."
)
Scores = Mapping[str, Mapping[int, float]]  # by method and seed
GUESSES = ("Vanilla FT (plain fine-tuning)", "FTP", "About the same")
START = 3  # severity
ALL = "all_kinds"  # their mean, which is what the guess is about
LINK: dict[str, Any] = {"kind": (ALL, *corruptions()), "severity": (0.0, 5.0)}


def misfit(world: World) -> str:
    if world.own or has_extra("corruptions", world.name):
        return ""
    if instead(world):
        return f"Damage in {world.title} is shown pixel by pixel, in the view Scenes"
    return f"Nothing damaged was recorded in {world.title}"


def instead(world: World) -> str:
    """The view that shows the damage of a world whose answers are maps."""
    return "dense" if has_extra("dense", world.name) else ""


def render() -> None:
    world = current()
    if not has_extra("corruptions", world.name):
        selection = _damaged.show(world, _start(), START)
        code = python_of(str(selection.get("kind", "fog")), int(selection.get("severity", 3)), world.name)
        widgets.sharing("corruptions", selection, code, run_chooser.lesson("12", "06"))
        return
    data = extra("corruptions", world.name)
    kinds, metric = [ALL, *data["pictures"]], world.metrics[0]
    seeds = sorted({run["seed"] for run in data["runs"]})
    left, right = st.columns([1, 3], gap="medium")
    with left:
        guess = widgets.predict("corruptions_guess", "Mean over all kinds and severities: who loses less?", GUESSES)
        linked = st.query_params.get("kind", "")
        index = kinds.index(linked if linked in kinds else ALL)
        kind = st.selectbox("Kind of damage", kinds, index, format_func=spoken) or ALL
        seed = run_chooser.seed_of(seeds)
        chosen = run_chooser.choose()
        st.markdown(PICTURE)
    shown_runs = [run for run in data["runs"] if seed in (None, run["seed"])]
    rows = [_row(method, runs, kind) for method, runs in by_method(shown_runs).items()]
    your_row = _your_row(chosen, kind) if chosen else None
    shown = [*rows, *([your_row] if your_row else [])]
    with right:
        severity = severity_dial(
            spoken(kind),
            mosaic(data["pictures"]) if kind == ALL else data["pictures"][kind],
            data["labels"],
            shown,
            _start(),
            metric,
            widgets.waits(guess),
        )
    widgets.remember({"kind": kind, "severity": severity}, {"kind": ALL, "severity": START})
    if chosen and your_row is None:
        about = "All 19 kinds at five severities"
        run = chosen.run_id

        def is_computed() -> bool:
            return _your_row(supervisor().store.load(run), kind) is not None

        run_chooser.ask(Order("corruptions", run), is_computed, "Compute all kinds for this run", about)
    with right:
        if guess:
            scores = overall(data["runs"])
            widgets.answer(f"{mark(guess, scores, metric)}: {answer(scores, metric)}")
        else:
            widgets.answer("Make your guess, turn the dial, and the answer stands here in words.")
        st.caption(_standing(data, seeds, seed), help=_remarks(data, overall(shown_runs), world.corruptions))
    widgets.data_table(table(data["runs"]), "corruptions")
    settings: dict[str, Any] = {"kind": kind, "severity": severity, "seed": seed}
    settings["run"] = chosen.run_id if chosen else None
    widgets.sharing("corruptions", settings, python_of(kind, severity, world.name), run_chooser.lesson("06", "03"))


def spoken(kind: str) -> str:
    """The name of a kind for people.

    >>> spoken("defocus_blur")
    'Defocus blur'
    """
    return kind.replace("_", " ").capitalize()


def by_method(runs: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The recorded runs of each method, in the order in which they come."""
    runs_of: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        runs_of.setdefault(run["method"], []).append(run)
    return runs_of


def overall(runs: Iterable[dict[str, Any]]) -> Scores:
    """The mean over all kinds and severities, by method and seed.

    >>> overall([{"method": "ftp", "seed": 1, "corruptions": {"fog": [90.0, 80.0], "snow": [70.0, 60.0]}}])
    {'ftp': {1: 75.0}}
    """
    return {
        method: {run["seed"]: average([average(values) for values in run["corruptions"].values()]) for run in same}
        for method, same in by_method(runs).items()
    }


def verdict(scores: Scores, metric: Metric) -> int:
    """1 if FTP is better than fine-tuning beyond the noise of the seeds, -1 if it is worse, 0 if about the same."""
    seeds = sorted(set(scores["ftp"]) & set(scores["finetune"]))
    return noise.ahead([scores["ftp"][s] for s in seeds], [scores["finetune"][s] for s in seeds], metric)


def mark(guess: str, scores: Scores, metric: Metric) -> str:
    """Whether the guess was right; a difference within the noise is none.

    >>> level = {"ftp": {0: 80.0, 1: 81.0, 2: 79.0}, "finetune": {0: 81.0, 1: 79.0, 2: 80.0}}
    >>> mark("FTP", level, Metric("accuracy")), mark("About the same", level, Metric("accuracy"))
    ('Look again', 'Right')
    """
    return "Right" if guess == GUESSES[{-1: 0, 1: 1, 0: 2}[verdict(scores, metric)]] else "Look again"


def answer(scores: Scores, metric: Metric) -> str:
    """How far FTP and fine-tuning are apart, and who reads damaged pictures best; the noise of the seeds decides.

    >>> scores = {"ftp": {0: 80.0, 1: 81.0, 2: 82.0}, "finetune": {0: 70.0, 1: 71.0, 2: 72.5}}
    >>> print(answer(scores, Metric("accuracy")))
    over all kinds and severities FTP has 81.0 ± 1.0 % and Vanilla FT 71.2 ± 1.3 %, apart by more than the noise of \
3 seeds. Best of all is FTP.
    """
    seeds = len(scores["ftp"])
    apart = "apart by more than" if verdict(scores, metric) else "about the same by"
    noisy = f"{apart} the noise of {seeds} seeds" if seeds >= noise.FEWEST else "of too few seeds to tell them apart"
    said = {method: _words(list(by_seed.values()), metric) for method, by_seed in scores.items()}
    top = metric.best(average(by_seed) for by_seed in scores.values())
    best = next(method for method, by_seed in scores.items() if average(by_seed) == top)
    level = [style(name).name for name in noise.level_with(best, scores, metric)]
    also = f"; about the same: {', '.join(level)}" if level else ""
    return (
        f"over all kinds and severities {style('ftp').name} has {said['ftp']} and {style('finetune').name} "
        f"{said['finetune']}, {noisy}. "
        f"Best of all is {style(best).name}{also}."
    )


def _words(values: list[float], metric: Metric) -> str:
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{average(values):.1f}{spread} {metric.unit}"


def table(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each method, seed and kind: clean and severity 1 to 5, in percent.

    >>> run = {"method": "ftp", "seed": 5, "clean": 98.0, "corruptions": {"fog": [9.0, 8.0, 7.0, 6.0, 5.0]}}
    >>> table([run])[0]["severity 5"]
    5.0
    """
    return [
        {"method": style(run["method"]).name, "seed": run["seed"], "kind": kind, "clean": run["clean"]}
        | {f"severity {n}": value for n, value in enumerate(values, start=1)}
        for run in runs
        for kind, values in run["corruptions"].items()
    ]


def python_of(kind: str, severity: int, world: str) -> str:
    """The damaged pictures, in a notebook cell."""
    return f"""import torch
from ftp.lab import worlds
from ftp.lab.corruptions import corrupt

world = worlds.load("{world}")
images, labels = world.split(world.home).batch(torch.arange(8))
damaged = corrupt(images, "{"fog" if kind == ALL else kind}", severity={max(1, severity)}, parameters=world.severities)
print(damaged.shape, (damaged - images).abs().mean())"""


def _remarks(data: dict[str, Any], means: Scores, few: Sequence[str]) -> str:
    """Why the mean over all kinds is not that of Race's table, and why two rows can be equal."""
    race = f"The table of Race averages {len(few)} of these {len(data['pictures'])} kinds."
    equal = "mars_sp" in means and means["mars_sp"] == means.get("finetune")
    return f"{race} {widgets.NEVER_PULLS}" if equal else race


def _standing(data: dict[str, Any], seeds: Sequence[int], seed: int | None) -> str:
    """What the bars stand on."""
    what = f"the first {data['images']} test images, damaged alike for every method"
    if seed is not None or len(seeds) == 1:
        one = seeds[0] if seed is None else seed
        return f"Recorded runs of seed {one} alone, which cannot tell who is better; {what}."
    return (
        f"Mean of {len(seeds)} seeds, ± and the bands one standard deviation; {what}. All were trained on one machine."
    )


def _row(method: str, runs: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The mean over the runs of a method, with its spread where there are several."""
    columns = list(zip(*([run["clean"], *_by_severity(run["corruptions"], kind)] for run in runs), strict=True))
    spread = [statistics.stdev(column) for column in columns] if len(runs) > 1 else None
    return _drawn(method, [average(column) for column in columns], spread)


def _by_severity(damaged: Mapping[str, Sequence[float]], kind: str) -> list[float]:
    """The scores at severity 1 to 5 of a kind, or their means over all kinds.

    >>> _by_severity({"fog": [9.0, 8.0], "snow": [7.0, 4.0]}, ALL)
    [8.0, 6.0]
    """
    return [average(column) for column in zip(*damaged.values(), strict=True)] if kind == ALL else list(damaged[kind])


def mosaic(sheets: Mapping[str, str]) -> str:
    """One sheet whose eight columns show eight kinds of damage; sheets: WebP in base64, by kind."""
    return _mosaic(tuple(sheets.values()))


@functools.lru_cache(maxsize=4)
def _mosaic(sheets: tuple[str, ...]) -> str:
    from PIL import Image

    columns = damage.COLUMNS
    chosen = [sheets[n * len(sheets) // columns] for n in range(columns)]
    pictures = [Image.open(io.BytesIO(base64.b64decode(sheet))).convert("RGB") for sheet in chosen]
    side = pictures[0].width // columns
    whole = Image.new("RGB", pictures[0].size)
    for n, picture in enumerate(pictures):
        whole.paste(picture.crop((n * side, 0, (n + 1) * side, picture.height)), (n * side, 0))
    out = io.BytesIO()
    whole.save(out, "WEBP", quality=damage.QUALITY, method=4)
    return base64.b64encode(out.getvalue()).decode()


def _drawn(method: str, values: list[float], spread: list[float] | None = None, name: str = "") -> dict[str, Any]:
    line = style(method)
    look = {"name": name or line.name, "light": line.light, "dark": line.dark, "dash": "dot" if name else line.dash}
    return {**look, "strong": bool(name) or method in ("ftp", "finetune"), "values": values, "spread": spread}


def _your_row(record: RunRecord, kind: str) -> dict[str, Any] | None:
    result = record.result or {}
    damaged = result.get("corruptions") or {}
    wanted = all_kinds(current()) if kind == ALL else (kind,)
    if any(name not in damaged for name in wanted):
        return None
    return _drawn(record.settings.method, [result["id"], *_by_severity(damaged, kind)], name="yours")


def _start() -> int:
    severity = st.query_params.get("severity", "")
    return int(severity) if severity in list("012345") else START
