"""Methods: the ways to fine-tune that the paper compares. One file each, all behind one interface.

A module of this package offers `METHOD`, a subclass of `Method`. Its docstring says what it changes about plain
fine-tuning. Descriptions are readable without torch, so a method imports torch where it uses it.
"""

from ftp.lab.methods._base import Method, Option, Task
from ftp.lab.registry import find, modules

__all__ = ["Method", "Option", "Task", "method", "names"]

# the order of the paper's tables; methods of your own come last
PAPER = (
    *("finetune", "linear_probe", "partial_fusion", "bitfit", "adapter", "llrd"),
    *("l2_sp", "mars_sp", "lp_ft", "tpgm", "ftp"),
)


def names() -> tuple[str, ...]:
    """The names of all methods: those of the paper in the order of its tables, then any others.

    >>> names()[0], names()[: len(PAPER)] == PAPER
    ('finetune', True)
    """
    found = modules(__name__)
    return tuple(sorted(found, key=[*PAPER, *found].index))


def method(name: str) -> type[Method]:
    """The method of that name.

    >>> method("ftp").title
    'FTP'
    """
    found: type[Method] = find(__name__, "METHOD", name, "method")
    return found
