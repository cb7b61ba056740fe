"""What networks of pictures and words answer on their way from W0 to W: computed for the recording `ask`.

The weights are interpolated, never the outputs. `ftp.lab.ask` reads what is packed here, without torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ftp.lab import worlds
from ftp.lab.ask import FULL, NOBODY, bytes_of, candidates, packed
from ftp.lab.record import RunRecord
from ftp.lab.run import model_of
from ftp.lab.store import Store
from ftp.lab.wise import ends, interpolate
from ftp.lab.worlds import World


@dataclass(frozen=True)
class Walk:
    """At every alpha, in every set, for the picture of every label: the network's chances and its unit vector."""

    alphas: tuple[float, ...]
    chances: Tensor  # (alphas, sets, labels, labels)
    vectors: Tensor  # (alphas, sets, labels, dimensions)


def sets_of(world: World) -> tuple[str, ...]:
    """Home, then the shifts."""
    return (world.home, *world.shifts)


def pictures(world: World, name: str) -> Tensor:
    """The first picture of each label in a set, in the order of the labels: (labels, 3, side, side)."""
    split = world.split(name)
    inputs, targets = split.batch(torch.arange(len(split)))
    first = [int((targets == label).nonzero()[0, 0]) for label in range(len(world.classes))]
    return inputs[first]


def walk(record: RunRecord, store: Store, alphas: Sequence[float]) -> Walk:
    """Ask the network of a run, on its way from W0, for the pictures of all sets."""
    world, model = worlds.of(record.settings), model_of(record, store)
    return between(world, model, *ends(record, world, model), alphas)


@torch.no_grad()
def between(
    world: World, model: Any, start: Mapping[str, Tensor], end: Mapping[str, Tensor], alphas: Sequence[float]
) -> Walk:
    """Ask a network whose weights are mixed from two states; `model` ends with those of the last alpha."""
    inputs = torch.cat([pictures(world, name) for name in sets_of(world)])
    sizes = (len(sets_of(world)), len(world.classes))
    chances, vectors = [], []
    model.eval()
    for alpha in alphas:
        model.load_state_dict(interpolate(start, end, alpha))
        chances.append(model(inputs).softmax(-1).unflatten(0, sizes))
        vectors.append(model.features(inputs).unflatten(0, sizes))
    return Walk(tuple(alphas), torch.stack(chances), torch.stack(vectors))


def form(walked: Walk, record: RunRecord, found_at: Sequence[float]) -> dict[str, Any]:
    """The walk of a run for JSON: the best answers to each picture, counts of right ones, vectors at some alphas."""
    about = {"method": record.settings.method, "run_id": record.run_id}
    return {**about, **packed_walk(walked, found_at)}


def packed_walk(walked: Walk, found_at: Sequence[float]) -> dict[str, Any]:
    """The numbers of a walk, packed."""
    chances = walked.chances.permute(1, 2, 3, 0).numpy()  # (sets, labels, answers, alphas)
    right = (walked.chances.argmax(-1) == torch.arange(chances.shape[1])).sum(-1)  # (alphas, sets)
    chosen = [[candidates(cell) for cell in row] for row in chances]
    most = max(len(places) for row in chosen for places in row)
    labels = np.full((*chances.shape[:2], most), NOBODY, np.uint16)
    values = np.zeros((*labels.shape, len(walked.alphas)), np.uint16)
    for n, row in enumerate(chosen):
        for thing, places in enumerate(row):
            labels[n, thing, : len(places)] = places
            values[n, thing, : len(places)] = np.round(FULL * chances[n, thing, places])
    kept = [walked.alphas.index(alpha) for alpha in found_at]
    return {
        "labels": packed(labels),
        "chances": packed(values),
        "right": right.T.tolist(),
        "vectors": packed(bytes_of(walked.vectors[kept].numpy())),
    }
