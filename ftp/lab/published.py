"""The paper's own numbers, as it prints them, to stand beside those of a world: other data, another network."""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError
from ftp.lab.table import title

PATH = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class Published:
    """One table of the paper: text as printed, what is bold there between two pairs of stars."""

    number: str
    source: str
    data: str
    network: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[str]]  # by method

    def to_markdown(self, methods: Sequence[str] | None = None) -> str:
        """The rows of some methods, or of all.

        >>> published("Tab. 1").to_markdown(["ftp"]).splitlines()[-1].split(" | ")[:3]
        ['| FTP', '82.17 (0.02)', '**36.26** (0.06)']
        """
        chosen = [method for method in self.rows if methods is None or method in methods]
        lines = [["Method", *self.columns], *([title(method), *self.rows[method]] for method in chosen)]
        head, *body = [f"| {' | '.join(line)} |" for line in lines]
        return "\n".join([head, f"|:---|{'---:|' * len(self.columns)}", *body])


def published(number: str) -> Published:
    """A table of the paper by its number.

    >>> published("Tab. 2").network
    'ResNet-50, pre-trained with CLIP'
    >>> published("Tab. 99")
    Traceback (most recent call last):
    ftp.lab.record.LabError: table is 'Tab. 99'; it must be one of Tab. 1, Tab. 2
    """
    contents = _read()
    if number not in contents["tables"]:
        raise LabError(f"table is {number!r}; it must be one of {', '.join(contents['tables'])}")
    return Published(number, contents["source"], **contents["tables"][number])


def meant(paper: str) -> list[Published]:
    """The tables that are named in what a world says of the paper, as far as their numbers are here.

    >>> [table.number for table in meant("Tab. 1, 2, 99; Fig. 5")]
    ['Tab. 1', 'Tab. 2']
    """
    numbers = {number for part in re.findall(r"Tab\. ([\d, ]+)", paper) for number in re.findall(r"\d+", part)}
    return [published(name) for name in _read()["tables"] if name.removeprefix("Tab. ") in numbers]


@functools.cache
def _read() -> dict[str, Any]:
    contents: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return contents
