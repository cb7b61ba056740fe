"""Small scenes by chance: things and jointed figures on a floor, a camera, a light. Plain numbers, without torch.

    scene("home", seed=3)               # what fine-tuning sees
    scene("home", seed=3).turned(40)    # the same scene, seen from 40 degrees further round
    scene("palette", seed=3)            # another look: LOOKS names them all

Lengths are in units of about a chair's height, y points up and the floor lies at y = 0. A solid is a sphere, box, cone,
capsule, torus or cylinder in its own frame, whose axis is y; a thing is one solid, a figure is ten. Every colour is
drawn without looking at what it paints, so no colour tells a kind of thing or a part of a body.
"""

import colorsys
import math
import random
from dataclasses import dataclass, replace

Vector = tuple[float, float, float]

KINDS = ("background", "sphere", "box", "cone", "capsule", "torus", "cylinder", "figure")
PARTS = ("background", "head", "torso", "upper arm", "lower arm", "upper leg", "lower leg")
TEXTURES = ("plain", "stripes", "checks", "dots")
UP: Vector = (0.0, 1.0, 0.0)


@dataclass(frozen=True)
class Paint:
    """Two colours in [0, 1] and the pattern in which the second lies on the first."""

    colour: Vector
    second: Vector = (0.0, 0.0, 0.0)
    texture: int = 0  # of TEXTURES
    grain: float = 4.0  # patches of the pattern for each unit of length


@dataclass(frozen=True)
class Solid:
    """One convex piece, or a torus. `axes`: its frame, as the directions of its x, y and z in the world.

    size: (radius, -, -) of a sphere, half sides of a box, (radius, half height, -) of a cone or cylinder, (radius, half
    length without the caps, -) of a capsule, (large radius, small radius, -) of a torus.
    """

    shape: str
    centre: Vector
    axes: tuple[Vector, Vector, Vector]
    size: Vector
    paint: Paint
    kind: int  # of KINDS
    part: int  # of PARTS
    thing: int  # 1, 2, ...: which thing of its scene it belongs to


@dataclass(frozen=True)
class Glass:
    """A band of frosted glass before the camera; nobody can say what is behind it, so its pixels are ignored."""

    upright: bool
    start: float  # of the picture's side
    width: float


@dataclass(frozen=True)
class Scene:
    """Everything that is drawn. Angles in degrees; the camera looks at `target` from `distance`."""

    solids: tuple[Solid, ...]
    floor: Paint
    sky: tuple[Vector, Vector]  # at the horizon, overhead
    azimuth: float
    elevation: float
    roll: float
    distance: float
    view: float  # half the angle of view
    target: Vector
    light: Vector  # where the light is
    light_colour: Vector
    ambient: Vector
    reach: float  # how far the light reaches; half as bright there as at its place
    glass: Glass | None = None

    def turned(self, degrees: float) -> "Scene":
        """The same scene, its camera moved round it; the light stays where it is."""
        return replace(self, azimuth=self.azimuth + degrees)

    @property
    def has_figure(self) -> bool:
        return any(solid.part for solid in self.solids)


@dataclass(frozen=True)
class Look:
    """What scenes of a kind have in common: the ranges that are drawn from."""

    palettes: tuple[tuple[Vector, ...], ...] = ()  # () for any colours
    textured: float = 0.0  # the share of surfaces with a pattern
    things: tuple[int, int] = (2, 4)
    spread: float = 1.15  # how far from the middle things may stand
    figures: float = 0.7  # the share of scenes with a figure
    elevation: tuple[float, float] = (14.0, 28.0)
    roll: tuple[float, float] = (-2.0, 2.0)
    distance: tuple[float, float] = (3.1, 3.6)
    view: tuple[float, float] = (21.0, 23.0)
    sun: tuple[float, float] = (-50.0, -30.0)  # degrees to the side of the camera
    height: tuple[float, float] = (45.0, 58.0)  # degrees of the sun above the floor
    night: float = 0.0  # the share of scenes lit by a lamp at night
    glass: float = 0.25  # the share of pictures with a band of glass
    tinted: float = 0.0  # how far the light's colour may be from white


def _palette(text: str) -> tuple[Vector, ...]:
    """Colours written as web colours without #."""
    return tuple(tuple(int(c[i : i + 2], 16) / 255 for i in (0, 2, 4)) for c in text.split())  # type: ignore[misc]


# the first two colours of a palette are those of the floor and the sky
HOME_PALETTES = (
    _palette("b9ae9c cfd8dc c0564b 3f6f8f d9a441 5b7f5a 8c6d8f e3ddd0"),
    _palette("9fa8a3 dfe6e9 a44a3f 2f5d7c c98f3a 6a8d73 e5d9c3 70587c"),
    _palette("c9bca8 c7d3dd b5594c 4a7a94 e0b050 4f7358 7d6080 d8d2c4"),
)
OTHER_PALETTES = (
    _palette("2e4057 f4a259 5b8e7d f4e285 bc4b51 8cb369 ff5d8f 00c2d1"),
    _palette("ffe5ec 7b2cbf ff006e 3a86ff 8338ec fb5607 ffbe0b 2ec4b6"),
    _palette("606c38 fefae0 dda15e bc6c25 283618 a3b18a e63946 1d3557"),
    _palette("e0fbfc 293241 ee6c4d 98c1d9 3d5a80 f28482 84a59d f6bd60"),
)

LOOKS = {
    "home": Look(HOME_PALETTES),
    "palette": Look(OTHER_PALETTES, textured=0.6),
    "night": Look(HOME_PALETTES, night=1.0),
    "camera": Look(HOME_PALETTES, elevation=(42.0, 62.0), roll=(-22.0, 22.0), distance=(2.8, 3.8), view=(21.0, 26.0)),
    "clutter": Look(HOME_PALETTES, things=(7, 10), spread=1.6),
    "broad": Look(
        *((), 0.5),
        things=(1, 8),
        spread=1.7,
        elevation=(6.0, 65.0),
        roll=(-25.0, 25.0),
        distance=(2.7, 4.2),
        view=(20.0, 28.0),
        sun=(-110.0, 110.0),
        height=(20.0, 80.0),
        night=0.25,
        tinted=0.3,
    ),
}


def scene(look: str, seed: int) -> Scene:
    """The scene of a seed in a look; the same seed gives the same scene everywhere.

    >>> scene("home", 3) == scene("home", 3) != scene("home", 4)
    True
    >>> scene("home", 3).turned(90).azimuth - scene("home", 3).azimuth
    90.0
    """
    r, about = random.Random(f"{look} {seed}"), LOOKS[look]
    palette = r.choice(about.palettes) if about.palettes else None
    things: list[Solid] = []
    places = _places(r, about)
    figure = r.random() < about.figures
    for number, (x, z, room) in enumerate(places, start=1):
        if figure and number == 1:
            things += _figure(r, x, z, number, palette, about)
        else:
            things.append(_thing(r, x, z, room, number, palette, about))
    azimuth, sky = r.uniform(0, 360), _sky(r, palette)
    night = r.random() < about.night
    light, colour, ambient, reach = _lamp(r, azimuth) if night else _sun(r, about, azimuth)
    if night:
        sky = ((0.07, 0.08, 0.14), (0.02, 0.02, 0.06))
    glass = Glass(r.random() < 0.5, r.uniform(0.1, 0.75), r.uniform(0.1, 0.16)) if r.random() < about.glass else None
    return Scene(
        tuple(things),
        _paint(r, palette, about, floor=True),
        sky,
        azimuth,
        r.uniform(*about.elevation),
        r.uniform(*about.roll),
        r.uniform(*about.distance),
        r.uniform(*about.view),
        (r.uniform(-0.15, 0.15), 0.5, r.uniform(-0.15, 0.15)),
        light,
        colour,
        ambient,
        reach,
        glass,
    )


def _places(r: random.Random, about: Look) -> list[tuple[float, float, float]]:
    """Where things stand, x and z, and how much room each has; the first is the largest, for a figure."""
    places: list[tuple[float, float, float]] = []
    for _ in range(r.randint(*about.things)):
        for _ in range(60):  # by trial; a scene that is full has fewer things
            room = r.uniform(0.36, 0.55) if places else 0.5
            angle, far = r.uniform(0, 2 * math.pi), about.spread * math.sqrt(r.random())
            x, z = far * math.cos(angle), far * math.sin(angle)
            if all(math.hypot(x - u, z - v) > 0.85 * (room + other) for u, v, other in places):
                places.append((x, z, room))
                break
    return places


def _colour(r: random.Random, palette: tuple[Vector, ...] | None) -> Vector:
    if palette:
        return r.choice(palette[2:])
    return colorsys.hsv_to_rgb(r.random(), r.random() ** 0.7, r.uniform(0.25, 1.0))


def _paint(r: random.Random, palette: tuple[Vector, ...] | None, about: Look, floor: bool = False) -> Paint:
    colour = palette[0] if palette and floor else _colour(r, palette)
    if r.random() >= about.textured:
        return Paint(colour)
    return Paint(colour, _colour(r, palette), r.randint(1, 3), r.uniform(1.0, 2.5) if floor else r.uniform(2.5, 6.0))


def _sky(r: random.Random, palette: tuple[Vector, ...] | None) -> tuple[Vector, Vector]:
    horizon = palette[1] if palette else _colour(r, None)
    return horizon, tuple(0.8 * c for c in horizon)  # type: ignore[return-value]


def _sun(r: random.Random, about: Look, azimuth: float) -> tuple[Vector, Vector, Vector, float]:
    """Far away, to the side of the camera: its place, its colour, the light from everywhere, its reach."""
    side, height = math.radians(azimuth + r.uniform(*about.sun)), math.radians(r.uniform(*about.height))
    place = (40 * math.cos(height) * math.sin(side), 40 * math.sin(height), 40 * math.cos(height) * math.cos(side))
    colour = tuple(0.72 * (1 - about.tinted * r.random()) for _ in range(3))
    shade = 0.42 if not about.tinted else r.uniform(0.25, 0.55)
    return place, colour, (shade, shade, shade), 1e6  # type: ignore[return-value]


def _lamp(r: random.Random, azimuth: float) -> tuple[Vector, Vector, Vector, float]:
    """A warm lamp near the things, at night."""
    side, far = math.radians(azimuth + r.uniform(-100, 100)), r.uniform(1.2, 2.6)
    place = (far * math.sin(side), r.uniform(1.4, 2.4), far * math.cos(side))
    return place, (1.0, 0.78, 0.5), (0.10, 0.11, 0.18), 1.8


def _thing(
    r: random.Random, x: float, z: float, room: float, number: int, palette: tuple[Vector, ...] | None, about: Look
) -> Solid:
    shape, paint, yaw = r.choice(KINDS[1:7]), _paint(r, palette, about), r.uniform(0, 2 * math.pi)
    lying = r.random() < 0.5
    across: Vector = (math.cos(yaw), 0.0, math.sin(yaw))
    size, height = _size(r, shape, room, lying)
    axes = frame(across if lying and shape in ("capsule", "torus", "cylinder") else UP, yaw)
    return Solid(shape, (x, height, z), axes, size, paint, KINDS.index(shape), 0, number)


def _size(r: random.Random, shape: str, room: float, lying: bool) -> tuple[Vector, float]:
    """The size of a thing that has so much room, and how high its centre is when it stands on the floor."""
    if shape == "sphere":
        return (room, 0.0, 0.0), room
    if shape == "box":
        size = (room * r.uniform(0.55, 0.8), room * r.uniform(0.6, 1.2), room * r.uniform(0.55, 0.8))
        return size, size[1]
    if shape == "torus":  # lying: its axis lies, so the ring stands
        small = room * r.uniform(0.22, 0.34)
        return (room - small, small, 0.0), room if lying else small
    if shape == "cone":
        size = (room * r.uniform(0.75, 1.0), room * r.uniform(0.85, 1.3), 0.0)
        return size, size[1]
    radius, half = room * r.uniform(0.42, 0.65), room * r.uniform(0.6, 1.0)
    if shape == "capsule":
        return (radius, half, 0.0), radius if lying else half + radius
    return (radius, half, 0.0), radius if lying else half


def frame(axis: Vector, yaw: float = 0.0) -> tuple[Vector, Vector, Vector]:
    """A right-handed frame whose y is `axis`, a unit vector; x and z lie across it, turned by `yaw` where it is up.

    >>> frame(UP)
    ((1.0, 0.0, -0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    """
    if abs(axis[1]) > 0.999:
        return (math.cos(yaw), 0.0, -math.sin(yaw)), axis, (math.sin(yaw), 0.0, math.cos(yaw))
    flat = math.hypot(axis[0], axis[2])
    x = (axis[2] / flat, 0.0, -axis[0] / flat)  # level, across the axis
    z = (x[1] * axis[2] - x[2] * axis[1], x[2] * axis[0] - x[0] * axis[2], x[0] * axis[1] - x[1] * axis[0])
    return x, axis, z


def _figure(
    r: random.Random, x: float, z: float, number: int, palette: tuple[Vector, ...] | None, about: Look
) -> list[Solid]:
    """A jointed figure: a head, a torso, two arms and two legs of two pieces each; its lower foot is on the floor."""
    tall, yaw = r.uniform(1.35, 1.7), r.uniform(0, 2 * math.pi)
    forward, side = (math.sin(yaw), 0.0, math.cos(yaw)), (math.cos(yaw), 0.0, -math.sin(yaw))
    paints = [_paint(r, palette, about) for _ in range(4)] if r.random() < 0.6 else [_paint(r, palette, about)] * 4
    skin, shirt, sleeve, trousers = paints
    thick = 0.07 * tall * r.uniform(0.9, 1.15)
    bones: list[tuple[int, Vector, Vector, float, Paint]] = []

    def toward(start: Vector, length: float, swing: float, splay: float) -> Vector:
        """The end of a bone that hangs down, swung forward and splayed to the side, in degrees."""
        a, b = math.radians(swing), math.radians(splay)
        ahead, out, down = math.sin(a) * math.cos(b), math.sin(b), -math.cos(a) * math.cos(b)
        ways = zip(start, forward, side, UP, strict=True)
        return tuple(s + length * (ahead * f + out * o + down * u) for s, f, o, u in ways)  # type: ignore[return-value]

    lean = r.uniform(-12, 18)
    hip: Vector = (0.0, 0.0, 0.0)
    neck = toward(hip, -0.3 * tall, lean, r.uniform(-6, 6))
    bones.append((2, hip, neck, 1.7 * thick, shirt))
    head = tuple(n + 0.18 * tall * u for n, u in zip(neck, UP, strict=True))
    bones.append((1, head, head, 0.105 * tall, skin))  # type: ignore[arg-type]
    for way in (-1, 1):
        shoulder: Vector = tuple(n + way * 2.3 * thick * s - 0.01 * u for n, s, u in zip(neck, side, UP, strict=True))  # type: ignore[assignment]
        swing, splay = r.uniform(-45, 120), way * r.uniform(6, 75)
        elbow = toward(shoulder, 0.175 * tall, swing, splay)
        hand = toward(elbow, 0.185 * tall, swing + r.uniform(0, 100), splay * r.uniform(0.4, 1.1))
        bones += [(3, shoulder, elbow, 0.8 * thick, shirt), (4, elbow, hand, 0.72 * thick, sleeve)]
        joint: Vector = tuple(h + way * 1.0 * thick * s for h, s in zip(hip, side, strict=True))  # type: ignore[assignment]
        swing, splay = r.uniform(-30, 50), way * r.uniform(2, 18)
        knee = toward(joint, 0.225 * tall, swing, splay)
        foot = toward(knee, 0.235 * tall, swing - r.uniform(0, 45), splay)
        bones += [(5, joint, knee, 1.05 * thick, trousers), (6, knee, foot, 0.85 * thick, trousers)]
    lowest = min(min(start[1], end[1]) - radius for _, start, end, radius, _ in bones)
    return [
        _bone(part, start, end, radius, paint, (x, -lowest, z), number) for part, start, end, radius, paint in bones
    ]


def _bone(part: int, start: Vector, end: Vector, radius: float, paint: Paint, at: Vector, number: int) -> Solid:
    """A capsule from joint to joint; a sphere where both are one."""
    centre: Vector = tuple((s + e) / 2 + a for s, e, a in zip(start, end, at, strict=True))  # type: ignore[assignment]
    length = math.dist(start, end)
    if length == 0:
        return Solid("sphere", centre, frame(UP), (radius, 0.0, 0.0), paint, 7, part, number)
    axis: Vector = tuple((e - s) / length for s, e in zip(start, end, strict=True))  # type: ignore[assignment]
    return Solid("capsule", centre, frame(axis), (radius, length / 2, 0.0), paint, 7, part, number)
