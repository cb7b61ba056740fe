"""Dense tasks: a scene, the truth, what a network says of every pixel, and where it is wrong (Tab. 4, Fig. 6)."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from app import links, run_chooser, widgets
from app.components.dense import NAMES, YOURS, Place, ShownDense, dense
from app.supervisor import supervisor
from app.world import choose_option, current
from ftp.lab import noise, worlds
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
    "**Drag the picture** or move the dial, then switch the method; point at a pixel for its name. "
    "Fine-tuning saw no damage, and nothing from high above."
)
NOTHING = "no pixel of it counts in this task, so there is no score."
NOT_COUNTED = {
    "semseg": "Left out of every score: the rim of the picture, and what is behind frosted glass",
    "parts": "Left out of every score: the rim, what is behind frosted glass, and all of a picture without a figure",
    "normals": "Left out of every score: the rim of the picture, what is behind frosted glass, and the sky",
}
LIKE_HOME = "drawn like the pictures of fine-tuning"
LOOKS = {  # of the scenes that are not
    "palette": "other colours, and patterns on things and floors",
    "night": "a lamp in the dark in place of the sun",
    "camera": "seen from high above, by a tilted camera",
    "clutter": "seven to ten things in place of two to four",
}
LOST = "The run of this link is not on this machine any more, or was made on another one"
UNFINISHED = "The run of this link is not finished, so it has no answers to show yet"
ELSEWHERE = "The run of this link belongs to another world"
PLAIN = "finetune"
UNTOUCHED = 0  # the number of a scene's picture with every dial at its start
PLACE = ("scene", "method", "dial", "at")  # what the address says of a place
SEEN = "dense: what was shown last"  # in the session: the turn, the place, the viewer's own run
Damaged = Mapping[str, Mapping[int, float]]  # the score at the last severity, by kind and seed


def _recorded(world: str) -> Mapping[str, Any]:
    """The recorded scenes of a world; those of the first world that has any, if it has none."""
    names = [world, *worlds.names()] if world in worlds.names() else worlds.names()
    recorded: Mapping[str, Any] = extra("dense", next(name for name in names if has_extra("dense", name)))
    return recorded


def _scenes(world: str) -> tuple[float, float]:
    return 0.0, len(_recorded(world)["scene_list"]) - 1.0


def _dials(world: str) -> list[str]:
    return [dial["name"] for dial in _recorded(world)["dials"]]


def _values(world: str) -> tuple[float, float]:
    """The ends of the dial that the address names."""
    dials = _recorded(world)["dials"]
    dial = next((dial for dial in dials if dial["name"] == st.query_params.get("dial")), dials[0])
    return float(min(dial["values"])), float(max(dial["values"]))


def _methods(world: str) -> list[str]:
    runs = [run for task in _recorded(world)["tasks"].values() for run in task["runs"]]
    return list(dict.fromkeys(run["method"] for run in runs))


LINK: dict[str, Any] = {"scene": _scenes, "dial": _dials, "at": _values, "method": _methods}


def misfit(world: World) -> str:
    if not world.dense:
        return f"{world.title} has one answer for a whole picture, and this view is about answers for every pixel"
    return "" if has_extra("dense", world.name) else f"No pictures of {world.title} come with the kit"


def render() -> None:
    world = current()
    data = extra("dense", world.name)
    _tell_of_a_lost_run(world)
    left, right = st.columns([1, 3.4], gap="medium")
    with left:
        tasks = [task for task in world.options["task"].choices or () if task in data["tasks"]]
        world = choose_option(world, "task", tasks)
        kinds, task = [spoken(kind) for kind in world.corruptions], str(world.option("task"))
        runs = recorded_of(world.name, task)
        question = f"At severity 5, what hurts {style(PLAIN).name} most?"
        guess = widgets.predict(f"dense_guess {task}", question, kinds) if runs else None  # each task asks anew
        if runs and guess:
            widgets.answer(answer(runs, world, guess))
        st.caption(f"{ABOUT.get(task, '')} {PICTURE}")
        chosen = run_chooser.choose(options={"task": task})
        your_run = _said_by(chosen) if chosen else None
    shown = _shown(world, data, your_run)
    usual = _usual(shown, typical(shown, world.home, runs))
    at, turn = _place(shown, usual)
    with right:
        dense(
            shown,
            at,
            turn,
            widgets.dark(),
            hold=bool(runs) and widgets.waits(guess),
            on_rest=lambda rested: _keep(rested, usual, shown),
        )
    widgets.data_table(rows(shown), "dense")
    code = python_of(world, data, at, chosen)
    settings = {"task": task, **named(at, shown), "run": chosen.run_id if chosen else None}
    widgets.sharing("dense", settings, code, run_chooser.lesson("15", "12"))


def _tell_of_a_lost_run(world: World) -> None:
    """Take a run that cannot be shown out of the address, and say so where other mistakes of links are told."""
    asked = st.query_params.get("run", "")
    if problem := asked and _lost(asked, world):
        del st.query_params["run"]
        before = st.session_state.get(links.KEY, ("", []))[1]
        st.session_state[links.KEY] = ("dense", [*before, problem])
        st.rerun()


def _lost(run_id: str, world: World) -> str:
    """Why a run has no answers for these scenes; "" if it has."""
    record = widgets.record_of(run_id)
    if record is None:
        return LOST
    if record.settings.world != world.name:
        return ELSEWHERE
    if record.status != "done":
        return UNFINISHED
    return "" if supervisor().store.weights_path(run_id).exists() else LOST


def _said_by(run: RunRecord) -> Mapping[str, Any] | None:
    """What a finished run says of every pixel; a button has a worker compute it where that has not been done."""
    order = Order("pixels", run.run_id)
    computed: Mapping[str, Any] | None = order.result(supervisor().store)
    if computed is None:
        is_computed = order.path(supervisor().store).exists
        run_chooser.ask(order, is_computed, "Show what this run says", "Its answer at every pixel of these pictures")
    return computed


def _shown(world: World, data: Mapping[str, Any], your_run: Mapping[str, Any] | None = None) -> ShownDense:
    names, counts, task = [], dict.fromkeys(world.roles, 0), str(world.option("task"))
    for scene in data["scene_list"]:
        split = scene["split"]
        counts[split] += 1
        name = f"home {counts[split]}" if split == world.home else split
        where = "the home test set" if split == world.home else f"the shift {split}"
        look = LIKE_HOME if split == world.home else LOOKS.get(split, "another look than in fine-tuning")
        names.append((name, f"{name}: picture {scene['number'] + 1} of {where}", f"{name}: {look}"))
    counted = NOT_COUNTED.get(task, "Left out of every score")
    standing = _standing(data["tasks"][task])
    return ShownDense(world.name, task, world.metrics[0], data, names, NOTHING, counted, standing, your_run)


def typical(shown: ShownDense, home: str, runs: Sequence[RunRecord]) -> int:
    """The home scene where plain fine-tuning, untouched, is nearest to its score over the whole home test set.

    The same seed says both; without recorded runs it is the first scene.
    """
    plain = shown.runs.get(PLAIN)
    if plain is None:
        return 0
    whole = [r for r in runs if (r.settings.method, r.settings.seed) == (PLAIN, plain["seed"]) and r.result]
    scores = {
        n: plain["scores"][n][UNTOUCHED] for n, scene in enumerate(shown.data["scene_list"]) if scene["split"] == home
    }
    scores = {n: score for n, score in scores.items() if score is not None}
    if not (whole and scores):
        return 0
    mean = float((whole[0].result or {})["id"])
    return min(scores, key=lambda n: abs(scores[n] - mean))


def _usual(shown: ShownDense, scene: int) -> Place:
    """The place that the view opens with if the address names none."""
    methods, dial = list(shown.runs), shown.data["dials"][0]
    method = next((name for name in (YOURS, PLAIN) if name in methods), methods[0])
    return Place(scene, method, dial["name"], nearest(dial["values"], "0"))


def _place(shown: ShownDense, usual: Place) -> tuple[Place, int]:
    """The place of the address, and its turn: a number that grows when anything but the hand has changed the place.

    That is the browser's Back, or another task with another usual scene.
    """
    turn, before, run_before = st.session_state.get(SEEN, (0, None, ""))
    your_run = shown.your_run["run_id"] if shown.your_run else ""
    if before and your_run not in ("", run_before) and "method" in st.query_params:
        del st.query_params["method"]  # who chooses a run wants to see it
    place = _linked(shown, usual)
    turn += place != before
    st.session_state[SEEN] = (turn, place, your_run)
    return place, turn


def _linked(shown: ShownDense, usual: Place) -> Place:
    """The place that the address names; `links` has told what makes no sense."""
    query, dials = st.query_params, shown.data["dials"]
    method = query.get("method", usual.method)
    dial = next((dial for dial in dials if dial["name"] == query.get("dial")), dials[0])
    return Place(
        nearest(range(len(shown.scenes)), query.get("scene", str(usual.scene))),
        method if method in shown.runs else usual.method,
        dial["name"],
        nearest(dial["values"], query.get("at", "0")),
    )


def _keep(rested: Place, usual: Place, shown: ShownDense) -> None:
    """Put into the address where the hand rested, as far as it is not the usual place."""
    values = named(rested, shown)
    widgets.remember({key: values.get(key) for key in PLACE}, named(usual, shown))
    turn, _, your_run = st.session_state.get(SEEN, (0, None, ""))
    st.session_state[SEEN] = (turn, rested, your_run)


def named(place: Place, shown: ShownDense) -> dict[str, str]:
    """A place as the address names it; a run of the viewer's own is not a method there, but the run."""
    dial = next(dial for dial in shown.data["dials"] if dial["name"] == place.dial)
    names = {"scene": str(place.scene), "method": place.method, "dial": place.dial}
    names["at"] = str(dial["values"][place.place])
    return {key: value for key, value in names.items() if value != YOURS}


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
    others = [f"{spoken(k).lower()} {metric.with_unit(average(v), 0)}" for k, v in scores.items() if k != bad[0]]
    level = f", with {' and '.join(spoken(k).lower() for k in bad[1:])} about as bad" if bad[1:] else ""
    clean = average([float((r.result or {})["id"]) for r in runs if r.settings.method == PLAIN])
    hurt = average(scores[bad[0]])
    ours = damaged(runs, "ftp").get(bad[0])
    also = f", FTP's to {metric.with_unit(average(ours), 0)}" if ours else ""
    name, count = style(PLAIN).name, len(scores[bad[0]])
    seeds = f"Mean of {count} seeds" if count > 1 else "One seed"
    return (
        f"{verdict}: {spoken(bad[0]).lower()}{level}. {name}'s {metric.name} {'drops' if hurt < clean else 'rises'} "
        f"from {metric.with_unit(clean, 0)} to {metric.with_unit(hurt, 0)}{also}. "
        f"{name} with the others: {', '.join(others)}. {seeds}, on the whole home test set."
    )


def rows(shown: ShownDense) -> list[dict[str, Any]]:
    """One line for each scene, dial and place on it: the score of every method."""
    metric = shown.metric
    return [
        {"scene": name, "dial": dial["title"], "at": value}
        | {f"{_name(key)} ({metric.unit})": run["scores"][n][state] for key, run in shown.runs.items()}
        for n, (name, _, _) in enumerate(shown.scenes)
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
    """What the scores stand on, and why the view opens with the scene it does."""
    untuned = "" if all(run["tuned"] for run in task["runs"]) else " The settings were not tuned."
    return (
        f"One picture and seed {task['runs'][0]['seed']} show how a network fails, not which is best; for that see "
        f"Race. The view opens with a typical picture: {style(PLAIN).name} scores closest to its home average.{untuned}"
    )
