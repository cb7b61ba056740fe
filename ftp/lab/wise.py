"""WiSE (Wortsman et al. 2022): walk in a straight line from the pre-trained network to the fine-tuned one.

W(alpha) = (1 - alpha) W0 + alpha W, parameters and buffers alike; alpha 0 is the pre-trained body, 1 the run itself.
What is new in a network (a fresh head) has no pre-trained weights, so it stays as fine-tuned all along the line.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ftp.anchors import matched
from ftp.lab import evaluate, worlds
from ftp.lab.figures import WiseCurve
from ftp.lab.record import LabError, RunRecord
from ftp.lab.run import model_of
from ftp.lab.store import Store
from ftp.lab.summary import average

ALPHAS = tuple(round(0.1 * i, 1) for i in range(11))


def interpolate(start: Mapping[str, Tensor], end: Mapping[str, Tensor], alpha: float) -> dict[str, Tensor]:
    """(1 - alpha) start + alpha end, name by name; whole numbers, such as counts of batches, are taken from `end`.

    >>> interpolate({"w": torch.tensor([0.0])}, {"w": torch.tensor([4.0])}, 0.25)
    {'w': tensor([1.])}
    """
    if not 0 <= alpha <= 1:
        raise LabError(f"alpha is {alpha}; it must be a number from 0 (pre-trained) to 1 (fine-tuned)")
    if set(start) != set(end):
        odd = sorted(set(start) ^ set(end))[0]
        raise LabError(f"the two networks differ: {odd!r} is in one of them only; WiSE needs equal networks")
    return {
        name: torch.lerp(start[name], last, alpha) if last.is_floating_point() else last.clone()
        for name, last in end.items()
    }


def wise(
    record: RunRecord,
    store: Store,
    alphas: Sequence[float] = ALPHAS,
    *,
    device: str = "cpu",
    limit: int | None = 500,
    progress: Callable[[float], None] = lambda alpha: None,
) -> WiseCurve:
    """ID and OOD along the line; `limit` images of each set."""
    model = model_of(record, store, device)
    world = worlds.of(record.settings)
    if not world.shifts:
        raise LabError(
            f"the world {world.name} has no shifts, so there is no OOD for WiSE to win; choose another world"
        )
    end = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    place = next(model.parameters()).device  # `device` may be "auto"
    start = {name: tensor.to(place) for name, tensor in world.model(record.settings.seed).state_dict().items()}
    start = {name: start[name] if name in start else torch.zeros_like(end[name]) for name in end}  # adapters fade in
    start |= {name: end[name] for pattern in world.unanchored for name in matched(pattern, end)}
    rows = []
    for alpha in alphas:
        model.load_state_dict(interpolate(start, end, alpha))
        names = (world.home, *world.shifts)
        scores = {name: evaluate.score(model, world, name, limit).main for name in names}
        rows.append((scores.pop(world.home), scores))
        progress(alpha)
    return WiseCurve(
        run_id=record.run_id,
        method=record.settings.method,
        alphas=tuple(alphas),
        id=tuple(home for home, _ in rows),
        ood_avg=tuple(average(ood) for _, ood in rows),
        seed=record.settings.seed,
        metric=world.metrics[0],
    )
