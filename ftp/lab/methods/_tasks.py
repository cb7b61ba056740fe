"""What the methods for tasks in a row share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ftp.lab.worlds import World


def lacks_tasks(title: str, world: World) -> str:
    """The sentence for a method that needs tasks with labels in a row, in a world that has none; "" if it has them."""
    if len(world.phases) > 1 and world.classes:
        return ""
    if len(world.phases) > 1:
        return (
            f"{title} needs tasks with labels, and the targets of the world {world.name} are none; choose ftp instead"
        )
    return f"{title} is for tasks in a row, and the world {world.name} has one task here; choose ftp instead"


def lacks_prefixes(title: str, world: World) -> str:
    """The same for a method that puts prompts before keys and values."""
    if problem := lacks_tasks(title, world):
        return problem
    if world.prefixes:
        return ""
    return f"{title} needs a network with a place for prompts, and that of the world {world.name} has none; choose ftp"
