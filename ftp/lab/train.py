"""The engine: fine-tune one model by one method, and say at every step what happens.

    for event in finetune("digits", "ftp"):
        ...

Nothing depends on what came before but the weights and the optimizer's state: the order of the data, augmentation
and dropout follow from the seed and the step. So a run that goes on from its checkpoint ends with the same bits.
"""

import contextlib
import copy
import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ftp
from ftp.anchors import matched
from ftp.lab import evaluate, worlds
from ftp.lab.checkpoint import read_checkpoint, write_checkpoint
from ftp.lab.methods import Task, method
from ftp.lab.record import CORRUPTIONS, EvalEvent, Event, LabError, Settings, StartEvent, StepEvent, code_version
from ftp.lab.settings import resolve

POINTS, WATCHES, CHECKPOINTS = 150, 12, 6  # of each about so many in a run
HELD_OUT = 10  # one in so many training images is kept for a method that needs its own validation batches


def pick_device(asked: str = "auto") -> torch.device:
    """cuda, mps or cpu: the best that is there, or the one that was asked for.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    there = ["cpu"]
    if torch.backends.mps.is_available():
        there.insert(0, "mps")
    if torch.cuda.is_available():
        there.insert(0, "cuda")
    if asked == "auto":
        return torch.device(there[0])
    if asked.split(":")[0] not in there:
        raise LabError(f"device is {asked!r}; this machine has {', '.join(there)}: write device=auto")
    device = _device(asked)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise LabError(f"device is {asked!r}; this machine has {torch.cuda.device_count()} GPUs: write device=cuda:0")
    return device


def _device(asked: str) -> torch.device:
    try:
        return torch.device(asked)
    except RuntimeError:
        raise LabError(f"device is {asked!r}; write cpu, cuda, cuda:0, mps or auto") from None


class FineTuning:
    """One run. Iterate over it for its events; `model` is the network, `step` how far it is.

    stop: asked before every step; True ends the run there, with a checkpoint if it has a place for one.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        device: str = "auto",
        checkpoint: Path | None = None,
        stop: Callable[[], bool] = lambda: False,
        kinds: Iterable[str] = CORRUPTIONS,
        watches: int = WATCHES,
        evaluate_at_end: bool = True,
    ) -> None:
        self.settings, self.checkpoint, self.stop = settings, checkpoint, stop
        self.kinds, self.watches, self.evaluate_at_end = tuple(kinds), watches, evaluate_at_end
        self.device = pick_device(device)
        self.world = worlds.load(settings.world)
        self.step, self.whole = 0, True  # not whole: in the middle of a step
        self.model = self.world.model(settings.seed).to(self.device)
        self.pretrained = copy.deepcopy(self.model).eval()
        names = [name for name, _ in self.model.named_parameters()]
        head = frozenset(name for pattern in self.world.head for name in matched(pattern, names))
        anchors = {n: p.detach() for n, p in self.pretrained.named_parameters() if n not in head}
        self._divide()
        sample = self._load(self.train, torch.arange(1))[0]
        self.task = Task(self.model, head, anchors, settings, sample, self._held_out_batch)
        self.method = method(settings.method)(self.task)
        # float16 needs a scaler, bfloat16 and the CPU do not
        cuda = self.device.type == "cuda"
        self.amp = torch.bfloat16 if cuda and torch.cuda.is_bf16_supported() else torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=cuda and self.amp == torch.float16)
        if checkpoint is not None and checkpoint.exists():
            self.step = read_checkpoint(checkpoint, self)

    def _divide(self) -> None:
        """The training set, and the part that a method such as TPGM holds out from it."""
        self.train = self.world.split("train", self.settings.labels)
        everything = torch.arange(len(self.train))
        held_out = everything % HELD_OUT == 0
        uses = method(self.settings.method).needs_held_out
        self.held_out = everything[held_out]
        self.indices = everything[~held_out] if uses else everything
        if len(self.indices) < 2:
            raise LabError(f"labels={self.settings.labels} leaves {len(self.indices)} images to train on; give more")

    def _pick(self, pool: Tensor, step: int, salt: int) -> Tensor:
        """The images of one step: pool in an order of its own for each epoch."""
        size = min(self.settings.batch, len(pool))
        epoch, place = divmod(step, len(pool) // size)
        g = torch.Generator().manual_seed(((self.settings.seed * 1_000_003) + epoch) * 7 + salt)
        return pool[torch.randperm(len(pool), generator=g)[place * size : (place + 1) * size]]

    def _load(self, split: worlds.Split, indices: Tensor, step: int | None = None) -> tuple[Tensor, Tensor]:
        g = None if step is None else torch.Generator().manual_seed(self.settings.seed * 1_000_003 + step)
        images, labels = split.batch(indices, g)
        return images.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)

    def _held_out_batch(self, count: int) -> tuple[Tensor, Tensor]:
        return self._load(self.train, self._pick(self.held_out, count, salt=1), count)

    def advance(self) -> tuple[Tensor, float]:
        """One training step: its loss, still on the device, and its learning rate."""
        method, optimizer, step = self.method, self.method.optimizer, self.step
        self.whole = False
        torch.manual_seed(self.settings.seed * 1_000_003 + step)  # for models with dropout
        method.before_step(step)
        lr = method.lr(step)
        for group in optimizer.param_groups:
            group["lr"] = lr * group.get("lr_scale", 1.0)
        images, labels = self._load(self.train, self._pick(self.indices, step, salt=0), step)
        with self._autocast():
            loss = F.cross_entropy(self.model(images), labels)
        optimizer.zero_grad()
        torch.autograd.backward(self.scaler.scale(loss))
        self.scaler.unscale_(optimizer)
        method.after_backward(step)
        self.scaler.step(optimizer)
        self.scaler.update()
        method.after_step(step)
        self.step, self.whole = step + 1, True
        return loss.detach(), lr

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.device.type != "cuda":
            return contextlib.nullcontext()
        return torch.autocast("cuda", dtype=self.amp)

    def __iter__(self) -> Iterator[Event]:
        steps = self.settings.steps
        log, watch, save = (max(1, round(steps / n)) for n in (POINTS, max(1, self.watches), CHECKPOINTS))
        yield StartEvent(tuple(self.task.anchors), self.provenance(), self.step)
        if self.watches and self.step == 0:
            yield evaluate.watch(self.model, self.world, 0)
        began, counted = time.perf_counter(), 0
        while self.step < steps:
            if self.stop():
                self.save()
                return
            loss, lr = self.advance()
            counted += 1
            last = self.step == steps
            if self.step % log == 0 or last:
                value = loss.item()  # waits for the device
                seconds = (time.perf_counter() - began) / counted
                if not math.isfinite(value):
                    raise LabError(
                        f"the loss is {value} at step {self.step}; lower the learning rate (lr is {self.settings.lr:g})"
                    )
                yield self._point(value, lr, seconds)
            if self.watches and not last and self.step % watch == 0:
                yield evaluate.watch(self.model, self.world, self.step)
            if last or self.step % save == 0:
                self.save()
            if self.step % log == 0:
                began, counted = time.perf_counter(), 0
        if self.evaluate_at_end:
            yield self.final()

    def _point(self, loss: float, lr: float, seconds: float) -> StepEvent:
        report = self.method.report()
        rows = [report.get(name, (None, None)) for name in self.task.anchors]
        return StepEvent(
            self.step,
            loss,
            lr,
            gamma=tuple(gamma for gamma, _ in rows),
            distance=tuple(evaluate.distances(self.model, self.task.anchors)),
            boundary=tuple(share for _, share in rows),
            seconds=seconds,
        )

    def final(self) -> EvalEvent:
        """The whole evaluation of the weights as they are."""
        with torch.no_grad():  # the pre-trained body answers through the new head
            fresh = dict(self.model.named_parameters())
            for name, param in self.pretrained.named_parameters():
                if name in self.task.head:
                    param.copy_(fresh[name])
        return evaluate.final(self.model, self.pretrained, self.world, self.step, self.kinds)

    def save(self) -> None:
        """Write the checkpoint, if this run has a place for one; in the middle of a step the last one stays."""
        if self.checkpoint is not None and self.whole:
            write_checkpoint(self.checkpoint, self)

    def provenance(self) -> dict[str, Any]:
        """Where and with what this run is made."""
        return {
            "ftp": ftp.__version__,
            "code": code_version(),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "device": str(self.device),
            "threads": torch.get_num_threads(),
            "trained_on": len(self.indices),
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "trained_parameters": sum(p.numel() for _, p in self.method.trained()),
            **self.world.provenance(),
        }


def finetune(
    world: Settings | str = "digits", method: str = "ftp", settings: Mapping[str, Any] | None = None, **how: Any
) -> FineTuning:
    """A run, ready to be iterated over; see `FineTuning` for what it takes. `settings` are those that differ from the
    tuned ones; what `resolve` made can stand in place of the first three.

    >>> run = finetune("digits", "ftp", {"steps": 2, "batch": 8}, watches=0, evaluate_at_end=False)
    >>> [type(event).__name__ for event in run]
    ['StartEvent', 'StepEvent', 'StepEvent']
    """
    return FineTuning(world if isinstance(world, Settings) else resolve(world, method, settings), **how)


def trained_model(settings: Settings, weights: dict[str, Tensor], device: str = "cpu") -> nn.Module:
    """The network of a finished run from its weights file, adapters and all."""
    run = FineTuning(settings, device=device)
    run.model.load_state_dict(weights)
    return run.model.eval()
