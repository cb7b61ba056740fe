"""Stop and go on: the second half must not know that there was a break, to the last bit."""

import copy
import inspect
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from cases import MODES, RULES, Rule, network, train, weights
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict

from ftp import SGDP

Pair = tuple[nn.Module, torch.optim.Optimizer]
Build = Callable[[nn.Module], torch.optim.Optimizer]


def by_state_dict(model: nn.Module, optimizer: torch.optim.Optimizer, build: Build, _: Path) -> Pair:
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    fresh = network(seed=9, dtype=next(model.parameters()).dtype)
    fresh.load_state_dict(saved[0])
    again = build(fresh)
    again.load_state_dict(saved[1])
    return fresh, again


def by_torch_save(model: nn.Module, optimizer: torch.optim.Optimizer, build: Build, _: Path) -> Pair:
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    fresh = network(seed=9, dtype=next(model.parameters()).dtype)
    fresh.load_state_dict(saved["model"])
    again = build(fresh)
    again.load_state_dict(saved["optimizer"])
    return fresh, again


def by_pickle(model: nn.Module, optimizer: torch.optim.Optimizer, build: Build, _: Path) -> Pair:
    pair: Pair = pickle.loads(pickle.dumps((model, optimizer)))
    return pair


def by_deepcopy(model: nn.Module, optimizer: torch.optim.Optimizer, build: Build, _: Path) -> Pair:
    return copy.deepcopy((model, optimizer))


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
def by_distributed_checkpoint(model: nn.Module, optimizer: torch.optim.Optimizer, build: Build, folder: Path) -> Pair:
    state = {"model": model.state_dict(), "optimizer": get_optimizer_state_dict(model, optimizer)}
    # newer versions ask to be told that there is no process group; older ones see it
    alone = {"no_dist": True} if "no_dist" in inspect.signature(dcp.save).parameters else {}
    dcp.save(state, checkpoint_id=folder, **alone)
    fresh = network(seed=9, dtype=next(model.parameters()).dtype)
    again = build(fresh)
    target = {"model": fresh.state_dict(), "optimizer": get_optimizer_state_dict(fresh, again)}
    dcp.load(target, checkpoint_id=folder, **alone)
    fresh.load_state_dict(target["model"])
    set_optimizer_state_dict(fresh, again, target["optimizer"])
    return fresh, again


WAYS = [by_state_dict, by_torch_save, by_pickle, by_deepcopy, by_distributed_checkpoint]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    "mode",
    [
        "default",
        *[pytest.param(mode, marks=pytest.mark.slow) for mode in ("fused", "foreach", "low_memory", "bfloat16")],
    ],
)
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_resume_is_exact(rule: Rule, mode: str, way: Callable[..., Pair], tmp_path: Path) -> None:
    options = {"low_memory": True} if mode == "low_memory" else MODES.get(mode, {})
    dtype = torch.bfloat16 if mode == "bfloat16" else torch.float32

    def build(model: nn.Module) -> torch.optim.Optimizer:
        return rule.build(model.named_parameters(), exclude_set={"head.*"}, **rule.options, **options)

    straight = network(dtype=dtype)
    optimizer = build(straight)
    train(straight, optimizer, 6, dtype=dtype)
    broken, again = way(straight, optimizer, build, tmp_path)
    for model, runner in ((straight, optimizer), (broken, again)):
        train(model, runner, 6, seed=2, dtype=dtype)
    assert torch.equal(weights(straight), weights(broken))
    assert optimizer.constraints() == again.constraints()
    assert max(again.constraints().values()) > 1e-3


@pytest.mark.parametrize("mode", ["default", "low_memory"])
def test_loading_twice_and_back_in_time(mode: str) -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.05, momentum=0.9, low_memory=mode == "low_memory")
    train(model, optimizer, 4)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    ends = []
    for _ in range(3):
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(copy.deepcopy(saved[1]))
        train(model, optimizer, 5, seed=4)
        ends.append(weights(model))
    assert torch.equal(ends[0], ends[1])
    assert torch.equal(ends[0], ends[2])


@pytest.mark.parametrize("live", [False, True])
def test_a_state_dict_is_not_written_to_by_the_optimizer_that_loaded_it(live: bool) -> None:
    model, other = network(), network()
    optimizer = SGDP(model.named_parameters(), lr=0.05, momentum=0.9)
    train(model, optimizer, 3)
    given = optimizer.state_dict() if live else copy.deepcopy(optimizer.state_dict())
    before = copy.deepcopy(given)
    again = SGDP(other.named_parameters(), lr=0.05, momentum=0.9)
    again.load_state_dict(given)
    train(other, again, 3)
    for key, state in before["state"].items():
        for name, value in state.items():
            assert torch.equal(given["state"][key][name], value), name


def test_several_groups_resume_exactly() -> None:
    def build(model: nn.Module) -> SGDP:
        named = list(model.named_parameters())
        groups = [
            {"params": named[:3], "lr": 0.1, "k": 0.5},
            {"params": named[3:5], "per_element": True, "low_memory": True},
            {"params": named[5:], "exclude_set": {"*"}},
        ]
        return SGDP(groups, lr=0.05, momentum=0.9)

    straight, broken = network(), network(seed=5)
    optimizer = build(straight)
    train(straight, optimizer, 5)
    broken.load_state_dict(straight.state_dict())
    again = build(broken)
    again.load_state_dict(optimizer.state_dict())
    train(straight, optimizer, 5, seed=2)
    train(broken, again, 5, seed=2)
    assert torch.equal(weights(straight), weights(broken))


def test_bfloat16_keeps_gamma_in_float32_through_a_checkpoint() -> None:
    model = network(dtype=torch.bfloat16)
    optimizer = SGDP(model.named_parameters(), lr=0.1)
    optimizer.anchor()
    state = optimizer.state[model.head.weight]
    state["gamma_state"][0] = 0.123457
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert optimizer.state[model.head.weight]["gamma_state"].dtype == torch.float32
    assert optimizer.constraints()["head.weight"] == pytest.approx(0.123457, abs=1e-9)


def test_a_load_hook_has_the_last_word_before_us() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.1)
    train(model, optimizer, 3)
    saved = copy.deepcopy(optimizer.state_dict())

    def double(_: torch.optim.Optimizer, state_dict: dict) -> dict:
        changed = copy.deepcopy(state_dict)
        for state in changed["state"].values():
            state["gamma_state"][0] *= 2
        return changed

    before = optimizer.constraints()
    optimizer.register_load_state_dict_pre_hook(double)
    optimizer.load_state_dict(saved)
    assert optimizer.constraints() == {name: pytest.approx(2 * gamma) for name, gamma in before.items()}


def test_set_optimizer_state_dict_does_not_throw_the_model_back_to_its_anchor() -> None:
    # torch initialises an optimizer without state by a step with zero gradients; ours has state from the start
    model = network()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
    moved = weights(model)
    optimizer = SGDP(model.named_parameters(), lr=0.1, anchors=network().state_dict())
    get_optimizer_state_dict(model, optimizer)
    assert torch.equal(weights(model), moved)
