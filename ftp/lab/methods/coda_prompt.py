"""CODA-P (Smith et al. 2023): prompts are weighted sums of components; each task adds some, older ones stay.

The weights come from attention of the picture's query on keys, without a softmax. As in today's published code the
components begin orthonormal and no orthogonality loss is added (the paper's has the weight 0.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._prompted import Prompted
from ftp.lab.options import Option

if TYPE_CHECKING:
    from torch import Generator

    from ftp.lab.models.prompts import Prompts


class CodaPrompt(Prompted):
    title = "CODA-P"
    summary = "The body is frozen; each task adds components of which prompts are summed up."
    options = {
        "components": Option(5, "that each task adds (10 for the ViT-B/16, which is eight times as wide)", 1, 100),
        "length": Option(8, "rows of a prompt, half for keys, half for values, in the blocks 0 to 4", 2, 200),
    }

    def make_prompts(self, width: int, blocks: int, generator: Generator) -> Prompts:
        from ftp.lab.models.prompts import CodaPrompts

        components, length = (int(self.option(name)) for name in ("components", "length"))
        return CodaPrompts(width, min(5, blocks), self.task.phases, components, length, generator)


METHOD = CodaPrompt
