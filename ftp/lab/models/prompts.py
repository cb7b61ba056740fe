"""Prompts for a frozen vision transformer: rows before the keys and values of some blocks, chosen by each picture.

The query is the class token that the frozen network gives a picture. A prompt of length L is cut in two: L/2 rows
stand before the keys, L/2 before the values (prefix tuning). Every choice is made picture by picture, so what the
network says of one does not depend on which others are in its batch. After a pass in training mode `extra` holds what
the loss gets on top, mean over the batch.

The classes follow github.com/GT-RIPL/CODA-Prompt; options say where a size is smaller than there.
"""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

Prefix = tuple[Tensor, Tensor]


def halves(prompt: Tensor) -> Prefix:
    """(batch, L, width) -> the rows before the keys and those before the values.

    >>> [part.shape for part in halves(torch.zeros(2, 6, 8))]
    [torch.Size([2, 3, 8]), torch.Size([2, 3, 8])]
    """
    middle = prompt.shape[1] // 2
    return prompt[:, :middle], prompt[:, middle:]


class Prompts(nn.Module):
    """What the three have in common: the number of the present task, and the extra loss."""

    phase: Tensor

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.blocks = blocks
        self.register_buffer("phase", torch.tensor(0))  # a buffer: it is saved with the weights
        self.extra = torch.zeros(())

    def enter(self, phase: int) -> None:
        """A task begins."""
        self.phase.fill_(phase)


class PromptPool(Prompts):
    """L2P++: the `top` prompts whose keys are nearest to the query, before block 0; chosen keys are pulled to it."""

    def __init__(self, width: int, blocks: int, pool: int, length: int, top: int, g: Generator) -> None:
        super().__init__(blocks)
        self.top = top
        self.prompts = nn.Parameter(torch.rand((pool, length, width), generator=g))
        self.keys = nn.Parameter(torch.rand((pool, width), generator=g))

    def forward(self, query: Tensor) -> list[Prefix | None]:
        cos = F.normalize(query, dim=1) @ F.normalize(self.keys, dim=1).T  # (batch, pool)
        nearest = cos.topk(self.top, dim=1)
        self.extra = (1 - nearest.values).sum(1).mean()
        before = halves(self.prompts[nearest.indices].flatten(0, 1))  # (batch * top, L / 2, width) each
        rows = [part.reshape(len(query), -1, part.shape[2]) for part in before]
        return [(rows[0], rows[1]), *[None] * (self.blocks - 1)]


class DualPrompts(Prompts):
    """DualPrompt: one general prompt in early blocks; an expert for each task in later ones.

    Training uses the present task's expert and pulls its key to the queries; otherwise the nearest key decides.
    """

    def __init__(
        self,
        width: int,
        blocks: int,
        tasks: int,
        general: tuple[Sequence[int], int],
        expert: tuple[Sequence[int], int],
        g: Generator,
    ) -> None:
        super().__init__(blocks)
        self.general_blocks, general_length = general
        self.expert_blocks, expert_length = expert
        shape = (len(self.expert_blocks), expert_length, width)
        self.general = nn.Parameter(torch.rand((len(self.general_blocks), general_length, width), generator=g))
        self.experts = nn.ParameterList(torch.rand(shape, generator=g) for _ in range(tasks))
        self.keys = nn.ParameterList(torch.rand(width, generator=g) for _ in range(tasks))
        self.enter(0)

    def enter(self, phase: int) -> None:
        super().enter(phase)
        for n, (expert, key) in enumerate(zip(self.experts, self.keys, strict=True)):
            expert.requires_grad_(n == phase)
            key.requires_grad_(n == phase)

    def forward(self, query: Tensor) -> list[Prefix | None]:
        phase = int(self.phase)
        keys = torch.stack([key.detach() if n < phase else key for n, key in enumerate(self.keys)][: phase + 1])
        cos = F.normalize(query, dim=1) @ F.normalize(keys, dim=1).T  # (batch, tasks so far)
        if self.training:
            self.extra = (1 - cos[:, phase]).mean()
            experts = self.experts[phase].expand(len(query), -1, -1, -1)
        else:
            experts = torch.stack(list(self.experts)[: phase + 1])[cos.argmax(1)]
        prefixes: list[Prefix | None] = [None] * self.blocks
        for n, block in enumerate(self.general_blocks):
            prefixes[block] = halves(self.general[n].expand(len(query), -1, -1))
        for n, block in enumerate(self.expert_blocks):
            prefixes[block] = halves(experts[:, n])
        return prefixes


class CodaPrompts(Prompts):
    """CODA-P: in each block a prompt is the sum of all components so far, P = sum_m cos(q * A_m, K_m) P_m.

    Each task has components of its own; those of older tasks are used and stay as they are. All begin orthonormal.
    """

    def __init__(self, width: int, blocks: int, tasks: int, components: int, length: int, g: Generator) -> None:
        super().__init__(blocks)
        self.length = length
        self.sizes = (length * width, width, width)
        starts = [[orthonormal(tasks * components, size, g) for size in self.sizes] for _ in range(blocks)]

        def of_task(part: int, task: int) -> nn.Parameter:
            rows = slice(task * components, (task + 1) * components)
            return nn.Parameter(torch.stack([start[part][rows] for start in starts]))  # (blocks, components, size)

        self.prompts, self.keys, self.attention = (
            nn.ParameterList(of_task(part, task) for task in range(tasks)) for part in range(3)
        )
        self.enter(0)

    def enter(self, phase: int) -> None:
        super().enter(phase)
        for parts in (self.prompts, self.keys, self.attention):
            for n, part in enumerate(parts):
                part.requires_grad_(n == phase)

    def forward(self, query: Tensor) -> list[Prefix | None]:
        count = int(self.phase) + 1
        p, k, a = (torch.cat(list(parts)[:count], 1) for parts in (self.prompts, self.keys, self.attention))
        looked = query[:, None, None, :] * a  # (batch, blocks, components, width)
        weights = (F.normalize(looked, dim=3) * F.normalize(k, dim=2)).sum(3)
        rows = torch.einsum("nbm,bms->nbs", weights, p).view(len(query), self.blocks, self.length, -1)
        return [halves(rows[:, block]) for block in range(self.blocks)]


def orthonormal(rows: int, size: int, g: Generator) -> Tensor:
    """Random rows of length 1 at right angles to each other; beyond `size` rows, sets of them.

    >>> x = orthonormal(3, 5, torch.Generator().manual_seed(0))
    >>> bool((x @ x.T - torch.eye(3)).abs().max() < 1e-6)
    True
    """
    sets: list[Tensor] = []
    while sum(len(each) for each in sets) < rows:
        sets.append(torch.linalg.qr(torch.randn((size, min(size, rows)), generator=g))[0].T)
    return torch.cat(sets)[:rows].contiguous()
