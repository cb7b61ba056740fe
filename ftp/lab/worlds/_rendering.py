"""Draws scenes (`_scenery`) by casting rays, whole batches at once, with exact labels for every pixel.

Each ray meets each solid in closed form; only a torus is walked toward, by its signed distance. A first ray through the
middle of every pixel gives the labels; where it and its neighbours see different things, four more smooth the picture.
Nothing is random here, and no sum depends on the number of threads: equal scenes in equal batches give equal bits.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ftp.lab.worlds._scenery import KINDS, Scene

SIDE = 64
IGNORED = 255  # the label of a pixel that counts nothing
BORDER = 2  # pixels at the rim that are ignored
FAR, NEAR = 1e6, 1e-3
ROUNDS, WALK = 10, 24  # of so many steps each toward a torus
CORNERS = ((-0.3, -0.3), (0.3, -0.3), (-0.3, 0.3), (0.3, 0.3))  # of a pixel: where the smoothing rays go
SHAPES = KINDS[1:7]
GLASS = (0.80, 0.88, 0.90)


@dataclass
class Rendered:
    """Pictures and what is known of every pixel; maps of shape (n, side, side) if nothing else is said."""

    pictures: Tensor  # (n, 3, side, side) in [0, 1]
    kind: Tensor  # of KINDS, IGNORED at the border and behind glass
    part: Tensor  # of PARTS; all IGNORED where no figure is in the scene
    normal: Tensor  # (n, 3, side, side): right, up, toward the camera; a unit vector, or 0 where there is none
    depth: Tensor  # along the camera's axis; FAR in the sky
    thing: Tensor  # 0 for floor and sky, else the number of the thing
    albedo: Tensor  # (n, 3, side, side): the colour of the surface without light
    lit: Tensor  # whether the light reaches the surface
    light: Tensor  # (n, 3): the direction of the light in the camera's frame
    centre: Tensor  # (n, 2, side, side): where the middle of the pixel's thing is, right and up, in half pictures
    own: Tensor  # (n, 2, side, side): how far a point is from its solid's waist and from its axis, in radii of a ball
    spot: (
        Tensor  # (n, 3, side, side): where a point lies in its thing: right, up, toward the camera, in radii of a ball
    )
    solid: Tensor  # the number of the solid, -1 on the floor, -2 in the sky


class _Batch(NamedTuple):
    """Scenes as tensors. Things lie one after the other, and so do their solids.

    table: (scenes, most things of one) the places of a scene's things, or -1. A ray is first tried against the ball
    around a thing, then against those of its solids.
    """

    table: Tensor
    ball: Tensor  # (things, 4): middle and radius
    solids: Tensor  # (things, 2): the place of the first solid, and how many there are
    shape: Tensor
    centre: Tensor
    axes: Tensor  # (solids, 3, 3): rows are the directions of x, y, z
    size: Tensor
    bound: Tensor  # the radius of a ball around the centre that holds the solid
    paint: Tensor  # (solids, 8)
    label: Tensor  # (solids, 3): kind, part, thing
    floor: Tensor  # (scenes, 8)
    sky: Tensor  # (scenes, 6)
    eye: Tensor
    camera: Tensor  # (scenes, 3, 3): rows are right, up, and back to the viewer
    slope: Tensor  # the tangent of half the angle of view
    light: Tensor  # (scenes, 10): place, colour, ambient, reach


class _Hit(NamedTuple):
    distance: Tensor
    solid: Tensor  # its place, -1 for none
    normal: Tensor  # in the solid's frame
    point: Tensor  # in the solid's frame


def render(scenes: Sequence[Scene], side: int = SIDE, smooth: bool = True) -> Rendered:
    """Draw scenes with all their labels; `smooth`: with four more rays where edges are.

    >>> from ftp.lab.worlds._scenery import scene
    >>> drawn = render([scene("home", 0), scene("night", 0)])
    >>> drawn.pictures.shape, drawn.kind.shape, drawn.normal.shape
    (torch.Size([2, 3, 64, 64]), torch.Size([2, 64, 64]), torch.Size([2, 3, 64, 64]))
    """
    batch, n = _batch(scenes), len(scenes)
    middle = (torch.arange(side) + 0.5) * (2 / side) - 1
    x, y = middle.repeat(n * side), (-middle).repeat_interleave(side).repeat(n)  # y points up
    place = torch.arange(n).repeat_interleave(side * side)
    seen = _look(batch, place, x, y)
    maps = {name: _maps(values, n, side) for name, values in seen.items()}
    pictures = maps["colour"]
    if smooth:
        edge = _edges(maps).flatten().nonzero().squeeze(1)
        total = pictures.permute(0, 2, 3, 1).reshape(-1, 3).clone()
        across, up = (torch.tensor(CORNERS).T * 2 / side).unsqueeze(2)  # (corners, 1) each
        around = _look(
            *(batch, place[edge].repeat(len(CORNERS))), (x[edge] + across).flatten(), (y[edge] + up).flatten()
        )
        for colours in around["colour"].chunk(len(CORNERS)):
            total[edge] = total[edge] + colours
        total[edge] = total[edge] / (1 + len(CORNERS))
        pictures = _maps(total, n, side)
    pane = _glass(scenes, side)
    pictures = torch.where(pane[:, None], _frosted(pictures), pictures).clamp(0, 1)
    ignored = pane.clone()
    for rim in (slice(0, BORDER), slice(side - BORDER, side)):
        ignored[:, rim, :] = ignored[:, :, rim] = True
    peopled = torch.tensor([scene.has_figure for scene in scenes])
    toward = _unit(batch.light[:, :3] - torch.tensor([scene.target for scene in scenes]))
    return Rendered(
        pictures,
        maps["kind"].long().masked_fill(ignored, IGNORED),
        maps["part"].long().masked_fill(ignored | ~peopled[:, None, None], IGNORED),
        maps["normal"] * ~ignored[:, None],
        maps["depth"],
        maps["thing"].long(),
        maps["albedo"],
        maps["lit"].bool(),
        _into(batch.camera, toward),
        _centres(maps["thing"].long(), side),
        maps["own"],
        maps["spot"],
        maps["solid"].long(),
    )


def _batch(scenes: Sequence[Scene]) -> _Batch:
    solids = [solid for scene in scenes for solid in scene.solids]
    things = [list(group) for scene in scenes for _, group in itertools.groupby(scene.solids, lambda s: s.thing)]
    counts = [len({solid.thing for solid in scene.solids}) for scene in scenes]
    firsts = [0, *itertools.accumulate(counts)]
    table = [[*range(firsts[n], firsts[n + 1]), *[-1] * (max(counts) - counts[n])] for n in range(len(scenes))]
    sizes = [len(thing) for thing in things]
    starts = [0, *itertools.accumulate(sizes)]
    size = torch.tensor([solid.size for solid in solids]).view(-1, 3)
    shape = torch.tensor([SHAPES.index(solid.shape) for solid in solids], dtype=torch.long)
    a, b = size[:, 0], size[:, 1]
    bounds = torch.stack([a, _length(size), (a * a + b * b).sqrt(), a + b, a + b, (a * a + b * b).sqrt()], 1)
    bound = bounds.gather(1, shape[:, None]).squeeze(1) + 1e-4
    centre = torch.tensor([solid.centre for solid in solids]).view(-1, 3)
    spans = [slice(start, start + size) for start, size in zip(starts, sizes, strict=False)]
    balls = [_ball(centre[span], bound[span]) for span in spans]
    paint = [(*s.paint.colour, *s.paint.second, s.paint.texture, s.paint.grain) for s in solids]
    floor = [(*s.floor.colour, *s.floor.second, s.floor.texture, s.floor.grain) for s in scenes]
    cameras = [_camera(scene) for scene in scenes]
    return _Batch(
        torch.tensor(table),
        torch.stack(balls),
        torch.tensor([starts[:-1], sizes]).T,
        shape,
        centre,
        torch.tensor([solid.axes for solid in solids]).view(-1, 3, 3),
        size,
        bound,
        torch.tensor(paint).view(-1, 8),
        torch.tensor([(solid.kind, solid.part, solid.thing) for solid in solids], dtype=torch.float32).view(-1, 3),
        torch.tensor(floor),
        torch.tensor([(*scene.sky[0], *scene.sky[1]) for scene in scenes]),
        torch.tensor([camera[0] for camera in cameras]),
        torch.tensor([camera[1] for camera in cameras]),
        torch.tensor([math.tan(math.radians(scene.view)) for scene in scenes]),
        torch.tensor([(*s.light, *s.light_colour, *s.ambient, s.reach) for s in scenes]),
    )


def _ball(centres: Tensor, bounds: Tensor) -> Tensor:
    """A ball that holds the balls of all solids of a thing: middle and radius."""
    middle = centres.mean(0)
    return torch.cat([middle, (_length(centres - middle) + bounds).max().view(1)])


def _camera(scene: Scene) -> tuple[list[float], list[list[float]]]:
    """Where the eye is, and the directions right, up and back to the viewer."""
    azimuth, elevation, roll = (math.radians(angle) for angle in (scene.azimuth, scene.elevation, scene.roll))
    back = [math.cos(elevation) * math.sin(azimuth), math.sin(elevation), math.cos(elevation) * math.cos(azimuth)]
    right = [math.cos(azimuth), 0.0, -math.sin(azimuth)]
    up = [-math.sin(elevation) * math.sin(azimuth), math.cos(elevation), -math.sin(elevation) * math.cos(azimuth)]
    c, s = math.cos(roll), math.sin(roll)
    turned_right = [c * a + s * b for a, b in zip(right, up, strict=True)]
    turned_up = [c * b - s * a for a, b in zip(right, up, strict=True)]
    eye = [t + scene.distance * b for t, b in zip(scene.target, back, strict=True)]
    return eye, [turned_right, turned_up, back]


def _look(batch: _Batch, place: Tensor, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """What rays through these points of the pictures see; `place` is the scene of each ray."""
    camera, slope = batch.camera[place], batch.slope[place][:, None]
    ray = _unit(camera[:, 0] * x[:, None] * slope + camera[:, 1] * y[:, None] * slope - camera[:, 2])
    eye = batch.eye[place]
    hit = _cast(batch, place, eye, ray)
    down = ray[:, 1].clamp(max=-1e-6)
    ground = torch.where(ray[:, 1] < -1e-6, -eye[:, 1] / down, FAR)
    is_floor = (ground < hit.distance) & (ground < FAR)
    is_solid = (hit.solid >= 0) & ~is_floor
    is_sky = ~(is_floor | is_solid)
    distance = torch.where(is_floor, ground, hit.distance)
    point = eye + ray * distance.clamp(max=100.0)[:, None]
    solid = hit.solid.clamp(min=0)
    normal = torch.where(is_floor[:, None], torch.tensor([0.0, 1.0, 0.0]), _out_of(batch.axes[solid], hit.normal))
    flat = point * torch.tensor([1.0, 0.0, 1.0]) + torch.tensor([0.0, 0.1, 0.0])  # a level cut through the pattern
    floor_paint = batch.floor[place]
    albedo = torch.where(is_floor[:, None], _painted(floor_paint, flat), _painted(batch.paint[solid], hit.point))
    sky = batch.sky[place]
    high = (ray[:, 1:2] * 1.6).clamp(0, 1)
    above = sky[:, :3] * (1 - high) + sky[:, 3:] * high
    albedo = torch.where(is_sky[:, None], above, albedo)
    colour, lit = _shade(batch, place, point, normal, albedo, ray, is_sky)
    haze = ((distance - 9) / 22).clamp(0, 1)[:, None]
    colour = torch.where(is_floor[:, None], colour * (1 - haze) + above * haze, colour)
    label = torch.where(is_solid[:, None], batch.label[solid], 0.0)
    ahead = -_dot(ray, camera[:, 2])
    return {
        "colour": torch.where(is_sky[:, None], above, colour),
        "kind": label[:, 0],
        "part": label[:, 1],
        "thing": label[:, 2],
        "solid": torch.where(is_solid, hit.solid, torch.where(is_floor, -1, -2)).float(),
        "normal": torch.where(is_sky[:, None], 0.0, _into(camera, normal)),
        "depth": torch.where(is_sky, FAR, distance * ahead),
        "albedo": albedo,
        "lit": lit.float(),
        "own": torch.where(is_solid[:, None], _own(hit.point, batch.bound[solid]), 0.0),
        "spot": torch.where(is_solid[:, None], _into(camera, _spot(batch, solid, point)), 0.0),
    }


def _own(point: Tensor, bound: Tensor) -> Tensor:
    """Where a point lies in its solid: above or below the waist, and off the axis, as shares of the bounding ball."""
    off_axis = (point[:, 0] * point[:, 0] + point[:, 2] * point[:, 2]).sqrt()
    return torch.stack([point[:, 1].abs(), off_axis], 1) / bound[:, None]


def _spot(batch: _Batch, solid: Tensor, point: Tensor) -> Tensor:
    """Where a point lies in the ball around its thing: a figure's head is high in it, its feet are low."""
    owner = torch.arange(len(batch.ball)).repeat_interleave(batch.solids[:, 1])
    ball = batch.ball[owner[solid]]
    return (point - ball[:, :3]) / ball[:, 3:]


def _shade(
    batch: _Batch, place: Tensor, point: Tensor, normal: Tensor, albedo: Tensor, ray: Tensor, is_sky: Tensor
) -> tuple[Tensor, Tensor]:
    """Light from one place, light from everywhere, a small gloss, and a shadow where something is in the way."""
    light = batch.light[place]
    path = light[:, :3] - point
    length = _length(path)
    toward = path / length[:, None]
    facing = _dot(normal, toward).clamp(min=0)
    asked = ((facing > 0) & ~is_sky).nonzero().squeeze(1)
    shadow = torch.zeros(len(point), dtype=torch.bool)
    blocked = _cast(batch, place[asked], (point + normal * 0.004)[asked], toward[asked]).distance < length[asked]
    shadow[asked] = blocked
    lit = (facing > 0) & ~shadow
    strength = torch.where(lit, 1 / (1 + (length / light[:, 9]).square()), 0.0)
    gloss = _dot(normal, _unit(toward - ray)).clamp(min=0).pow(24) * 0.18 * strength
    ambient = light[:, 6:9] * (0.75 + 0.25 * normal[:, 1:2])
    colour = albedo * (ambient + light[:, 3:6] * (facing * strength)[:, None]) + gloss[:, None] * light[:, 3:6]
    return colour, lit


def _painted(paint: Tensor, point: Tensor) -> Tensor:
    """The colour at a point of a surface: of the pattern there."""
    wave = (point * paint[:, 7:8] * math.pi).sin()
    stripes = wave[:, 1] + wave[:, 0] * 0.15 > 0
    checks = wave[:, 0] * wave[:, 1] * wave[:, 2] > 0
    dots = wave.square().sum(1) > 1.9
    kind = paint[:, 6]
    second = (stripes & (kind == 1)) | (checks & (kind == 2)) | (dots & (kind == 3))
    return torch.where(second[:, None], paint[:, 3:6], paint[:, :3])


def _cast(batch: _Batch, place: Tensor, start: Tensor, ray: Tensor) -> _Hit:
    """The first solid of its scene that each ray meets."""
    rays, far = len(ray), torch.full((len(ray),), FAR)
    things = batch.table[place]  # (rays, most)
    close = [_may_meet(start, ray, batch.ball[column.clamp(min=0)]) & (column >= 0) for column in things.T]
    which_ray, slot = torch.stack(close, 1).nonzero(as_tuple=True)
    first, count = batch.solids[things[which_ray, slot]].T
    offset = torch.arange(int(count.sum())) - (count.cumsum(0) - count).repeat_interleave(count)
    which_ray, which = which_ray.repeat_interleave(count), first.repeat_interleave(count) + offset
    ball = torch.cat([batch.centre, batch.bound[:, None]], 1)
    pairs = _may_meet(start[which_ray], ray[which_ray], ball[which]).nonzero().squeeze(1)
    which_ray, which = which_ray[pairs], which[pairs]  # of each pair that may meet
    axes = batch.axes[which]
    local_start = _into(axes, start[which_ray] - batch.centre[which])
    local_ray = _into(axes, ray[which_ray])
    size, shape = batch.size[which], batch.shape[which]
    distance = torch.full((len(which),), FAR)
    normal = torch.zeros(len(which), 3)
    for number, meet in enumerate(MEET):
        of_shape = (shape == number).nonzero().squeeze(1)
        if len(of_shape):
            t, n = meet(local_start[of_shape], local_ray[of_shape], size[of_shape])
            distance[of_shape] = torch.where((t > NEAR) & (t < FAR), t, FAR)
            normal[of_shape] = n
    nearest = far.scatter_reduce(0, which_ray, distance, "amin")
    first = (distance == nearest[which_ray]) & (distance < FAR)
    order = torch.where(first, torch.arange(len(which)), len(which))
    winner = torch.full((rays,), len(which)).scatter_reduce(0, which_ray, order, "amin")
    met = winner < len(which)
    pair = winner.clamp(max=max(len(which) - 1, 0))
    if not len(which):
        nothing = torch.zeros(rays, 3)
        return _Hit(far, torch.full((rays,), -1), nothing, nothing)
    solid = torch.where(met, which[pair], -1)
    point = local_start[pair] + local_ray[pair] * nearest.clamp(max=100.0)[:, None]
    return _Hit(nearest, solid, normal[pair] * met[:, None], point)


def _may_meet(start: Tensor, ray: Tensor, ball: Tensor) -> Tensor:
    """Whether a ray passes through a ball (middle and radius)."""
    path, radius = ball[:, :3] - start, ball[:, 3]
    along = _dot(path, ray)
    return (_dot(path, path) - along * along < radius * radius) & (along > -radius)


def _sphere(o: Tensor, d: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    r = size[:, 0]
    b, c = _dot(o, d), _dot(o, o) - r * r
    h = b * b - c
    t = torch.where(h > 0, -b - h.clamp(min=0).sqrt(), FAR)
    return t, (o + d * t[:, None]) / r[:, None]


def _box(o: Tensor, d: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    inverse = 1 / torch.where(d.abs() < 1e-7, 1e-7, d)
    middle, half = -o * inverse, inverse.abs() * size
    enter, leave = middle - half, middle + half
    t, face = enter.max(1)
    hit = (t < leave.amin(1)) & (t > 0)
    normal = torch.zeros_like(o).scatter_(1, face[:, None], -d.gather(1, face[:, None]).sign())
    return torch.where(hit, t, FAR), normal


def _side(o: Tensor, d: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where a ray enters and leaves an endless upright cylinder; and whether it does."""
    a = (d[:, 0] * d[:, 0] + d[:, 2] * d[:, 2]).clamp(min=1e-8)
    b = o[:, 0] * d[:, 0] + o[:, 2] * d[:, 2]
    h = b * b - a * (o[:, 0] * o[:, 0] + o[:, 2] * o[:, 2] - r * r)
    root = h.clamp(min=0).sqrt()
    return (-b - root) / a, (-b + root) / a, h > 0


def _cylinder(o: Tensor, d: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    r, half = size[:, 0], size[:, 1]
    enter, leave, meets = _side(o, d, r)
    dy = torch.where(d[:, 1].abs() < 1e-7, 1e-7, d[:, 1])
    middle, reach = -o[:, 1] / dy, half / dy.abs()
    t = torch.maximum(enter, middle - reach)
    hit = meets & (t < torch.minimum(leave, middle + reach)) & (t > 0)
    point, cap = o + d * t[:, None], middle - reach > enter
    level = torch.stack([point[:, 0] / r, torch.zeros_like(r), point[:, 2] / r], 1)
    ends = torch.stack([torch.zeros_like(r), -dy.sign(), torch.zeros_like(r)], 1)
    return torch.where(hit, t, FAR), torch.where(cap[:, None], ends, level)


def _capsule(o: Tensor, d: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    r, half = size[:, 0], size[:, 1]
    enter, _, meets = _side(o, d, r)
    height = o[:, 1] + enter * d[:, 1]
    on_side = height.abs() <= half
    joint = torch.stack([torch.zeros_like(r), torch.where(height > 0, half, -half), torch.zeros_like(r)], 1)
    round_t, _ = _sphere(o - joint, d, size)
    t = torch.where(meets, torch.where(on_side, enter, round_t), FAR)
    point = o + d * t.clamp(max=100.0)[:, None]
    axis = point[:, 1].clamp(min=-half, max=half)
    away = torch.stack([point[:, 0], point[:, 1] - axis, point[:, 2]], 1)
    return t, _unit(away)


def _cone(o: Tensor, d: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Its tip points up: x^2 + z^2 = (k (half - y))^2 with k = radius / (2 half), and a round base."""
    r, half = size[:, 0], size[:, 1]
    k2, above = (r / (2 * half)).square(), half - o[:, 1]
    a = d[:, 0] * d[:, 0] + d[:, 2] * d[:, 2] - k2 * d[:, 1] * d[:, 1]
    a = torch.where(a.abs() < 1e-7, 1e-7, a)
    b = o[:, 0] * d[:, 0] + o[:, 2] * d[:, 2] + k2 * above * d[:, 1]
    h = b * b - a * (o[:, 0] * o[:, 0] + o[:, 2] * o[:, 2] - k2 * above * above)
    root = h.clamp(min=0).sqrt()
    best = torch.full_like(r, FAR)
    for t in ((-b - root) / a, (-b + root) / a):
        height = o[:, 1] + t * d[:, 1]
        best = torch.where((h > 0) & (t > NEAR) & (height.abs() <= half), torch.minimum(best, t), best)
    dy = torch.where(d[:, 1].abs() < 1e-7, 1e-7, d[:, 1])
    base = (-half - o[:, 1]) / dy
    x, z = o[:, 0] + base * d[:, 0], o[:, 2] + base * d[:, 2]
    on_base = (base > NEAR) & (x * x + z * z <= r * r) & (base < best)
    t = torch.where(on_base, base, best)
    point = o + d * t.clamp(max=100.0)[:, None]
    slope = _unit(torch.stack([point[:, 0], k2 * (half - point[:, 1]), point[:, 2]], 1))
    return t, torch.where(on_base[:, None], torch.tensor([0.0, -1.0, 0.0]), slope)


def _torus(o: Tensor, d: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Walk by the signed distance; what comes nearer than a thousandth has arrived."""
    large, small = size[:, 0], size[:, 1]
    b, c = _dot(o, d), _dot(o, o) - (large + small).square()
    h = (b * b - c).clamp(min=0).sqrt()
    t, end = (-b - h).clamp(min=0), -b + h
    walking = torch.arange(len(t))
    for _ in range(ROUNDS):  # few need more than one: those that pass close by one side and meet the other
        p, v, far, r, s, stop = t[walking], d[walking], o[walking], large[walking], small[walking], end[walking] + 0.01
        for _ in range(WALK):
            p = torch.minimum(p + _ring(far + v * p[:, None], r, s)[0], stop)
        t[walking] = p
        walking = walking[(p < stop) & (_ring(far + v * p[:, None], r, s)[0] > NEAR / 2)]
    point = o + d * t[:, None]
    gap, away = _ring(point, large, small)
    return torch.where((gap < NEAR) & (t < end), t, FAR), away


def _ring(p: Tensor, large: Tensor, small: Tensor) -> tuple[Tensor, Tensor]:
    """The signed distance to a torus, and the direction away from its core."""
    far = (p[:, 0] * p[:, 0] + p[:, 2] * p[:, 2]).sqrt().clamp(min=1e-9)
    core = large / far
    away = torch.stack([p[:, 0] * (1 - core), p[:, 1], p[:, 2] * (1 - core)], 1)
    length = _length(away)
    return length - small, away / length.clamp(min=1e-9)[:, None]


MEET: tuple[Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]], ...] = (
    *(_sphere, _box, _cone),
    *(_capsule, _torus, _cylinder),
)


def _edges(maps: dict[str, Tensor]) -> Tensor:
    """Pixels whose neighbours see something else: another solid, face, colour or shadow."""
    edge = torch.zeros(maps["solid"].shape, dtype=torch.bool)
    turn = 1 - (maps["normal"][:, :, :, 1:] * maps["normal"][:, :, :, :-1]).sum(1)
    lean = 1 - (maps["normal"][:, :, 1:] * maps["normal"][:, :, :-1]).sum(1)
    for axis, bend in ((2, turn), (1, lean)):
        first, second = ((slice(None),) * axis + (part,) for part in (slice(0, -1), slice(1, None)))
        differs = (maps["solid"][first] != maps["solid"][second]) | (maps["lit"][first] != maps["lit"][second])
        differs |= ((bend > 0.3) & (maps["solid"][first] >= 0)) | _differs(maps["albedo"], axis + 1)
        edge[first] |= differs
        edge[second] |= differs
    return edge


def _differs(colour: Tensor, axis: int) -> Tensor:
    return colour.diff(dim=axis).abs().amax(1) > 0.05


def _glass(scenes: Sequence[Scene], side: int) -> Tensor:
    """Which pixels lie behind a band of glass."""
    pane = torch.zeros(len(scenes), side, side, dtype=torch.bool)
    for n, scene in enumerate(scenes):
        if scene.glass:
            start = round(scene.glass.start * side)
            band = slice(start, start + round(scene.glass.width * side))
            pane[n][(slice(None), band) if scene.glass.upright else (band, slice(None))] = True
    return pane


def _frosted(pictures: Tensor) -> Tensor:
    """As seen through frosted glass: blurred and pale."""
    from torch.nn import functional as F

    blurred = F.avg_pool2d(F.pad(pictures, (3, 3, 3, 3), mode="replicate"), 7, 1)
    return blurred * 0.45 + torch.tensor(GLASS).view(1, 3, 1, 1) * 0.55


def _centres(thing: Tensor, side: int) -> Tensor:
    """For every pixel of a thing: where the middle of all its pixels is in the picture, right and up, from -1 to 1."""
    n, most = len(thing), 16
    middle = (torch.arange(side) + 0.5) * (2 / side) - 1
    x, y = middle.expand(side, side), -middle[:, None].expand(side, side)
    centre = torch.zeros(n, 2, side, side)
    for number in range(1, min(most, int(thing.max()) + 1)):
        mask = thing == number
        count = mask.sum((1, 2)).clamp(min=1)
        for axis, place in enumerate((x, y)):
            mean = (mask * place).sum((1, 2)) / count
            centre[:, axis] = torch.where(mask, mean[:, None, None], centre[:, axis])
    return centre


def _maps(values: Tensor, n: int, side: int) -> Tensor:
    if values.dim() == 1:
        return values.view(n, side, side)
    return values.view(n, side, side, -1).permute(0, 3, 1, 2).contiguous()


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]


def _length(a: Tensor) -> Tensor:
    return _dot(a, a).sqrt()


def _unit(a: Tensor) -> Tensor:
    return a / _length(a).clamp(min=1e-9)[:, None]


def _into(axes: Tensor, v: Tensor) -> Tensor:
    """A vector's parts along the rows of a frame."""
    return axes[:, :, 0] * v[:, 0:1] + axes[:, :, 1] * v[:, 1:2] + axes[:, :, 2] * v[:, 2:3]


def _out_of(axes: Tensor, v: Tensor) -> Tensor:
    """The vector with these parts along the rows of a frame."""
    return axes[:, 0] * v[:, 0:1] + axes[:, 1] * v[:, 1:2] + axes[:, 2] * v[:, 2:3]
