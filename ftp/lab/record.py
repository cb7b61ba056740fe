"""What a run is: its settings, the events it sends while it trains, and the record that is kept of it.

Plain data without torch: the store writes it, figures draw it, the dashboard's server reads it.
"""

import ast
import functools
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

Value = float | int | str | bool
STATUSES = ("queued", "running", "done", "stopped", "failed", "interrupted")
RUN_ID = re.compile(r"[0-9a-f]{16}")
CORRUPTIONS = ("fog", "defocus_blur", "gaussian_noise", "brightness")  # the paper's four
SEVERITIES = (1, 2, 3, 4, 5)


class LabError(ValueError):
    """Something a person can mend, said in one sentence: the command line and the app show it without a traceback.

    >>> str(LabError("seed is -1; it must be a whole number from 0 on"))
    'seed is -1; it must be a whole number from 0 on'
    """


@dataclass(frozen=True)
class Settings:
    """Everything that decides the outcome of a run. Made by `ftp.lab.settings.resolve`, which checks it.

    `options` holds the method's own settings, such as k of FTP.

    >>> Settings(lr=0.05, options={"k": 1.0}).as_dict()["k"]
    1.0
    """

    world: str = "digits"
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

    `step` is where it begins: 0, or the step of the checkpoint from which it goes on.
    """

    layers: tuple[str, ...]
    provenance: Mapping[str, Any]
    step: int = 0


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


@dataclass(frozen=True)
class EvalEvent:
    """Accuracies in percent at one step. Evaluations on the way are small ones; the last is `final`.

    accuracy: "val", "id" and each shift by its name. corruptions: kind to its five severities, of the final one.
    ece: expected calibration error in percent, by set. lipschitz: see `ftp.lab.evaluate.lipschitz_report`.
    counts: how many images each accuracy stands on.
    """

    step: int
    accuracy: Mapping[str, float]
    corruptions: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    ece: Mapping[str, float] = field(default_factory=dict)
    lipschitz: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    final: bool = False


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

    @property
    def final(self) -> EvalEvent | None:
        """The final evaluation, if the run came so far."""
        return next((e for e in reversed(self.evals) if e.final), None)


def average(values: Mapping[str, float] | list[float] | tuple[float, ...]) -> float:
    """The plain mean; of a mapping, over its values.

    >>> average({"sketch": 70.0, "typeset": 90.0})
    80.0
    """
    numbers = list(values.values()) if isinstance(values, Mapping) else list(values)
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def result_of(record: RunRecord) -> dict[str, Any]:
    """The result of a finished run in the form that `ftp-lab run --json` prints; accuracies in percent.

    ood_avg is the mean over the shifts; corruption_avg over the paper's four kinds and all severities.
    """
    final = record.final
    if final is None:
        raise LabError(f"run {record.run_id} is {record.status} and has no final evaluation; run it to its end first")
    ood = {name: value for name, value in final.accuracy.items() if name not in ("id", "val")}
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
        "id": final.accuracy["id"],
        "val": final.accuracy.get("val"),
        "ood": ood,
        "ood_avg": average(ood),
        "corruptions": {kind: list(values) for kind, values in final.corruptions.items()},
        "corruption_avg": average(four) if four else None,
        "ece": dict(final.ece),
        "lipschitz": dict(final.lipschitz),
        "seconds_per_step": seconds[len(seconds) // 2] if seconds else None,  # the median
        "constraints": {name: gamma for name, gamma in gammas if gamma is not None},
        "provenance": {**record.provenance, "seconds": round(trained, 2)},  # of all steps, evaluation left out
    }


def run_id(settings: Settings, data_version: str) -> str:
    """16 hexadecimal digits from settings, data and code: equal runs have equal ids.

    >>> run_id(Settings(seed=1), "data") == run_id(Settings(seed=1), "data") != run_id(Settings(seed=2), "data")
    True
    """
    text = json.dumps([settings.as_dict(), data_version, code_version()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


DECIDES = (
    "*.py",
    *("lab/train.py", "lab/evaluate.py"),
    *("lab/worlds/*.py", "lab/methods/*.py", "lab/models/*.py", "lab/corruptions/*.py"),
)


@functools.cache
def code_version() -> str:
    """A hash of the code that decides numbers; comments, docstrings and layout do not change it.

    >>> len(code_version())
    12
    """
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted({path for pattern in DECIDES for path in root.glob(pattern)}):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
                first = body[0].value
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    del body[0]
        digest.update(f"{path.relative_to(root).as_posix()}\n{ast.dump(tree)}\n".encode())
    return digest.hexdigest()[:12]


def event_dict(event: StepEvent | EvalEvent) -> dict[str, Any]:
    """An event as plain data for JSON; NaN and infinity become None.

    >>> event_dict(StepEvent(1, math.nan, 0.1, (None,), (0.0,), (None,)))["loss"]
    """
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
