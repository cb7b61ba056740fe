"""Lesson 05: a run that was stopped goes on as if it never had been. The truth is the same run without the stop."""

import copy
from typing import Any

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Failed, Mistake, Question, define, numbers, show
from ftp.lab.exercises.step import EXERCISE as STEP
from ftp.lab.exercises.step import Layer, Played

step = define(STEP.solution, STEP.answer)
LR = 0.05


def play(my_resume: Any, start: dict[str, Tensor], grads: list[dict[str, Tensor]], stop: int, again: str) -> Tensor:
    """Walk all layers, stop, resume in a new process, walk on; a row for each step after the stop.

    again: the order in which the new process has its layers. The old run goes on too, and writes into its own tensors.
    """
    weights, layers, rows = dict(start), {name: Layer(weight) for name, weight in start.items()}, []
    for t, grad in enumerate(grads):
        if t == stop and my_resume is not None:
            saved = copy.deepcopy(layers)
            layers = {name: Layer(weights[name]) for name in again.split()}
            my_resume(layers, saved)
            _go_on(saved)
        for name in start:
            weights[name] = step(weights[name] - LR * grad[name], grad[name], layers[name], 0.5)
        if t >= stop:
            rows.append(torch.cat([_flat(layers[name], weights[name]) for name in start]))
    return torch.stack(rows)


def uninterrupted(start: dict[str, Tensor], grads: list[dict[str, Tensor]], stop: int, again: str) -> Tensor:
    """The same walk without a stop."""
    return play(None, start, grads, stop, again)


def _go_on(saved: dict[str, Layer]) -> None:
    for layer in saved.values():
        for value in vars(layer).values():
            if isinstance(value, Tensor):
                value.fill_(float("nan"))


def _flat(layer: Layer, weight: Tensor) -> Tensor:
    parts = [numbers(layer.gamma).reshape(1), numbers(weight).flatten()]
    return torch.cat(parts)


def differs(given: Tensor, expected: Tensor, start: dict[str, Tensor], *_: Any) -> str | None:
    """One sentence on the first layer and step that are not as they would have been."""
    far = ~torch.isclose(given, expected, rtol=1e-7, atol=1e-10)
    if not far.any():
        return None
    at = int(far.any(1).nonzero()[0, 0])
    column = int(far[at].nonzero()[0, 0])
    for name, weight in start.items():
        if column < weight.numel() + 1:
            what = "a weight" if column else "γ"
            right, yours = (show(rows[at, far[at]][:1].squeeze()) for rows in (expected, given))
            return f"without the stop, {what} of {name} would be {right} at step {at + 1} after it, yours is {yours}"
        column -= weight.numel() + 1
    raise Failed("the numbers of the layers do not fit")


def _scenes() -> tuple[Question, ...]:
    random = torch.Generator().manual_seed(6)

    def draw() -> Tensor:
        return torch.randn(2, 3, generator=random, dtype=torch.float64)

    def scene(text: str, names: str, steps: int, stop: int, again: str) -> Question:
        start, ahead = ({name: draw() for name in names.split()} for _ in range(2))
        grads = [{name: ahead[name] + 0.4 * draw() for name in start} for _ in range(steps)]
        return Question(text, (start, grads, stop, again))

    return (
        scene("one layer, stopped after 4 steps", "body", 8, 4, "body"),
        scene("two layers, stopped after 6 steps", "first second", 12, 6, "first second"),
        scene("two layers, listed the other way round", "first second", 12, 6, "second first"),
    )


def _code(*lines: str) -> str:
    return "\n".join(["def my_resume(layers, saved):", *(f"    {line}" for line in lines)])


def _without(*keys: str, copied: bool = True) -> str:
    kept = "value.clone() if isinstance(value, torch.Tensor) else value" if copied else "value"
    return _code(
        "for name, layer in layers.items():",
        "    for key, value in vars(saved[name]).items():",
        f"        if key not in {keys!r}:",
        f"            setattr(layer, key, {kept})",
    )


REST = ("anchor", "deviation", "m", "v", "t")
GAMMA_ALONE = "only γ is restored; a layer also needs its anchor, its deviation and Adam's m, v and t."
UNTIED = (
    "γ and Adam's memory are restored, but neither the anchor nor the deviation: the leash is tied to where the run "
    "stopped, and the first slope is 0."
)


NOTHING = "the layers are as new, so the next step pulls every row back; fill the very layers that you were given."
MISTAKES = (
    Mistake(_code("pass"), NOTHING),
    Mistake(_code("layers = {name: layer for name, layer in saved.items()}"), NOTHING),
    Mistake("import copy\n" + _code("return copy.deepcopy(saved)"), NOTHING),
    Mistake(
        _without("anchor"),
        "the anchor is not restored, so the leash is now tied to where the run stopped, not to W0.",
    ),
    Mistake(
        _without("deviation"),
        "the deviation is not restored, so the first slope after the resume is 0; Eq. 4 needs the step before.",
    ),
    Mistake(_without("m", "v"), "Adam's moments are not restored, so γ loses its momentum."),
    Mistake(_without("t"), "the count t is not restored, so Adam corrects its moments as if they had just begun."),
    Mistake(_without("m", "v", "t"), "γ is there, but Adam's memory of it (m, v, t) is not."),
    Mistake(_without("gamma"), "γ is not restored, so a new leash, 1e-8 long, pulls every row back to its anchor."),
    *(Mistake(_without(*REST, copied=copied), GAMMA_ALONE) for copied in (True, False)),
    *(Mistake(_without("anchor", "deviation", copied=copied), UNTIED) for copied in (True, False)),
    Mistake(
        _without("anchor", "m", "v", "t"),
        "γ and the deviation are restored, but neither the anchor nor Adam's memory (m, v, t).",
    ),
    Mistake(
        _without("deviation", "m", "v", "t"),
        "γ and the anchor are restored, but neither the deviation nor Adam's memory (m, v, t).",
    ),
    Mistake(
        _code("for name, layer in layers.items():", "    vars(layer).update(vars(saved[name]))"),
        "the layers share their tensors with what was saved, so the old run writes into the new one; copy them.",
    ),
    Mistake(
        _code(
            "for layer, old in zip(layers.values(), saved.values()):",
            "    for key, value in vars(old).items():",
            "        setattr(layer, key, value.clone() if isinstance(value, torch.Tensor) else value)",
        ),
        "you paired the layers by their position; the new process may list them in another order, so use their names.",
    ),
)

EXERCISE = Exercise(
    name="resume",
    lesson="05",
    answer="my_resume",
    missing="every layer filled with what was saved under its name",
    well_done="The run goes on as if it had never been stopped, in whatever order the layers come.",
    hints=(
        "what does my_step read from a layer? All of it must come back, or the next step goes elsewhere.",
        "vars(layer) is a dict of everything that a layer keeps; find its partner by name, not by position.",
        "for each key and value of vars(saved[name]): setattr(layer, key, copy.deepcopy(value)).",
    ),
    solution="""
def my_resume(layers, saved):
    import copy

    for name, layer in layers.items():
        for key, value in vars(saved[name]).items():
            setattr(layer, key, copy.deepcopy(value))
""",
    questions=(Question(""),),
    judge=Played("my_resume", _scenes(), play, uninterrupted, differs, MISTAKES),
    mistakes=MISTAKES,
    variants=(
        "import copy\n" + _code("layers.update(copy.deepcopy(saved))"),
        _without("nothing"),
        _code(
            "for name in saved:",
            "    old, layer = saved[name], layers[name]",
            "    layer.anchor, layer.deviation = old.anchor.clone(), old.deviation.clone()",
            "    layer.gamma, layer.m, layer.v, layer.t = old.gamma * 1, old.m * 1, old.v * 1, old.t",
        ),
    ),
    takes="value",
)
