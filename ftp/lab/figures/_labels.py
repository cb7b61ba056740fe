"""Where labels go so that they do not lie on each other; sizes in pixels."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from ftp.lab.figures.template import faint, note, theme

LETTER = 7.0  # the mean width of a letter at 13 pixels
LINE = 17.0  # the height of a line
Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top


def column(places: Sequence[float], low: float, high: float, gap: float = LINE) -> list[float]:
    """Heights for labels in a column, each near its place, `gap` apart and between low and high.

    >>> column([10.0, 12.0, 50.0], 0.0, 100.0, gap=10.0)
    [6.0, 16.0, 50.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    clusters: list[list[int]] = []
    for i in order:
        clusters.append([i])
        # neighbours that touch become one stack around their common middle
        while len(clusters) > 1 and _edges(clusters[-2], places, gap)[1] > _edges(clusters[-1], places, gap)[0]:
            clusters[-2:] = [clusters[-2] + clusters[-1]]
    out = list(places)
    for stack in clusters:
        bottom = _edges(stack, places, gap)[0] + gap / 2
        for level, i in enumerate(stack):
            out[i] = bottom + level * gap
    if len(places) * gap > high - low:
        return out
    # what hangs over an end is pushed back, and pushes the others
    for i, above in zip(order[::-1], [None, *order[::-1]], strict=False):
        out[i] = min(out[i], high if above is None else out[above] - gap)
    for i, below in zip(order, [None, *order], strict=False):
        out[i] = max(out[i], low if below is None else out[below] + gap)
    return out


def _edges(stack: Sequence[int], places: Sequence[float], gap: float) -> tuple[float, float]:
    middle = math.fsum(places[i] for i in stack) / len(stack)
    return middle - len(stack) * gap / 2, middle + len(stack) * gap / 2


def around(
    points: Sequence[Point],
    texts: Sequence[str],
    width: float,
    height: float,
    lines: Sequence[tuple[Point, Point]] = (),
) -> list[Point]:
    """For each point the offset of its label's middle: as near as it can be without lying on others or on lines.

    >>> around([(100.0, 100.0)], ["FTP"], 600, 400)
    [(0.0, 18.0)]
    """
    taken: list[Box] = [(x - 8, y - 8, x + 8, y + 8) for x, y in points]
    taken += [box for line in lines for box in _pieces(*line)]
    out = [(0.0, 0.0)] * len(points)
    crowd = [sum(math.dist(p, q) < 80 for q in points) for p in points]
    for i in sorted(range(len(points)), key=lambda i: -crowd[i]):
        half = len(texts[i]) * LETTER / 2 + 2
        offsets = []
        for reach in (18.0, 34.0, 52.0, 72.0):
            for turn in (2, 0, 4, 6, 1, 3, 5, 7):  # eighths of a circle: above, right, left, below, corners
                x, y = math.cos(turn * math.pi / 4), math.sin(turn * math.pi / 4)
                offsets.append((round(x, 6) * (reach - 8 + half), round(y, 6) * reach))
        boxes = [_box(points[i], offset, half) for offset in offsets]
        costs = [
            2 * rank + sum(_overlap(box, other) for other in taken) + 50 * _outside(box, width, height)
            for rank, box in enumerate(boxes)
        ]
        best = costs.index(min(costs))
        out[i] = offsets[best]
        taken.append(boxes[best])
    return out


def beside(
    labels: Sequence[tuple[Point, str]],
    pixel: Callable[[float, float], Point],
    size: tuple[float, float],
    lines: Sequence[tuple[Point, Point]],
    dark: bool,
) -> list[dict[str, Any]]:
    """Annotations for points and their texts, with a thin line where a text is not beside its point.

    >>> beside([((1.0, 2.0), "FTP")], lambda x, y: (100 * x, 100 * y), (600, 400), [], dark=False)[0]["yshift"]
    18.0
    """
    offsets = around([pixel(*point) for point, _ in labels], [text for _, text in labels], *size, lines)
    out = []
    for ((x, y), text), (dx, dy) in zip(labels, offsets, strict=True):
        far = abs(dy) > 20 or abs(dx) > 22 + len(text) * LETTER / 2
        where = {"showarrow": True, "ax": dx, "ay": -dy, "standoff": 8} if far else {"xshift": dx, "yshift": dy}
        out.append(note(x, y, text, dark, bgcolor=faint(theme(dark).paper, 0.6), **where))
    return out


def _pieces(a: Point, b: Point, every: float = 8.0) -> list[Box]:
    """A line as a row of small boxes."""
    count = max(1, round(math.dist(a, b) / every))
    middles = [
        (a[0] + (b[0] - a[0]) * (i + 0.5) / count, a[1] + (b[1] - a[1]) * (i + 0.5) / count) for i in range(count)
    ]
    return [(x - 4, y - 4, x + 4, y + 4) for x, y in middles]


def _box(point: Point, offset: Point, half: float) -> Box:
    x, y = point[0] + offset[0], point[1] + offset[1]
    return x - half, y - LINE / 2, x + half, y + LINE / 2


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _outside(box: Box, width: float, height: float) -> float:
    return max(0.0, -box[0]) + max(0.0, -box[1]) + max(0.0, box[2] - width) + max(0.0, box[3] - height)
