"""What a run is: its settings, the events it sends while it trains, and the record that is kept of it.

Plain data without torch: the store writes it, figures draw it, the dashboard's server reads it.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from ftp.lab.summary import Measures, Scores, Summary, average, summarise

Value = float | int | str | bool
STATUSES = ("queued", "running", "done", "stopped", "failed", "interrupted")
RUN_ID = re.compile(r"[0-9a-f]{16}")
CORRUPTIONS = ("fog", "defocus_blur", "gaussian_noise", "brightness")  # the paper's four
SEVERITIES = (1, 2, 3, 4, 5)
NOTHING = Measures()  # of a run that has not begun


class LabError(ValueError):
    """Something a person can mend, said in one sentence: the command line and the app show it without a traceback."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides the outcome of a run. Made by `ftp.lab.settings.resolve`, which checks it.

    `options` holds what the world and the method have of their own, such as k of FTP.

    >>> Settings(lr=0.05, options={"k": 1.0}).as_dict()["k"]
    1.0
    """

    world: str = ""
    method: str = "ftp"
    seed: int = 0
    labels: float = 1.0  # the share of the training labels that is used
    steps: int = 300
    batch: int = 64
    optimizer: str = "sgd"  # or "adamw"
    lr: float = 0.05
    momentum: float = 0.9  # of sgd
    weight_decay: float = 5e-4
    options: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    def __hash__(self) -> int:
        return hash(json.dumps(self.as_dict(), sort_keys=True))

    def __reduce__(self) -> Any:  # a mapping proxy cannot be sent to another process
        return _settings, ({**self.common(), "options": dict(self.options)},)

    def common(self) -> dict[str, Value]:
        """The settings that every method has, in the order in which they are shown."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "options"}

    def as_dict(self) -> dict[str, Value]:
        """All settings, flat, as `--set name=value` names them."""
        return {**self.common(), **self.options}


def _settings(values: dict[str, Any]) -> Settings:
    return Settings(**values)


def settings_from_dict(values: Mapping[str, Value]) -> Settings:
    """Settings from their flat form, without any check: what the store holds was checked before.

    >>> settings_from_dict({"lr": 0.1, "k": 0.5}).options["k"]
    0.5
    """
    names = set(Settings.__dataclass_fields__) - {"options"}
    common = {name: value for name, value in values.items() if name in names}
    options = {name: value for name, value in values.items() if name not in names}
    return Settings(**common, options=options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class StartEvent:
    """The first event: which tensors are watched (early layers first), and where and with what the run is made.

    `step` is where it begins: 0, or the step of the checkpoint from which it goes on. `phases` are the names of its
    parts, one for most runs; `measures` says what its scores mean.
    """

    layers: tuple[str, ...]
    provenance: Mapping[str, Any]
    step: int = 0
    measures: Measures = NOTHING
    phases: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class StepEvent:
    """One training step. The lists have one value for each layer of `StartEvent.layers`.

    gamma and boundary are None for a layer without a constraint. A distance is the MARS norm of W - W0.
    """

    step: int  # counted from 1
    loss: float
    lr: float
    gamma: tuple[float | None, ...]
    distance: tuple[float, ...]
    boundary: tuple[float | None, ...]  # share of the rows that were pulled back, 0 to 1
    seconds: float = 0.0  # of this step alone, logging and evaluation left out
    phase: int = 0


@dataclass(frozen=True)
class EvalEvent:
    """The scores at one step. Evaluations on the way are small ones; the last is `final`, the end of a phase `whole`.

    scores: metric to split to value, the world's main metric first. corruptions: kind to the main metric at its five
    severities, of the final one. lipschitz: see `ftp.lab.evaluate.lipschitz_report`. counts: how many images each
    score stands on. answers: split to what the network says of its first pictures, as numbers of classes; maps: the
    same for a dense world, in colours; see `ftp.lab.answers`. Neither is there without classes or maps, nor in runs
    from before they were kept.

    >>> EvalEvent(1, {"accuracy": {"id": 90.0}, "ece": {"id": 3.0}}).main
    {'id': 90.0}
    """

    step: int
    scores: Scores
    corruptions: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    lipschitz: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    final: bool = False
    phase: int = 0
    whole: bool = False  # on all images of the sets, not on the first few
    answers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    maps: Mapping[str, str] = field(default_factory=dict)

    @property
    def main(self) -> Mapping[str, float]:
        """The scores in the world's main metric, by split."""
        return next(iter(self.scores.values()), {})


Event = StartEvent | StepEvent | EvalEvent


@dataclass(frozen=True)
class RunRecord:
    """All that is known of one run, as `Store.load` returns it and as figures take it."""

    run_id: str
    settings: Settings
    status: str = "queued"
    layers: tuple[str, ...] = ()
    points: tuple[StepEvent, ...] = ()
    evals: tuple[EvalEvent, ...] = ()
    result: Mapping[str, Any] | None = None  # what `run --json` prints; None until the run is done
    provenance: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""  # the person's own name for it: text, never a path
    error: str = ""
    created: float = 0.0  # seconds since 1970, as the next three
    started: float | None = None
    ended: float | None = None
    heartbeat: float | None = None
    measures: Measures = NOTHING
    phases: tuple[str, ...] = ("",)

    def summary(self, event: EvalEvent | None = None) -> Summary:
        """What an evaluation of this run amounts to: the final one, or the one given."""
        event = event or self.final
        return summarise(event.scores if event else {}, self.measures)

    @property
    def final(self) -> EvalEvent | None:
        """The final evaluation, if the run came so far."""
        return next((e for e in reversed(self.evals) if e.final), None)


def result_of(record: RunRecord) -> dict[str, Any]:
    """The result of a finished run in the form that `ftp-lab run --json` prints.

    id, val, ood (by shift) and their mean ood_avg are in the world's main metric, as are the corruptions;
    corruption_avg is the mean over the paper's four kinds and all severities. A world without shifts has no ood_avg.
    `scores` has every metric of every split.
    """
    final = record.final
    if final is None:
        raise LabError(f"run {record.run_id} is {record.status} and has no final evaluation; run it to its end first")
    summary, metric = record.summary(), record.measures.main
    seconds = sorted(point.seconds for point in record.points if point.seconds > 0)
    last = record.points[-1] if record.points else None
    gammas = zip(record.layers, last.gamma, strict=True) if last else ()
    reached = zip((0, *(point.step for point in record.points)), record.points, strict=False)
    trained = sum((point.step - before) * point.seconds for before, point in reached)
    four = [v for kind in CORRUPTIONS for v in final.corruptions.get(kind, ())]
    return {
        "run_id": record.run_id,
        "world": record.settings.world,
        "method": record.settings.method,
        "seed": record.settings.seed,
        "settings": record.settings.as_dict(),
        "metric": {"name": metric.name, "unit": metric.unit, "higher_is_better": metric.higher_is_better},
        "id": summary.home,
        "val": summary.val if math.isfinite(summary.val) else None,
        "ood": dict(summary.shifts),
        "ood_avg": summary.shift_mean if summary.shifts else None,
        "corruptions": {kind: list(values) for kind, values in final.corruptions.items()},
        "corruption_avg": average(four) if four else None,
        "scores": {name: dict(values) for name, values in final.scores.items()},
        "lipschitz": dict(final.lipschitz),
        "seconds_per_step": seconds[len(seconds) // 2] if seconds else None,  # the median
        "constraints": {name: gamma for name, gamma in gammas if gamma is not None},
        "provenance": {**record.provenance, "seconds": round(trained, 2)},  # of all steps, evaluation left out
    }


def run_id(settings: Settings | Mapping[str, Value], data_version: str, code: str) -> str:
    """16 hexadecimal digits from the settings that decide, data and code: equal runs have equal ids.

    >>> a, b, c = (run_id(Settings(seed=seed), "data", "code") for seed in (1, 1, 2))
    >>> a == b, a == c, len(a)
    (True, False, 16)
    """
    values = settings.as_dict() if isinstance(settings, Settings) else dict(settings)
    text = json.dumps([values, data_version, code], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def event_dict(event: StepEvent | EvalEvent) -> dict[str, Any]:
    """An event as plain data for JSON; NaN and infinity become None."""
    return finite(asdict(event))  # type: ignore[no-any-return]


def finite(value: Any) -> Any:
    """The same data with NaN and infinity as None: JSON has neither."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        isfinite = math.isfinite  # most are floats in long lists: those without a call each
        return [x if type(x) is float and isfinite(x) else finite(x) for x in value]
    return value
