"""L2P++ (Wang et al. 2022, as Smith et al. 2023 compare it): a pool of prompts; each picture takes the nearest few.

Differs from the original L2P: prefixes before keys and values, choice by each picture and not by the batch, and the
mask of the world. The pull of the keys sums over a picture's own prompts only: the published code also sums over
those that other pictures of the batch chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftp.lab.methods._prompted import Prompted
from ftp.lab.options import Option

if TYPE_CHECKING:
    from torch import Generator

    from ftp.lab.models.prompts import Prompts


class L2P(Prompted):
    title = "L2P++"
    summary = "The body is frozen; each picture takes prompts from a pool that is trained."
    options = {
        "pool": Option(30, "prompts in the pool", 1, 1000),
        "top": Option(5, "prompts that a picture takes", 1, 100),
        "length": Option(4, "rows of a prompt, half for keys, half for values (20 for the ViT-B/16)", 2, 200),
    }

    def make_prompts(self, width: int, blocks: int, generator: Generator) -> Prompts:
        from ftp.lab.models.prompts import PromptPool

        pool, top, length = (int(self.option(name)) for name in ("pool", "top", "length"))
        return PromptPool(width, blocks, pool, length, min(top, pool), generator)


METHOD = L2P
