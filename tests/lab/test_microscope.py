"""The microscope looks at the real optimizer: its numbers are the optimizer's own, and looking changes nothing."""

import json
import math

import pytest
import torch

from ftp.lab.microscope import FIRST, moments, trace
from ftp.lab.record import LabError
from ftp.lab.recordings.extras import NAMES, extra, has_extra
from ftp.lab.settings import resolve
from ftp.lab.train import FineTuning

LAYER = "stem.weight"
SETTINGS = resolve("digits", "ftp", {"steps": 8, "batch": 16, "lr": 0.3, "k": 0.5})  # slopes of both signs


@pytest.fixture(scope="module")
def seen():
    return trace(SETTINGS, LAYER)


def close(a, b):
    torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=2e-6, atol=1e-9)


def test_the_numbers_are_the_optimizers_own(seen):
    run = FineTuning(SETTINGS, device="cpu", watches=0, evaluate_at_end=False)
    param = dict(run.model.named_parameters())[LAYER]
    for one in seen["steps"]:
        loss, lr = run.advance()
        state = run.method.optimizer.state[param]
        assert (one["step"], one["loss"]) == (run.step, pytest.approx(loss.item(), rel=1e-6))
        assert one["lr"] == pytest.approx(lr, rel=1e-6)
        gamma, m, v, count = state["gamma_state"].tolist()
        close([one["gamma"][2], one["m"][1], one["v"][1], float(one["step"])], [gamma, m, v, count])
        close(one["rows"]["wanted"], state["row_l1"].tolist())
        assert one["gap"] <= 1e-7  # the equations, computed once more, arrive where the optimizer did
        row = param.detach()[seen["row"]].flatten()
        close([weight["kept"] for weight in one["weights"]], row[seen["pair"]].tolist())


def test_eq_1_gives_the_wanted_weight(seen):
    o = seen["options"]
    for one in seen["steps"]:
        for w in one["weights"]:
            update = w["grad"] + o["weight_decay"] * w["start"] + o["momentum"] * w["momentum"]  # Nesterov
            assert w["wanted"] == pytest.approx(w["start"] - one["lr"] * update, abs=2e-7)


def test_eq_4_and_5_against_a_loop():
    run = FineTuning(SETTINGS, device="cpu", watches=0, evaluate_at_end=False)
    param = dict(run.model.named_parameters())[LAYER]
    sums = []

    def look(*_):
        previous = run.method.optimizer.state[param]["deviation"]
        pairs = zip(param.grad.tolist(), previous.tolist(), strict=True)
        total = 0.0
        for grad, deviation in pairs:  # one row after the other
            g = torch.tensor(grad, dtype=torch.float64).flatten().tolist()
            d = torch.tensor(deviation, dtype=torch.float64).flatten().tolist()
            length = math.fsum(map(abs, d))
            total += math.fsum(a * b for a, b in zip(g, d, strict=True)) / length if length else 0.0
        sums.append(total)

    run.method.optimizer.anchor()
    run.method.optimizer.register_step_pre_hook(look)
    for _ in range(8):
        run.advance()
    found = trace(SETTINGS, LAYER)["steps"]
    assert [one["slope"] for one in found] == pytest.approx(sums, rel=1e-4, abs=1e-7)
    assert any(one["slope"] > 0 for one in found)
    for one in found:
        assert one["annealed"] == pytest.approx(one["slope"] * (0.5 if one["slope"] > 0 else 1.0), rel=1e-5)


def test_alg_2_and_eq_2_in_plain_numbers(seen):
    assert seen["steps"][0]["gamma"] == pytest.approx([1e-8] * 3)  # the first step goes nowhere
    for one in seen["steps"][1:]:
        t = one["step"]
        m = 0.9 * one["m"][0] + 0.1 * one["annealed"]
        v = 0.999 * one["v"][0] + 0.001 * one["annealed"] ** 2
        assert [one["m"][1], one["v"][1]] == pytest.approx([m, v], rel=1e-4, abs=1e-12)
        assert one["m"][2] == pytest.approx(m / (1 - 0.9**t), rel=1e-4)
        moved = one["gamma"][0] - seen["options"]["gamma_lr"] * one["m"][2] / (math.sqrt(one["v"][2]) + 1e-8)
        assert one["gamma"][1] == pytest.approx(moved, rel=1e-4)
        assert one["gamma"][2] == pytest.approx(max(1e-8, min(moved, max(one["rows"]["wanted"]))), rel=1e-4)
        row = one["row"]
        assert row["factor"] == pytest.approx(min(1.0, one["gamma"][2] / row["wanted"]), rel=1e-4)
        assert row["kept"] == pytest.approx(row["factor"] * row["wanted"], rel=1e-3, abs=1e-7)
        for w in one["weights"]:
            assert w["kept"] == pytest.approx(w["anchor"] + row["factor"] * (w["wanted"] - w["anchor"]), abs=1e-6)


def test_some_steps_only():
    found = trace(SETTINGS, LAYER, [5, 2])
    assert [one["step"] for one in found["steps"]] == [2, 5]


def test_moments_of_short_and_long_runs():
    assert moments(2) == [1, 2]
    assert max(moments(5000)) == 300
    assert moments(5000)[:FIRST] == list(range(1, FIRST + 1))


@pytest.mark.parametrize(
    ("settings", "layer", "steps", "sentence"),
    [
        (SETTINGS, "head.weight", None, "layer is 'head.weight'; layers on a leash are stem.weight, "),
        (SETTINGS, LAYER, [9], "steps are [9]; give steps from 1 to 8, the length of the run"),
        (SETTINGS, LAYER, [], "steps are []; give steps from 1 to 8, the length of the run"),
        (
            resolve("digits", "finetune"),
            LAYER,
            None,
            "the run is finetune with sgd; the microscope shows ftp with sgd",
        ),
    ],
)
def test_bad_input_is_one_sentence(settings, layer, steps, sentence):
    with pytest.raises(LabError) as caught:
        trace(settings, layer, steps)
    assert str(caught.value).startswith(sentence)


def test_a_stop_is_heard():
    with pytest.raises(LabError, match="stopped after step 0"):
        trace(SETTINGS, LAYER, stop=lambda: True)


@pytest.mark.parametrize("found", extra("microscope")["traces"], ids=lambda t: t["layer"])
def test_the_recorded_steps_hang_together(found):
    json.dumps(found, allow_nan=False)
    steps = {one["step"]: one for one in found["steps"]}
    assert list(steps) == moments(found["settings"]["steps"])
    assert resolve("digits", "ftp", {"seed": found["settings"]["seed"]}).as_dict() == found["settings"]
    for number, one in steps.items():
        if number - 1 in steps:
            assert one["gamma"][0] == steps[number - 1]["gamma"][2]
            assert [w["start"] for w in one["weights"]] == [w["kept"] for w in steps[number - 1]["weights"]]
        assert one["gap"] <= 1e-6


def test_an_unknown_recording_is_a_sentence():
    with pytest.raises(LabError) as caught:
        extra("../models/digits")
    known = [name for name in NAMES if has_extra(name)]
    assert str(caught.value).startswith(f"recording is '../models/digits'; the world digits has {', '.join(known)}")
