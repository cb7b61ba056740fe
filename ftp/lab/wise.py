"""WiSE (Wortsman et al. 2022): walk in a straight line from the pre-trained network to the fine-tuned one.

W(alpha) = (1 - alpha) W0 + alpha W, parameters and buffers alike; alpha 0 is the pre-trained body, 1 the run itself.
What is new in a network (a fresh head) has no pre-trained weights, so it stays as fine-tuned all along the line. Where
nothing is new, as with a head that came out of a text tower, alpha 0 is the pre-trained model itself, bit for bit.

Running statistics of BatchNorm are averaged as well, which is not what the averaged network would have measured; such
networks can collapse in the middle. GroupNorm and LayerNorm have none.
"""

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from ftp.anchors import matched
from ftp.lab import evaluate, worlds
from ftp.lab.alpha import from_dict
from ftp.lab.figures import WiseCurve
from ftp.lab.record import LabError, RunRecord
from ftp.lab.run import model_of, processes
from ftp.lab.store import Store, write_atomic
from ftp.lab.summary import average
from ftp.lab.worlds import World

ALPHAS = tuple(round(0.1 * i, 1) for i in range(11))
PARTS = 20  # of the validation set, by which its standard error is known
KEPT = ".wise_table.json"  # a curve over all pictures, beside the run's weights


def interpolate(start: Mapping[str, Tensor], end: Mapping[str, Tensor], alpha: float) -> dict[str, Tensor]:
    """(1 - alpha) start + alpha end, name by name; whole numbers, such as counts of batches, are of the nearer end.

    >>> interpolate({"w": torch.tensor([0.0])}, {"w": torch.tensor([4.0])}, 0.25)
    {'w': tensor([1.])}
    """
    if not 0 <= alpha <= 1:
        raise LabError(f"alpha is {alpha}; it must be a number from 0 (pre-trained) to 1 (fine-tuned)")
    if set(start) != set(end):
        odd = sorted(set(start) ^ set(end))[0]
        raise LabError(f"the two networks differ: {odd!r} is in one of them only; WiSE needs equal networks")
    for name in end:
        if start[name].shape != end[name].shape:
            shapes = f"{tuple(start[name].shape)} and {tuple(end[name].shape)}"
            raise LabError(f"the two networks differ: {name!r} has the shapes {shapes}; WiSE needs equal networks")
    nearer = start if alpha < 0.5 else end
    if alpha in (0, 1):  # the ends as they are: (1 - 0) * -0.0 + 0 * w would be 0.0
        return {name: nearer[name].clone() for name in end}
    return {
        name: torch.lerp(start[name], last, alpha) if last.is_floating_point() else nearer[name].clone()
        for name, last in end.items()
    }


def ends(record: RunRecord, world: World, model: nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The state at alpha 0 and at alpha 1; `model` is that of the run."""
    end = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    place = next(model.parameters()).device  # the device may have been "auto"
    start = {name: tensor.to(place) for name, tensor in world.model(record.settings.seed).state_dict().items()}
    start = {name: start[name] if name in start else torch.zeros_like(end[name]) for name in end}  # adapters fade in
    return start | {name: end[name] for pattern in world.unanchored for name in matched(pattern, end)}, end


def wise(
    record: RunRecord,
    store: Store,
    alphas: Sequence[float] = ALPHAS,
    *,
    device: str = "cpu",
    limit: int | None = 500,
    progress: Callable[[float], None] = lambda alpha: None,
) -> WiseCurve:
    """Validation, ID and OOD along the line; `limit` images of each set."""
    model = model_of(record, store, device)
    world = worlds.of(record.settings)
    if not world.shifts:
        raise LabError(
            f"the world {world.name} has no shifts, so there is no OOD for WiSE to win; choose another world"
        )
    start, end = ends(record, world, model)
    rows, validated = [], []
    for alpha in alphas:
        model.load_state_dict(interpolate(start, end, alpha))
        validated.append(validation(model, world, limit))
        names = (world.home, *world.shifts)
        rows.append({name: evaluate.score(model, world, name, limit).main for name in names})
        progress(alpha)
    shifts = {name: tuple(row[name] for row in rows) for name in world.shifts}
    return WiseCurve(
        run_id=record.run_id,
        method=record.settings.method,
        alphas=tuple(alphas),
        id=tuple(row[world.home] for row in rows),
        ood_avg=tuple(map(average, zip(*shifts.values(), strict=True))),
        seed=record.settings.seed,
        metric=world.metrics[0],
        val=tuple(score for score, _ in validated) if not math.isnan(validated[0][0]) else (),
        val_error=tuple(error for _, error in validated) if not math.isnan(validated[0][0]) else (),
        shifts=shifts,
    )


@torch.no_grad()
def validation(model: nn.Module, world: World, limit: int | None = None) -> tuple[float, float]:
    """The main metric on the validation set and its standard error; NaN where a world has no such set.

    The error is that of the mean of twenty random parts of the set: it holds for any metric, not for accuracy alone.
    """
    names = world.measures.splits("val")
    if not names:
        return math.nan, math.nan
    model.eval()
    split = world.split(names[0])
    count = min(len(split), limit or len(split))
    parts = min(PARTS, count // 2)
    place = torch.randperm(count, generator=torch.Generator().manual_seed(0)) % max(parts, 1)
    whole, meters = world.meter(), [world.meter() for _ in range(parts)]
    device = next(model.parameters()).device
    for indices in torch.split(torch.arange(count), world.evaluated_at_once):
        inputs, targets = split.batch(indices)
        outputs = model(inputs.to(device))
        whole.add(outputs, targets)
        for part, meter in enumerate(meters):
            if (rows := place[indices] == part).any():
                meter.add(outputs[rows.to(device)], targets[rows])
    main = world.metrics[0].name
    error = statistics.stdev(m.values()[main] for m in meters) / math.sqrt(parts) if parts > 1 else math.nan
    return whole.values()[main], error


def walked(records: Sequence[RunRecord], store: Store, jobs: int = 1, device: str = "cpu") -> dict[str, WiseCurve]:
    """The curve of each run over all pictures, by run; made once, by so many processes, and kept beside its weights."""
    missing = [r.run_id for r in records if not _kept(store, r.run_id).exists()]
    place = str(store.path)
    if jobs > 1 and len(missing) > 1:
        list(processes(min(jobs, len(missing)))((_walk, (place, run_id, device), {}) for run_id in missing))
    else:
        for run_id in missing:
            _walk(place, run_id, device)
    return {r.run_id: from_dict(json.loads(_kept(store, r.run_id).read_bytes())) for r in records}


def _walk(path: str, run_id: str, device: str) -> None:
    with Store(path) as store:
        curve = wise(store.load(run_id), store, device=device, limit=None)
        write_atomic(_kept(store, run_id), json.dumps(asdict(curve)).encode())


def _kept(store: Store, run_id: str) -> Path:
    return store.weights_path(run_id).with_suffix(KEPT)
