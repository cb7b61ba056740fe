"""A few pictures of every set, and what the network says of them: Live shows both while it trains.

They decide nothing, so they are no part of a run's id. Of a dense world a map stands beside each picture, in colours;
a world without classes and without maps has neither.
"""

import base64
import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftp.lab.palette import label_colors
from ftp.lab.record import LabError
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.store import Store, write_atomic
from ftp.lab.worlds import World

if TYPE_CHECKING:
    from torch import Tensor, nn

PICTURES, SETS = 5, 6  # the first pictures of the first sets: one glance can take in so many
MAPPED = 2  # pictures of a set that have maps beside them
SIDE, MAP_SIDE, QUALITY = 32, 48, 85  # pixels; of WebP
IGNORED = 255  # in a map: nothing is known there


def shown_sets(world: World) -> tuple[str, ...]:
    """The sets whose pictures are shown: home first, then the shifts or the tasks; none where there are no labels.

    >>> from ftp.lab import worlds
    >>> shown_sets(worlds.load("digits"))
    ('id', 'optdigits', 'typeset', 'texture', 'colour', 'sketch')
    """
    if not (world.in_colours if world.dense else world.classes):
        return ()
    return (world.home, *world.measures.splits("shift", "task"))[:SETS]


def shown_pictures(world: World, name: str) -> "tuple[Tensor, Tensor]":
    """The pictures of a set that are shown, and their targets."""
    import torch

    split = world.split(name)
    return split.batch(torch.arange(min(MAPPED if world.dense else PICTURES, len(split))))


def outputs_of(model: "nn.Module", world: World, evaluated: Iterable[str]) -> "Iterator[tuple[str, Tensor, Tensor]]":
    """Of each set that is shown and was evaluated: its name, the network's outputs for its pictures, the targets."""
    import torch

    names = [name for name in shown_sets(world) if name in set(evaluated)]
    device = next(model.parameters()).device
    model.eval()
    with torch.no_grad():
        for name in names:
            inputs, targets = shown_pictures(world, name)
            yield name, model(inputs.to(device)).cpu(), targets


def answers(model: "nn.Module", world: World, evaluated: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """What a network says of the first pictures of each set that was evaluated, as numbers of classes."""
    if world.dense:
        return {}
    said = {}
    for name, outputs, targets in outputs_of(model, world, evaluated):
        # one label for a picture, one score for each class; a head may still grow
        if targets.dim() == 1 and outputs.dim() == 2 and outputs.shape[1] <= len(world.classes):
            said[name] = tuple(outputs.argmax(1).tolist())
    return said


def maps(model: "nn.Module", world: World, evaluated: Iterable[str]) -> dict[str, str]:
    """What a network says of every pixel of those pictures, side by side in colours: WebP in base64, set by set."""
    if not world.in_colours:
        return {}
    from torch.nn import functional as F

    said = {}
    for name, outputs, targets in outputs_of(model, world, evaluated):
        maps = F.normalize(outputs, dim=1) if targets.dim() == 4 else outputs.argmax(1)
        said[name] = _webp(_small_maps(maps).unsqueeze(0), lossless=maps.dim() == 3)
    return said


def coloured(maps: "Tensor") -> "Tensor":
    """Labels (count, height, width) in their colours, and normals (count, 3, height, width) with right, up and towards
    us as red, green and blue. What is ignored is light grey.

    >>> import torch
    >>> coloured(torch.tensor([[[0, 255]]])).shape, coloured(torch.full((1, 3, 1, 1), 255.0)).unique().numel()
    (torch.Size([1, 3, 1, 2]), 1)
    """
    import torch

    grey = torch.tensor(0.82)
    if maps.dim() == 4:
        return torch.where((maps == IGNORED).any(1, keepdim=True), grey, (maps + 1) / 2)
    shown = label_colors(int(maps[maps != IGNORED].max()) + 1) if (maps != IGNORED).any() else label_colors(1)
    levels = torch.tensor([[int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)] for colour in shown])
    labels = maps.long()
    colours = levels[labels.where(labels != IGNORED, 0)].permute(0, 3, 1, 2)
    return torch.where((labels == IGNORED).unsqueeze(1), grey, colours)


def pictures(world: World) -> dict[str, Any]:
    """The pictures as one sheet, a row for each set, with what is true of them: plain data for the page.

    sheet: WebP in base64, `columns` pictures across. labels: numbers of classes, row by row; or of a dense world
    truths: a sheet in the same order.
    """
    import torch
    from torch.nn import functional as F

    columns, side = (MAPPED, MAP_SIDE) if world.dense else (PICTURES, SIDE)
    names, rows, labels, truths = shown_sets(world), [], [], []
    for name in names:
        inputs, targets = shown_pictures(world, name)
        small = F.interpolate(inputs[:, :3].float().cpu(), (side, side), mode="area").clamp(0, 1)
        small = small.expand(-1, 3, -1, -1)  # ink alone is grey
        blank = torch.ones(columns - len(small), *small.shape[1:])
        rows.append(torch.cat([small, blank]))
        labels.append([] if world.dense else targets.flatten().tolist())
        truths += [torch.cat([_small_maps(targets), blank])] if world.dense else []
    sheets = {"sheet": _webp(torch.stack(rows))}
    if world.dense:
        sheets["truths"] = _webp(torch.stack(truths), lossless=True)
    said = {"data_version": world.data_version(), "sets": list(names), "columns": columns}
    return {**said, "classes": list(world.classes), "labels": labels, **sheets}


def _small_maps(maps: "Tensor") -> "Tensor":
    """Maps in colours, at the size in which they are shown: the nearest pixel, so that no colour is a mixture."""
    from torch.nn import functional as F

    return F.interpolate(coloured(maps.cpu()), (MAP_SIDE, MAP_SIDE), mode="nearest")


def _webp(grid: "Tensor", lossless: bool = False) -> str:
    """Pictures of shape (rows, columns, 3, side, side), with values from 0 to 1, as one WebP in base64.

    lossless: for truths and labels, where each colour has a meaning of its own
    """
    import torch
    from PIL import Image

    rows, columns, _, side, _ = grid.shape
    levels = grid.mul(255).round().to(torch.uint8)
    pixels = levels.permute(0, 3, 1, 4, 2).reshape(rows * side, columns * side, 3)
    out = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(out, "WEBP", lossless=lossless, quality=QUALITY, method=6)
    return base64.b64encode(out.getvalue()).decode()


def pictures_path(world: World, store: Store) -> Path:
    """Where the sheet of a world with its options is kept: once, beside the store, for all its runs."""
    text = json.dumps([world.name, world.chosen, world.data_version()], sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return store.path.with_name(f"{store.path.stem}-pictures") / f"{name}.json"


def shipped_sheet(world: World) -> str:
    """The name of the kit's own sheet of a world: other options, such as another task, have other truths.

    >>> from ftp.lab import worlds
    >>> shipped_sheet(worlds.load("scenes")), shipped_sheet(worlds.load("scenes", {"task": "parts"}))
    ('pictures', 'pictures_task-parts')
    """
    known = world.options
    other = {n: v for n, v in world.chosen.items() if not known[n].private and v != known[n].default}
    return "_".join(["pictures", *(f"{name}-{value}" for name, value in sorted(other.items()))])


def keep_pictures(world: World, store: Store) -> None:
    """Make the sheet of a world, in a worker, if neither the store nor the kit has it."""
    if shown_sets(world) and known_pictures(world, store) is None:
        write_atomic(pictures_path(world, store), json.dumps(pictures(world)).encode())


def known_pictures(world: World, store: Store) -> dict[str, Any] | None:
    """The sheet of a world, without torch: the kit's own for the same data, or that of an earlier run here."""
    if not shown_sets(world):
        return None
    if has_extra(shipped_sheet(world), world.name):
        shipped = extra(shipped_sheet(world), world.name)
        if shipped["data_version"] == world.data_version():
            return shipped
    path = pictures_path(world, store)
    try:
        kept: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
    except (OSError, ValueError):
        raise LabError(f"{path} cannot be read; delete it, and the next run makes it anew") from None
    return kept
