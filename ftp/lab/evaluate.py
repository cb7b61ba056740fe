"""Evaluation: accuracy at home (ID), under shifts (OOD) and under corruptions, calibration, and Lipschitz numbers."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ftp import lipschitz
from ftp.lab.corruptions import corrupt
from ftp.lab.record import CORRUPTIONS, SEVERITIES, EvalEvent
from ftp.lab.worlds import Split, World, load
from ftp.projection import mars_norm

BATCH = 250
BINS = 15  # of the calibration error
CORRUPTED = 500  # images of the test set that are corrupted
WATCHED, WATCHED_SHIFT = 200, 100  # images for the small evaluations on the way: of the test set, of each shift


class Score(NamedTuple):
    """Percent right, expected calibration error in percent, and the number of images."""

    accuracy: float
    ece: float
    images: int


@torch.no_grad()
def score(model: nn.Module, split: Split, limit: int | None = None) -> Score:
    """How well a model reads a set, or its first `limit` images. The model is left in evaluation mode."""
    model.eval()
    device = next(model.parameters()).device
    count = min(len(split), limit or len(split))
    probabilities, labels = [], []
    for part in torch.split(torch.arange(count), BATCH):
        images, truth = split.batch(part)
        probabilities.append(model(images.to(device)).float().softmax(1).cpu())
        labels.append(truth)
    p, y = torch.cat(probabilities), torch.cat(labels)
    confidence, guess = p.max(1)
    right = (guess == y).double()
    return Score(100 * right.mean().item(), 100 * calibration_error(confidence.double(), right), count)


def calibration_error(confidence: Tensor, right: Tensor, bins: int = BINS) -> float:
    """How far confidence and accuracy are apart: the mean gap over equal bins of confidence, weighted by their counts.

    >>> round(calibration_error(torch.tensor([0.9, 0.9]), torch.tensor([1.0, 0.0])), 3)  # says 90 %, right in 50 %
    0.4
    """
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=confidence.dtype).index_add_(0, place, confidence - right)
    return gap.abs().sum().item() / len(confidence)


class Corrupted:
    """The first images of a set, damaged; each batch by its own seed, so that every run sees the same pixels."""

    def __init__(self, world: World, kind: str, severity: int, count: int = CORRUPTED) -> None:
        self.split, self.kind, self.severity = world.split("id"), kind, severity
        self.parameters = world.info.severities
        self.count = min(count, len(self.split))

    def __len__(self) -> int:
        return self.count

    def batch(self, indices: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        images, labels = self.split.batch(indices)
        g = torch.Generator().manual_seed(1000 * self.severity + int(indices[0]))
        return corrupt(images, self.kind, self.severity, generator=g, parameters=self.parameters), labels


@functools.lru_cache(maxsize=128)
def _damaged(world: str, kind: str, severity: int) -> list[tuple[Tensor, Tensor]] | None:
    """The batches of a corrupted test set, kept as bytes if they are small: a sweep needs them for every run."""
    split = Corrupted(load(world), kind, severity)
    if split.batch(torch.arange(1))[0].numel() * len(split) > 4_000_000:
        return None
    batches = [split.batch(part) for part in torch.split(torch.arange(len(split)), BATCH)]
    return [(images.mul(255).round().to(torch.uint8), labels) for images, labels in batches]


def prepare(world: str) -> None:
    """Make and keep the corrupted test sets of a world, so that the first run need not."""
    for kind in CORRUPTIONS:
        for severity in SEVERITIES:
            _damaged(world, kind, severity)


class _Kept:
    """Corrupted batches out of memory; asked for in the order in which they were made."""

    def __init__(self, batches: list[tuple[Tensor, Tensor]]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return sum(len(labels) for _, labels in self.batches)

    def batch(self, indices: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        images, labels = self.batches[int(indices[0]) // BATCH]
        return images.float().div_(255), labels


def corruption_scores(
    model: nn.Module, world: World, kinds: Iterable[str] = CORRUPTIONS
) -> dict[str, tuple[float, ...]]:
    """Accuracy in percent for each kind at severity 1 to 5."""
    found = {}
    for kind in kinds:
        values = []
        for severity in SEVERITIES:
            kept = _damaged(world.info.name, kind, severity)
            split: Split = _Kept(kept) if kept else Corrupted(world, kind, severity)
            values.append(score(model, split).accuracy)
        found[kind] = tuple(values)
    return found


def watch(model: nn.Module, world: World, step: int) -> EvalEvent:
    """A small evaluation on the way: a few hundred images, fractions of a second."""
    limits = {"id": WATCHED, **dict.fromkeys(world.info.shifts, WATCHED_SHIFT)}
    scores = {name: score(model, world.split(name), limit) for name, limit in limits.items()}
    accuracy = {name: s.accuracy for name, s in scores.items()}
    return EvalEvent(step, accuracy, counts={name: s.images for name, s in scores.items()})


def final(
    model: nn.Module, pretrained: nn.Module, world: World, step: int, kinds: Iterable[str] = CORRUPTIONS
) -> EvalEvent:
    """The whole evaluation: every set, the corruptions, calibration and Lipschitz numbers."""
    scores = {name: score(model, world.split(name)) for name in ("val", "id", *world.info.shifts)}
    damaged = corruption_scores(model, world, kinds)
    counts = {name: s.images for name, s in scores.items()}
    counts |= {kind: min(CORRUPTED, counts["id"]) for kind in damaged}
    images, _ = world.split("id").batch(torch.arange(8))
    return EvalEvent(
        step,
        accuracy={name: s.accuracy for name, s in scores.items()},
        corruptions=damaged,
        ece={name: s.ece for name, s in scores.items()},
        lipschitz=lipschitz_report(model, pretrained, images.to(next(model.parameters()).device)),
        counts=counts,
        final=True,
    )


def lipschitz_report(finetuned: nn.Module, pretrained: nn.Module, start: Tensor, steps: int = 10) -> dict[str, Any]:
    """The fine-tuned network against W0, in the max norm.

    layers: name to (l_0, l_d), the MARS norms of W0 and of W - W0. `growth`: log10 of the product of (l_0 + l_d) / l_0
    over all matrices, the factor by which Lemma 1 lets the bound of the chain grow. `found`: the steepest slopes that
    a short search found in the pre-trained network, the fine-tuned one and their difference (Eq. 14 from below).
    """
    finetuned.eval()
    pretrained.eval()
    after = dict(finetuned.named_parameters())
    layers = {}
    for name, anchor in pretrained.named_parameters():
        if anchor.dim() > 1 and name in after and after[name].shape == anchor.shape:
            moved = mars_norm(after[name].detach() - anchor.detach())
            layers[name] = (float(mars_norm(anchor.detach())), float(moved))
    growth = sum(math.log10((l_0 + l_d) / l_0) for l_0, l_d in layers.values() if l_0 > 0)
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "pretrained": pretrained,
        "finetuned": finetuned,
        "difference": lambda x: finetuned(x) - pretrained(x),
    }
    found = {}
    for name, function in functions.items():
        g = torch.Generator(start.device).manual_seed(0)
        found[name] = float(lipschitz.worst_pair(function, start, steps=steps, lr=0.01, generator=g)[2].max())
    return {"layers": layers, "growth": growth, "found": found}


def distances(model: nn.Module, anchors: Mapping[str, Tensor]) -> list[float]:
    """The MARS norm of W - W0 of every anchored layer; reads from the device once."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        norms = [mars_norm(parameters[name].detach() - anchor) for name, anchor in anchors.items()]
        values: list[float] = torch.stack(norms).tolist()
    return values
