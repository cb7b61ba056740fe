"""What the view of dense worlds shows: test scenes turned and damaged, the truth, what networks say, and its score.

    .venv/bin/python data_scripts/record_dense.py --store runs.db

Writes ftp/lab/recordings/scenes/dense.json.gz. It needs weights: a run with equal settings that the store holds is
taken, another one is made there (about a minute each). `--tasks` records some tasks anew and keeps the others. One
seed, for this is to look at; tables have them all. The scenes: the first of the test set that have a figure, the
first that has none, and of each shift the first with one.
"""

import argparse
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _finished import made_by, write
from numpy.typing import NDArray
from torch import Tensor, nn

from ftp.lab import recipes, worlds
from ftp.lab.corruptions import corrupt
from ftp.lab.map_sheets import directions, sheet
from ftp.lab.record import SEVERITIES, RunRecord, Settings
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.run import execute, model_of
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.worlds import World
from ftp.lab.worlds._dense import IGNORED, LabelMapMeter, NormalMeter
from ftp.lab.worlds._scenery import Scene
from ftp.lab.worlds.scenes import as_targets, drawn_maps, of_split

WORLD, METHODS = "scenes", ("finetune", "linear_probe", "llrd", "l2_sp", "ftp")
HOME_SCENES = 4  # with a figure
TOGETHER = 32  # drawn at once, and given to a network at once
# the dials of the camera: what of the scene they move, and by how many degrees
CAMERA = {
    "azimuth": ("camera round the scene", "round the scene", tuple(range(-60, 61, 10))),
    "elevation": ("camera higher up", "higher up", tuple(range(0, 49, 6))),
    "roll": ("camera tilted", "tilted", tuple(range(-40, 41, 10))),
}
# how a notebook gets the same picture and its truth
AS_IT_IS = 'pictures, truth = world.split("{split}").batch(torch.tensor([{number}]))'
DAMAGED = f"""from ftp.lab.corruptions import corrupt

{AS_IT_IS}
pictures = corrupt(pictures, "{{kind}}", severity={{value}}, parameters=world.severities)"""
MOVED = """from dataclasses import replace
from ftp.lab.worlds.scenes import as_targets, drawn_maps, of_split

scene = of_split("{split}")[{number}]
maps = drawn_maps([replace(scene, {moved}=scene.{moved} + {value})])
pictures, truth = maps["pictures"] / 255, as_targets(maps["{task}"])"""


@dataclass(frozen=True)
class State:
    """One picture of a scene: how its camera is moved, and how it is damaged."""

    moved: str = ""
    degrees: int = 0
    kind: str = ""
    severity: int = 0


def states(world: World) -> tuple[list[State], list[dict[str, Any]]]:
    """All pictures of a scene, the one as it is first; and the dials, with the number of the picture at each place."""
    listed, dials = [State()], []
    for name, (title, short, values) in CAMERA.items():
        places = []
        for degrees in values:
            places.append(len(listed) if degrees else 0)
            listed += [State(name, degrees)] if degrees else []
        dial = {"name": name, "title": title, "short": short, "unit": "°", "values": list(values), "states": places}
        dials.append({**dial, "python": MOVED.replace("{moved}", name)})
    for kind in world.corruptions:
        places = [0, *range(len(listed), len(listed) + len(SEVERITIES))]
        listed += [State(kind=kind, severity=severity) for severity in SEVERITIES]
        title = kind.replace("_", " ")
        dial = {"name": kind, "title": title, "short": title, "unit": "", "values": [0, *SEVERITIES], "states": places}
        dials.append({**dial, "python": DAMAGED.replace("{kind}", kind)})
    return listed, dials


def chosen(world: World) -> list[tuple[str, int, Scene]]:
    """Split, number in it, and the scene."""
    home = list(enumerate(of_split(world.home)))
    people = [(world.home, n, scene) for n, scene in home if scene.has_figure][:HOME_SCENES]
    empty = next((world.home, n, scene) for n, scene in home if not scene.has_figure)
    firsts = [next((s, n, x) for n, x in enumerate(of_split(s)) if x.has_figure) for s in world.shifts]
    return [*people, empty, *firsts]


def drawn(scenes: list[Scene], listed: list[State], world: World) -> tuple[Tensor, list[int], dict[str, Tensor]]:
    """Pictures (scenes, states, 3, side, side), the pose of each state, and the maps of each pose as the world's."""
    poses = [state for state in listed if not state.kind]
    every = [
        replace(scene, **{pose.moved: getattr(scene, pose.moved) + pose.degrees}) if pose.moved else scene
        for scene in scenes
        for pose in poses
    ]
    parts = [drawn_maps(every[start : start + TOGETHER]) for start in range(0, len(every), TOGETHER)]
    maps = {key: torch.cat([part[key] for part in parts]) for key in parts[0]}
    drawn_pictures = maps.pop("pictures").float().div(255)
    clean = drawn_pictures.view(len(scenes), len(poses), *drawn_pictures.shape[1:])
    columns = []
    for state in listed:
        if state.kind:
            g = torch.Generator().manual_seed(state.severity)
            columns.append(corrupt(clean[:, 0], state.kind, state.severity, generator=g, parameters=world.severities))
        else:
            columns.append(clean[:, poses.index(state)])
    return torch.stack(columns, 1), [0 if state.kind else poses.index(state) for state in listed], maps


@torch.no_grad()
def said(model: nn.Module, pictures: Tensor) -> tuple[Tensor, Tensor]:
    """What a network says of pictures, at their size and at the size of its decoder's map."""
    model.eval()
    small: list[Tensor] = []
    hook = model.decoder.register_forward_hook(lambda _module, _inputs, output: small.append(output))  # type: ignore[union-attr]
    whole = [model(part) for part in torch.split(pictures, TOGETHER)]
    hook.remove()
    return torch.cat(whole), torch.cat(small)


def score(world: World, outputs: Tensor, target: Tensor) -> float | None:
    """The score of one picture in the main metric; of labels over those that are in it. None where all is ignored."""
    if bool((target == IGNORED).all()):
        return None
    normals = world.task == "normals"  # type: ignore[attr-defined]
    meter = NormalMeter() if normals else LabelMapMeter(world.classes, leave_out_absent=True)
    meter.add(outputs[None], target[None])
    return meter.values()[world.metrics[0].name]


def as_bytes(maps: Tensor) -> NDArray[np.uint8]:
    return maps.to(torch.uint8).numpy()


def truth_sheet(targets: Tensor) -> str:
    if targets.dim() == 3:
        return sheet(as_bytes(targets))
    ignored = (targets == IGNORED).all(1)
    return sheet(directions(torch.where(ignored[:, None], 0.0, targets).numpy(), ignored.numpy()))


def of_task(world: World, maps: Tensor, pictures: Tensor, poses: list[int], runs: list[RunRecord], store: Store) -> Any:
    """Truth and, for each run, what it says of every picture, and how good that is."""
    scenes, count = pictures.shape[:2]
    targets = as_targets(maps)
    targets = targets.view(scenes, max(poses) + 1, *targets.shape[1:])
    rows = []
    for run in runs:
        whole, small = said(model_of(run, store), pictures.flatten(0, 1))
        shown = whole.argmax(1) if world.classes else small
        sheets, scores = [], []
        for n in range(scenes):
            part = slice(n * count, (n + 1) * count)
            sheets.append(sheet(as_bytes(shown[part]) if world.classes else directions(shown[part].numpy())))
            scores.append([score(world, whole[n * count + k], targets[n, poses[k]]) for k in range(count)])
        method = run.settings.method
        tuned = bool(recipes.recipe(WORLD, method, options=world.chosen))
        about = {"method": method, "seed": run.settings.seed, "run_id": run.run_id, "tuned": tuned}
        rows.append({**about, "said": sheets, "side": shown.shape[-1], "scores": scores})
        print(world.task, run.settings.method, flush=True)  # type: ignore[attr-defined]
    about = {"classes": list(world.classes), "metric": asdict(world.metrics[0])}
    return {**about, "truth": [truth_sheet(part) for part in targets], "runs": rows}


def finished(wanted: list[Settings], store: Store) -> list[RunRecord]:
    """Runs with these settings, out of the store or made now."""
    done = {run.settings: run for run in store.runs(world=WORLD, status="done", limit=None)}
    held = {settings: run for settings, run in done.items() if store.weights_path(run.run_id).exists()}
    return [held[settings] if settings in held else execute(settings, store) for settings in wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what the view of dense worlds shows.")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", help=f"usually those of {', '.join(METHODS)} that are tuned for a task")
    parser.add_argument("--tasks", nargs="+", choices=worlds.world(WORLD).options["task"].choices)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    plain = worlds.load(WORLD)
    listed, dials = states(plain)
    picked = chosen(plain)
    pictures, poses, maps = drawn([scene for _, _, scene in picked], listed, plain)
    bright = as_bytes(pictures.mul(255).round()).transpose(0, 1, 3, 4, 2)
    sheets = [sheet(part, lossless=False) for part in bright]
    before = extra("dense", WORLD) if asked.tasks and has_extra("dense", WORLD) else {}
    if before and (before["pictures"], before["dials"]) != (sheets, dials):
        raise SystemExit("the scenes are other ones than those recorded; record all tasks, without --tasks")
    tasks, used = dict(before.get("tasks", {})), []
    with Store(asked.store) as store:
        for task in asked.tasks or plain.options["task"].choices or ():
            tuned = [method for method in METHODS if recipes.recipe(WORLD, method, options={"task": task})]
            methods = asked.methods or tuned
            runs = finished([resolve(WORLD, m, {"task": task, "seed": asked.seed}) for m in methods], store)
            tasks[task] = of_task(worlds.load(WORLD, {"task": task}), maps[task], pictures, poses, runs, store)
            used += runs
    place = made_by(used)
    if before and before["made_by"] != place:
        raise SystemExit(
            f"the others were made in another place, {before['made_by']}; record all tasks, without --tasks"
        )
    data = {
        "side": pictures.shape[-1],
        "scene_list": [{"split": split, "number": number} for split, number, _ in picked],
        "dials": dials,
        "poses": poses,
        "pictures": sheets,
        "thumbs": sheet(bright[:, 0], lossless=False),
        "python": AS_IT_IS,
        "tasks": tasks,
        "made_by": place,
    }
    write("dense", data, WORLD)


if __name__ == "__main__":
    main()
