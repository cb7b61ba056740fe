"""The engine: fine-tune one model by one method, and say at every step what happens.

    for event in finetune("digits", "ftp"):
        ...

A run has one phase or several: tasks in a row, each with its own training pool, its own anchors (the weights at its
beginning) and its own schedule of `steps` steps. `step` counts on through all of them; a method counts within a phase.

Nothing depends on what came before but the weights, the anchors and the states of method and optimizer: the order of
the data, augmentation and dropout follow from the seed and the step. So a run that goes on from its checkpoint, inside
a phase or between two, ends with the same bits.
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

import ftp
from ftp.anchors import matched
from ftp.lab import evaluate, worlds
from ftp.lab.ahead import Ahead
from ftp.lab.catalogue import fitting_kinds
from ftp.lab.checkpoint import read_checkpoint, write_checkpoint
from ftp.lab.code import code_version
from ftp.lab.methods import Task, method
from ftp.lab.record import EvalEvent, Event, LabError, Settings, StartEvent, StepEvent
from ftp.lab.rows import special_rows
from ftp.lab.settings import resolve

POINTS, WATCHES, CHECKPOINTS = 150, 12, 6  # of each about so many in a run
HELD_OUT = 10  # one in so many training images is kept for a method that needs its own validation batches


def pick_device(wanted: str = "auto") -> torch.device:
    """cuda, mps or cpu: the best that is there, or the one that was asked for.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    available = ["cpu"]
    if torch.backends.mps.is_available():
        available.insert(0, "mps")
    if torch.cuda.is_available():
        available.insert(0, "cuda")
    if wanted == "auto":
        return torch.device(available[0])
    if wanted.split(":")[0] not in available:
        raise LabError(f"device is {wanted!r}; this machine has {', '.join(available)}: write device=auto")
    device = _device(wanted)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise LabError(f"device is {wanted!r}; this machine has {torch.cuda.device_count()} GPUs: write device=cuda:0")
    return device


def _device(name: str) -> torch.device:
    try:
        return torch.device(name)
    except RuntimeError:
        raise LabError(f"device is {name!r}; write cpu, cuda, cuda:0, mps or auto") from None


def pick_amp(device: torch.device, wanted: str = "auto") -> torch.dtype | None:
    """The type of the forward pass: bfloat16 on a GPU that has it, float16 on one that has not, None for float32.

    >>> pick_amp(torch.device("cpu")), pick_amp(torch.device("cpu"), "bfloat16")
    (None, torch.bfloat16)
    """
    if wanted == "auto":
        if device.type != "cuda":
            return None
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return {"off": None, "bfloat16": torch.bfloat16, "float16": torch.float16}[wanted]


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """A batch on the device; from memory that a GPU can read by itself, so that nobody waits for the copy.

    >>> to_device(torch.ones(1), torch.device("cpu"))
    tensor([1.])
    """
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


class FineTuning:
    """One run. Iterate over it for its events; `model` is the network, `step` how far it is.

    stop: asked before every step; True ends the run there, with a checkpoint if it has a place for one.
    kinds: of damage in the final evaluation; those of the world if none are named.
    amp: the forward pass in "bfloat16" or "float16", "off", or "auto": on a GPU what it can, else off.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        device: str = "auto",
        checkpoint: Path | None = None,
        stop: Callable[[], bool] = lambda: False,
        kinds: Iterable[str] | None = None,
        watches: int = WATCHES,
        evaluate_at_end: bool = True,
        amp: str = "auto",
    ) -> None:
        self.settings, self.checkpoint, self.stop = settings, checkpoint, stop
        self.watches, self.evaluate_at_end = watches, evaluate_at_end
        self.device = pick_device(device)
        self.world = worlds.of(settings)
        self.kinds = fitting_kinds(self.world, kinds)
        self.phases = self.world.phases
        self.steps = settings.steps * len(self.phases)  # of the whole run
        self.step, self.phase, self.whole = 0, 0, True  # not whole: in the middle of a step or of a change of phase
        if problem := method(settings.method).misfit(self.world):
            raise LabError(problem)
        self.model = self.world.model(settings.seed).to(self.device)
        self.world.enter(self.model, 0, settings.seed)
        self.pretrained = copy.deepcopy(self.model).eval()
        unanchored, readout, held = self._roles()
        without = unanchored | held
        anchors = {n: p.detach() for n, p in self.pretrained.named_parameters() if n not in without}
        self._divide()
        sample = self._load(self.train, torch.arange(1))[0]
        self.task = Task(
            self.model,
            unanchored,
            readout,
            anchors,
            settings,
            sample,
            self._loss,
            self._held_out_batch,
            phases=len(self.phases),
            rows=special_rows(self.model),
            held=held,
            labels=self.world.labels(0),
            pool=self._pool,
        )
        self.method = method(settings.method)(self.task)
        self.ahead = Ahead(self._prepare)
        self.amp = pick_amp(self.device, amp)
        # float16 needs a scaler, bfloat16 does not
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.amp == torch.float16)
        if checkpoint is not None and checkpoint.exists():
            self.step = read_checkpoint(checkpoint, self)

    def _roles(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """The names of the parameters that are new, those of the read-out, and those that the world holds still now."""
        names = [name for name, _ in self.model.named_parameters()]
        unanchored, readout = (
            frozenset(name for pattern in patterns for name in matched(pattern, names))
            for patterns in (self.world.unanchored, self.world.readout)
        )
        return unanchored, readout, frozenset(name for name in names if self.world.holds(name, self.phase))

    def _divide(self) -> None:
        """The training set of this phase, and the part that a method such as TPGM holds out from it."""
        self.train = self.world.split(self.phases[self.phase].train, self.settings.labels)
        everything = torch.arange(len(self.train))
        held_out = everything % HELD_OUT == 0
        uses = method(self.settings.method).needs_held_out
        self.held_out = everything[held_out]
        self.indices = everything[~held_out] if uses else everything
        if len(self.indices) < 2:
            raise LabError(f"labels={self.settings.labels} leaves {len(self.indices)} images to train on; give more")

    @property
    def phase_is_over(self) -> bool:
        """All steps of the present phase are made, and another one follows."""
        return self.phase + 1 < len(self.phases) and self.step >= (self.phase + 1) * self.settings.steps

    def next_phase(self) -> None:
        """End the present phase; the weights as they are become the anchors of the next one."""
        self.whole = False
        self.method.end_phase()
        self.enter_phase(self.phase + 1)
        parameters = dict(self.model.named_parameters())
        self.task.anchors = {name: parameters[name].detach().clone() for name in self.task.anchors}
        self.method.begin_phase()
        self.whole = True

    def enter_phase(self, phase: int) -> None:
        """Make the network and the training pool ready for a phase; anchors and method follow."""
        while self.phase < phase:
            self.phase += 1
            for model in (self.model, self.pretrained):
                self.world.enter(model, self.phase, self.settings.seed)
        self.task.phase, self.task.labels = self.phase, self.world.labels(self.phase)
        self.task.unanchored, self.task.readout, self.task.held = self._roles()
        self._divide()

    def _loss(self, network: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
        return self.world.loss(network, inputs, targets, self.phase)

    def _pick(self, pool: Tensor, step: int, salt: int) -> Tensor:
        """The images of one step: pool in an order of its own for each epoch."""
        size = min(self.settings.batch, len(pool))
        epoch, place = divmod(step, len(pool) // size)
        seed = ((self.settings.seed * 1_000_003) + epoch) * 7 + salt + self.phase * 1_000_000_007
        g = torch.Generator().manual_seed(seed)
        return pool[torch.randperm(len(pool), generator=g)[place * size : (place + 1) * size]]

    def _read(self, split: worlds.Split, indices: Tensor, step: int | None = None) -> tuple[Tensor, Tensor]:
        g = None if step is None else torch.Generator().manual_seed(self.settings.seed * 1_000_003 + step)
        return split.batch(indices, g)

    def _load(self, split: worlds.Split, indices: Tensor, step: int | None = None) -> tuple[Tensor, Tensor]:
        inputs, targets = self._read(split, indices, step)
        return to_device(inputs, self.device), to_device(targets, self.device)

    def _prepare(self, step: int) -> tuple[Tensor, Tensor]:
        """The training batch of a step of the present phase; called in another thread."""
        within = step - self.phase * self.settings.steps
        return self._read(self.train, self._pick(self.indices, within, salt=0), step)

    def _training_batch(self) -> tuple[Tensor, Tensor]:
        """The batch of this step; where reading takes time, the next ones are begun."""
        if not getattr(self.train, "takes_time", False):
            inputs, targets = self._prepare(self.step)
        else:
            inputs, targets = self.ahead.take(self.step, (self.phase + 1) * self.settings.steps - 1)
        return to_device(inputs, self.device), to_device(targets, self.device)

    def _pool(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The training images of this phase in their order, batch by batch, not augmented."""
        for part in torch.split(self.indices, self.settings.batch):
            yield self._load(self.train, part)

    def _held_out_batch(self, count: int) -> tuple[Tensor, Tensor]:
        return self._load(self.train, self._pick(self.held_out, count, salt=1), count)

    def advance(self) -> tuple[Tensor, float]:
        """One training step: its loss, still on the device, and its learning rate."""
        if self.phase_is_over:
            self.next_phase()
        method, optimizer = self.method, self.method.optimizer
        step = self.step - self.phase * self.settings.steps  # within the phase
        self.whole = False
        torch.manual_seed(self.settings.seed * 1_000_003 + self.step)  # for models with dropout
        method.before_step(step)
        lr = method.lr(step)
        for group in optimizer.param_groups:
            group["lr"] = lr * group.get("lr_scale", 1.0)
        inputs, targets = self._training_batch()
        optimizer.zero_grad()
        loss = self._backward(inputs, targets)
        self.scaler.unscale_(optimizer)
        method.after_backward(step)
        self.scaler.step(optimizer)
        self.scaler.update()
        method.after_step(step)
        self.step, self.whole = self.step + 1, True
        return loss, lr

    def _backward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The gradient of the batch, in as many parts as the world says; returns its loss."""
        parts = self.world.accumulate
        if parts == 1:
            return self._backward_part(inputs, targets, 1.0)
        losses = []
        for part, of_part in zip(inputs.chunk(parts), targets.chunk(parts), strict=True):
            losses.append(self._backward_part(part, of_part, len(part) / len(inputs)))
        return torch.stack(losses).sum()

    def _backward_part(self, inputs: Tensor, targets: Tensor, share: float) -> Tensor:
        with self._autocast():
            loss = self.method.loss(inputs, targets)
        if share != 1.0:
            loss = loss * share
        torch.autograd.backward(self.scaler.scale(loss))
        return loss.detach()

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.amp is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.amp)

    def __iter__(self) -> Iterator[Event]:
        steps = self.steps
        log, watch, save = (max(1, round(steps / n)) for n in (POINTS, max(1, self.watches), CHECKPOINTS))
        names = tuple(phase.name for phase in self.phases)
        yield StartEvent(tuple(self.task.anchors), self.provenance(), self.step, self.world.measures, names)
        if self.watches and self.step == 0:
            yield self._watch()
        began, counted = time.perf_counter(), 0
        while self.step < steps:
            if self.stop():
                self.save()
                return
            if self.phase_is_over:
                if self.evaluate_at_end:
                    yield evaluate.whole(self.model, self.world, self.step, self.phase)
                self.next_phase()
                began, counted = time.perf_counter(), 0
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
            if self.watches and not (last or self.phase_is_over) and self.step % watch == 0:
                yield self._watch()
            if last or self.step % save == 0:
                self.save()
            if self.step % log == 0:
                began, counted = time.perf_counter(), 0
        self.method.end_phase()
        if self.evaluate_at_end:
            yield self.final()

    def _watch(self) -> EvalEvent:
        return evaluate.watch(self.model, self.world, self.step, self.phase)

    def _point(self, loss: float, lr: float, seconds: float) -> StepEvent:
        report = self.method.report()
        rows = [report.get(name, (None, None)) for name in self.task.anchors]
        return StepEvent(
            self.step,
            loss,
            lr,
            gamma=tuple(gamma for gamma, _ in rows),
            distance=tuple(evaluate.distances(self.model, self.task.anchors, self.task.rows)),
            boundary=tuple(share for _, share in rows),
            seconds=seconds,
            phase=self.phase,
        )

    def final(self) -> EvalEvent:
        """The whole evaluation of the weights as they are."""
        with torch.no_grad():  # the pre-trained body answers through what is new
            fresh = dict(self.model.named_parameters())
            for name, param in self.pretrained.named_parameters():
                if name in self.task.unanchored:
                    param.copy_(fresh[name])
        return evaluate.final(self.model, self.pretrained, self.world, self.step, self.kinds, self.phase)

    def save(self) -> None:
        """Write the checkpoint, if this run has a place for one; in the middle of a step the last one stays."""
        if self.checkpoint is not None and self.whole:
            write_checkpoint(self.checkpoint, self)

    def provenance(self) -> dict[str, Any]:
        """Where and with what this run is made."""
        return {
            "ftp": ftp.__version__,
            "code": code_version(self.world.name, self.settings.method, bool(self.world.corruptions)),
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
    world: Settings | str | None = None, method: str = "ftp", settings: Mapping[str, Any] | None = None, **how: Any
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
    run.enter_phase(len(run.phases) - 1)
    run.model.load_state_dict(weights)
    return run.model.eval()
