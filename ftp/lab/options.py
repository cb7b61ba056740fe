"""One setting that a world or a method has of its own. Without torch."""

import math
from dataclasses import dataclass

from ftp.lab.record import Value


@dataclass(frozen=True)
class Option:
    """Its default, what it does, and what is allowed: a range, some words, any text, or the name of a layer."""

    default: Value
    help: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    layer: bool = False  # text: the name of a layer, or a pattern for several; empty for none
    path: bool = False  # text that may name a file or a folder: its content decides a run, not where it lies
    private: bool = False  # whoever starts the page chooses it: never a form's or an address's, which anybody may write
    decides: bool = True  # False: how work is done, such as the number of workers; no number depends on it
