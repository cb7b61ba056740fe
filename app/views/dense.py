"""Dense tasks: a scene, the truth, what a network says of every pixel, and where it is wrong (Tab. 4, Fig. 6)."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from app import run_chooser, widgets
from app.components.dense import NAMES, YOURS, Place, ShownDense, dense
from app.supervisor import supervisor
from app.world import choose_option, current
from ftp.lab import noise
from ftp.lab.catalogue import corruptions
from ftp.lab.figures.template import style
from ftp.lab.jobs import Order
from ftp.lab.record import RunRecord
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.summary import Metric, average
from ftp.lab.worlds import World

TITLE = "Every pixel"
QUESTION = "Where does the prediction break when the camera turns or the air thickens?"
ABOUT = {
    "semseg": "What is at each pixel?",
    "parts": "Which part of a body is at each pixel?",
    "normals": "Which way does the surface face at each pixel?",
}
PICTURE = (
    "No damage, and no view from high above, was seen in fine-tuning. **Drag the picture** or move the dial, "
    "then switch the method; point at a pixel for its name."
)
NOTHING = "nothing here counts in this task, so there is no score."
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
        tasks = [task for task in world.options["task"].choices or () if task in data["tasks"]]
        world = choose_option(world, "task", tasks)
        kinds = [spoken(kind) for kind in world.corruptions]
        runs = recorded_of(world.name, str(world.option("task")))
        question = f"At severity 5, what hurts {style(PLAIN).name} most?"
        guess = widgets.predict("dense_guess", question, kinds) if runs else None
        if runs and guess:
            widgets.answer(answer(runs, world, guess))
        st.caption(f"{ABOUT.get(str(world.option('task')), '')} {PICTURE}")
        chosen = run_chooser.choose(options={"task": world.option("task")})
        your_run = _said_by(chosen) if chosen else None
        st.caption(_standing(data["tasks"][world.option("task")]))
    shown = _shown(world, data, your_run)
    start = _start(shown)
    with right:
        at = dense(shown, start, widgets.dark(), bool(runs) and widgets.waits(guess))
    dial = next(dial for dial in data["dials"] if dial["name"] == at.dial)
    params = {"scene": at.scene, "method": at.method, "dial": at.dial, "at": dial["values"][at.place]}
    if at.method == YOURS:  # the address has it as the run
        del params["method"]
        st.query_params.pop("method", None)
    for name, value in params.items():
        st.query_params[name] = str(value)
    widgets.data_table(rows(shown), "dense")
    code = python_of(world, data, at, chosen)
    run = chosen.run_id if chosen else None
    widgets.sharing("dense", {"task": world.option("task"), **params, "run": run}, code, run_chooser.lesson("15", "12"))


def _said_by(run: RunRecord) -> Mapping[str, Any] | None:
    """What a finished run says of every pixel; a button has a worker compute it where that has not been done."""
    order = Order("pixels", run.run_id)
    computed: Mapping[str, Any] | None = order.result(supervisor().store)
    if computed is None:
        is_computed = order.path(supervisor().store).exists
        run_chooser.ask(order, is_computed, "Show what this run says", "Its answer at every pixel of these pictures")
    return computed


def _shown(world: World, data: Mapping[str, Any], your_run: Mapping[str, Any] | None = None) -> ShownDense:
    names, counts = [], dict.fromkeys(world.roles, 0)
    for scene in data["scene_list"]:
        split = scene["split"]
        counts[split] += 1
        name = f"home {counts[split]}" if split == world.home else split
        where = "the home test set" if split == world.home else f"the shift {split}"
        names.append((name, f"{name}: picture {scene['number'] + 1} of {where}"))
    return ShownDense(world.name, str(world.option("task")), world.metrics[0], data, names, NOTHING, your_run)


def _start(shown: ShownDense) -> Place:
    """Where the hands are at first, by the address; `links` has told what makes no sense."""
    query, dials = st.query_params, shown.data["dials"]
    scene = query.get("scene", "0")
    methods = list(shown.runs)
    method = query.get("method", YOURS if YOURS in methods else PLAIN)
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
    return tuple(run for run in widgets.recorded_runs(world) if run.settings.options.get("task") == task and run.result)


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
    others = [f"{spoken(k).lower()} {metric.text(average(v), 0)}" for k, v in scores.items() if k != bad[0]]
    level = f" (about the same: {', '.join(spoken(k).lower() for k in bad[1:])})" if bad[1:] else ""
    clean = average([float((r.result or {})["id"]) for r in runs if r.settings.method == PLAIN])
    fallen = metric.with_unit(average(scores[bad[0]]), 0)
    ours = damaged(runs, "ftp").get(bad[0])
    also = f", FTP to {metric.with_unit(average(ours), 0)}" if ours else ""
    count = len(scores[bad[0]])
    return (
        f"{verdict}: {spoken(bad[0]).lower()}{level} takes {style(PLAIN).name} from {metric.with_unit(clean, 0)} "
        f"{metric.name} to {fallen}{also}. The others leave {style(PLAIN).name}: {', '.join(others)}. "
        f"All home test pictures, {count} seed{'s' * (count > 1)}."
    )


def rows(shown: ShownDense) -> list[dict[str, Any]]:
    """One line for each scene, dial and place on it: the score of every method."""
    metric = shown.metric
    return [
        {"scene": name, "dial": dial["title"], "at": value}
        | {f"{_name(key)} ({metric.unit})": run["scores"][n][state] for key, run in shown.runs.items()}
        for n, (name, _) in enumerate(shown.scenes)
        for dial in shown.data["dials"]
        for value, state in zip(dial["values"], dial["states"], strict=True)
    ]


def _name(method: str) -> str:
    return "yours" if method == YOURS else NAMES.get(method, style(method).name)


def python_of(world: World, data: Mapping[str, Any], at: Place, your_run: RunRecord | None = None) -> str:
    """The same picture and what a network says of it, in a notebook cell."""
    scene = data["scene_list"][at.scene]
    dial = next(dial for dial in data["dials"] if dial["name"] == at.dial)
    if at.method == YOURS and your_run:
        arguments = widgets.arguments_of(your_run.settings)
    else:
        runs = data["tasks"][world.option("task")]["runs"]
        seed = next(run["seed"] for run in runs if run["method"] == at.method)
        arguments = f'"{world.name}", "{at.method}", {{**world.chosen, "seed": {seed}}}'
    fields = {**scene, "value": dial["values"][at.place], "task": world.option("task")}
    taken = dial["python"].format(**fields) if dial["values"][at.place] else data["python"].format(**fields)
    return f"""import torch
from ftp.lab import worlds
from ftp.lab.run import execute, model_of
from ftp.lab.settings import resolve
from ftp.lab.store import Store

world = worlds.load("{world.name}", {world.chosen})
with Store("runs.db") as store:
    run = execute(resolve({arguments}), store)
    model = model_of(run, store).eval()
{taken}
meter = world.meter()
with torch.no_grad():
    meter.add(model(pictures), truth)
print(meter.values())"""


def _standing(task: Mapping[str, Any]) -> str:
    """What the curves stand on."""
    over = ", over the kinds that are in it" if task["classes"] else ""
    untuned = "" if all(run["tuned"] for run in task["runs"]) else " Settings: the world's own, not tuned."
    return (
        f"One picture{over}, and seed {task['runs'][0]['seed']} alone: it shows how a network fails, not who is "
        f"better. Race has whole test sets and all seeds.{untuned}"
    )
