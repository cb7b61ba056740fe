"""Shift reader: a method that fits no world without shifts, to see that everybody is told so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods import Method

if TYPE_CHECKING:
    from ftp.lab.worlds import World


class ShiftReader(Method):
    title = "Shift reader"
    summary = "It looks at the shifts, so it needs some."

    @classmethod
    def misfit(cls, world: World) -> str:
        return "" if world.shifts else f"Shift reader needs shifts, and the world {world.name} has none"


METHOD = ShiftReader
