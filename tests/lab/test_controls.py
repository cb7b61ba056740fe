"""The controls: leashes that nobody learns, an anchor that means nothing, and what was recorded of them."""

import json
from pathlib import Path

import pytest
import torch

from ftp.lab.controls import control_settings, fixed_leash, layer_names, shuffled, train_controls, untrained
from ftp.lab.figures.data import kind_of
from ftp.lab.record import LabError
from ftp.lab.recordings import controls as recorded_controls
from ftp.lab.recordings import recorded
from ftp.lab.recordings.controls import CONTROLS, recorded_control, use_controls
from ftp.lab.settings import resolve
from ftp.projection import row_l1

SHORT = {"steps": 2, "batch": 8}
QUIET = {"watches": 0, "evaluate_at_end": False, "device": "cpu"}


def test_no_row_leaves_its_given_leash_and_some_stand_at_its_end() -> None:
    gammas = {name: 0.01 * (1 + i) for i, name in enumerate(layer_names())}
    run = fixed_leash(resolve("digits", "finetune", SHORT), gammas, **QUIET)
    *_, last = run
    parameters = dict(run.model.named_parameters())
    for name, anchor in run.task.anchors.items():
        far = row_l1(parameters[name].detach() - anchor).max()
        assert far <= gammas[name] * 1.001, name
        assert float(far) == pytest.approx(last.distance[list(run.task.anchors).index(name)], rel=1e-4)  # type: ignore[union-attr]
    assert max(far / gammas[name] for name, far in zip(run.task.anchors, last.distance, strict=True)) > 0.99  # type: ignore[union-attr]


def test_a_leash_of_length_0_leaves_every_weight_but_the_head_as_it_was() -> None:
    run = fixed_leash(resolve("digits", "finetune", SHORT), dict.fromkeys(layer_names(), 0.0), **QUIET)
    before = {name: parameter.detach().clone() for name, parameter in run.model.named_parameters()}
    list(run)
    same = {name for name, parameter in run.model.named_parameters() if torch.equal(parameter, before[name])}
    assert same == set(layer_names())


def test_a_missing_leash_is_one_sentence() -> None:
    with pytest.raises(LabError) as error:
        fixed_leash(resolve("digits", "finetune", SHORT), {"stem.weight": 1.0})
    assert str(error.value) == "gammas has no leash for stem_norm.weight; give one for each of the 45 layers"


def test_untrained_weights_are_random_follow_the_seed_and_are_the_anchor() -> None:
    first, again, other = (untrained(resolve("digits", "ftp", {**SHORT, "seed": s}), **QUIET) for s in (0, 0, 1))
    stems = [dict(run.model.named_parameters())["stem.weight"].detach() for run in (first, again, other)]
    assert torch.equal(stems[0], stems[1])
    assert not torch.allclose(stems[0], stems[2])
    assert torch.equal(first.task.anchors["stem.weight"], stems[0])
    trained = first.world.model(0).get_parameter("stem.weight").detach()
    assert not torch.allclose(stems[0], trained)
    first.advance()
    assert max(row_l1(first.model.get_parameter("stem.weight").detach() - stems[0])) < 1e-6  # step 1 goes nowhere


def test_shuffling_keeps_the_lengths_and_moves_every_one() -> None:
    gammas = {name: float(i) for i, name in enumerate(layer_names())}
    for within in (True, False):
        mixed = shuffled(gammas, seed=3, within_kind=within)
        assert sorted(mixed.values()) == sorted(gammas.values())
        assert all(mixed[name] != gammas[name] for name in gammas)
        owner = {length: name for name, length in gammas.items()}
        kinds = {kind_of(owner[length]) == kind_of(name) for name, length in mixed.items()}
        assert kinds == ({True} if within else {True, False})
    assert shuffled(gammas, 3) == shuffled(gammas, 3) != shuffled(gammas, 4)


@pytest.mark.parametrize("name", ["frozen", "shuffled"])
def test_the_recorded_controls_used_the_leashes_that_ftp_had_learned(name: str) -> None:
    runs = recorded_control(name)
    assert [run.seed for run in runs] == list(range(10))
    for run, learned in zip(runs, recorded("digits", "ftp"), strict=True):
        assert learned.result is not None
        gammas = learned.result["constraints"]
        wanted = gammas if name == "frozen" else shuffled(gammas, run.seed)
        assert run.gamma == pytest.approx(wanted, rel=1e-3)
        assert all(run.distance[layer] <= run.gamma[layer] * 1.001 + 1e-6 for layer in gammas)
        assert 0 < run.ood_avg < run.id < 100


@pytest.mark.slow
def test_a_control_is_trained_once_and_then_read(tmp_path: Path) -> None:
    names = ("untrained_ftp", "shuffled")
    made = list(train_controls(names, tmp_path, [0], SHORT))
    assert [run["control"] for run in made] == list(names)
    assert len(list(tmp_path.iterdir())) == len(names)
    files = sorted(tmp_path.iterdir())
    kept = [file.stat().st_mtime_ns for file in files]
    assert list(train_controls(names, tmp_path, [0], SHORT)) == json.loads(json.dumps(made))
    assert [file.stat().st_mtime_ns for file in sorted(tmp_path.iterdir())] == kept
    [other] = train_controls(["shuffled"], tmp_path, [0], {**SHORT, "steps": 3})  # other settings: trained anew
    assert len(list(tmp_path.iterdir())) == len(files) + 1
    assert other["scores"] != made[-1]["scores"]


def test_settings_of_the_controls() -> None:
    assert control_settings("frozen", 3).lr == control_settings("shuffled", 3).lr == resolve("digits", "ftp").lr
    assert control_settings("zero", 3).lr == resolve("digits", "linear_probe").lr
    assert {control_settings(name, 3).method for name in ("frozen", "shuffled", "zero")} == {"finetune"}
    assert control_settings("untrained_ftp", 3) == resolve("digits", "ftp", {"seed": 3})
    assert control_settings("untrained_finetune", 3) == resolve("digits", "finetune", {"seed": 3})


def test_own_controls_take_the_place_of_the_recorded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_controls, "_trained", {})
    [first, *_] = recorded_controls.rows(recorded_controls.path_of())
    others = {name: recorded_control(name) for name in CONTROLS if name != first["control"]}
    use_controls([first])
    assert [run.seed for run in recorded_control(first["control"])] == [first["seed"]]
    assert {name: recorded_control(name) for name in others} == others


def test_an_unknown_control_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(LabError) as error:
        list(train_controls(["forzen"], tmp_path, [0]))
    assert str(error.value) == "control is 'forzen'; did you mean frozen?"
