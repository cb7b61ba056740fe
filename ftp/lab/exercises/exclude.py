"""Lesson 05: which parameters have a leash, by name. The truth is written down by hand for every scene."""

from typing import Any

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Failed, Mistake, Question
from ftp.lab.exercises.step import Played

REFUSED = -1.0


def play(my_leashed: Any, names: tuple[str, ...], patterns: tuple[str, ...], _: Any) -> Tensor:
    """1 for each name that an answer keeps on the leash, 0 for the others; -1 if it refuses with a ValueError.

    >>> play(lambda names, exclude_set: names[:1], ("body", "head"), ("head",), None)
    tensor([1., 0.])
    """
    try:
        kept = my_leashed(list(names), set(patterns))
    except ValueError:
        return torch.tensor([REFUSED])
    if kept is None:
        raise Failed("your function returned None; is a `return` missing?")
    if kept is NotImplemented or kept is ...:
        raise NotImplementedError
    if isinstance(kept, str) or not hasattr(kept, "__iter__"):
        raise Failed(f"a list of names is expected, yours is of type {type(kept).__name__}")
    kept = list(kept)
    strange = [entry for entry in kept if entry not in names]
    if strange:
        raise Failed(f"a list of names is expected, yours has {strange[0]!r}, which is not one of them")
    return torch.tensor([float(name in kept) for name in names])


def truth(names: tuple[str, ...], _: Any, leashed: tuple[str, ...] | None) -> Tensor:
    """What is written down: the names on the leash, None where a ValueError is right.

    >>> truth(("body", "head"), (), ("body",)), truth(("body",), ("haed",), None)
    (tensor([1., 0.]), tensor([-1.]))
    """
    return torch.tensor([REFUSED] if leashed is None else [float(name in leashed) for name in names])


def differs(given: Tensor, expected: Tensor, names: tuple[str, ...], *_: Any) -> str | None:
    """One sentence on the first name that is treated wrongly.

    >>> differs(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.0]), ("body", "head"))
    'head must be free, yours has it on the leash'
    """
    if torch.equal(given, expected):
        return None
    if expected[0] == REFUSED:
        return "a ValueError is expected, yours returned names"
    if given[0] == REFUSED:
        return "names are expected, yours raised a ValueError"
    at = int((given != expected).nonzero()[0, 0])
    right, yours = ("on the leash", "free") if expected[at] else ("free", "on the leash")
    return f"{names[at]} must be {right}, yours has it {yours}"


def _scene(names: str, patterns: str, leashed: str | None) -> Question:
    given = tuple(names.split()), tuple(patterns.split())
    text = f"names {', '.join(given[0])}; exclude_set {{{', '.join(map(repr, given[1]))}}}"
    return Question(text, (*given, None if leashed is None else tuple(leashed.split())))


SCENES = (
    _scene("body.weight body.bias", "", "body.weight body.bias"),
    _scene("body.weight head.weight", "head.weight", "body.weight"),
    _scene("body.weight head.weight head.bias", "head.*", "body.weight"),
    _scene("ahead.weight head.weight header.weight", "head.*", "ahead.weight header.weight"),
    _scene("body.weight body.bias head.weight head.bias", "*.bias head.*", "body.weight"),
    _scene("body.weight head.weight", "head.* head.weight", "body.weight"),  # both match one name, in either order
    _scene("body.weight head.weight", "haed.*", None),
    _scene("body.weight head.weight", "head.* nrom.*", None),
    _scene("body.weight head.weight", "head", None),
    # a name with a star in it: here whole names and arguments the wrong way round are not the same mistake
    _scene("scale* head.weight", "scale**", "head.weight"),
)

_MATCH = "from fnmatch import fnmatchcase\n"
SWAPPED = "you gave fnmatchcase the pattern first; it wants the name first: fnmatchcase(name, pattern)."
MISTAKES = (
    Mistake(
        _MATCH + "def my_leashed(names, exclude_set):\n"
        "    return [n for n in names if not any(fnmatchcase(n, p) for p in exclude_set)]",
        "a pattern that matches nothing is ignored, so a misspelt head stays on its leash; raise a ValueError.",
    ),
    Mistake(
        _MATCH + "def my_leashed(names, exclude_set):\n"
        "    free = [n for n in names if any(fnmatchcase(n, p) for p in exclude_set)]\n"
        "    if exclude_set and not free:\n        raise ValueError\n"
        "    return [n for n in names if n not in free]",
        "you raise only if all patterns match nothing; look at each of them.",
    ),
    Mistake(
        _MATCH + "def my_leashed(names, exclude_set):\n"
        "    for p in exclude_set:\n"
        "        if not any(fnmatchcase(n, p) for n in names):\n            raise ValueError\n"
        "    return [n for n in names if any(fnmatchcase(n, p) for p in exclude_set)]",
        "you returned the names that are free; the others are the ones on the leash.",
    ),
    Mistake(
        "def my_leashed(names, exclude_set):\n    return [n for n in names if n not in exclude_set]",
        "you compared whole names only; head.* stands for every name that begins with head and a dot: fnmatchcase.",
    ),
    Mistake(
        "def my_leashed(names, exclude_set):\n"
        "    for p in exclude_set:\n        if p not in names:\n            raise ValueError(p)\n"
        "    return [n for n in names if n not in exclude_set]",
        "you compared whole names only; head.* stands for every name that begins with head and a dot: fnmatchcase.",
    ),
    Mistake(
        "def my_leashed(names, exclude_set):\n"
        "    return [n for n in names if not any(p.strip('*.') in n for p in exclude_set)]",
        "you look for the word anywhere in the name; ahead.weight is not part of the head.",
    ),
    Mistake(
        "def my_leashed(names, exclude_set):\n"
        "    return [n for n in names if not any(n.startswith(p.rstrip('*.')) for p in exclude_set)]",
        "you compare how names begin; header.weight begins like head, but head.* wants the dot.",
    ),
    Mistake(
        "import re\ndef my_leashed(names, exclude_set):\n"
        "    for p in exclude_set:\n        if not any(re.match(p.replace('*', '.*'), n) for n in names):\n"
        "            raise ValueError\n"
        "    return [n for n in names if not any(re.match(p.replace('*', '.*'), n) for p in exclude_set)]",
        "you used a regular expression, where a dot is any character and the end is open; use fnmatchcase.",
    ),
    Mistake(
        _MATCH + "def my_leashed(names, exclude_set):\n"
        "    for p in exclude_set:\n"
        "        left = [n for n in names if not fnmatchcase(n, p)]\n"
        "        if len(left) == len(names):\n            raise ValueError(p)\n"
        "        names = left\n"
        "    return names",
        "you look for a pattern only among the names that are left; two patterns may match the same name, so look "
        "among all names.",
    ),
    Mistake(
        _MATCH + "def my_leashed(names, exclude_set):\n"
        "    for p in exclude_set:\n"
        "        if not any(fnmatchcase(p, n) for n in names):\n            raise ValueError(p)\n"
        "    return [n for n in names if not any(fnmatchcase(p, n) for p in exclude_set)]",
        SWAPPED,
    ),
    Mistake(
        _MATCH + "def my_leashed(names, exclude_set):\n"
        "    return [n for n in names if not any(fnmatchcase(p, n) for p in exclude_set)]",
        SWAPPED,
    ),
)

EXERCISE = Exercise(
    name="exclude",
    lesson="05",
    answer="my_leashed",
    missing="the names that no pattern of exclude_set matches; a ValueError if a pattern matches nothing",
    well_done="Names decide, and a typing mistake cannot put the head on a leash.",
    hints=(
        'fnmatchcase("head.weight", "head.*") from the module fnmatch is True; a plain name matches itself.',
        "go over the patterns first: each must match at least one name; then keep the names that none of them matches.",
        "raise ValueError(pattern) where any(fnmatchcase(name, pattern) for name in names) is False.",
    ),
    solution="""
def my_leashed(names, exclude_set):
    from fnmatch import fnmatchcase

    for pattern in exclude_set:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"{pattern!r} matches no parameter")
    return [name for name in names if not any(fnmatchcase(name, pattern) for pattern in exclude_set)]
""",
    questions=(Question(""),),
    judge=Played("my_leashed", SCENES, play, truth, differs, MISTAKES),
    mistakes=MISTAKES,
    variants=(
        """
from ftp.anchors import check_matched, matched
def my_leashed(names, exclude_set):
    check_matched(list(exclude_set), names)
    return set(names) - {name for pattern in exclude_set for name in matched(pattern, names)}
""",
        """
import fnmatch
def my_leashed(names, exclude_set):
    free = set()
    for pattern in exclude_set:
        hits = fnmatch.filter(names, pattern)
        if len(hits) == 0:
            raise ValueError("typo")
        free.update(hits)
    return tuple(name for name in names if name not in free)
""",
    ),
    takes="value",
)
