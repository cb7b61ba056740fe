"""Every exercise by its registry: its solution and variants pass, each known mistake gets its own sentence."""

import re
import subprocess
import sys
from typing import Any

import pytest
import torch

from ftp.lab import exercises
from ftp.lab.exercises import _exercise, check, hint, load, solution
from ftp.lab.exercises._exercise import Exercise, Mistake, Question, define
from ftp.lab.record import LabError

ALL = [load(name) for name in exercises.names()]
each = pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)


def test_the_registry_has_the_exercises_of_the_first_lessons() -> None:
    lessons = {exercise.name: exercise.lesson for exercise in ALL}
    assert {"mars_norm", "worst_x", "estimate_constant"} <= {name for name, n in lessons.items() if n == "01"}
    assert "project_mars" in {name for name, n in lessons.items() if n == "03"}


@each
def test_the_solution_is_right(exercise: Exercise, capsys: pytest.CaptureFixture[str]) -> None:
    solution(exercise.name)
    shown = capsys.readouterr().out  # what a learner pastes into the cell
    outcome = check(exercise.name, define(shown, exercise.answer))
    assert (outcome.status, outcome.message, bool(outcome)) == ("right", exercise.well_done, True)
    assert capsys.readouterr().out == f"✓ {exercise.name}: right. {exercise.well_done}\n"


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(exercise, one, id=f"{exercise.name}-{at}")
        for exercise in ALL
        for at, one in enumerate(getattr(exercise, kind))
    ]


@pytest.mark.parametrize(("exercise", "code"), cases("variants"))
def test_other_right_answers_are_accepted(exercise: Exercise, code: str) -> None:
    assert check(exercise.name, define(code, exercise.answer)).status == "right"


@pytest.mark.parametrize(("exercise", "mistake"), cases("mistakes"))
def test_each_known_mistake_gets_its_sentence(
    exercise: Exercise, mistake: Mistake, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = check(exercise.name, define(mistake.code, exercise.answer))
    assert outcome.status == "wrong"
    assert outcome.message.splitlines()[0] == mistake.says
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"✗ {exercise.name}: {mistake.says}"
    assert len(lines) == 2


@each
def test_a_stub_is_not_attempted_and_says_what_is_missing(
    exercise: Exercise, capsys: pytest.CaptureFixture[str]
) -> None:
    def raises(*_: Any) -> Any:
        raise NotImplementedError

    def names_it(*_: Any) -> Any:
        raise NotImplementedError("the part that I left out")

    stubs: list[tuple[Any, str]] = [(..., exercise.missing), (NotImplemented, exercise.missing)]
    if exercise.takes == "function":
        stubs += [(raises, exercise.missing), (names_it, "the part that I left out")]
        stubs += [(lambda *_: NotImplemented, exercise.missing), (lambda *_: ..., exercise.missing)]
    else:
        stubs += [(None, exercise.missing)]
    for stub, missing in stubs:
        assert check(exercise.name, stub).status == "not attempted"
        line = f'○ {exercise.name}: not attempted yet; missing: {missing}. Stuck? hint("{exercise.name}", 1)\n'
        assert capsys.readouterr().out == line


@each
def test_an_answer_that_cannot_be_judged_gets_a_sentence(
    exercise: Exercise, capsys: pytest.CaptureFixture[str]
) -> None:
    def stops(*_: Any) -> Any:
        raise IndexError("index 7 is out of bounds\nand a long story")

    answers: dict[str, Any] = {"yours is of type str": "seven"}
    if exercise.takes == "function":
        answers = {
            "your code stopped with IndexError: index 7 is out of bounds": stops,
            "your function returned None; is a `return` missing?": lambda *_: None,
            "your code stopped with TypeError: ": lambda: 1,
            f'write check("{exercise.name}", {exercise.answer})': torch.tensor(7.0),
        }
        answers[""] = lambda *_: "seven"  # the sentence depends on what is asked for
    for sentence, answer in answers.items():
        assert check(exercise.name, answer).status == "wrong", sentence
        printed = capsys.readouterr().out
        assert sentence in printed
        assert "Traceback" not in printed
        assert len(printed.splitlines()) <= 2


@each
def test_hints_go_from_a_nudge_to_nearly_the_answer(exercise: Exercise, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2, 3):
        hint(exercise.name, number)
        assert capsys.readouterr().out == f"hint {number} of 3: {exercise.hints[number - 1]}\n"
    with pytest.raises(LabError) as error:
        hint(exercise.name, 4)
    assert str(error.value) == f"hint 4 of {exercise.name} does not exist; ask for 1 to 3"


def test_the_number_of_a_hint_may_be_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    hint("checkpoint", "1")
    assert capsys.readouterr().out == f"hint 1 of 3: {load('checkpoint').hints[0]}\n"
    for number in ("one", 1.0, 0):
        with pytest.raises(LabError) as error:
            hint("checkpoint", number)  # type: ignore[arg-type]
        assert str(error.value) == f"hint {number} of checkpoint does not exist; ask for 1 to 3"


@each
def test_an_exercise_is_well_formed(exercise: Exercise) -> None:
    assert exercise.name == sys.modules[f"ftp.lab.exercises.{exercise.name}"].__name__.rsplit(".", 1)[1]
    assert re.fullmatch(r"\d\d[a-z]?", exercise.lesson)
    assert exercise.answer.startswith("my_")
    assert exercise.takes in ("function", "value")
    assert len(exercise.mistakes) >= 4
    assert exercise.variants
    assert len(set(exercise.hints)) == 3
    for sentence in (*exercise.hints, exercise.well_done, *(mistake.says for mistake in exercise.mistakes)):
        assert sentence.endswith((".", "?")) or ")" in sentence, sentence
        assert "\n" not in sentence
    assert not exercise.missing.endswith(".")


def test_an_unknown_exercise_is_one_sentence() -> None:
    with pytest.raises(LabError) as error:
        check("mars_nrom", ...)
    assert str(error.value) == "exercise is 'mars_nrom'; did you mean mars_norm?"


def test_a_changed_input_is_noticed() -> None:
    def in_place(weight: torch.Tensor) -> torch.Tensor:
        return weight.abs_().sum(1).max()

    assert "changed what it was given" in check("mars_norm", in_place).message


def test_two_mistakes_at_once_get_the_nearest_sentence_and_none_gets_the_plain_one() -> None:
    right = define(load("mars_norm").solution, "my_mars_norm")

    def whole_then_off(weight: torch.Tensor) -> Any:
        return weight.abs().sum() if weight.shape == (2, 3) else right(weight) + 1

    assert check("mars_norm", whole_then_off).message.startswith("perhaps you took the norm of the whole tensor")
    message = check("mars_norm", lambda weight: right(weight) + 0.5).message
    assert message == "W = [[3, -4, 2], [1, 1, -1]]: expected 9, yours gave 9.5"


@each
def test_a_likely_mistake_is_in_doubt_but_a_fact_is_not(exercise: Exercise) -> None:
    for mistake in exercise.mistakes:
        doubt = _exercise.perhaps(mistake.says)
        assert re.match("perhaps (you |your |this is why: )", doubt)
        assert doubt.endswith(mistake.says)


def test_a_fact_that_explains_one_question_only_is_not_in_doubt() -> None:
    def inputs_only_then_off(gamma: float, shape: tuple[int, ...]) -> float:
        return gamma / shape[1] if shape == (64, 32, 3, 3) else 9.0

    message = check("explain_layer", inputs_only_then_off).message
    assert message.startswith("perhaps this is why: a row of a convolution is the whole output channel")


@pytest.mark.parametrize(
    ("name", "answer", "sentence"),
    [
        ("falsifier", (6, 0), "promised 0, gained 0.09 with a standard error of 0.04"),
        ("falsifier", ("1", "0"), "numbers are expected, one of yours is of type str"),
        ("falsifier", 1, "a number of the list and a promise are expected, yours has shape ()"),
        ("state_bytes", (4, 8, 16), "FTP differs from what is counted, yours are [4, 8, 16]"),
        ("state_bytes", (5, 8, 16), "fine-tuning and FTP differ from what is counted, yours are [5, 8, 16]"),
        ("checkpoint", lambda run: {}, "the checkpoint must have model, optimizer, scheduler, draw, epoch"),
    ],
)
def test_a_wrong_answer_is_told_what_is_wanted(name: str, answer: Any, sentence: str) -> None:
    assert sentence in check(name, answer).message


SLOPPY_ADAM = """
def my_adam_update(gamma, grad, m, v, t):
    m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
    return gamma - {mu} * m / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + {eps}), m, v
"""


@pytest.mark.parametrize("numbers", [{"mu": 0.01003, "eps": 1e-8}, {"mu": 0.01, "eps": 2e-6}], ids=str)
def test_two_lists_that_differ_are_shown_with_the_digits_in_which_they_do(numbers: dict[str, float]) -> None:
    message = check("adam_update", define(SLOPPY_ADAM.format(**numbers), "my_adam_update")).message
    lists = re.search(r"expected (\[.*\]), yours gave (\[.*\])$", message)
    assert lists
    assert lists[1] != lists[2]


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        ("layer_state", "def my_state(g, d, b): return 0 if g < 0.05 else 1 if b >= 10 else 2", "not a percentage"),
        ("resume", "def my_resume(layers, saved):\n for n in layers: layers[n].gamma = saved[n].gamma", "only γ is"),
        (
            "resume",
            "import copy\ndef my_resume(layers, saved):\n for n in layers:\n"
            "  for k in ('gamma', 'm', 'v', 't'): setattr(layers[n], k, copy.deepcopy(getattr(saved[n], k)))",
            "neither the anchor nor the deviation",
        ),
        (
            "step",
            load("step").solution.replace("return ftp", "layer.anchor = ftp") + "    return layer.anchor",
            "you moved layer.anchor with the weights",
        ),
        (
            "frontier",
            "my_frontier = lambda points: [not any((q >= p).all() for q in points) for p in points]",
            "every method beats itself",
        ),
        (
            "contrast",
            "my_contrast = lambda x, factor: (x - x.mean(3).mean(2)) * factor + x.mean(3).mean(2)",
            "write keepdim=True",
        ),
    ],
)
def test_what_learners_wrote_gets_the_sentence_that_was_missing(name: str, code: str, sentence: str) -> None:
    """Written otherwise than the known mistakes, as a learner would."""
    assert sentence in check(name, define(code, load(name).answer)).message.splitlines()[0]


@pytest.mark.parametrize("part", ["scheduler", "draw"])
def test_a_part_of_a_checkpoint_that_leads_elsewhere_is_named(part: str) -> None:
    kept = define(load("checkpoint").solution, "my_checkpoint")
    other = {"scheduler": {}, "draw": torch.Generator().manual_seed(0).get_state()}
    message = check("checkpoint", lambda run: {**kept(run), part: other[part]}).message
    assert message.splitlines()[1] == f"  is '{part}' that of `run`, and of this moment?"


@pytest.mark.parametrize("part", ["compared", "tuned_on", "tries", "measured_on", "seeds", "spread"])
@pytest.mark.parametrize("value", [7.5, [[]], {"a": []}, torch.ones(3), [None, None]], ids=str)
def test_a_strange_part_of_a_report_gets_a_sentence(part: str, value: Any) -> None:
    report = define(load("report").solution, "my_report")
    outcome = check("report", {**report, part: value})
    assert (outcome.status, len(outcome.message.splitlines())) == ("wrong", 2)


def test_not_a_number_is_wrong() -> None:
    assert "yours gave nan" in check("mars_norm", lambda weight: float("nan")).message


def test_an_outcome_shows_nothing_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = check("mars_norm", ...)
    capsys.readouterr()
    assert outcome._ipython_display_() is None  # type: ignore[func-returns-value]
    assert capsys.readouterr().out == ""


def test_the_questions_are_asked_from_the_first_on() -> None:
    asked = []
    exercise = Exercise(
        **{
            **vars(load("mars_norm")),
            "questions": tuple(Question(str(n), (torch.tensor([[float(n)]]),)) for n in (1, 2, 3)),
            "mistakes": (),
        }
    )

    def answer(weight: torch.Tensor) -> float:
        asked.append(int(weight))
        return 1.0

    status, message = _exercise.examine(exercise, answer)
    assert (status, message) == ("wrong", "2: expected 2, yours gave 1")
    assert asked[:2] == [1, 2]


def test_the_registry_is_read_without_torch() -> None:
    code = "import sys; from ftp.lab import exercises; exercises.names(); print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
