"""What networks say of every pixel: some scenes, turned and damaged, the truth, what a network says, and its score.

For a world that draws its pictures, and can draw them again from another place: its module has `of_split`, `drawn_maps`
and `as_targets`. The pictures are the same for every network: the first of the home test set that have a figure, the
first that has none, and of each shift the first with one.
"""

import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ftp.lab import recipes, worlds
from ftp.lab.corruptions import corrupt
from ftp.lab.map_sheets import directions, sheet
from ftp.lab.record import SEVERITIES, LabError, RunRecord
from ftp.lab.run import model_of
from ftp.lab.store import Store
from ftp.lab.worlds import World
from ftp.lab.worlds._dense import IGNORED, LabelMapMeter, NormalMeter
from ftp.lab.worlds._scenery import Scene

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
from ftp.lab.worlds.{world} import as_targets, drawn_maps, of_split

scene = of_split("{split}")[{number}]
maps = drawn_maps([replace(scene, {moved}=scene.{moved} + {value})])
pictures, truth = maps["pictures"] / 255, as_targets(maps["{task}"])"""


def painter(world: World) -> ModuleType:
    """The module that draws a world's pictures."""
    module = sys.modules[type(world).__module__]
    if not hasattr(module, "drawn_maps"):
        raise LabError(f"the world {world.name} does not draw its pictures, so there is nothing to turn")
    return module


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
        dials.append({**dial, "python": MOVED.replace("{moved}", name).replace("{world}", world.name)})
    for kind in world.corruptions:
        places = [0, *range(len(listed), len(listed) + len(SEVERITIES))]
        listed += [State(kind=kind, severity=severity) for severity in SEVERITIES]
        title = kind.replace("_", " ")
        dial = {"name": kind, "title": title, "short": title, "unit": "", "values": [0, *SEVERITIES], "states": places}
        dials.append({**dial, "python": DAMAGED.replace("{kind}", kind)})
    return listed, dials


def chosen(world: World) -> list[tuple[str, int, Scene]]:
    """Split, number in it, and the scene."""
    of_split = painter(world).of_split
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
    draw = painter(world).drawn_maps
    parts = [draw(every[start : start + TOGETHER]) for start in range(0, len(every), TOGETHER)]
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


def said_by(model: nn.Module, world: World, pictures: Tensor, targets: Tensor, poses: list[int]) -> dict[str, Any]:
    """What a network says of every picture, as sheets of its scenes, and how good that is.

    pictures: (scenes, states, 3, side, side); targets: (scenes, poses, ...); poses: that of each state
    """
    scenes, count = pictures.shape[:2]
    whole, small = said(model, pictures.flatten(0, 1))
    shown = whole.argmax(1) if world.classes else small
    sheets, scores = [], []
    for n in range(scenes):
        part = slice(n * count, (n + 1) * count)
        sheets.append(sheet(as_bytes(shown[part]) if world.classes else directions(shown[part].numpy())))
        scores.append([score(world, whole[n * count + k], targets[n, poses[k]]) for k in range(count)])
    return {"said": sheets, "side": shown.shape[-1], "scores": scores}


def targets_of(world: World, maps: Tensor, scenes: int) -> Tensor:
    """The truth of every pose of every scene, (scenes, poses, ...)."""
    targets: Tensor = painter(world).as_targets(maps)
    return targets.view(scenes, -1, *targets.shape[1:])


def about(run: RunRecord, world: World) -> dict[str, Any]:
    """Whose answers they are."""
    tuned = bool(recipes.recipe(world.name, run.settings.method, options=world.chosen))
    return {"method": run.settings.method, "seed": run.settings.seed, "run_id": run.run_id, "tuned": tuned}


def pixels(record: RunRecord, store: Store) -> dict[str, Any]:
    """What a finished run says of the scenes of its world."""
    world = worlds.of(record.settings)
    listed, _ = states(world)
    picked = chosen(world)
    pictures, poses, maps = drawn([scene for _, _, scene in picked], listed, world)
    targets = targets_of(world, maps[str(world.option("task"))], len(picked))
    return {**about(record, world), **said_by(model_of(record, store), world, pictures, targets, poses)}
