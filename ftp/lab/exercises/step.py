"""Lesson 05: what happens to one layer after SGD has moved it (Alg. 1). The truth is a loop over plain numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Failed, Mistake, Question, Unanswered, define, numbers, perhaps, show

EPS = 1e-8
CLOSE = 1e-4  # with or without the 1e-8 beside a length is the same, and 200 steps let that grow


class Layer:
    """What is kept of one layer from step to step. It begins at its anchor, with the shortest leash.

    >>> sorted(vars(Layer(torch.ones(2, 3))))
    ['anchor', 'deviation', 'gamma', 'm', 't', 'v']
    """

    def __init__(self, weight: Tensor) -> None:
        self.anchor = weight.detach().clone()  # W0
        self.deviation = torch.zeros_like(self.anchor)  # W~ - W0 of the step before
        self.gamma = self.anchor.new_tensor(EPS)
        self.m = self.anchor.new_tensor(0.0)  # Adam's two moments of gamma
        self.v = self.anchor.new_tensor(0.0)
        self.t = 0  # steps so far


@dataclass(frozen=True)
class Played:
    """A judge of functions that keep a state or refuse: each scene plays them and makes numbers of what they did.

    play: (answer, *arguments of the scene) -> numbers. truth: the same without an answer. differs: (given,
    expected, *arguments) -> a sentence or None. A known mistake is the one that plays every scene as the answer does.
    """

    answer: str
    scenes: tuple[Question, ...]
    play: Callable[..., Tensor]
    truth: Callable[..., Tensor]
    differs: Callable[..., str | None]
    mistakes: tuple[Mistake, ...]

    def __call__(self, given: Any) -> str | None:
        if not callable(given):
            raise Failed(f"a function is expected, yours is of type {type(given).__name__}; write {self.answer}")
        for at, scene in enumerate(self.scenes):
            reply = self.reply(given, scene)
            expected = self.truth(*scene.arguments)
            problem = reply if isinstance(reply, str) else self.differs(reply, expected, *scene.arguments)
            if problem is not None:
                return self.explain(given, at, problem)
        return None

    def reply(self, given: Any, scene: Question) -> Tensor | str:
        try:
            return self.play(given, *scene.arguments)
        except NotImplementedError as stub:
            raise Unanswered(str(stub)) from None
        except Failed as failure:
            return str(failure)
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            return f"your code stopped with {type(error).__name__}: {reason}"

    def explain(self, given: Any, at: int, problem: str) -> str:
        """Two lines: the likely mistake, or else the problem itself, and where it was seen."""
        replies = [self.reply(given, scene) for scene in self.scenes]
        seen = self.scenes[at].text
        for everywhere in (True, False):
            fits = []
            for mistake in self.mistakes:
                known = define(mistake.code, self.answer)
                places = range(len(replies)) if everywhere else (at,)
                if all(_alike(replies[i], self.reply(known, self.scenes[i])) for i in places):
                    fits.append(mistake)
            if fits and (everywhere or len(fits) == 1):
                says = fits[0].says if everywhere else perhaps(fits[0].says)
                return f"{says}\n  {seen}: {problem}"
        return f"{problem}\n  seen here: {seen}"


def _alike(left: Tensor | str, right: Tensor | str) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and isinstance(right, str) and left == right
    return left.shape == right.shape and torch.allclose(left, right, rtol=CLOSE, atol=EPS, equal_nan=True)


def follow(my_step: Any, start: Tensor, grads: list[Tensor], lr: float, k: float) -> Tensor:
    """Walk one layer with plain SGD and an answer; a row for each step: gamma, then the weights.

    >>> follow(define(EXERCISE.solution, "my_step"), torch.zeros(1, 2), [torch.ones(1, 2)], 0.1, 1.0).shape
    torch.Size([1, 3])
    """
    layer, weight, rows = Layer(start), start.clone(), []
    for grad in grads:
        weight = my_step(weight - lr * grad, grad.clone(), layer, k)
        if weight is None:
            raise Failed("your function returned None; is a `return` missing?")
        if weight is NotImplemented or weight is ...:
            raise NotImplementedError
        weight = numbers(weight)
        if weight.shape != start.shape:
            raise Failed(f"the weights must keep their shape {tuple(start.shape)}, yours are {tuple(weight.shape)}")
        rows.append(torch.cat([numbers(layer.gamma).reshape(1), weight.flatten()]))
    return torch.stack(rows)


def number_by_number(start: Tensor, grads: list[Tensor], lr: float, k: float) -> Tensor:
    """Alg. 1 and 2 for one matrix, in plain Python numbers.

    >>> number_by_number(torch.zeros(1, 2), [torch.ones(1, 2)], 0.1, 1.0)[0, 0].item()
    1e-08
    """
    anchor, weight = start.tolist(), start.tolist()
    way, gamma, m, v, rows = [[0.0] * len(row) for row in anchor], EPS, 0.0, 0.0, []
    for t, grad in enumerate((g.tolist() for g in grads), 1):
        slope = 0.0
        for i, row in enumerate(way):
            slope += sum(g * d for g, d in zip(grad[i], row, strict=True)) / (sum(map(abs, row)) + EPS)
        slope *= k if slope > 0 else 1
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        gamma -= 0.01 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + EPS)
        way = [
            [w - lr * g - a for w, g, a in zip(*three, strict=True)] for three in zip(weight, grad, anchor, strict=True)
        ]
        lengths = [sum(map(abs, row)) + EPS for row in way]
        gamma = max(EPS, min(gamma, max(lengths)))
        shares = [min(1.0, gamma / length) for length in lengths]
        weight = [[a + s * d for a, d in zip(*pair, strict=True)] for s, *pair in zip(shares, anchor, way, strict=True)]
        rows.append([gamma, *(w for row in weight for w in row)])
    return torch.tensor(rows, dtype=torch.float64)


def _differs(given: Tensor, expected: Tensor, *_: Any) -> str | None:
    far = ~torch.isclose(given, expected, rtol=CLOSE, atol=2 * EPS)
    if not far.any():
        return None
    step = int(far.any(1).nonzero()[0, 0])
    if far[step, 0]:
        return f"γ after step {step + 1} is {show(expected[step, 0])}, yours is {show(given[step, 0])}"
    column = int(far[step].nonzero()[0, 0])
    right, yours = show(expected[step, column]), show(given[step, column])
    return f"γ is right, but after step {step + 1} a weight is {right}, yours is {yours}"


def _scenes() -> tuple[Question, ...]:
    random = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def steady(shape: tuple[int, int], count: int) -> list[Tensor]:
        ahead = draw(*shape)
        return [ahead + 0.5 * draw(*shape) for _ in range(count)]

    one, two = torch.tensor([[1.0, -2.0]]).double(), torch.tensor([[1.0, 1.0], [0.5, 0.0]]).double()
    there_and_back = [g if n < 6 else -g for n, g in enumerate(steady((3, 4), 14))]
    return (
        Question("the first step of one row", (one, [torch.tensor([[1.0, 1.0]]).double()], 0.1, 1.0)),
        Question("two steps of two rows", (two, [two, two], 0.1, 1.0)),
        Question("six steps of a layer, short strides", (draw(3, 4), steady((3, 4), 6), 0.001, 1.0)),
        Question("six steps of a layer, long strides", (draw(3, 4), steady((3, 4), 6), 0.1, 1.0)),
        Question("there and back, κ = 0.3", (draw(3, 4), there_and_back, 0.05, 0.3)),
        Question("200 steps in all directions", (draw(3, 4), [draw(3, 4) for _ in range(200)], 0.02, 0.7)),
    )


SOLUTION = """
def my_step(unconstrained, grad, layer, k):
    from ftp.constraint import adam_update, anneal, clip, gamma_grad

    layer.t += 1
    slope = anneal(gamma_grad(grad, layer.deviation), k)  # Eq. 4, 5
    layer.gamma, layer.m, layer.v = adam_update(layer.gamma, slope, layer.m, layer.v, layer.t)  # Alg. 2
    layer.deviation = unconstrained - layer.anchor
    layer.gamma = clip(layer.gamma, ftp.mars_norm(layer.deviation))
    return ftp.project_mars(unconstrained, layer.anchor, layer.gamma)  # Eq. 2, 10
"""
_COUNT, _SLOPE, _ADAM, _WAY, _CLIP, _PULL = (line.strip() + "\n" for line in SOLUTION.strip().splitlines()[3:])
_PULLED = _PULL.replace("return", "pulled =")
_FORGOTTEN = _CLIP.replace("layer.gamma", "gamma") + _PULL.replace("layer.gamma", "gamma")

_BARE = (  # a projection as in lesson 03, without the 1e-8
    "lengths = layer.deviation.abs().sum(1, keepdim=True)\n"
    "return layer.anchor + layer.deviation * (layer.gamma / lengths).clamp(max=1)"
)


def _but(*changes: tuple[str, str]) -> str:
    """The solution with some lines changed, or gone."""
    code = SOLUTION
    for line, instead in changes:
        code = code.replace(line, instead.rstrip("\n").replace("\n", "\n    ") + "\n")
    return code


TURNED = "the slope has the other sign, so γ shrinks where it should grow; take gamma_grad as it is, along W~ - W0."
MOVED = "you moved layer.anchor with the weights; the post stands still: the anchor is W0 in every step."
UNTIED = "you kept W~ itself as the deviation; the way from the anchor is wanted: unconstrained - layer.anchor."
MISTAKES = (
    Mistake(
        _but((_COUNT, _COUNT + _PULLED), (_PULL, "return pulled")),
        "you pulled with the leash of the step before; learn γ first, then project.",
    ),
    Mistake(
        _but((_WAY, ""), (_COUNT, _COUNT + _WAY)),
        "you took the slope along the new deviation; Eq. 4 wants the one of the step before, so keep it until then.",
    ),
    Mistake(
        _but((_CLIP, _CLIP.replace("layer.deviation", "unconstrained - layer.anchor")), (_WAY, "")),
        "layer.deviation is never filled, so the slope is always 0 and γ never grows; keep W~ - W0 for the next step.",
    ),
    Mistake(
        _but((_PULL, _PULLED + "layer.deviation = pulled - layer.anchor\nreturn pulled")),
        "you kept the deviation after the projection; Eq. 4 uses W~, where SGD wanted to go.",
    ),
    Mistake(_but((_CLIP, "")), "γ ran past the farthest row; clip it to what the rows need."),
    Mistake(
        _but((_CLIP, ""), (_WAY, _CLIP + _WAY)),
        "you clipped γ with the rows of the step before; first take the new deviation, then clip.",
    ),
    Mistake(_but((_COUNT, "")), "layer.t is never counted up, so Adam divides by 0; begin with layer.t += 1."),
    Mistake(
        _but((_ADAM, _ADAM.replace("layer.m, layer.v =", "_, _ ="))),
        "Adam's moments are not kept; write the new m and v back into the layer.",
    ),
    Mistake(
        _but((_ADAM, _ADAM.replace("layer.gamma, layer.m,", "gamma, layer.m,")), (_CLIP, ""), (_PULL, _FORGOTTEN)),
        "the new γ is not kept; write it back into the layer.",
    ),
    Mistake(
        _but((_SLOPE, "slope = gamma_grad(grad, layer.deviation)")),
        "κ is not used; a slope that would shorten the leash counts only κ times (Eq. 5, anneal).",
    ),
    Mistake(
        _but((_ADAM, _ADAM.replace("layer.t)", 'layer.t, count="updates")'))),
        "your t counts updates of γ; here, as in the released code, it counts steps: the first move is 0.744 μ.",
    ),
    Mistake(
        _but((_PULL, "return ftp.project_mars(unconstrained, 0 * layer.anchor, layer.gamma)")),
        "you pulled towards zero; the rows are tied to layer.anchor.",
    ),
    Mistake(_but((_PULL, _PULLED + "layer.anchor = pulled\nreturn pulled")), MOVED),
    Mistake(_but((_PULL, _PULLED + "layer.anchor = unconstrained\nreturn pulled")), MOVED),
    Mistake(_but((_SLOPE, _SLOPE.replace("(gamma_grad", "(-gamma_grad"))), TURNED),
    Mistake(_but((_SLOPE, _SLOPE.replace("anneal(", "-anneal("))), TURNED),
    Mistake(_but((_WAY, "layer.deviation = unconstrained")), UNTIED),
    Mistake(
        _but(
            (_WAY, "layer.deviation = unconstrained"),
            (_CLIP, _CLIP.replace("layer.deviation", "unconstrained - layer.anchor")),
        ),
        UNTIED,
    ),
    Mistake(
        _but((_CLIP, ""), (_PULL, _PULLED + _CLIP + "return pulled")),
        "you clipped γ after the projection; a γ below 0 has then thrown the rows past their anchor: clip first.",
    ),
    Mistake(
        _but((_PULL, "return unconstrained")),
        "γ is right, but nothing is pulled back; end with the projection (Eq. 2).",
    ),
)

EXERCISE = Exercise(
    name="step",
    lesson="05",
    answer="my_step",
    missing="the leash of one layer: learn γ, clip it, pull the rows back",
    well_done="Six lines after SGD, and 200 steps later every weight is where a loop over plain numbers has it.",
    hints=(
        "first the leash learns from what the step before tried, then it pulls this step back.",
        "count t; slope along the old deviation (gamma_grad, anneal); adam_update; new deviation; clip; project_mars.",
        "clip takes γ and ftp.mars_norm of the new deviation; write γ, m, v and the deviation back into the layer.",
    ),
    solution=SOLUTION,
    questions=(Question(""),),
    judge=Played("my_step", _scenes(), follow, number_by_number, _differs, MISTAKES),
    mistakes=MISTAKES,
    variants=(
        """
def my_step(unconstrained, grad, layer, k):
    layer.t += 1
    way = unconstrained - layer.anchor
    if layer.t > 1:
        norms = layer.deviation.abs().sum(1, keepdim=True) + 1e-8
        slope = (grad * layer.deviation / norms).sum()
        slope = k * slope if slope > 0 else slope
        layer.m = 0.9 * layer.m + 0.1 * slope
        layer.v = 0.999 * layer.v + 0.001 * slope ** 2
        m, v = layer.m / (1 - 0.9 ** layer.t), layer.v / (1 - 0.999 ** layer.t)
        layer.gamma = layer.gamma - 0.01 * m / (v ** 0.5 + 1e-8)
        layer.gamma = min(layer.gamma, way.abs().sum(1).max() + 1e-8)
        layer.gamma = max(layer.gamma, torch.tensor(1e-8))
    layer.deviation = way
    return layer.anchor + way * (layer.gamma / (way.abs().sum(1, keepdim=True) + 1e-8)).clamp(max=1)
""",
        _but((_PULL, _BARE)),
        _but((_CLIP, "layer.gamma = layer.gamma.clamp(min=1e-8).minimum(ftp.mars_norm(layer.deviation))")),
    ),
    takes="value",
)
