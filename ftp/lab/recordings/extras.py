"""Recorded numbers beside the runs: WiSE curves, all corruptions, steps under the microscope. Without torch.

wise_digits          data_scripts/record_wise.py
corruptions_digits   data_scripts/record_corruptions.py
microscope_digits    data_scripts/record_microscope.py
"""

import functools
import gzip
import json
from pathlib import Path
from typing import Any

from ftp.lab.record import LabError

HOME = Path(__file__).resolve().parent
NAMES = ("wise_digits", "corruptions_digits", "microscope_digits")


@functools.cache
def extra(name: str) -> dict[str, Any]:
    """One recording as plain data, read once; treat it as read-only.

    >>> [curve["method"] for curve in extra("wise_digits")["curves"]]
    ['finetune', 'ftp']
    """
    path = HOME / f"{name}.json.gz"
    if name not in NAMES or not path.exists():
        raise LabError(f"recording is {name!r}; there are {', '.join(NAMES)}: install the kit again if one is missing")
    data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return data
