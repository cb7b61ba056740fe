"""The scenes world: the ray caster against signed distances and slow loops, labels that follow, resume, what ships."""

import dataclasses
import hashlib
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lab.runs import equal, weights
from torch import Tensor

from ftp.lab import evaluate, lesson, methods, recipes, worlds
from ftp.lab.models import read_weights
from ftp.lab.record import LabError, StartEvent, StepEvent
from ftp.lab.recordings import described, groups, is_live, recorded
from ftp.lab.settings import resolve
from ftp.lab.train import FineTuning, finetune
from ftp.lab.worlds import _rendering as rendering
from ftp.lab.worlds import scenes as world_of_scenes
from ftp.lab.worlds._dense import IGNORED
from ftp.lab.worlds._rendering import BORDER, FAR, MEET, SHAPES, SIDE, render
from ftp.lab.worlds._scenery import KINDS, LOOKS, PARTS, UP, Glass, Paint, Scene, Solid, Vector, frame, scene

TASKS = ("semseg", "parts", "normals")
every_task = pytest.mark.parametrize("task", TASKS)
RED = Paint((0.8, 0.2, 0.2))


def alone(*solids: Solid, **given: Any) -> Scene:
    """A scene of these solids, seen level from the front, without glass."""
    plain = dataclasses.replace(scene("home", 0), solids=solids, azimuth=0.0, elevation=20.0, roll=0.0, glass=None)
    plain = dataclasses.replace(plain, distance=4.0, view=22.0, target=(0.0, 0.5, 0.0), light=(20.0, 30.0, 20.0))
    return dataclasses.replace(plain, **given)


def ball(centre: Vector = (0.2, 0.6, 0.1), radius: float = 0.5) -> Solid:
    return Solid("sphere", centre, frame(UP), (radius, 0.0, 0.0), RED, 1, 0, 1)


# solids against their signed distances


def distance(shape: str, p: Tensor, size: Tensor) -> Tensor:
    """The signed distance of points (n, 3) to one solid, written anew."""
    a, b, c = size.unbind()
    level = p[:, [0, 2]].norm(dim=1)
    if shape == "sphere":
        return p.norm(dim=1) - a
    if shape == "box":
        q = p.abs() - torch.stack([a, b, c])
        return q.clamp(min=0).norm(dim=1) + q.amax(1).clamp(max=0)
    if shape == "capsule":
        y = p[:, 1] - p[:, 1].clamp(-float(b), float(b))
        return (level.square() + y.square()).sqrt() - a
    if shape == "torus":
        return ((level - a).square() + p[:, 1].square()).sqrt() - b
    if shape == "cylinder":
        q = torch.stack([level - a, p[:, 1].abs() - b], 1)
        return q.clamp(min=0).norm(dim=1) + q.amax(1).clamp(max=0)
    # cone: outside of its side, below its base
    tilt = math.atan2(float(a), 2 * float(b))
    side = level * math.cos(tilt) - (b - p[:, 1]) * math.sin(tilt)
    return torch.maximum(side, -b - p[:, 1])  # right in sign, and in size near side and base


@pytest.mark.parametrize("number", range(len(SHAPES)), ids=SHAPES)
def test_a_ray_ends_on_the_surface_and_its_normal_is_the_slope_of_the_distance(number: int) -> None:
    shape, g = SHAPES[number], torch.Generator().manual_seed(number)
    size = torch.tensor([0.5, 0.2, 0.4] if shape == "torus" else [0.5, 0.7, 0.4])
    start = torch.nn.functional.normalize(torch.randn(800, 3, generator=g), dim=1) * 4
    aim = torch.rand(800, 3, generator=g) * 1.6 - 0.8
    ray = torch.nn.functional.normalize(aim - start, dim=1)
    t, normal = MEET[number](start, ray, size.expand(800, 3))
    met = (t > 0) & (t < FAR)
    assert 100 < met.sum() < 800
    point = (start[met].double() + ray[met].double() * t[met, None].double()).requires_grad_()
    gap = distance(shape, point, size.double())
    assert gap.abs().max() < 2e-3
    (slope,) = torch.autograd.grad(gap.sum(), point)
    agrees = (slope * normal[met].double()).sum(1)
    edge = 0.02 if shape in ("box", "cylinder", "cone") else 0.0  # on an edge two faces meet
    assert (agrees > 0.999).double().mean() >= 1 - edge
    # nothing is missed, and nothing lies before what is met
    along = torch.linspace(0, 8, 1600).double()
    path = start[:, None].double() + ray[:, None].double() * along[None, :, None]
    gaps = distance(shape, path.reshape(-1, 3), size.double()).view(800, -1)
    inside = gaps < -2e-3
    assert not (inside.any(1) & ~met).any()
    before = along[None] < (t[:, None].double() - 0.01)
    assert not (inside & before)[met].any()


def test_a_sphere_against_a_loop_over_pixels() -> None:
    one = alone(ball(), elevation=0.0, target=(0.0, 0.6, 0.0))
    drawn = render([one], smooth=False)
    (cx, cy, cz), r, tangent = one.solids[0].centre, 0.5, math.tan(math.radians(22))
    wrong = 0
    for row, column in itertools.product(range(0, SIDE, 2), range(SIDE)):
        x, y = ((column + 0.5) * 2 / SIDE - 1) * tangent, (1 - (row + 0.5) * 2 / SIDE) * tangent
        length = math.sqrt(x * x + y * y + 1)
        d = (x / length, y / length, -1 / length)
        o = (0.0 - cx, 0.6 - cy, 4.0 - cz)
        b = sum(p * q for p, q in zip(o, d, strict=True))
        h = b * b - sum(p * p for p in o) + r * r
        seen = bool(drawn.thing[0, row, column])
        wrong += seen != (h > 0)
        inside = BORDER <= row < SIDE - BORDER and BORDER <= column < SIDE - BORDER
        if h > 1e-3 and inside:
            t = -b - math.sqrt(h)
            slow = [(p + t * q) / r for p, q in zip(o, d, strict=True)]  # the camera's frame is the world's here
            assert drawn.normal[0, :, row, column].tolist() == pytest.approx(slow, abs=2e-3)
            assert drawn.depth[0, row, column].item() == pytest.approx(t / length, abs=1e-3)
    assert wrong <= 2  # a ray along the rim may go either way
    assert drawn.thing.sum() > 300


@pytest.mark.parametrize("turn", [0.0, 35.0, 140.0])
def test_normals_turn_with_the_camera(turn: float) -> None:
    """In the world a point of a sphere faces away from its middle, wherever the camera is."""
    one = alone(ball()).turned(turn)
    drawn = render([one], smooth=False)
    eye, axes = (torch.tensor(part) for part in rendering._camera(one))
    middle = (torch.arange(SIDE) + 0.5) * 2 / SIDE - 1
    y, x = torch.meshgrid(-middle, middle, indexing="ij")
    slope, z = math.tan(math.radians(one.view)), drawn.depth[0]
    place = eye[:, None, None] + (axes[0][:, None, None] * x + axes[1][:, None, None] * y) * slope * z
    place = place - axes[2][:, None, None] * z
    on_ball = (drawn.thing[0] == 1) & (drawn.normal[0].norm(dim=0) > 0.5)
    assert on_ball.sum() > 200
    faces = torch.einsum("ij,ihw->jhw", axes, drawn.normal[0])  # out of the camera's frame
    away = (place - torch.tensor(one.solids[0].centre)[:, None, None]) / 0.5
    assert (faces - away)[:, on_ball].abs().max() < 5e-3
    on_floor = (drawn.thing[0] == 0) & (drawn.normal[0].norm(dim=0) > 0.5)
    assert torch.allclose(faces[:, on_floor].mean(1), torch.tensor([0.0, 1.0, 0.0]), atol=1e-4)


def test_turning_by_a_full_circle_changes_nothing_to_see() -> None:
    one = scene("home", 5)
    here, there = render([one]), render([one.turned(360)])
    assert (here.kind == there.kind).double().mean() > 0.999
    assert not torch.equal(here.kind, render([one.turned(90)]).kind)


# labels


def test_the_mirror_of_a_scene_has_mirrored_labels() -> None:
    across = Solid("capsule", (-0.5, 0.3, 0.0), frame((0.6, 0.8, 0.0)), (0.2, 0.4, 0.0), RED, 4, 0, 2)
    other = Solid("capsule", (0.5, 0.3, 0.0), frame((-0.6, 0.8, 0.0)), (0.2, 0.4, 0.0), RED, 4, 0, 2)
    left = alone(ball((0.3, 0.5, 0.2)), across, light=(12.0, 30.0, 20.0))
    right = alone(ball((-0.3, 0.5, 0.2)), other, light=(-12.0, 30.0, 20.0))
    maps, mirror = (world_of_scenes.drawn_maps([one]) for one in (left, right))
    for task in ("semseg", "normals"):
        pictures, targets = world_of_scenes.flipped(maps["pictures"], world_of_scenes.as_targets(maps[task]))
        assert (pictures.int() - mirror["pictures"].int()).abs().float().mean() < 0.3
        wanted = world_of_scenes.as_targets(mirror[task])
        close = (targets - wanted).abs() < 0.02
        assert close.double().mean() > 0.998
        assert not torch.equal(targets, world_of_scenes.as_targets(maps[task]))


@every_task
def test_training_mirrors_picture_and_map_together(task: str) -> None:
    split = worlds.load("scenes", {"task": task}).split("train")
    indices = torch.arange(16)
    pictures, targets = split.batch(indices)
    moved, maps = split.batch(indices, torch.Generator().manual_seed(0))
    mirrored = 0
    for n in range(16):
        turned = not torch.equal(moved[n], pictures[n])
        wanted = (pictures[n : n + 1], targets[n : n + 1])
        wanted = world_of_scenes.flipped(*wanted) if turned else wanted
        assert torch.equal(moved[n], wanted[0][0])
        assert torch.equal(maps[n], wanted[1][0])
        mirrored += turned
    assert 2 < mirrored < 14


@every_task
@pytest.mark.parametrize("kind", ["fog", "defocus_blur", "gaussian_noise", "brightness"])
def test_damage_never_touches_labels(task: str, kind: str) -> None:
    world = worlds.load("scenes", {"task": task})
    assert kind in world.corruptions
    clean, damaged = world.split("id"), evaluate.Corrupted(world, kind, 5)
    indices = torch.arange(4)
    (picture, target), (hurt, same) = clean.batch(indices), damaged.batch(indices)
    assert torch.equal(target, same)
    assert (picture - hurt).abs().mean() > 0.01


def test_a_damage_that_moves_pixels_does_not_fit() -> None:
    with pytest.raises(LabError, match="its targets are maps, and this damage moves pixels"):
        evaluate.Corrupted(worlds.load("scenes"), "elastic_transform", 1)


def test_border_glass_sky_and_pictures_without_a_figure_are_ignored() -> None:
    pane = Glass(upright=True, start=0.5, width=0.125)
    low = alone(ball(), glass=pane, elevation=4.0)
    maps = {
        name: world_of_scenes.as_targets(m) for name, m in world_of_scenes.drawn_maps([low]).items() if name in TASKS
    }
    ignored = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    ignored[:, 32:40] = True
    ignored[:BORDER] = ignored[-BORDER:] = ignored[:, :BORDER] = ignored[:, -BORDER:] = True
    assert torch.equal(maps["semseg"][0] == IGNORED, ignored)
    assert (maps["parts"] == IGNORED).all()
    sky = render([low]).depth[0] == FAR
    assert sky.any()
    assert torch.equal((maps["normals"][0] == IGNORED).all(0), ignored | sky)
    lengths = maps["normals"][0].norm(dim=0)[~(ignored | sky)]
    assert torch.allclose(lengths, torch.ones_like(lengths), atol=1e-5)


@every_task
def test_what_is_ignored_changes_neither_loss_nor_score(task: str) -> None:
    world = worlds.load("scenes", {"task": task})
    _, targets = world.split("val").batch(torch.arange(6))
    g = torch.Generator().manual_seed(0)
    said = torch.randn(6, world.outputs, SIDE, SIDE, generator=g)
    hidden = (targets == IGNORED) if targets.dim() == 4 else (targets == IGNORED)[:, None]
    assert 0 < hidden.double().mean() < 1
    other = torch.where(hidden, torch.randn(said.shape, generator=g) * 9, said)

    def both(outputs: Tensor) -> tuple[float, dict[str, float]]:
        meter = world.meter()
        meter.add(outputs, targets)
        return world.loss(lambda _: outputs, targets, targets).item(), meter.values()

    assert both(said) == both(other)
    assert both(said) != both(said.flip(1))


def test_figures_have_all_parts_and_stand_on_the_floor() -> None:
    for seed in range(30):
        solids = [solid for solid in scene("broad", seed).solids if solid.part]
        if not solids:
            continue
        assert sorted(solid.part for solid in solids) == [1, 2, 3, 3, 4, 4, 5, 5, 6, 6]
        ends = [s.centre[1] - abs(s.axes[1][1]) * s.size[1] - s.size[0] for s in solids]
        assert min(ends) == pytest.approx(0, abs=1e-6)
        assert {solid.kind for solid in solids} == {KINDS.index("figure")}


def test_colours_tell_no_kind() -> None:
    """Every kind of thing and every part of a body comes in every colour of every palette."""
    painted: dict[tuple[int, int], set[Vector]] = {}
    for seed in range(900):
        for solid in scene("home", seed).solids:
            painted.setdefault((solid.kind, solid.part), set()).add(solid.paint.colour)
    colours = {colour for palette in LOOKS["home"].palettes for colour in palette[2:]}
    assert len(painted) == len(KINDS) - 2 + len(PARTS) - 1
    assert all(seen == colours for seen in painted.values())


# the same again


def test_the_same_seed_gives_the_same_bits() -> None:
    for look in LOOKS:
        first, again = (world_of_scenes.drawn_maps([scene(look, seed) for seed in range(4)]) for _ in range(2))
        assert equal(first, again)
    assert not torch.equal(first["pictures"][0], first["pictures"][1])


def test_the_number_of_threads_changes_no_bit() -> None:
    some, threads = [scene("clutter", seed) for seed in range(8)], torch.get_num_threads()
    try:
        drawn = []
        for count in (1, 2):
            torch.set_num_threads(count)
            drawn.append(world_of_scenes.drawn_maps(some))
    finally:
        torch.set_num_threads(threads)
    assert equal(*drawn)


def test_the_cache_is_made_again_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(world_of_scenes.SPLITS, "palette", ("palette", 0, 6))
    read = world_of_scenes._maps.__wrapped__
    drawn = read("palette")
    (path,) = tmp_path.rglob("palette-*.safetensors")
    written = path.read_bytes()
    assert equal(read("palette"), drawn)  # now out of the file
    path.write_bytes(written[:1000])  # a damaged file is no file
    assert equal(read("palette"), drawn)
    assert path.read_bytes() == written


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ftp-kit").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(world_of_scenes.SPLITS, "night", ("night", 0, 2))
    assert len(world_of_scenes._maps.__wrapped__("night")["pictures"]) == 2


def test_no_two_splits_share_a_scene() -> None:
    seeds = [
        {(look, seed) for seed in range(first, first + count)} for look, first, count in world_of_scenes.SPLITS.values()
    ]
    assert len(set.union(*seeds)) == sum(map(len, seeds))


# runs


def start(method: str, checkpoint: Path | None = None, **given: Any) -> FineTuning:
    stop: Callable[[], bool] = given.pop("stop", lambda: False)
    settings = resolve("scenes", method, {"steps": 4, "batch": 4, "labels": 0.1, **given})
    return finetune(settings, device="cpu", watches=0, evaluate_at_end=False, checkpoint=checkpoint, stop=stop)


def numbers(events: list[Any]) -> list[tuple[int, float]]:
    return [(event.step, event.loss) for event in events if isinstance(event, StepEvent)]


@pytest.mark.parametrize(("method", "task"), [("ftp", "normals"), ("tpgm", "parts"), ("adapter", "semseg")])
def test_a_run_goes_on_to_the_last_bit(method: str, task: str, tmp_path: Path) -> None:
    whole = start(method, task=task)
    wanted = numbers(list(whole))
    path, count = tmp_path / "run.checkpoint", itertools.count()
    before = list(start(method, path, task=task, stop=lambda: next(count) == 2))
    again = start(method, path, task=task)
    after = list(again)
    assert isinstance(after[0], StartEvent)
    assert after[0].step == 2
    assert numbers(before) + numbers(after) == wanted
    assert equal(weights(again), weights(whole))


@pytest.mark.parametrize("method", ["finetune", "bitfit", "l2_sp", "mars_sp", "llrd", "linear_probe"])
def test_every_method_trains_the_decoder_and_its_own_part_of_the_encoder(method: str) -> None:
    run = start(method, task="parts", lr=0.01)
    before = weights(run)
    list(run)
    moved = {name for name, tensor in weights(run).items() if not torch.equal(tensor, before[name])}
    assert any(name.startswith("decoder.readout") for name in moved)
    in_encoder = {name for name in moved if name.startswith("encoder.")}
    if method == "linear_probe":
        assert not in_encoder
    elif method == "bitfit":
        assert in_encoder
        assert all(name.endswith("bias") for name in in_encoder)
    else:
        assert any("relative_position_bias_table" in name for name in in_encoder)


def test_only_the_decoder_has_no_anchor() -> None:
    run = start("ftp")
    assert set(run.task.anchors) == {name for name, _ in run.model.named_parameters() if name.startswith("encoder.")}
    assert tuple(sorted(run.task.anchors)) == run.world.layers()
    assert all(name.startswith("decoder.") for name in run.task.unanchored)


def test_what_cannot_be_meant_is_one_sentence() -> None:
    with pytest.raises(LabError) as error:
        resolve("scenes", "ftp", {"task": "depth"})
    assert str(error.value) == "task is 'depth'; it must be semseg or parts or normals, such as task=semseg"
    with pytest.raises(LabError, match="split is 'fog'; it must be one of train, val, id, palette"):
        worlds.load("scenes").split("fog")


def test_all_methods_of_the_table_fit() -> None:
    assert {"finetune", "adapter", "bitfit", "l2_sp", "mars_sp", "llrd", "tpgm", "ftp", "linear_probe"} <= set(
        methods.fitting(worlds.load("scenes"))
    )


# what ships


def test_the_card_agrees_with_the_weights() -> None:
    path = world_of_scenes.WEIGHTS
    card = path.with_suffix(".md").read_text()
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card
    assert path.stat().st_size < 3_000_000
    assert f"{path.stat().st_size} bytes" in card
    tensors = read_weights(path)
    count = sum(t.numel() for name, t in tensors.items() if not name.endswith("relative_position_index"))
    assert re.search(rf"\| {count} weights", card)
    assert count == sum(p.numel() for p in worlds.load("scenes").model(0).encoder.parameters())


@pytest.mark.parametrize("task", recipes.sheet("scenes")["quick"]["parts"])
def test_every_method_had_the_same_budget_and_the_best_was_chosen(task: str) -> None:
    sheet = recipes.tuned("scenes", options={"task": task})
    better = max if sheet["higher_is_better"] else min
    assert sheet["higher_is_better"] == (task != "normals")
    assert set(sheet["recipe"]) == set(sheet["grid"]) == set(sheet["outcome"])
    for method, trials in sheet["outcome"].items():
        assert len(trials) == sheet["budget"]["trials"]
        best = better(trials, key=lambda trial: trial["val_mean"])["settings"]
        assert recipes.recipe("scenes", method, options={"task": task}) == best == sheet["recipe"][method]
        assert resolve("scenes", method, {"task": task}).lr == best["lr"]


@pytest.mark.parametrize("group", groups("scenes"))
def test_the_recorded_runs_are_those_that_the_lab_would_make_today(group: str) -> None:
    runs = recorded("scenes", group=group)
    seeds = {run.settings.seed for run in runs}
    assert len(seeds) >= (1 if is_live(group) else 3)  # Live replays one seed
    assert [run.settings for run in runs] == [s for s in lesson.plan(group, world="scenes") if s.seed in seeds]
    for run in runs:
        assert run.status == "done"
        assert set(run.evals[-1].corruptions) == {"fog", "defocus_blur", "gaussian_noise", "brightness"}
        assert run.provenance["weights_sha256"] == hashlib.sha256(world_of_scenes.WEIGHTS.read_bytes()).hexdigest()


@every_task
def test_ftp_with_leashes_that_only_grow_has_its_own_tuned_rate(task: str) -> None:
    reference = recipes.tuned("scenes", options={"task": task})["reference"]["ftp, k=0"]
    better = max if task != "normals" else min
    assert reference["settings"] == better(reference["outcome"], key=lambda trial: trial["val_mean"])["settings"]
    assert described("scenes")[f"kappa_{task}"].given == {"task": task, **reference["settings"]}
