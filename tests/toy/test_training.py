"""Two phases and an anchored head, with every method that fits: events, anchors, exact resume."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from lab.runs import equal, weights

from ftp.lab import methods, worlds
from ftp.lab.record import EvalEvent, LabError, RunRecord, Settings, StartEvent, StepEvent
from ftp.lab.run import identify
from ftp.lab.settings import known, resolve
from ftp.lab.train import FineTuning, finetune

FITTING = methods.fitting(worlds.load("toy"))
NEEDS_SHIFTS = "Shift reader needs shifts, and the world toy has none"
STEPS = 4  # of a phase


def start(method: str, checkpoint: Path | None = None, **how: Any) -> FineTuning:
    settings = resolve("toy", method, how.pop("settings", {}))
    return finetune(settings, device="cpu", watches=0, evaluate_at_end=False, checkpoint=checkpoint, **how)


def numbers(events: list[Any]) -> list[tuple[Any, ...]]:
    points = [event for event in events if isinstance(event, StepEvent)]
    return [(p.step, p.phase, p.loss, p.lr, p.gamma, p.distance, p.boundary) for p in points]


def test_the_paper_s_methods_fit_and_one_s_own_too() -> None:
    assert {*methods.PAPER, "halfway"} == set(FITTING)


def test_a_method_that_does_not_fit_says_its_own_sentence() -> None:
    assert "shift_reader" in methods.fitting(worlds.load("digits"))
    assert "shift_reader" not in FITTING
    for refused in (
        lambda: resolve("toy", "shift_reader"),
        lambda: finetune("toy", "shift_reader"),
        lambda: FineTuning(Settings("toy", "shift_reader", steps=1, batch=8)),  # past the border
    ):
        with pytest.raises(LabError) as error:
            refused()
        assert str(error.value) == NEEDS_SHIFTS


@pytest.mark.parametrize("method", FITTING)
def test_events_carry_their_phase(runs: dict[str, RunRecord], method: str) -> None:
    run = runs[method]
    assert run.status == "done"
    assert run.phases == ("steep", "gentle")
    assert [(p.step, p.phase) for p in run.points] == [(step, int(step > STEPS)) for step in range(1, 2 * STEPS + 1)]
    assert [p.lr for p in run.points[:STEPS]] == [p.lr for p in run.points[STEPS:]]  # a schedule of its own
    ends = [(e.step, e.phase, sorted(e.main), e.final) for e in run.evals if e.whole]
    assert ends == [(STEPS, 0, ["id"], False), (2 * STEPS, 1, ["id", "val"], True)]
    assert all(e.phase == (e.step >= STEPS and not (e.whole and not e.final)) for e in run.evals)
    assert run.result is not None
    assert run.result["metric"] == {"name": "angle", "unit": "°", "higher_is_better": False}
    assert (run.result["ood"], run.result["ood_avg"]) == ({}, None)


@pytest.mark.parametrize("method", FITTING)
def test_the_anchors_of_the_second_phase_are_the_weights_at_the_end_of_the_first(method: str) -> None:
    run = start(method)
    first = {name: anchor.clone() for name, anchor in run.task.anchors.items()}
    assert "head.weight" in first
    for event in run:
        if isinstance(event, StepEvent) and event.step == STEPS:
            between = weights(run)
        if isinstance(event, StepEvent) and event.step == STEPS + 1:
            slow = [
                max(sum(abs(x) for x in row) for row in (after - between[name]).reshape(_rows(after), -1).tolist())
                for name, after in run.model.named_parameters()
                if name in first
            ]
            assert event.distance == pytest.approx(slow, abs=1e-6)  # from the new anchors, not from W0
    assert run.task.phase == 1
    anchors = dict(run.task.anchors)
    assert equal(anchors, {name: between[name] for name in anchors})
    assert not equal(anchors, first)


def _rows(tensor: torch.Tensor) -> int:
    return len(tensor) if tensor.dim() > 1 else 1


@pytest.mark.parametrize("method", ["ftp", "tpgm"])
def test_the_leash_begins_anew_in_every_phase(runs: dict[str, RunRecord], method: str) -> None:
    gamma = {point.step: [value for value in point.gamma if value is not None] for point in runs[method].points}
    assert len(gamma[1]) == len(runs[method].layers)
    if method == "ftp":  # its first step only looks where a layer wants to go
        assert gamma[1] == gamma[STEPS + 1] == [pytest.approx(1e-8)] * len(gamma[1])
    assert max(gamma[STEPS + 1]) < max(gamma[STEPS]) / 2


def test_an_anchored_head_is_held_like_any_layer_and_is_what_a_probe_trains(runs: dict[str, RunRecord]) -> None:
    run = runs["ftp"]
    head = run.layers.index("head.weight")
    last = run.points[-1]
    assert last.gamma[head] is not None
    assert 0 < last.distance[head] <= last.gamma[head] * 1.001
    spring = start("l2_sp", settings={"strength": 3.0})
    param = spring.model.get_parameter("head.weight")
    param.grad = torch.zeros_like(param)
    with torch.no_grad():
        param.add_(0.5)
    spring.method.after_backward(0)
    assert torch.allclose(param.grad, 3.0 * torch.full_like(param, 0.5))
    probe = start("linear_probe")
    before = weights(probe)
    for _ in probe:
        pass
    assert {name for name, tensor in weights(probe).items() if not torch.equal(tensor, before[name])} == {
        "head.weight",
        "head.bias",
    }


def interrupted(method: str, path: Path, stop: int) -> list[Any]:
    """The events of a run that is stopped before the step after `stop`."""
    count = itertools.count()
    return list(start(method, path, stop=lambda: next(count) == stop))


@pytest.mark.parametrize("method", FITTING)
def test_a_run_goes_on_to_the_same_bits(method: str, tmp_path: Path) -> None:
    """Stopped inside the first phase, exactly between the two, and inside the second."""
    whole = start(method)
    wanted = numbers(list(whole))
    for stop in (2, STEPS, STEPS + 2):
        path = tmp_path / f"{stop}.checkpoint"
        before = interrupted(method, path, stop)
        again = start(method, path)
        after = list(again)
        assert isinstance(after[0], StartEvent)
        assert after[0].step == stop
        assert numbers(before) + numbers(after) == wanted
        assert equal(weights(again), weights(whole))
        assert equal(dict(again.task.anchors), dict(whole.task.anchors))


@pytest.mark.parametrize("method", ["ftp", "tpgm", "finetune"])
@pytest.mark.parametrize("place", ["loss", "after_step", "begin_phase", "end_phase"])
def test_ctrl_c_in_the_middle_of_a_step_or_of_a_change_of_phase_loses_nothing(
    method: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = start(method)
    wanted = numbers(list(whole))
    path = tmp_path / "run.checkpoint"
    cut = start(method, path)
    usual = getattr(cut.method, place)

    def pressed(*arguments: Any) -> Any:
        result = usual(*arguments)
        if cut.step == STEPS + (1 if place in ("loss", "after_step") else 0):
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(cut.method, place, pressed)
    before: list[Any] = []  # what came before Ctrl-C counts
    with pytest.raises(KeyboardInterrupt):
        before.extend(iter(cut))
    cut.save()  # as `carry_out` does
    again = start(method, path)
    seen = {row[0]: row for row in (*numbers(before), *numbers(list(again)))}
    assert list(seen.values()) == wanted
    assert equal(weights(again), weights(whole))


def test_training_makes_the_angle_smaller() -> None:
    angles = [
        event.main["id"]
        for event in finetune(resolve("toy", "finetune", {"steps": 16}), device="cpu", watches=1)
        if isinstance(event, EvalEvent)
    ]
    assert angles[0] > 90 > 60 > angles[-1]


def test_the_option_is_a_setting_like_any_other() -> None:
    rows = {row.name: row.value for row in known("toy", "ftp")}
    assert rows["noise"] == 0.02
    rough = resolve("toy", "ftp", {"noise": "0.1"})
    assert rough.as_dict()["noise"] == 0.1
    assert identify(rough) != identify(resolve("toy", "ftp"))
    assert identify(resolve("toy", "ftp", {"noise": 0.02})) == identify(resolve("toy", "ftp"))
    smooth, grainy = (worlds.of(s).split("id").batch(torch.arange(4))[0] for s in (resolve("toy", "ftp"), rough))
    assert not torch.equal(smooth, grainy)
    with pytest.raises(LabError) as error:
        worlds.load("toy", {"nois": 0.1})
    assert str(error.value) == "nois is no option of the world toy; its options are: noise"
