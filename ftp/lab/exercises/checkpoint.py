"""Lesson 11: what belongs into a checkpoint. The truth is a run that was never stopped."""

import io
from typing import Any

import torch
from torch import nn

import ftp
from ftp.lab.exercises._exercise import Exercise, Mistake, Question, define

KEPT = {
    "model": "the weights and buffers of the network are lost, and it starts anew",
    "optimizer": "the leash is tied to wherever the weights are now, and momentum and γ start anew",
    "scheduler": "the learning rate jumps back to its start",
    "draw": "the batches that follow are drawn in another order",
    "epoch": "nobody knows how many epochs are left",
}
KEEP = {name: f"run.{name}.state_dict()" for name in ("model", "optimizer", "scheduler")}
KEEP |= {"draw": "run.draw.get_state()", "epoch": "run.epoch"}
EPOCHS, STOP = 6, 3


class Run:
    """A run with everything that a training loop has: model, optimizer, scheduler, draw (a generator), epoch.

    >>> run = Run()
    >>> run.go(2)
    >>> run.epoch
    2
    """

    def __init__(self, seed: int = 0) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3)).double()
        named = self.model.named_parameters()
        self.optimizer = ftp.SGDP(named, lr=0.1, momentum=0.9, exclude_set={"3.*"})
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, EPOCHS)
        self.draw = torch.Generator().manual_seed(seed)
        self.epoch = 0

    def go(self, until: int) -> None:
        """Train up to that epoch."""
        while self.epoch < until:
            for _ in range(3):
                x = torch.randn(16, 4, generator=self.draw, dtype=torch.float64)
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.model(x), x[:, :3].argmax(1)).backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()
            self.scheduler.step()
            self.epoch += 1

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        for name in KEPT:
            self.put(name, kept[name])

    def put(self, name: str, part: Any) -> None:
        """Go on from one part of a checkpoint."""
        if name == "epoch":
            self.epoch = part
        elif name == "draw":
            self.draw.set_state(part)
        else:
            getattr(self, name).load_state_dict(part)


def judge(given: Any, run: Run) -> str | None:
    """Right is a checkpoint from which a new process ends with the weights of a run that was never stopped."""
    if not isinstance(given, dict):
        return f"a dict is expected, yours is of type {type(given).__name__}\n  its keys are {', '.join(KEPT)}"
    for key, lost in KEPT.items():
        if key not in given:
            return f"{key!r} is missing: {lost}.\n  the checkpoint must have {', '.join(KEPT)}"
    try:
        fresh = Run(seed=1)
        fresh.restore(_through_a_file(given))
    except Exception as error:
        return f"a new process cannot load it: {_what(given)}.\n  it stopped with {type(error).__name__}"
    if fresh.epoch != run.epoch:
        return f"the epoch is {run.epoch}, yours is {fresh.epoch!r}.\n  keep run.epoch as it is"
    if _ends_well(given):
        return None
    right = define(_SOLUTION, "my_checkpoint")(run)
    off = [key for key in KEPT if _ends_well({**given, key: right[key]})]
    what = f"is {off[0]!r}" if off else "is every part"
    return f"it loads, but the run ends elsewhere.\n  {what} that of `run`, and of this moment?"


def _ends_well(kept: dict[str, Any]) -> bool:
    """Whether a new process ends with the weights and buffers of a run that was never stopped."""
    truth, fresh = Run(), Run(seed=1)
    fresh.restore(_through_a_file(kept))
    for run in (truth, fresh):
        run.go(EPOCHS)
    ends = zip(truth.model.state_dict().values(), fresh.model.state_dict().values(), strict=True)
    return all(torch.equal(*pair) for pair in ends)


def _through_a_file(kept: Any) -> Any:
    file = io.BytesIO()
    torch.save(kept, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def _what(given: dict[str, Any]) -> str:
    """Which part a new process cannot load."""
    for key in ("model", "optimizer", "scheduler"):
        if not isinstance(given[key], dict):
            return f"{key!r} is of type {type(given[key]).__name__}; keep its state_dict()"
        if key == "model" and set(given[key]) != set(Run().model.state_dict()):
            return "'model' has not all weights and buffers; keep its state_dict()"
    if not isinstance(given["draw"], torch.Tensor):
        return "'draw' is not the state of the generator; keep draw.get_state()"
    fresh = Run(seed=1)
    for key, right in KEEP.items():
        try:
            fresh.put(key, _through_a_file(given[key]))
        except Exception:
            return f"{key!r} is not all of its state; keep {right}"
    return f"what is beside {', '.join(KEPT)} does not go through a file; leave it out"


def _stopped() -> Run:
    run = Run()
    run.go(STOP)
    return run


_SOLUTION = """
def my_checkpoint(run):
    parts = {name: getattr(run, name).state_dict() for name in ("model", "optimizer", "scheduler")}
    return {**parts, "draw": run.draw.get_state(), "epoch": run.epoch}
"""


def _code(change: str) -> str:
    """A wrong answer: the solution, with one part changed or left out."""
    right = _SOLUTION.replace("my_checkpoint", "right")
    return f"{right}\ndef my_checkpoint(run):\n    kept = right(run)\n    {change}\n    return kept\n"


EXERCISE = Exercise(
    name="checkpoint",
    lesson="11",
    answer="my_checkpoint",
    missing="a dict with all that a new process needs",
    well_done="The new process ends with the same weights, to the last bit.",
    hints=(
        "everything that changes while a run trains must be kept; go through the attributes of `run`.",
        "model, optimizer and scheduler have state_dict(); a generator has get_state(); the epoch is a number.",
        'return {"model": run.model.state_dict(), ..., "draw": run.draw.get_state(), "epoch": run.epoch}',
    ),
    solution=_SOLUTION,
    questions=(Question(f"a run stopped after epoch {STOP} of {EPOCHS}", (_stopped(),)),),
    judge=judge,
    mistakes=(
        *(Mistake(_code(f'del kept["{key}"]'), f"{key!r} is missing: {lost}.") for key, lost in KEPT.items()),
        Mistake(
            _code('kept["model"] = list(run.model.parameters())'),
            "a new process cannot load it: 'model' is of type list; keep its state_dict().",
        ),
        Mistake(
            _code('kept["model"] = dict(run.model.named_parameters())'),
            "a new process cannot load it: 'model' has not all weights and buffers; keep its state_dict().",
        ),
        Mistake(
            _code('kept["draw"] = run.draw.initial_seed()'),
            "a new process cannot load it: 'draw' is not the state of the generator; keep draw.get_state().",
        ),
        Mistake(
            _code('kept["optimizer"] = {}'),
            "a new process cannot load it: 'optimizer' is not all of its state; keep run.optimizer.state_dict().",
        ),
        Mistake(
            _code('kept["draw"] = kept["draw"][:8]'),
            "a new process cannot load it: 'draw' is not all of its state; keep run.draw.get_state().",
        ),
        Mistake(
            _code('kept["run"] = run'),
            "a new process cannot load it: "
            "what is beside model, optimizer, scheduler, draw, epoch does not go through a file; leave it out.",
        ),
        Mistake(_code('kept["epoch"] = 0'), f"the epoch is {STOP}, yours is 0."),
        Mistake(
            _code('kept["draw"] = torch.Generator().manual_seed(0).get_state()'),
            "it loads, but the run ends elsewhere.",
        ),
        Mistake(_code('kept["scheduler"] = {}'), "it loads, but the run ends elsewhere."),
    ),
    variants=(
        """
def my_checkpoint(run):
    import copy
    kept = {"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict()}
    kept |= {"scheduler": run.scheduler.state_dict(), "draw": run.draw.get_state(), "epoch": run.epoch}
    return copy.deepcopy(kept)
""",
    ),
)
