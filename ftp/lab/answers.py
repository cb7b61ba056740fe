"""A few pictures of every set, and what the network says of them: Live shows both while it trains.

They decide nothing, so they are no part of a run's id. A world without classes, or with maps for targets, has neither.
"""

import base64
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.record import LabError
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.store import Store, write_atomic
from ftp.lab.worlds import World

if TYPE_CHECKING:
    from torch import nn

PICTURES, SETS = 5, 6  # the first pictures of the first sets: one glance can take in so many
SIDE, QUALITY = 32, 85  # pixels; of WebP


def shown_sets(world: World) -> tuple[str, ...]:
    """The sets whose pictures are shown: home first, then the shifts or the tasks; none where there are no labels.

    >>> from ftp.lab import worlds
    >>> shown_sets(worlds.load("digits"))
    ('id', 'optdigits', 'typeset', 'texture', 'colour', 'sketch')
    """
    if world.dense or not world.classes:
        return ()
    return (world.home, *world.measures.splits("shift", "task"))[:SETS]


def answers(model: "nn.Module", world: World, evaluated: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """What a network says of the first pictures of each set that was evaluated, as numbers of classes."""
    import torch

    names = [name for name in shown_sets(world) if name in set(evaluated)]
    device = next(model.parameters()).device
    said = {}
    model.eval()
    with torch.no_grad():
        for name in names:
            split = world.split(name)
            inputs, targets = split.batch(torch.arange(min(PICTURES, len(split))))
            outputs = model(inputs.to(device))
            # one label for a picture, one score for each class; a head may still grow
            if targets.dim() == 1 and outputs.dim() == 2 and outputs.shape[1] <= len(world.classes):
                said[name] = tuple(outputs.argmax(1).tolist())
    return said


def pictures(world: World) -> dict[str, Any]:
    """The pictures as one sheet, a row for each set, with their right labels: plain data for the page.

    sheet: WebP in base64, `columns` pictures across; labels: numbers of classes, row by row.
    """
    import torch
    from PIL import Image
    from torch.nn import functional as F

    rows, labels = [], []
    names = shown_sets(world)
    for name in names:
        split = world.split(name)
        inputs, targets = split.batch(torch.arange(min(PICTURES, len(split))))
        small = F.interpolate(inputs[:, :3].float().cpu(), (SIDE, SIDE), mode="area").clamp(0, 1)
        small = small.expand(-1, 3, -1, -1)  # ink alone is grey
        blank = torch.ones(PICTURES - len(small), *small.shape[1:])
        rows.append(torch.cat([small, blank]))
        labels.append(targets.flatten().tolist())
    grid = torch.stack(rows).mul(255).round().to(torch.uint8)  # (rows, columns, 3, side, side)
    pixels = grid.permute(0, 3, 1, 4, 2).reshape(len(rows) * SIDE, PICTURES * SIDE, 3)
    out = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(out, "WEBP", quality=QUALITY, method=6)
    return {
        "data_version": world.data_version(),
        "sets": list(names),
        "columns": PICTURES,
        "classes": list(world.classes),
        "labels": labels,
        "sheet": base64.b64encode(out.getvalue()).decode(),
    }


def pictures_path(world: World, store: Store) -> Path:
    """Where the sheet of a world with its options is kept: once, beside the store, for all its runs."""
    text = json.dumps([world.name, world.chosen, world.data_version()], sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return store.path.with_name(f"{store.path.stem}-pictures") / f"{name}.json"


def keep_pictures(world: World, store: Store) -> None:
    """Make the sheet of a world, in a worker, if neither the store nor the kit has it."""
    if shown_sets(world) and known_pictures(world, store) is None:
        write_atomic(pictures_path(world, store), json.dumps(pictures(world)).encode())


def known_pictures(world: World, store: Store) -> dict[str, Any] | None:
    """The sheet of a world, without torch: the kit's own for the same data, or that of an earlier run here."""
    if not shown_sets(world):
        return None
    if has_extra("pictures", world.name):
        shipped = extra("pictures", world.name)
        if shipped["data_version"] == world.data_version():
            return shipped
    path = pictures_path(world, store)
    try:
        kept: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
    except (OSError, ValueError):
        raise LabError(f"{path} cannot be read; delete it, and the next run makes it anew") from None
    return kept
