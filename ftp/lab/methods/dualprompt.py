"""DualPrompt (Wang et al. 2022): a general prompt for all tasks in early blocks, an expert for each task in later ones.

While it trains, a task uses its own expert. At test nobody says which task a picture is from, so the nearest key
chooses, picture by picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._prompted import Prompted
from ftp.lab.options import Option

if TYPE_CHECKING:
    from torch import Generator

    from ftp.lab.models.prompts import Prompts


class DualPrompt(Prompted):
    title = "DualPrompt"
    summary = "The body is frozen; one general prompt, and an expert for each task, are trained."
    options = {
        "general": Option(6, "rows of the general prompt, in the blocks 0 and 1", 2, 200),
        "expert": Option(8, "rows of an expert, in the blocks 2 to 4 (20 for the ViT-B/16)", 2, 200),
    }

    def make_prompts(self, width: int, blocks: int, generator: Generator) -> Prompts:
        from ftp.lab.models.prompts import DualPrompts

        general = range(min(2, blocks)), int(self.option("general"))
        expert = range(min(2, blocks - 1), min(5, blocks)), int(self.option("expert"))
        return DualPrompts(width, blocks, self.task.phases, general, expert, generator)


METHOD = DualPrompt
