"""The bug museum: every mutant is wrong somewhere, the shipped test kills them all, and nothing right is hurt."""

from typing import Any

import pytest
import torch

import ftp
from ftp.lab.exercises import check, load
from ftp.lab.exercises import kill_mutants as museum
from ftp.lab.exercises._exercise import define
from ftp.lab.exercises.kill_mutants import MUTANTS, Mutant, Thirteenth, Twin, apart, beside, gallery, passes, walk
from ftp.lab.exercises.step import number_by_number
from ftp.lab.record import LabError

SITUATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "decay": {"weight_decay": 0.1},
    "kappa": {"k": 0.2},
    "missing": {"missing": "second"},
    "same": {"resume": "same"},
    "late": {"resume": "late"},
    "reordered": {"resume": "reordered"},
    "typo": {"exclude_set": ("haed.*",)},
}
WHERE = {  # a situation in which each is seen, and one in which it is not
    "wrong axis": ("plain", "typo"),
    "no min": ("plain", "typo"),
    "no clip": ("plain", "typo"),
    "free first step": ("plain", "typo"),
    "one rate for both": ("plain", "typo"),
    "late decay": ("decay", "plain"),
    "κ upside down": ("kappa", "plain"),
    "forgets γ": ("same", "plain"),
    "forgets W0": ("late", "same"),
    "visiting order": ("missing", "plain"),
    "found by position": ("reordered", "late"),
    "any name will do": ("typo", "plain"),
}
each = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.optimizer.__name__)
SHIPPED = define(load("kill_mutants").solution, "my_test")


@each
def test_a_mutant_differs_from_the_truth_where_its_part_has_work(mutant: Mutant) -> None:
    seen, hidden = WHERE[mutant.name]
    assert apart(mutant.optimizer, **SITUATIONS[seen]) > 1e-4
    assert apart(mutant.optimizer, **SITUATIONS[hidden]) < 1e-12


@each
def test_the_shipped_test_kills_the_mutant(mutant: Mutant) -> None:
    assert not passes(SHIPPED, mutant.optimizer)


@pytest.mark.parametrize("optimizer", [ftp.SGDP, Twin])
def test_the_shipped_test_hurts_nothing_right(optimizer: Any) -> None:
    assert passes(SHIPPED, optimizer)


@pytest.mark.parametrize("name", [*SITUATIONS, "conv", "long"])
def test_the_twin_is_right_everywhere(name: str) -> None:
    more: dict[str, dict[str, Any]] = {"conv": {"conv": True}, "long": {"steps": 200, "weight_decay": 0.01, "k": 0.5}}
    assert apart(Twin, **{**SITUATIONS, **more}[name]) < 1e-12


def test_the_thirteenth_is_seen_with_convolutions_only() -> None:
    assert max(apart(Thirteenth, **situation) for situation in SITUATIONS.values()) < 1e-12
    assert apart(Thirteenth, conv=True) > 1e-3


def test_a_mutant_that_forgets_gamma_falls_back_to_its_anchor() -> None:
    path = walk(next(m for m in MUTANTS if m.name == "forgets γ").optimizer, resume="same")["second.weight"]
    assert (path[21] - path[0]).abs().max() < 1e-6 < 1e-3 < (path[20] - path[0]).abs().max()


def test_every_mutant_has_a_story_of_one_line() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) == 12
    for mutant in MUTANTS:
        assert mutant.story.endswith(".")
        assert "\n" not in mutant.story
        assert 40 < len(mutant.story) < 110


def test_the_truth_of_the_step_exercise_is_the_optimizer_s() -> None:
    random = torch.Generator().manual_seed(1)
    start, *grads = torch.randn(201, 3, 4, generator=random, dtype=torch.float64)
    param = torch.nn.Parameter(start.clone())
    optimizer = ftp.SGDP([("w", param)], lr=0.02, k=0.7)
    rows = []
    for grad in grads:
        param.grad = grad.clone()
        optimizer.step()
        rows.append([optimizer.constraints()["w"], *param.detach().flatten().tolist()])
    torch.testing.assert_close(number_by_number(start, grads, 0.02, 0.7), torch.tensor(rows, dtype=torch.float64))


def test_the_gallery_tells_the_stories_of_those_that_live(capsys: pytest.CaptureFixture[str]) -> None:
    gallery(lambda SGDP: apart(SGDP) < 1e-9)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["killed"] * 5 + ["alive"] * 7
    assert lines[0] == "killed   wrong axis"
    assert lines[-1] == f"alive    any name will do: {MUTANTS[-1].story}"
    gallery(SHIPPED)
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {"killed"}
    gallery(lambda SGDP: SGDP is ftp.SGDP)
    assert capsys.readouterr().out.splitlines()[:2] == ["hurt     the twin, which is right", "killed   wrong axis"]
    for stub in (..., lambda SGDP: ..., define("def t(SGDP): raise NotImplementedError", "t")):
        gallery(stub)
        assert capsys.readouterr().out == "the gallery opens when your test is written\n"


def test_beside_says_in_one_line_how_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    def stub(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("the leash")

    beside(Twin, steps=10)
    beside(MUTANTS[0].optimizer, steps=10)
    beside(stub, steps=10)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "beside ftp.SGDP: after each of 10 steps every weight is the same, to 9 digits"
    assert lines[1].startswith("beside ftp.SGDP: within 10 steps a weight strays by ")
    assert lines[2] == "your SGDP cannot walk yet; missing: the leash"


def test_a_learner_s_class_is_walked_anew_each_time() -> None:
    class Mine(Twin):
        def rate(self, group: dict[str, Any]) -> float:
            return rate

    rate = 0.01
    assert apart(Mine, steps=10) < 1e-12
    rate = 0.02
    assert apart(Mine, steps=10) > 1e-4


def test_a_walk_leaves_the_random_numbers_alone_and_refuses_what_it_does_not_know() -> None:
    before = torch.get_rng_state()
    walk(Twin, steps=1)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(LabError) as error:
        walk(Twin, resume="never")
    assert str(error.value) == "resume is 'never'; write one of None, 'same', 'late', 'reordered'"


def crashes(*_: Any) -> Any:
    raise IndexError("index 7 is out of bounds\nand a long story")


@pytest.mark.parametrize(
    ("name", "answer", "first"),
    [
        ("step", crashes, "your code stopped with IndexError: index 7 is out of bounds"),
        ("step", lambda *_: None, "your function returned None; is a `return` missing?"),
        ("step", lambda *_: torch.zeros(7), "the weights must keep their shape (1, 2), yours are (7,)"),
        (
            "step",
            lambda *_: "seven",
            "a number, numbers in brackets such as (1.0, 2.0), or a tensor is expected, yours is of type str",
        ),
        (
            "step",
            lambda unconstrained, *_: unconstrained + 5,
            "γ is right, but after step 1 a weight is 1, yours is 5.9",
        ),
        ("exclude", crashes, "your code stopped with IndexError: index 7 is out of bounds"),
        ("exclude", lambda *_: None, "your function returned None; is a `return` missing?"),
        ("exclude", lambda *_: 7, "a list of names is expected, yours is of type int"),
        ("exclude", lambda *_: [0], "a list of names is expected, yours has 0, which is not one of them"),
        ("resume", crashes, "your code stopped with IndexError: index 7 is out of bounds"),
        ("kill_mutants", crashes, museum.CONDEMNED),
        ("kill_mutants", lambda *_: "seven", "a verdict is True or False, yours is of type str"),
    ],
)
def test_an_answer_that_fails_gets_two_lines(name: str, answer: Any, first: str) -> None:
    outcome = check(name, answer)
    assert outcome.status == "wrong"
    lines = outcome.message.splitlines()
    assert lines[0] == first
    assert len(lines) == 2


@pytest.mark.parametrize("name", ["step", "exclude", "resume", "kill_mutants"])
def test_a_stub_inside_a_function_is_not_attempted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    def stub(*_: Any) -> Any:
        raise NotImplementedError("the part that I left out")

    assert check(name, stub).status == "not attempted"
    line = f'○ {name}: not attempted yet; missing: the part that I left out. Stuck? hint("{name}", 1)\n'
    assert capsys.readouterr().out == line


def test_a_crash_of_the_right_optimizer_is_told() -> None:
    message = check("kill_mutants", crashes).message
    assert message.endswith("with ftp.SGDP, your code stopped with IndexError: index 7 is out of bounds")


def test_two_mistakes_of_a_step_get_the_sentence_of_the_first_that_shows() -> None:
    solved = define(load("step").solution, "my_step")

    def both(unconstrained: Any, grad: Any, layer: Any, k: float) -> Any:
        return solved(unconstrained, grad, layer, 1.0) if layer.t < 5 else unconstrained  # κ ignored, then no leash

    assert check("step", both).status == "wrong"
