"""Methods: the ways to fine-tune that the paper compares. One file each, all behind one interface.

A module of this package offers `METHOD`, a subclass of `Method`. Its docstring says what it changes about plain
fine-tuning. Descriptions are readable without torch, so a method imports torch where it uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method, Task
from ftp.lab.options import Option
from ftp.lab.registry import find, modules, plugin_folders

__all__ = ["Method", "Option", "Task", "fitting", "method", "names"]
__path__ += [str(folder) for folder in plugin_folders("methods")]  # a method of your own, in a folder of your own

if TYPE_CHECKING:
    from ftp.lab.worlds import World

# the order of the paper's tables; methods of your own come last
PAPER = (
    *("finetune", "linear_probe", "partial_fusion", "bitfit", "adapter", "llrd"),
    *("l2_sp", "mars_sp", "lp_ft", "tpgm", "ftp"),
)
# for tasks in a row, in the order of its Tab. 5; other worlds do not show them: `fitting`
TASKS = ("ft_plus", "lwf_mc", "l2p", "dualprompt", "coda_prompt", "ewc", "ftp_ewc", "nearest_mean")


def names() -> tuple[str, ...]:
    """The names of all methods: those of the paper in the order of its tables, then any others.

    >>> names()[0], names()[: len(PAPER)] == PAPER
    ('finetune', True)
    """
    module_names = modules(__name__)
    return tuple(sorted(module_names, key=[*PAPER, *TASKS, *module_names].index))


def method(name: str) -> type[Method]:
    """The method of that name.

    >>> method("ftp").title
    'FTP'
    """
    method_class: type[Method] = find(__name__, "METHOD", name, "method")
    return method_class


def fitting(world: World) -> tuple[str, ...]:
    """The names of the methods that can work in a world."""
    return tuple(name for name in names() if not method(name).misfit(world))
