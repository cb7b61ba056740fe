"""Dense tasks: a scene, the truth, what a network says of every pixel, and where it is wrong (Tab. 4, Fig. 6)."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from app import run_chooser, widgets
from app.components.dense import Place, ShownDense, dense
from app.world import current
from ftp.lab import noise, recordings, worlds
from ftp.lab.catalogue import corruptions
from ftp.lab.figures.template import style
from ftp.lab.record import RunRecord
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.settings import resolve
from ftp.lab.summary import Metric, average
from ftp.lab.worlds import World

TITLE = "Every pixel"
QUESTION = "Where does the prediction break when the camera turns or the air thickens?"
TASKS = {"semseg": "Things", "parts": "Body parts", "normals": "Surface normals"}
ABOUT = {
    "semseg": "Which **thing** is at each pixel?",
    "parts": "Which **part of a body** is at each pixel? A picture without a figure counts nothing.",
    "normals": "Which way does the **surface face**? The sky faces nowhere.",
}
PICTURE = (
    "None of these networks saw a damaged picture, or one from high above, while it was fine-tuned. "
    "**Drag the picture** or move the dial, then switch the method."
)
NOTHING = "nothing here counts in this task, so there is no score."
HINT = "Point at a picture, or use the arrow keys on it: here stands what is at that pixel."
PLAIN, CAMERA = "finetune", ("azimuth", "elevation", "roll")
LINK: dict[str, Any] = {"scene": (0.0, 99.0), "dial": (*CAMERA, *corruptions()), "at": (-180.0, 180.0)}
Damaged = Mapping[str, Mapping[int, float]]  # the score at the last severity, by kind and seed


def misfit(world: World) -> str:
    if not world.dense:
        return f"{world.title} has one answer for a whole picture, and this view is about answers for every pixel"
    return "" if has_extra("dense", world.name) else f"No pictures of {world.title} come with the kit"


def render() -> None:
    world = current()
    data = extra("dense", world.name)
    left, right = st.columns([1, 3.4], gap="medium")
    with left:
        world = _with_task(world, data)
        kinds = [spoken(kind) for kind in world.corruptions]
        runs = recorded_of(world.name, str(world.option("task")))
        question = f"At severity 5, what hurts {style(PLAIN).name} most?"
        guess = widgets.predict("dense_guess", question, kinds) if runs else None
        st.markdown(f"{ABOUT.get(str(world.option('task')), '')} {PICTURE}")
    shown = _shown(world, data)
    start = _start(shown)
    with right:
        at = dense(shown, start, widgets.dark(), bool(runs) and widgets.waits(guess))
        if runs and guess:
            widgets.answer(answer(runs, world, guess))
        st.caption(_standing(shown))
    dial = next(dial for dial in data["dials"] if dial["name"] == at.dial)
    params = {"scene": at.scene, "method": at.method, "dial": at.dial, "at": dial["values"][at.place]}
    for name, value in params.items():
        st.query_params[name] = str(value)
    widgets.data_table(rows(shown), "dense")
    code = python_of(world, data, at)
    widgets.sharing("dense", {"task": world.option("task"), **params}, code, run_chooser.lesson("15", "12"))


def _with_task(world: World, data: Mapping[str, Any]) -> World:
    """The chosen world with the task that is chosen here; the address keeps it."""
    names = [name for name in world.options["task"].choices or () if name in data["tasks"]]
    usual, asked = str(world.options["task"].default), str(world.option("task"))
    look: dict[str, Any] = {"format_func": lambda name: TASKS.get(name, name), "key": "dense_task"}
    chosen = st.segmented_control("Task", names, default=asked if asked in names else usual, required=True, **look)
    widgets.link("task", [chosen or usual], [usual])
    return worlds.load(world.name, {**world.chosen, "task": chosen or usual})


def _shown(world: World, data: Mapping[str, Any]) -> ShownDense:
    names, counts = [], dict.fromkeys(world.roles, 0)
    for scene in data["scene_list"]:
        split = scene["split"]
        counts[split] += 1
        name = f"home {counts[split]}" if split == world.home else split
        where = "the home test set" if split == world.home else f"the shift {split}"
        names.append((name, f"{name}: picture {scene['number'] + 1} of {where}"))
    return ShownDense(world.name, str(world.option("task")), world.metrics[0], data, names, NOTHING, HINT)


def _start(shown: ShownDense) -> Place:
    """Where the hands are at first, by the address; `links` has told what makes no sense."""
    query, dials = st.query_params, shown.data["dials"]
    scene = query.get("scene", "0")
    methods = [run["method"] for run in shown.of_task["runs"]]
    method = query.get("method", PLAIN)
    dial = next((dial for dial in dials if dial["name"] == query.get("dial")), dials[0])
    return Place(
        int(scene) if scene.isdecimal() and int(scene) < len(shown.scenes) else 0,
        method if method in methods else methods[0],
        dial["name"],
        nearest(dial["values"], query.get("at", "0")),
    )


def nearest(values: Sequence[float], text: str) -> int:
    """The place of the value that is nearest to a number; a text that is none counts as 0.

    >>> nearest([-30, 0, 30], "22"), nearest([0, 1, 2], "x")
    (2, 0)
    """
    try:
        wanted = float(text)
    except ValueError:
        wanted = 0.0
    return min(range(len(values)), key=lambda n: abs(values[n] - wanted))


def spoken(kind: str) -> str:
    """The name of a kind of damage for people.

    >>> spoken("defocus_blur")
    'Defocus blur'
    """
    return kind.replace("_", " ").capitalize()


@functools.lru_cache(16)
def recorded_of(world: str, task: str) -> tuple[RunRecord, ...]:
    """The recorded runs of a task with their tuned settings, all seeds."""
    groups = recordings.groups(world) if world in recordings.worlds() else ()
    every = [run for group in groups for run in recordings.recorded(world, group=group)]
    alike = {run.settings: run for run in every if run.settings.options.get("task") == task and run.result}
    return tuple(
        run
        for settings, run in alike.items()
        if settings == resolve(world, settings.method, {"task": task, "seed": settings.seed})
    )


def damaged(runs: Sequence[RunRecord], method: str) -> Damaged:
    """The scores of a method's runs at the last severity."""
    by_kind: dict[str, dict[int, float]] = {}
    for run in runs:
        if run.settings.method == method:
            for kind, values in ((run.result or {}).get("corruptions") or {}).items():
                by_kind.setdefault(kind, {})[run.settings.seed] = values[-1]
    return by_kind


def worst(scores: Damaged, metric: Metric) -> list[str]:
    """The kind that hurts most, and those that cannot be told apart from it by the noise of the seeds.

    >>> scores = {"fog": {0: 10.0, 1: 11.0, 2: 12.0}, "snow": {0: 50.0, 1: 50.0, 2: 51.0}}
    >>> worst(scores, Metric("mIoU")), worst(scores, Metric("angle", "°", higher_is_better=False))
    (['fog'], ['snow'])
    """
    turned = replace(metric, higher_is_better=not metric.higher_is_better)
    top = turned.best(average(by_seed) for by_seed in scores.values())
    first = next(kind for kind, by_seed in scores.items() if average(by_seed) == top)
    return [first, *noise.level_with(first, scores, turned)]


def answer(runs: Sequence[RunRecord], world: World, guess: str) -> str:
    """Which damage hurts plain fine-tuning most over the whole home test set, and what FTP makes of it."""
    metric = world.metrics[0]
    scores = damaged(runs, PLAIN)
    if not scores:
        return "No damaged pictures of these runs were recorded, so nobody can say which hurts most."
    bad = worst(scores, metric)
    verdict = "Right" if guess in map(spoken, bad) else "Look again"
    others = [f"{spoken(k).lower()} {metric.with_unit(average(v), 0)}" for k, v in scores.items() if k != bad[0]]
    level = f" (about the same: {', '.join(spoken(k).lower() for k in bad[1:])})" if bad[1:] else ""
    clean = average([float((r.result or {})["id"]) for r in runs if r.settings.method == PLAIN])
    count = len(scores[bad[0]])
    said = (
        f"{verdict}: {spoken(bad[0]).lower()}{level} takes {style(PLAIN).name} from {metric.with_unit(clean, 0)} "
        f"{metric.name} to {metric.with_unit(average(scores[bad[0]]), 0)}; {', '.join(others)}"
    )
    ours = damaged(runs, "ftp").get(bad[0])
    also = f" FTP has {metric.with_unit(average(ours), 0)} there." if ours else ""
    return f"{said} (whole home test set, mean of {count} seed{'s' * (count > 1)}).{also}"


def rows(shown: ShownDense) -> list[dict[str, Any]]:
    """One line for each scene, dial and place on it: the score of every method."""
    runs, metric = shown.of_task["runs"], shown.metric
    return [
        {"scene": name, "dial": dial["title"], "at": value}
        | {f"{style(run['method']).name} ({metric.unit})": run["scores"][n][state] for run in runs}
        for n, (name, _) in enumerate(shown.scenes)
        for dial in shown.data["dials"]
        for value, state in zip(dial["values"], dial["states"], strict=True)
    ]


def python_of(world: World, data: Mapping[str, Any], at: Place) -> str:
    """The same picture and what a network says of it, in a notebook cell."""
    scene = data["scene_list"][at.scene]
    dial = next(dial for dial in data["dials"] if dial["name"] == at.dial)
    seed = next(run["seed"] for run in data["tasks"][world.option("task")]["runs"] if run["method"] == at.method)
    fields = {**scene, "value": dial["values"][at.place], "task": world.option("task")}
    taken = dial["python"].format(**fields) if dial["values"][at.place] else data["python"].format(**fields)
    return f"""import torch
from ftp.lab import worlds
from ftp.lab.run import execute, model_of
from ftp.lab.settings import resolve
from ftp.lab.store import Store

world = worlds.load("{world.name}", {world.chosen})
with Store("runs.db") as store:
    run = execute(resolve("{world.name}", "{at.method}", {{**world.chosen, "seed": {seed}}}), store)
    model = model_of(run, store).eval()
{taken}
meter = world.meter()
with torch.no_grad():
    meter.add(model(pictures), truth)
print(meter.values())"""


def _standing(shown: ShownDense) -> str:
    """What the curves stand on."""
    runs = shown.of_task["runs"]
    over = "over the kinds that are in it, " if shown.of_task["classes"] else ""
    return (
        f"Score of one picture, {over}of runs with seed {runs[0]['seed']}: it shows how a network fails, and cannot "
        "tell who is better. Race has whole test sets and all seeds."
    )
