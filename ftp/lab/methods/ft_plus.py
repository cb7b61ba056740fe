"""FT++ (Smith et al. 2023): fine-tuning in which old classes do not compete, so nothing pushes their logits down.

The world's mask does it: with mask=new the loss sees the logits of the present task only, and the rows of old classes
stay exactly as they are. Plain fine-tuning with mask=new is the same run; with mask=seen it is the table's FT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._base import Method
from ftp.lab.methods._tasks import lacks_tasks

if TYPE_CHECKING:
    from ftp.lab.worlds import World


class FTPlus(Method):
    title = "FT++"
    summary = "Fine-tuning in which old classes do not compete."

    @classmethod
    def misfit(cls, world: World) -> str:
        if world.chosen.get("mask", "new") != "new":
            return "FT++ is fine-tuning in which old classes do not compete; write mask=new, or choose finetune"
        return lacks_tasks(cls.title, world)


METHOD = FTPlus
