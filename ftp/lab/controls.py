"""Controls: what happens to FTP when one part of its story is taken away.

    for event in fixed_leash(resolve("digits", "finetune", {"lr": 0.05}), gammas):
        ...

`fixed_leash` trains with given leashes, one for each layer, that nobody learns; `untrained` takes the pre-training
away. Both give an ordinary run of `ftp.lab.train`. `train_controls` makes the five controls of the lessons; ten seeds
of each are recorded: `ftp.lab.recordings.controls` says what they are.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib

from ftp.lab.figures.data import kind_of
from ftp.lab.methods import Method, Task, method
from ftp.lab.record import EvalEvent, LabError, Settings, StartEvent, StepEvent
from ftp.lab.recordings import recorded
from ftp.lab.recordings.controls import CONTROLS
from ftp.lab.registry import unknown
from ftp.lab.run import code_of, identify, processes
from ftp.lab.settings import resolve
from ftp.lab.store import write_atomic

if TYPE_CHECKING:
    from ftp.lab.train import FineTuning
# Frozen and shuffled take FTP's own learning rate; zero that of the linear probe, from which it differs only in that
# the statistics of its norms follow the training images. The others are what their names say.
RATE_OF = {"frozen": "ftp", "shuffled": "ftp", "zero": "linear_probe"}


class FixedLeash(Method):
    """SGD, and after each step every layer is projected onto the leash that it was given, Eq. 2."""

    title = "Fixed leashes"
    summary = "Every layer is projected onto a leash of its own given length."

    def __init__(self, task: Task, gammas: Mapping[str, float]) -> None:
        if missing := [name for name in task.anchors if name not in gammas]:
            raise LabError(f"gammas has no leash for {missing[0]}; give one for each of the {len(task.anchors)} layers")
        self.gammas = gammas
        self.pulled: dict[str, float] = {}
        super().__init__(task)

    def after_step(self, step: int) -> None:
        import torch

        from ftp.projection import project_mars, row_l1

        with torch.no_grad():
            for name, param, anchor in self.anchored():
                self.pulled[name] = float((row_l1(param - anchor) > self.gammas[name]).float().mean())
                param.copy_(project_mars(param, anchor, self.gammas[name]))

    def report(self) -> dict[str, tuple[float, float]]:
        return {name: (self.gammas[name], share) for name, share in self.pulled.items()}


def fixed_leash(settings: Settings, gammas: Mapping[str, float], **how: Any) -> FineTuning:
    """A run whose leashes have these lengths from the first step to the last.

    >>> settings = resolve("digits", "finetune", {"steps": 2, "batch": 8})
    >>> names = fixed_leash(settings, dict.fromkeys(layer_names(), 0.5)).task.anchors
    >>> len(names)
    45
    """
    from ftp.lab.train import finetune

    run = finetune(settings, **how)
    run.method = FixedLeash(run.task, gammas)
    return run


def untrained(settings: Settings, **how: Any) -> FineTuning:
    """The same run from random weights: the post to which the leash is tied means nothing."""
    import torch

    from ftp.lab.train import finetune

    run = finetune(settings, **how)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        for module in run.model.modules():
            reset: Any = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()
    run.pretrained = copy.deepcopy(run.model).eval()
    anchors = {name: p.detach() for name, p in run.pretrained.named_parameters() if name in run.task.anchors}
    run.task = replace(run.task, anchors=anchors)
    run.method = method(settings.method)(run.task)
    return run


def layer_names(world: str | None = None) -> list[str]:
    """The layers of a world's model that have an anchor, early ones first.

    >>> layer_names()[0], len(layer_names())
    ('stem.weight', 45)
    """
    from ftp.anchors import matched
    from ftp.lab import worlds

    opened = worlds.load(world or worlds.default())
    names = [name for name, _ in opened.model(0).named_parameters()]
    new = {name for pattern in opened.unanchored for name in matched(pattern, names)}
    return [name for name in names if name not in new]


def shuffled(gammas: Mapping[str, float], seed: int, within_kind: bool = True) -> dict[str, float]:
    """The same lengths, given to the wrong layers: by chance, and no layer keeps its own.

    within_kind: weights get those of weights, gains those of gains, biases those of biases.

    >>> shuffled({"a.weight": 1.0, "b.weight": 2.0, "a.bias": 3.0, "b.bias": 4.0}, seed=0)
    {'a.weight': 2.0, 'b.weight': 1.0, 'a.bias': 4.0, 'b.bias': 3.0}
    """
    draw = random.Random(seed)
    gammas_by_layer = dict(gammas)
    kinds = {kind_of(name) for name in gammas} if within_kind else {""}
    for kind in sorted(kinds):
        names = [name for name in gammas if not within_kind or kind_of(name) == kind]
        if len(names) < 2:
            raise LabError(f"there is one layer of {kind or 'any kind'} only, so its leash has nowhere to go")
        order = list(names)
        while any(a == b for a, b in zip(names, order, strict=True)):  # about one order in three keeps nobody
            draw.shuffle(order)
        gammas_by_layer |= {name: gammas[other] for name, other in zip(names, order, strict=True)}
    return gammas_by_layer


def control_settings(
    name: str, seed: int, changes: Mapping[str, Any] | None = None, world: str | None = None
) -> Settings:
    """With what a control is trained, but for these changes.

    >>> control_settings("zero", 0).lr == resolve("digits", "linear_probe").lr
    True
    """
    if name in RATE_OF:
        lr = resolve(world, RATE_OF[name]).lr
        return resolve(world, "finetune", {"lr": lr, **(changes or {}), "seed": seed})
    return resolve(world, name.removeprefix("untrained_"), {**(changes or {}), "seed": seed})


def train_controls(
    names: Iterable[str],
    folder: Path,
    seeds: Iterable[int],
    changes: Mapping[str, Any] | None = None,
    device: str = "auto",
    world: str | None = None,
) -> Iterator[Any]:
    """Train controls on the leashes of FTP's runs that `recorded` gives; yields each as plain data when it is there.

    folder: keeps a small file for each finished one, which is not trained again.
    """
    names = tuple(names)
    if wrong := [name for name in names if name not in CONTROLS]:
        raise LabError(unknown("control", wrong[0], CONTROLS))
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for seed in seeds:
        [learned] = recorded(world, "ftp", seed)
        assert learned.result is not None
        for name in names:
            settings = control_settings(name, seed, changes, world)
            key = hashlib.sha256(f"{identify(settings)} {learned.run_id}".encode()).hexdigest()[:12]
            path = folder / f"{name}-{seed}-{key}.json"
            jobs.append(joblib.delayed(_outcome)(name, settings, learned.result["constraints"], path, device))
    yield from processes(min(os.cpu_count() or 1, len(jobs)))(jobs)


def _outcome(name: str, settings: Settings, gammas: Mapping[str, float], path: Path, device: str) -> dict[str, Any]:
    """Train once, unless it is there, and keep what the lessons read."""
    import torch

    if path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    torch.set_num_threads(1)
    seed, how = settings.seed, {"watches": 0, "kinds": (), "device": device}
    if name in RATE_OF:
        fixed = {"frozen": gammas, "shuffled": shuffled(gammas, seed), "zero": dict.fromkeys(gammas, 0.0)}[name]
        run = fixed_leash(settings, fixed, **how)
    else:
        run = untrained(settings, **how)
    start, *events = run
    assert isinstance(start, StartEvent)
    last = [event for event in events if isinstance(event, StepEvent)][-1]
    final = events[-1]
    assert isinstance(final, EvalEvent)
    assert final.final
    scores = {split: round(value, 4) for split, value in final.main.items()}
    moved = {layer: float(f"{far:.4g}") for layer, far in zip(start.layers, last.distance, strict=True)}
    gamma = {layer: float(f"{g:.4g}") for layer, g in zip(start.layers, last.gamma, strict=True) if g is not None}
    provenance = {"code": code_of(settings), "torch": torch.__version__}
    outcome = {"control": name, "seed": seed, "scores": scores, "gamma": gamma, "distance": moved, "made": provenance}
    write_atomic(path, json.dumps(outcome).encode())
    return outcome
