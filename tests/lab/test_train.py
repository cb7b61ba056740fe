"""The engine: events, exact resume for every method, stopping, the order of the data."""

from pathlib import Path

import pytest
import torch
from lab.runs import equal, short, start, trained, weights

from ftp.lab import methods, worlds
from ftp.lab.record import EvalEvent, LabError, StartEvent, StepEvent
from ftp.lab.train import FineTuning, finetune, pick_device


def quiet(method: str, path: Path | None = None, **given: object) -> FineTuning:
    return finetune(short(method, **given), device="cpu", watches=0, evaluate_at_end=False, checkpoint=path)


def test_events_of_a_whole_run() -> None:
    run = finetune(short("ftp"), device="cpu", watches=2, kinds=["fog"])
    events = list(run)
    kinds = [type(event) for event in events]
    assert kinds[:2] == [StartEvent, EvalEvent]
    assert [e.step for e in events if isinstance(e, StepEvent)] == [1, 2, 3, 4, 5, 6]
    assert [e.step for e in events if isinstance(e, EvalEvent)] == [0, 3, 6]
    first, last = events[0], events[-1]
    assert isinstance(first, StartEvent)
    assert isinstance(last, EvalEvent)
    assert last.final
    assert set(last.main) == {"val", "id", "optdigits", "typeset", "texture", "colour", "sketch"}
    assert set(last.corruptions) == {"fog"}
    assert len(last.corruptions["fog"]) == 5
    assert all(0 <= v <= 100 for row in last.scores.values() for v in row.values())
    assert list(last.scores) == ["accuracy", "ece"]
    assert (last.whole, last.phase, first.phases) == (True, 0, ("",))
    assert first.measures == run.world.measures
    assert last.counts["id"] == 1500
    assert last.counts["fog"] == 500
    assert len(first.layers) == 45
    for event in events:
        if isinstance(event, StepEvent):
            assert len(event.gamma) == len(event.distance) == len(event.boundary) == 45
            assert all(g is not None and g > 0 for g in event.gamma)
            # no row is farther than its leash
            assert all(d <= g * 1.001 + 1e-6 for g, d in zip(event.gamma, event.distance, strict=True) if g is not None)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("method", methods.fitting(worlds.load("digits")))
def test_resume_is_exact(method: str, optimizer: str, tmp_path: Path) -> None:
    whole = trained(method, optimizer=optimizer, lr=0.01)
    for at in (1, 3, 5):
        path = tmp_path / f"{at}.safetensors"
        first = quiet(method, path, optimizer=optimizer, lr=0.01)
        for _ in range(at):
            first.advance()
        first.save()
        second = quiet(method, path, optimizer=optimizer, lr=0.01)
        assert second.step == at
        events = [e for e in second if isinstance(e, StepEvent)]
        assert [e.step for e in events] == list(range(at + 1, 7))
        assert equal(weights(second), weights(whole))
        assert second.method.report() == whole.method.report()


def test_stop_at_any_step_keeps_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    asked = iter([False, False, True])
    run = finetune(short("ftp"), device="cpu", watches=0, checkpoint=path, stop=lambda: next(asked))
    events = list(run)
    assert run.step == 2
    assert not any(isinstance(e, EvalEvent) for e in events)
    again = quiet("ftp", path)
    for _ in again:
        pass
    assert equal(weights(again), weights(trained("ftp")))


def test_equal_settings_give_equal_bits_and_seeds_differ() -> None:
    assert equal(weights(trained("ftp")), weights(trained("ftp")))
    assert not equal(weights(trained("ftp")), weights(trained("ftp", seed=1)))


def test_an_epoch_shows_every_image_once() -> None:
    run = start("finetune", batch=300)
    seen = torch.cat([run._pick(run.indices, step, salt=0) for step in range(10)])
    assert seen.sort().values.equal(torch.arange(3000))
    again = torch.cat([run._pick(run.indices, step, salt=0) for step in range(10, 20)])
    assert again.sort().values.equal(torch.arange(3000))
    assert not seen.equal(again)


def test_few_labels_make_short_epochs() -> None:
    run = start("finetune", labels=0.01, batch=64)
    assert len(run.indices) == 30
    assert run._pick(run.indices, 5, salt=0).sort().values.equal(torch.arange(30))
    run.advance()


def test_a_loss_that_is_no_number_is_a_sentence() -> None:
    with pytest.raises(LabError) as error:
        list(quiet("finetune", lr=100.0, weight_decay=10.0, steps=40))
    assert str(error.value).startswith("the loss is ")
    assert str(error.value).endswith("lower the learning rate (lr is 100)")


def test_a_broken_or_foreign_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    path.write_bytes(b"nonsense")
    with pytest.raises(LabError) as error:
        quiet("ftp", path)
    assert str(error.value).startswith("run.safetensors is no checkpoint that can be read (")
    assert path.read_bytes() == b"nonsense"
    path.unlink()
    first = quiet("ftp", path)
    first.save()
    with pytest.raises(LabError) as error:
        quiet("ftp", path, lr=0.5)
    assert str(error.value) == (
        "run.safetensors is the checkpoint of a run with other settings; delete it to start again"
    )


def test_a_device_that_is_not_there_is_a_sentence() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(LabError) as error:
        pick_device("cuda")
    assert str(error.value).startswith("device is 'cuda'; this machine has ")
    assert pick_device("auto").type in ("cpu", "mps")


def test_half_precision_needs_no_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU's path on the CPU: autocast to float16 around the forward pass."""
    run = start("ftp")
    monkeypatch.setattr(run, "_autocast", lambda: torch.autocast("cpu", dtype=torch.float16))
    loss, _ = run.advance()
    assert torch.isfinite(loss)
    assert all(p.dtype == torch.float32 for p in run.model.parameters())


@pytest.mark.parametrize("method", ["ftp", "tpgm"])
@pytest.mark.parametrize("moment", ["before_step", "after_backward", "after_step"])
def test_an_interrupt_in_the_middle_of_a_step_resumes_exactly(method: str, moment: str, tmp_path: Path) -> None:
    """Between the optimizer's step and the count of it, the weights are ahead of what a checkpoint would say."""
    whole = quiet(method)
    list(whole)
    path = tmp_path / "run.checkpoint"
    cut = quiet(method, path)
    usual = getattr(cut.method, moment)

    def interrupted(step: int) -> None:
        if step == 3:
            raise KeyboardInterrupt
        usual(step)

    setattr(cut.method, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(cut)
    cut.save()
    again = quiet(method, path)
    assert again.step > 0
    list(again)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, again.model.state_dict()[name]), name
