"""Pictures of damage: the first pictures of a world's home set under every kind at every severity, as sheets."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

from ftp.lab.catalogue import corruptions, fitting_kinds
from ftp.lab.record import SEVERITIES

if TYPE_CHECKING:
    from ftp.lab.worlds import World

COLUMNS, SIDE, QUALITY = 8, 96, 82


def sheets(world: World) -> dict[str, Any]:
    """For each kind a sheet of six rows (clean, severity 1 to 5), as WebP in base64, and the labels of its columns."""
    import torch
    from PIL import Image
    from torch.nn import functional as F

    from ftp.lab.corruptions import corrupt

    home = world.split(world.home)
    images, targets = home.batch(torch.arange(min(COLUMNS, len(home))))
    pictures = {}
    for kind in fitting_kinds(world, corruptions()):
        rows = [images]
        for severity in SEVERITIES:
            g = torch.Generator().manual_seed(severity)
            rows.append(corrupt(images, kind, severity, generator=g, parameters=world.severities))
        small = [F.interpolate(row, (SIDE, SIDE), mode="area").clamp(0, 1) for row in rows]
        padded = [torch.cat([row, torch.ones(COLUMNS - len(row), *row.shape[1:])]) for row in small]
        grid = torch.stack(padded).mul(255).round().to(torch.uint8)  # (rows, columns, 3, side, side)
        pixels = grid.permute(0, 3, 1, 4, 2).reshape(len(rows) * SIDE, COLUMNS * SIDE, 3)
        out = io.BytesIO()
        Image.fromarray(pixels.numpy()).save(out, "WEBP", quality=QUALITY, method=4)
        pictures[kind] = base64.b64encode(out.getvalue()).decode()
    labels = [world.classes[label] for label in targets.tolist()]
    return {"labels": labels + [""] * (COLUMNS - len(labels)), "pictures": pictures}
