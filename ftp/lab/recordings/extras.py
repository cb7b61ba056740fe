"""Recorded numbers of a world beside its runs, as the scripts in data_scripts wrote them. Without torch.

wise          curves between pre-trained and fine-tuned weights (record_wise.py)
corruptions   every kind of damage at every severity, with pictures (record_corruptions.py)
microscope    single steps of some layers (record_microscope.py)
pictures      the first pictures of home and of each shift, with their labels (record_pictures.py); those of other
              options of the world have a file of their own, such as pictures_task-parts
mistakes      what is taken for what after tasks in a row (record_mistakes.py)
ask           what networks of pictures and words answer between W0 and W (record_ask.py)
dense         scenes turned and damaged, with truth and predictions of every pixel (record_dense.py)
"""

import functools
import gzip
import json
import re
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError
from ftp.lab.worlds import default

HOME = Path(__file__).resolve().parent
NAMES = ("wise", "corruptions", "microscope", "pictures", "mistakes", "ask", "dense")
OPTION = re.compile(r"\w+-[\w.]+(_\w+-[\w.]+)*")


def has_extra(name: str, world: str | None = None) -> bool:
    """Whether a world has such a recording."""
    kind, _, option = name.partition("_")
    return kind in NAMES and (not option or bool(OPTION.fullmatch(option))) and _path(name, world).exists()


def extra(name: str, world: str | None = None) -> dict[str, Any]:
    """One recording as plain data, read once; treat it as read-only.

    >>> [curve["method"] for curve in extra("wise")["curves"][:2]]
    ['finetune', 'ftp']
    """
    if not has_extra(name, world):
        names = ", ".join(known for known in NAMES if has_extra(known, world)) or "none"
        raise LabError(f"recording is {name!r}; the world {world or default()} has {names}")
    return _read(_path(name, world))


def _path(name: str, world: str | None) -> Path:
    return HOME / (world or default()) / f"{name}.json.gz"


@functools.cache
def _read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return data
