"""What an exercise is, and how an answer to it is judged.

An answer is asked the exercise's questions from the simplest to the hardest, until one fails. Then it is
compared with the known mistakes: the one that gives the same answers everywhere is the likely one, and its
sentence is what the learner reads.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import ftp

RIGHT, WRONG, NOT_ATTEMPTED = "right", "wrong", "not attempted"
CLOSE = 1e-5  # an answer in float32 is as good as one in float64
DIGITS = 4  # of a number that is shown
MANY = 12  # more numbers than this are not shown


@dataclass(frozen=True)
class Question:
    """What an answer is given, and in words what that is."""

    text: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer: its code, and the sentence that it must get."""

    code: str
    says: str


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lesson; a file of this package each.

    name: as in `check("name", ...)`. answer: what the learner's function or value is called in the lesson.
    missing: what a stub lacks. well_done: what a right answer shows. hints: three, from a nudge to nearly all.
    judge: (given, *arguments of the question) -> None if right, else one sentence.
    takes: "function" if the answer is called with the arguments, "value" if it is looked at as it is.
    """

    name: str
    lesson: str
    answer: str
    missing: str
    well_done: str
    hints: tuple[str, str, str]
    solution: str
    questions: tuple[Question, ...]
    judge: Callable[..., str | None]
    mistakes: tuple[Mistake, ...] = ()
    variants: tuple[str, ...] = ()
    takes: str = "function"


class Unanswered(Exception):
    """The answer is a stub."""


class Failed(Exception):
    """The answer could not be judged; the sentence says why."""


def define(code: str, name: str) -> Any:
    """Run a piece of code and return what it calls `name`.

    >>> define("double = lambda x: 2 * x", "double")(4)
    8
    """
    scope: dict[str, Any] = {"torch": torch, "ftp": ftp, "math": math}
    exec(code, scope)
    return scope[name]


def examine(exercise: Exercise, answer: Any) -> tuple[str, str]:
    """The status of an answer and what to say about it: at most two lines.

    >>> from ftp.lab.exercises.mars_norm import EXERCISE
    >>> examine(EXERCISE, ...)
    ('not attempted', 'missing: the largest absolute row sum of a matrix')
    """
    try:
        for question in exercise.questions:
            try:
                problem = exercise.judge(ask(exercise, answer, question), *question.arguments)
            except Failed as failure:
                problem = str(failure)
            if problem is not None:
                return WRONG, explain(exercise, answer, question, problem)
    except Unanswered as stub:
        return NOT_ATTEMPTED, f"missing: {str(stub) or exercise.missing}"
    return RIGHT, exercise.well_done


def explain(exercise: Exercise, answer: Any, question: Question, problem: str) -> str:
    """The likely mistake if it is a known one, and below it the question that failed.

    A judge that knows the mistake itself says both, in two lines.
    """
    if "\n" in problem:
        return problem
    shown = f"{question.text}: {problem}" if question.text else problem
    given = _replies(exercise, answer)
    known = [(mistake, _replies(exercise, define(mistake.code, exercise.answer))) for mistake in exercise.mistakes]
    at = exercise.questions.index(question)
    same = [mistake for mistake, replies in known if all(map(_equal, given, replies))]
    # two mistakes at once agree with neither everywhere: then one that agrees here will do, if it is alone
    here = [mistake for mistake, replies in known if _equal(given[at], replies[at])]
    if same or len(here) == 1:
        says = (same or here)[0].says
        return f"{says if same else perhaps(says)}\n  {shown}"
    return shown


def perhaps(says: str) -> str:
    """The sentence of a mistake that is likely, but not sure. The doubt is about the mistake, never about a fact.

    >>> perhaps("you took the average row."), perhaps("MARS is per row.")
    ('perhaps you took the average row.', 'perhaps this is why: MARS is per row.')
    """
    return f"perhaps {says}" if says.startswith(("you ", "your ")) else f"perhaps this is why: {says}"


def ask(exercise: Exercise, answer: Any, question: Question) -> Any:
    """What the answer gives to one question."""
    if answer is ... or answer is NotImplemented:
        raise Unanswered
    if exercise.takes == "value":
        if answer is None:
            raise Unanswered
        return answer
    if not callable(answer):
        call = f'check("{exercise.name}", {exercise.answer})'
        raise Failed(f"{exercise.name} wants the function itself, not what it returned; write {call}")
    arguments = [_copy(argument) for argument in question.arguments]
    try:
        given = answer(*arguments)
    except NotImplementedError as stub:
        raise Unanswered(str(stub)) from None
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        if "Boolean value of Tensor" in reason:  # the literal reading of min(1, x), and of "if it is above 0"
            reason += "; Python's min, max and if look at one number, so use .clamp(max=1) or torch.where"
        raise Failed(f"your code stopped with {type(error).__name__}: {reason}") from None
    if given is NotImplemented or given is ...:
        raise Unanswered
    if given is None:
        raise Failed("your function returned None; is a `return` missing?")
    if not all(map(_same, question.arguments, arguments)):
        raise Failed("your function changed what it was given; work on a new tensor (no +=, no mul_)")
    return given


def equals(truth: Callable[..., Any]) -> Callable[..., str | None]:
    """A judge: the answer must be what `truth` gives for the same arguments.

    >>> judge = equals(lambda x: 2 * x)
    >>> judge(8.0, 4.0), judge(7.0, 4.0)
    (None, 'expected 8, yours gave 7')
    """

    def judge(given: Any, *arguments: Any) -> str | None:
        expected = numbers(truth(*arguments))
        value = numbers(given)
        if value.numel() == expected.numel() == 1:
            value = value.reshape(expected.shape)
        if value.shape != expected.shape:
            return f"expected shape {tuple(expected.shape)}, yours has {tuple(value.shape)}"
        if torch.allclose(value, expected, rtol=CLOSE, atol=CLOSE):
            return None
        if expected.numel() > MANY:
            far = (value - expected).abs().max().item()
            return f"the shape {tuple(expected.shape)} is right, but an entry is off by {far:.3g}"
        right, yours = apart(expected, value)
        return f"expected {right}, yours gave {yours}"

    return judge


def apart(expected: Tensor, given: Tensor) -> tuple[str, str]:
    """Two unequal answers as texts, with as many digits as it takes to see that they differ.

    >>> apart(torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([1.0, 2.0001], dtype=torch.float64))
    ('[1, 2]', '[1, 2.0001]')
    """
    for digits in range(DIGITS, 17):
        right, yours = show(expected, digits), show(given, digits)
        if right != yours:
            break
    return right, yours


def numbers(value: Any) -> Tensor:
    """Any kind of number, list or tensor as float64; what is none of them is a sentence.

    >>> numbers([1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    if isinstance(value, tuple) and hasattr(value, "indices"):
        raise Failed("with a dim, torch's max and min give two things, values and indices; take .values, or use .amax")
    try:
        return torch.as_tensor(value).detach().to("cpu", torch.float64)
    except (TypeError, ValueError, RuntimeError):
        entries = value if isinstance(value, list | tuple) else ()
        strange = [type(entry).__name__ for entry in entries if isinstance(entry, str | dict | None)]
        if strange:
            raise Failed(f"numbers are expected, one of yours is of type {strange[0]}") from None
        raise Failed(
            f"a number, numbers in brackets such as (1.0, 2.0), or a tensor is expected, "
            f"yours is of type {type(value).__name__}"
        ) from None


def show(value: Tensor | Sequence[float], digits: int = DIGITS) -> str:
    """A few numbers, rounded, as a person would write them; of many only their shape.

    >>> show(torch.tensor([[3.0, -4.0], [1.0, 0.25]])), show(torch.zeros(20, 3))
    ('[[3, -4], [1, 0.25]]', 'a tensor of shape (20, 3)')
    """
    tensor = torch.as_tensor(value)
    if tensor.numel() > MANY:
        return f"a tensor of shape {tuple(tensor.shape)}"
    return _text(tensor.tolist(), digits)


def _text(value: Any, digits: int) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(entry, digits) for entry in value)}]"
    return f"{value + 0.0:.{digits}g}"  # adding 0.0 turns -0 into 0


def _copy(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_copy(entry) for entry in argument]
    return argument.clone() if isinstance(argument, Tensor) else argument


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_same, before, after))
    return not isinstance(before, Tensor) or torch.equal(before, after)


def _replies(exercise: Exercise, answer: Any) -> list[Tensor | str]:
    """What the answer gives to every question; a sentence where it gives nothing."""
    replies: list[Tensor | str] = []
    for question in exercise.questions:
        try:
            replies.append(numbers(ask(exercise, answer, question)))
        except (Failed, Unanswered) as failure:
            replies.append(str(failure))
    return replies


def _equal(left: Tensor | str, right: Tensor | str) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and isinstance(right, str) and left == right
    if left.numel() == right.numel() == 1:
        left = left.reshape(right.shape)
    return left.shape == right.shape and torch.allclose(left, right, rtol=CLOSE, atol=CLOSE, equal_nan=True)
