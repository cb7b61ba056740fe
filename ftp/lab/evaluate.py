"""Evaluation: every split in every metric of its world, corruptions, and Lipschitz numbers."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ftp import lipschitz
from ftp.groups import Rows
from ftp.lab.catalogue import fitting_kinds
from ftp.lab.corruptions import corrupt
from ftp.lab.record import SEVERITIES, EvalEvent
from ftp.lab.rows import farthest, special_rows
from ftp.lab.worlds import Split, World

NO_ROWS: Mapping[str, Rows] = {}
CORRUPTED = 500  # images of the home set that are corrupted
WATCHED, WATCHED_OTHER = 200, 100  # images for the small evaluations on the way: of the home set, of each other one


class Score(NamedTuple):
    """Every metric of a set by its name, the main one first, and the number of its images."""

    values: dict[str, float]
    images: int

    @property
    def main(self) -> float:
        return next(iter(self.values.values()))


@torch.no_grad()
def score(model: nn.Module, world: World, split: Split | str, limit: int | None = None) -> Score:
    """How well a model does on a set, or on its first `limit` images; batch by batch, nothing is kept.

    The model is left in evaluation mode.
    """
    model.eval()
    split = world.split(split) if isinstance(split, str) else split
    device = next(model.parameters()).device
    count = min(len(split), limit or len(split))
    meter = world.meter()
    for part in torch.split(torch.arange(count), world.evaluated_at_once):
        inputs, targets = split.batch(part)
        meter.add(model(inputs.to(device)), targets)
    return Score(meter.values(), count)


def _scores(model: nn.Module, world: World, names: Iterable[str], limits: Mapping[str, int]) -> dict[str, Score]:
    return {name: score(model, world, name, limits.get(name)) for name in names}


def _by_metric(scores: Mapping[str, Score], world: World) -> dict[str, dict[str, float]]:
    return {m.name: {name: s.values[m.name] for name, s in scores.items()} for m in world.metrics}


class Corrupted:
    """The first images of the home set, damaged; each batch by its own seed, so that every run sees the same pixels.

    Targets are never touched. device: where the damage is done; another kind of device draws other noise.
    """

    def __init__(
        self, world: World, kind: str, severity: int, count: int = CORRUPTED, device: torch.device | str = "cpu"
    ) -> None:
        fitting_kinds(world, [kind])  # one that does not fit is told
        self.split, self.kind, self.severity = world.split(world.home), kind, severity
        self.parameters, self.device = world.severities, torch.device(device)
        self.count = min(count, len(self.split))

    def __len__(self) -> int:
        return self.count

    def batch(self, indices: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        images, targets = self.split.batch(indices)
        g = torch.Generator(self.device).manual_seed(1000 * self.severity + int(indices[0]))
        images = images.to(self.device)
        return corrupt(images, self.kind, self.severity, generator=g, parameters=self.parameters), targets


@functools.lru_cache(maxsize=128)
def _damaged(world: World, kind: str, severity: int) -> list[tuple[Tensor, Tensor]] | None:
    """The batches of a corrupted home set, kept as bytes if they are small: a sweep needs them for every run."""
    split = Corrupted(world, kind, severity)
    if split.batch(torch.arange(1))[0].numel() * len(split) > 4_000_000:
        return None
    batches = [split.batch(part) for part in torch.split(torch.arange(len(split)), world.evaluated_at_once)]
    return [(images.mul(255).round().to(torch.uint8), targets) for images, targets in batches]


def prepare(world: World) -> None:
    """Make and keep the corrupted home sets of a world, so that the first run need not."""
    for kind in fitting_kinds(world, None):
        for severity in SEVERITIES:
            _damaged(world, kind, severity)


class _Kept:
    """Corrupted batches out of memory; asked for in the order in which they were made."""

    def __init__(self, batches: list[tuple[Tensor, Tensor]]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return sum(len(targets) for _, targets in self.batches)

    def batch(self, indices: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        images, targets = self.batches[int(indices[0]) // len(self.batches[0][1])]
        return images.float().div_(255), targets


def corruption_scores(
    model: nn.Module, world: World, kinds: Iterable[str] | None = None
) -> dict[str, tuple[float, ...]]:
    """The main metric for each kind at severity 1 to 5."""
    by_kind = {}
    for kind in fitting_kinds(world, kinds):
        values = []
        for severity in SEVERITIES:
            batches = _damaged(world, kind, severity)
            device = next(model.parameters()).device
            split: Split = _Kept(batches) if batches else Corrupted(world, kind, severity, device=device)
            values.append(score(model, world, split).main)
        by_kind[kind] = tuple(values)
    return by_kind


def looked_at(world: World, phase: int, *roles: str) -> tuple[str, ...]:
    """The splits with these roles that are evaluated in a phase."""
    named = world.phases[phase].evaluated
    return tuple(name for name in world.measures.splits(*roles) if named is None or name in named)


def watch(model: nn.Module, world: World, step: int, phase: int = 0) -> EvalEvent:
    """A small evaluation on the way: a few hundred images, fractions of a second."""
    limits = {name: WATCHED if name == world.home else WATCHED_OTHER for name in world.roles}
    scores = _scores(model, world, looked_at(world, phase, "home", "shift", "task"), limits)
    counts = {name: s.images for name, s in scores.items()}
    return EvalEvent(step, _by_metric(scores, world), counts=counts, phase=phase)


def whole(model: nn.Module, world: World, step: int, phase: int = 0) -> EvalEvent:
    """At the end of a phase: all images of the splits that it looks at."""
    scores = _scores(model, world, looked_at(world, phase, "val", "home", "shift", "task"), {})
    counts = {name: s.images for name, s in scores.items()}
    return EvalEvent(step, _by_metric(scores, world), counts=counts, phase=phase, whole=True)


def final(
    model: nn.Module,
    pretrained: nn.Module,
    world: World,
    step: int,
    kinds: Iterable[str] | None = None,
    phase: int = 0,
) -> EvalEvent:
    """The whole evaluation: every set but the training set, the corruptions, and Lipschitz numbers."""
    scores = _scores(model, world, world.measures.splits("val", "home", "shift", "task"), {})
    damaged = corruption_scores(model, world, kinds)
    counts = {name: s.images for name, s in scores.items()}
    counts |= {kind: min(CORRUPTED, counts[world.home]) for kind in damaged}
    steep = {}
    if world.lipschitz:
        home = world.split(world.home)
        images, _ = home.batch(torch.arange(min(8, len(home))))
        steep = lipschitz_report(model, pretrained, images.to(next(model.parameters()).device))
    return EvalEvent(
        step,
        _by_metric(scores, world),
        corruptions=damaged,
        lipschitz=steep,
        counts=counts,
        final=True,
        phase=phase,
        whole=True,
    )


def lipschitz_report(finetuned: nn.Module, pretrained: nn.Module, start: Tensor, steps: int = 10) -> dict[str, Any]:
    """The fine-tuned network against W0, in the max norm.

    layers: name to (l_0, l_d), the MARS norms of W0 and of W - W0. `growth`: log10 of the product of (l_0 + l_d) / l_0
    over all matrices, the factor by which Lemma 1 lets the bound of the chain grow. `found`: the steepest slopes that
    a short search found in the pre-trained network, the fine-tuned one and their difference (Eq. 14 from below).
    """
    finetuned.eval()
    pretrained.eval()
    rows = special_rows(pretrained)
    after = dict(finetuned.named_parameters())
    layers = {}
    for name, anchor in pretrained.named_parameters():
        if anchor.dim() > 1 and name in after and after[name].shape == anchor.shape:
            before, moved = anchor.detach(), after[name].detach() - anchor.detach()
            l_0, l_d = (float(farthest(name, tensor, rows)) for tensor in (before, moved))
            layers[name] = (l_0, l_d)
    growth = sum(math.log10((l_0 + l_d) / l_0) for l_0, l_d in layers.values() if l_0 > 0)
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "pretrained": pretrained,
        "finetuned": finetuned,
        "difference": lambda x: finetuned(x) - pretrained(x),
    }
    steepest = {}
    for name, function in functions.items():
        g = torch.Generator(start.device).manual_seed(0)
        steepest[name] = float(lipschitz.worst_pair(function, start, steps=steps, lr=0.01, generator=g)[2].max())
    return {"layers": layers, "growth": growth, "found": steepest}


def distances(model: nn.Module, anchors: Mapping[str, Tensor], rows: Mapping[str, Rows] = NO_ROWS) -> list[float]:
    """The MARS norm of W - W0 of every anchored layer; reads from the device once."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        moved = ((name, parameters[name].detach() - anchor) for name, anchor in anchors.items())
        norms = [farthest(name, deviation, rows) for name, deviation in moved]
        values: list[float] = torch.stack(norms).tolist()
    return values
