"""What an engineer does to an optimizer, and what must not go wrong without a word."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from cases import RULES, Rule, batches, gradients, network, train, train_step, weights
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

from ftp import SGDP, AdamP, mars_norm
from ftp._members import UNNAMED
from ftp.projection import toward

MOVED = (
    "something that is not a step has moved 'conv.weight' and 2 more off the leash since the last step, such as "
    "load_state_dict or a swap of averaged weights; this step pulls it back to the old anchor: call "
    "optimizer.reanchor() after loading other weights, or optimizer.load_state_dict to go back in time"
)


def build(rule: Rule, model: nn.Module, **more: Any) -> torch.optim.Optimizer:
    return rule.build(model.named_parameters(), **{**rule.options, **more})


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    tensors = [v for state in optimizer.state.values() for v in state.values() if torch.is_tensor(v)]
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


# 1. weights that are loaded, moved or cast after the optimizer was made


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_weights_loaded_after_the_constructor_are_the_anchors(rule: Rule) -> None:
    late, early = network(seed=5), network(seed=5)
    pretrained = network(seed=0).state_dict()
    late_optimizer = build(rule, late)
    late.load_state_dict(pretrained)
    early.load_state_dict(pretrained)
    early_optimizer = build(rule, early)
    train(late, late_optimizer, 4)
    train(early, early_optimizer, 4)
    assert torch.equal(weights(late), weights(early))
    assert late_optimizer.constraints() == early_optimizer.constraints()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_cast_between_constructor_and_first_step_just_works(dtype: torch.dtype) -> None:
    model = network()
    optimizer = AdamP(model.named_parameters(), lr=0.01)
    model.to(dtype)
    train(model, optimizer, 3, dtype=dtype)
    state = optimizer.state[model.wide.weight]
    assert {state[key].dtype for key in ("anchor", "deviation", "exp_avg")} == {dtype}
    assert state["gamma_state"].dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_a_cast_to_what_cannot_be_on_a_leash_is_refused_at_the_first_step() -> None:
    param = nn.Parameter(torch.zeros(2, 2))
    optimizer = SGDP([("w", param)], lr=0.1)
    param.data = param.data.half()
    param.grad = torch.ones_like(param)
    with pytest.raises(TypeError, match="'w' is float16"):
        optimizer.step()
    assert not optimizer.state


def test_anchors_that_were_given_are_copied_when_they_are_given() -> None:
    model = network()
    start = copy.deepcopy(model.state_dict())
    optimizer = SGDP(model.named_parameters(), lr=0.1, anchors=model.state_dict())  # the model's own tensors
    model.load_state_dict(network(seed=7).state_dict())
    train(model, optimizer, 1)
    for name, param in model.named_parameters():
        assert torch.allclose(param, start[name], atol=1e-6)
    assert not optimizer._given_anchors  # nothing is kept twice


@pytest.mark.parametrize("way", [copy.deepcopy, lambda pair: pair], ids=["copied", "itself"])
def test_anchors_that_were_given_survive_a_copy(way: Callable[[Any], Any]) -> None:
    model = network(seed=3)
    optimizer = SGDP(model.named_parameters(), lr=0.1, anchors=network().state_dict())
    model, optimizer = way((model, optimizer))
    train(model, optimizer, 1)
    assert torch.allclose(weights(model), weights(network()), atol=1e-6)


def test_anchor_takes_the_anchors_now() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.1)
    optimizer.anchor()
    assert torch.equal(optimizer.state[model.wide.weight]["anchor"], model.wide.weight)
    model.load_state_dict(network(seed=7).state_dict())
    with pytest.warns(UserWarning, match="something that is not a step") as warned:
        train(model, optimizer, 1)
    assert len(warned) == 1
    assert torch.allclose(weights(model), weights(network()), atol=1e-6)


def test_weights_that_something_else_moved_are_spoken_of_once() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.05)
    train(model, optimizer, 3)
    for times in (1, 0):
        model.load_state_dict(network(seed=7).state_dict())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(model, optimizer, 2)
        assert [str(warning.message) for warning in caught] == [MOVED] * times


def test_after_reanchor_nothing_is_pulled_back_and_nothing_said() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.05)
    train(model, optimizer, 3)
    model.load_state_dict(network(seed=7).state_dict())
    optimizer.reanchor()
    train(model, optimizer, 1)
    assert torch.allclose(weights(model), weights(network(seed=7)), atol=1e-6)


def test_weights_that_are_swapped_and_swapped_back_are_no_surprise() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.05)
    train(model, optimizer, 5)
    own = copy.deepcopy(model.state_dict())
    model.load_state_dict(network(seed=7).state_dict())  # averaged weights, for an evaluation
    model.load_state_dict(own)
    train(model, optimizer, 2)


def test_resuming_in_either_order_is_no_surprise() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.05)
    train(model, optimizer, 5)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    train(model, optimizer, 20)
    ends = []
    for model_first in (True, False):
        for part in (0, 1) if model_first else (1, 0):
            (model, optimizer)[part].load_state_dict(copy.deepcopy(saved[part]))
        train(model, optimizer, 3)
        ends.append(weights(model))
    assert torch.equal(*ends)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("given", [False, True])
def test_the_dry_step_of_a_distributed_checkpoint_is_harmless(rule: Rule, given: bool) -> None:
    # torch makes the state of a fresh optimizer by a step with zero gradients and a learning rate of zero
    model = network(seed=5)
    optimizer = build(rule, model, anchors=network().state_dict() if given else None)
    before = weights(model)
    get_optimizer_state_dict(model, optimizer)
    assert torch.equal(weights(model), before)
    assert max(optimizer.constraints().values()) < 1e-7
    model.load_state_dict(network(seed=7).state_dict())  # the pre-trained weights come late
    train(model, optimizer, 1)
    home = network(seed=0 if given else 7)
    assert torch.allclose(weights(model), weights(home), atol=1e-6)
    assert all(state["gamma_state"][3] == 1 for state in optimizer.state.values())


def test_a_first_step_with_a_rate_of_zero_moves_the_base_rule_as_torch_does() -> None:
    # a warm-up may begin at zero: AdamW's moments see that batch, the leash begins with the first that can move
    ours, theirs = network(), network()
    optimizer = AdamP(ours.named_parameters(), lr=0.0, exclude_set={"*"})
    peer = torch.optim.AdamW(theirs.parameters(), lr=0.0, fused=True)
    for i, batch in enumerate(batches(4)):
        for model, runner in ((ours, optimizer), (theirs, peer)):
            runner.param_groups[0]["lr"] = 0.01 * i
            train_step(model, runner, batch)
    assert torch.equal(weights(ours), weights(theirs))


# 3. groups without names


def test_leash_false_takes_a_group_off_the_leash() -> None:
    model = network()
    head = {id(p) for p in model.head.parameters()}
    groups = [
        {"params": [p for p in model.parameters() if id(p) not in head]},
        {"params": list(model.head.parameters()), "leash": False},
    ]
    optimizer = SGDP(groups, lr=0.05)
    assert list(optimizer.constraints()) == [f"param.{i}" for i in range(5)]
    start = model.head.weight.detach().clone()
    train(model, optimizer, 1)
    assert not torch.allclose(model.head.weight, start, atol=1e-6)  # the first step moves it already


def test_exclude_set_takes_the_names_that_constraints_shows() -> None:
    model = network()
    names = list(SGDP(model.parameters(), leash=True).constraints())
    assert names == [f"param.{i}" for i in range(7)]
    optimizer = SGDP(model.parameters(), exclude_set={"param.4", "param.5"})
    assert list(optimizer.constraints()) == [name for name in names if name not in ("param.4", "param.5")]
    groups = [{"params": list(model.parameters())[:4]}, {"params": list(model.parameters())[4:]}]
    assert list(SGDP(groups, exclude_set={"param.4"}).constraints()) == [n for n in names if n != "param.4"]


def test_a_model_without_names_is_spoken_of_once() -> None:
    model = network()
    decay = [{"params": [p for p in model.parameters() if (p.dim() > 1) == matrix]} for matrix in (True, False)]
    for params in (model.parameters(), decay):
        with pytest.warns(UserWarning, match="no names") as caught:
            AdamP(params, lr=0.1)
        assert [str(warning.message) for warning in caught] == [UNNAMED]
        assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "quiet",
    [
        lambda m: SGDP(m.named_parameters()),
        lambda m: SGDP(m.parameters(), leash=True),
        lambda m: SGDP(m.parameters(), exclude_set={"param.5"}),
        lambda m: SGDP([{"params": list(m.parameters())[:3]}, {"params": list(m.parameters())[3:], "leash": False}]),
        lambda m: SGDP([{"params": list(m.parameters()), "pre": copy.deepcopy(list(m.parameters()))}]),
        lambda m: SGDP([m.wide.weight]),
    ],
)
def test_who_speaks_of_leashes_is_not_spoken_to(quiet: Callable[[nn.Module], SGDP]) -> None:
    quiet(network())  # a warning would be an error here


# 5. frozen parameters


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_frozen_parameters_have_no_state(rule: Rule) -> None:
    model = network()
    for param in model.parameters():
        param.requires_grad_(param is model.head.weight)
    optimizer = build(rule, model)
    train(model, optimizer, 3)
    assert list(optimizer.state) == [model.head.weight]
    assert list(optimizer.constraints()) == list(optimizer.report()) == ["head.weight"]
    saved = copy.deepcopy(optimizer.state_dict())
    again = build(rule, model)
    again.load_state_dict(saved)
    model.conv.weight.requires_grad_(True)
    train(model, again, 3)
    assert list(again.state) == [model.head.weight, model.conv.weight]


def test_a_frozen_base_costs_what_it_costs_with_adamw() -> None:
    model = nn.Sequential(nn.Linear(200, 200), nn.Linear(200, 4, bias=False))
    for param in model[0].parameters():
        param.requires_grad_(False)
    sizes = []
    for optimizer in (AdamP(model.named_parameters()), torch.optim.AdamW(model.parameters())):
        model(torch.randn(3, 200)).sum().backward()
        optimizer.step()
        sizes.append(state_bytes(optimizer))
    assert sizes[0] <= 2.05 * sizes[1]  # anchor and deviation beside the two moments, of the trained layer alone


# 6. bfloat16


@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_bfloat16_weights_keep_the_leash(rule: Rule, low_memory: bool) -> None:
    param = nn.Parameter(torch.randn(16, 64).bfloat16())
    anchor = param.detach().double()
    optimizer = rule.build([param], **rule.options, low_memory=low_memory)
    pulled = 0.0
    for grad in gradients((16, 64), 60, torch.bfloat16):
        param.grad = grad
        optimizer.step()
        (row,) = optimizer.report().values()
        far = mars_norm(param.detach().double() - anchor).item()
        assert far <= row.gamma * (1 + 1e-6)
        assert row.distance == pytest.approx(far, rel=1e-6)
        pulled += row.boundary
    assert pulled > 3  # the leash was tight often enough for this to mean something


def test_rounding_never_goes_away_from_the_anchor() -> None:
    anchor = torch.randn(1000).bfloat16()
    wanted = (anchor.float() + torch.randn(1000)).bfloat16()
    for factor in torch.rand(20):
        got = toward(anchor, wanted, factor.view(1)).float()
        exact = torch.lerp(anchor.double(), wanted.double(), factor.double())
        assert ((got - anchor.float()).abs() <= (exact - anchor.double()).abs() + 1e-6).all()
        neighbours = (got.bfloat16().view(torch.int16).int() - exact.bfloat16().view(torch.int16).int()).abs()
        assert neighbours.max() <= 1  # and it goes no farther than to the next bfloat16


def test_stochastic_rounding_is_right_on_average() -> None:
    anchor = torch.zeros(1, 200_000).bfloat16()
    wanted = torch.full_like(anchor, 1.0)
    got = toward(anchor, wanted, torch.tensor([0.3333]), stochastic=True).float()
    low, high = got.min().item(), got.max().item()
    assert low < 0.3333 < high
    assert high - low == pytest.approx(2**-9)  # the two neighbours
    assert got.mean().item() == pytest.approx(0.3333, abs=5 * 2**-9 / 2 / 200_000**0.5)


def test_stochastic_rounding_lets_small_moves_through() -> None:
    ends = {}
    for stochastic in (False, True):
        torch.manual_seed(0)
        param = nn.Parameter(torch.ones(64, 256).bfloat16())
        optimizer = SGDP([param], lr=0.02, gamma_lr=1e-3, stochastic_rounding=stochastic)
        for _ in range(30):
            param.grad = torch.ones_like(param)
            optimizer.step()
        ends[stochastic] = (1 - param.detach().float()).sum(1).mean().item()
    # 1e-3 a step over 256 entries is far below the resolution of bfloat16
    assert ends[False] == 0
    assert ends[True] == pytest.approx(optimizer.constraints()["param.0"], rel=0.2)


# 7. smaller ones


def test_a_sparse_gradient_in_adamp_gets_a_sentence() -> None:
    embedding = nn.Embedding(10, 3, sparse=True)
    embedding(torch.tensor([1, 2])).sum().backward()
    optimizer = AdamP(embedding.named_parameters(), exclude_set={"*"})
    with pytest.raises(RuntimeError) as error:
        optimizer.step()
    assert str(error.value) == (
        "a gradient is sparse, and AdamP has no rule for that, as torch.optim.AdamW has none: "
        "build the embedding with sparse=False, or give it to torch.optim.SparseAdam"
    )


def test_the_defaults_of_torchs_optimizers_are_arguments() -> None:
    model = network()
    for ours, theirs in ((AdamP, torch.optim.AdamW), (SGDP, torch.optim.SGD)):
        optimizer = ours(model.named_parameters(), **theirs(model.parameters()).defaults)
        train(model, optimizer, 1)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.embed(x))
        return out


def test_a_tied_weight_answers_to_both_of_its_names() -> None:
    model = Tied()
    both = list(model.named_parameters(remove_duplicate=False))
    assert [name for name, _ in both] == ["embed.weight", "head.weight"]
    assert list(SGDP(both).constraints()) == ["embed.weight"]
    assert list(SGDP(both, exclude_set={"head.*"}).constraints()) == []
    anchors = {"head.weight": torch.zeros(7, 4)}  # a file that keeps a tied weight once, under its other name
    optimizer = SGDP(both, anchors=anchors)
    model(torch.tensor([1, 2])).sum().backward()
    optimizer.step()
    assert model.embed.weight.abs().max() < 1e-6


def test_the_prefixes_of_peft_and_of_ddp_around_it() -> None:
    body, head = nn.Parameter(torch.zeros(3, 3)), nn.Parameter(torch.zeros(2, 3))
    for outer in ("", "module."):
        prefix = f"{outer}base_model.model."
        named = [(f"{prefix}fc.base_layer.weight", body), (f"{prefix}head.modules_to_save.default.weight", head)]
        optimizer = SGDP(named, exclude_set={"head.*"}, anchors={"fc.weight": torch.ones(3, 3)})
        assert list(optimizer.constraints()) == ["fc.weight"]


def test_an_older_checkpoint_without_the_newer_options_is_loaded() -> None:
    model = network()
    optimizer = AdamP(model.named_parameters(), lr=0.01)
    train(model, optimizer, 3)
    saved = copy.deepcopy(optimizer.state_dict())
    newer = ("leash", "row_axis", "split", "anchor_dtype", "anchor_device", "stochastic_rounding", "differentiable")
    for name in (*newer, "decoupled_weight_decay"):
        del saved["param_groups"][0][name]
    again = AdamP(model.named_parameters(), lr=0.01)
    again.load_state_dict(saved)
    assert again.constraints() == optimizer.constraints()
    train(model, again, 1)
