"""Lesson 03: an allowed point that the Euclidean ruler calls nearer than the one FTP chooses."""

import math
from typing import Any

from ftp.lab.exercises._exercise import CLOSE, Exercise, Mistake, Question, numbers, show

WANTED, GAMMA = (2.0, 0.5), 1.0
CHOSEN = (0.8, 0.2)  # the wanted point, radially back to |x| + |y| = 1
DISTANCE = math.dist(WANTED, CHOSEN)


def judge(given: Any) -> str | None:
    """Right is every point within reach of the anchor (0, 0) and nearer to (2, 0.5) than (0.8, 0.2) is.

    >>> judge((1, 0)), judge((2, 0.5))
    (None, 'your point [2, 0.5] is 2.5 from the anchor, and the leash is 1 long')
    """
    point = numbers(given)
    if point.shape != (2,):
        return f"a point has two entries, yours has shape {tuple(point.shape)}"
    length = float(point.abs().sum())
    if not length <= GAMMA + CLOSE:
        return f"your point {show(point)} is {length:.4g} from the anchor, and the leash is {GAMMA:g} long"
    distance = math.dist(WANTED, point.tolist())
    if distance > DISTANCE - CLOSE:
        return f"your point {show(point)} is {distance:.4g} from the wanted one; FTP's is {DISTANCE:.4g}, so not nearer"
    return None


EXERCISE = Exercise(
    name="nearer_point",
    lesson="03",
    answer="my_point",
    missing="a point within reach that is nearer to the wanted one",
    well_done="Straight back is not the nearest point by the Euclidean ruler; it keeps the direction instead.",
    hints=(
        "look at the diamond: which of its points is the nearest to (2, 0.5), if you use an ordinary ruler?",
        "walk along the upper right edge, where x + y = 1, away from (0.8, 0.2): in which direction do you get nearer?",
        "the wanted point lies to the right of the diamond's right corner; try a point near that corner.",
    ),
    solution="""
my_point = (1.0, 0.0)
""",
    questions=(Question(""),),
    judge=judge,
    mistakes=(
        Mistake(
            "my_point = (0.8, 0.2)",
            "that is the point which FTP chooses; look for another one that is nearer to (2, 0.5).",
        ),
        Mistake("my_point = (2.0, 0.5)", "the wanted point itself is out of reach; |x| + |y| must be at most 1."),
        Mistake(
            "my_point = (2 / 4.25 ** 0.5, 0.5 / 4.25 ** 0.5)",
            "that is where the l2 circle ends; the leash is measured by |x| + |y|, so the point is out of reach.",
        ),
        Mistake("my_point = (0.5, 0.5)", "you walked along the edge in the other direction; (2, 0.5) lies low."),
        Mistake("my_point = (0.0, 0.0)", "the anchor is within reach, but far from the wanted point."),
    ),
    variants=("my_point = torch.tensor([0.9, 0.1])", "my_point = [0.95, 0.03]"),
    takes="value",
)
