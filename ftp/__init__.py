"""Fast Trainable Projection: fine-tuning on a learned leash.

Every layer is tied to its pre-trained weights W0 (the anchor) by a leash of length gamma.
`SGDP` and `AdamP` are SGD and AdamW that learn the leash while they train.

>>> import ftp
>>> ftp.SGDP.__name__, ftp.AdamP.__name__
('SGDP', 'AdamP')
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ftp.adamp import AdamP as AdamP
    from ftp.groups import named_groups as named_groups
    from ftp.hyper import HyperSGD as HyperSGD
    from ftp.projection import mars_norm as mars_norm
    from ftp.projection import project_mars as project_mars
    from ftp.projection import row_l1 as row_l1
    from ftp.sgdp import SGDP as SGDP

__version__ = "0.1.0"

# Each public name and the file it lives in. Loaded on first use, so that a program which only
# needs a torch-free part of the package (the dashboard's server) does not pay for torch.
_HOMES = {
    "SGDP": "sgdp",
    "AdamP": "adamp",
    "HyperSGD": "hyper",
    "named_groups": "groups",
    "row_l1": "projection",
    "mars_norm": "projection",
    "project_mars": "projection",
}
__all__ = ["SGDP", "AdamP", "HyperSGD", "mars_norm", "named_groups", "project_mars", "row_l1"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ftp' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"ftp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
