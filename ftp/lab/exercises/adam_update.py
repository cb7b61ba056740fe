"""Lesson 04b: one Adam step on the leash, Alg. 2. The truth sums up what the moments have seen, in plain numbers."""

import math

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals

MU, BETA1, BETA2, EPS = 0.01, 0.9, 0.999, 1e-8


def line_by_line(gamma: Tensor, grad: Tensor, m: Tensor, v: Tensor, t: int) -> list[float]:
    """Alg. 2, line by line: the new γ, m and v.

    >>> [round(x, 5) for x in line_by_line(*torch.tensor([1.0, -1.0, 0.0, 0.0]), 2)]
    [1.00744, -0.1, 0.001]
    """
    slope = float(grad)
    first = BETA1 * float(m) + (1 - BETA1) * slope
    second = BETA2 * float(v) + (1 - BETA2) * slope * slope
    unbiased = first / (1 - math.pow(BETA1, t))
    size = math.sqrt(second / (1 - math.pow(BETA2, t)))
    return [float(gamma) - MU * unbiased / (size + EPS), first, second]


def _questions() -> tuple[Question, ...]:
    def ask(gamma: float, grad: float, m: float, v: float, t: int, more: str = "") -> Question:
        numbers = torch.tensor([gamma, grad, m, v], dtype=torch.float64).unbind()
        return Question(f"γ = {gamma:g}, slope = {grad:g}, m = {m:g}, v = {v:g}, t = {t}{more}", (*numbers, t))

    return (
        ask(1.0, -1.0, 0.0, 0.0, 2),
        ask(1.0, 0.001, 0.0, 0.0, 2),
        ask(0.5, -4.0, 1.5, 3.0, 3),
        ask(0.5, 2.0, -0.5, 0.7, 400),
        ask(0.3, 0.0, 0.0, 0.0, 2, " (no slope yet)"),
    )


def _code(m: str = "0.9 * m + 0.1 * grad", v: str = "0.999 * v + 0.001 * grad**2", last: str = "") -> str:
    """A wrong answer: Alg. 2 with one of its lines changed."""
    last = last or "return gamma - 0.01 * m / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8), m, v"
    return f"def my_adam_update(gamma, grad, m, v, t):\n    m = {m}\n    v = {v}\n    {last}\n"


EXERCISE = Exercise(
    name="adam_update",
    lesson="04b",
    answer="my_adam_update",
    missing="the new γ, m and v of Alg. 2",
    well_done="Every line of Alg. 2. The size of the slope cancels: the first move is 0.744 μ, whatever the slope.",
    hints=(
        "m is a running mean of the slopes, v of their squares; both forget a little with each step.",
        "m = b1 * m + (1 - b1) * grad and v = b2 * v + (1 - b2) * grad**2; then divide by 1 - b1**t and 1 - b2**t.",
        "γ - mu * m_hat / (v_hat**0.5 + eps) is the new γ; return it with m and v, not with m_hat and v_hat.",
    ),
    solution="""
def my_adam_update(gamma, grad, m, v, t, mu=0.01, b1=0.9, b2=0.999, eps=1e-8):
    m = b1 * m + (1 - b1) * grad
    v = b2 * v + (1 - b2) * grad**2
    m_hat, v_hat = m / (1 - b1**t), v / (1 - b2**t)
    return gamma - mu * m_hat / (v_hat**0.5 + eps), m, v
""",
    questions=_questions(),
    judge=equals(line_by_line),
    mistakes=(
        Mistake(
            _code(last="return gamma - 0.01 * m / (v**0.5 + 1e-8), m, v"),
            "the bias correction is missing; m and v begin at 0, so divide them by 1 - b1**t and 1 - b2**t.",
        ),
        Mistake(
            _code(
                last="t -= 1\n    return gamma - 0.01 * m / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8), m, v"
            ),
            "you counted updates, as the textbook does; Alg. 2 takes t as it is, and the first update has t = 2.",
        ),
        Mistake(
            _code(last="return gamma + 0.01 * m / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8), m, v"),
            "γ went along its slope; it must go against it, so that the loss falls.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * grad, m, v"),
            "that is plain gradient descent; Adam divides by the usual size of the slope, the root of v.",
        ),
        Mistake(
            _code(m="0.1 * m + 0.9 * grad"),
            "you swapped the shares of m; it keeps 0.9 of itself and takes 0.1 of the slope.",
        ),
        Mistake(
            _code(v="0.9 * v + 0.1 * grad**2", last="").replace("0.999**t", "0.9**t"),
            "m and v forget at different speeds; v keeps 0.999 of itself.",
        ),
        Mistake(
            _code(v="0.999 * v + 0.001 * grad"),
            "v is the running mean of the squares; take grad**2.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * m / (1 - 0.9**t) / (v / (1 - 0.999**t) + 1e-8), m, v"),
            "the root is missing; v holds squares, so divide by v_hat**0.5.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * m / (1 - 0.9**t) / (v / (1 - 0.999**t)) ** 0.5, m, v"),
            "without eps the first slope of 0 gives 0 / 0, which is not a number; add eps to the root.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * m / (1 - 0.9**t) / (v / (1 - 0.999**t) + 1e-8) ** 0.5, m, v"),
            "eps belongs outside the root: v_hat**0.5 + eps.",
        ),
        Mistake(
            _code(
                last="m, v = m / (1 - 0.9**t), v / (1 - 0.999**t)\n    return gamma - 0.01 * m / (v**0.5 + 1e-8), m, v"
            ),
            "γ is right, but m and v came back corrected, and would be corrected again in the next step; "
            "return m and v as they were before the division.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * m / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)"),
            "γ alone came back; return γ, m and v, because the next step needs all three.",
        ),
        Mistake(
            _code(last="return m, v, gamma - 0.01 * m / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)"),
            "the three numbers are right, but in another order; return γ first, then m, then v.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * m / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8), v, m"),
            "the three numbers are right, but in another order; return γ first, then m, then v.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * m / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8), m, v"),
            "you corrected v only; m begins at 0 as well, so divide it by 1 - b1**t.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * m / (1 - 0.9**t) / (v**0.5 + 1e-8), m, v"),
            "you corrected m only; v begins at 0 as well, so divide it by 1 - b2**t.",
        ),
        Mistake(
            _code(
                m="0.999 * m + 0.001 * grad",
                v="0.9 * v + 0.1 * grad**2",
                last="return gamma - 0.01 * m / (1 - 0.999**t) / ((v / (1 - 0.9**t)) ** 0.5 + 1e-8), m, v",
            ),
            "you swapped b1 and b2; b1 = 0.9 belongs to m, b2 = 0.999 to v.",
        ),
        Mistake(
            _code(last="return gamma - 0.01 * m / (1 - 0.999**t) / ((v / (1 - 0.9**t)) ** 0.5 + 1e-8), m, v"),
            "you swapped b1 and b2 in the correction; m is divided by 1 - b1**t, v by 1 - b2**t.",
        ),
    ),
    variants=(
        "from ftp.constraint import adam_update as my_adam_update",
        "from ftp.lab.exercises.adam_update import line_by_line as my_adam_update",
        """
def my_adam_update(gamma, grad, m, v, t):
    m, v = torch.lerp(m, grad, 0.1), torch.lerp(v, grad.square(), 0.001)
    step = 0.01 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
    return torch.stack([gamma - step, m, v])
""",
    ),
)
