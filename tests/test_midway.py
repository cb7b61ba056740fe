"""What somebody changes in the middle of training: memory layouts, options of a group, state, gradients."""

import gc
import weakref
from typing import Any

import pytest
import torch
from cases import RULES, Rule, batches, network, train, weights
from torch import nn

import ftp
from ftp import SGDP, AdamP, mars_norm
from ftp.projection import round_to

LAST = torch.channels_last


def convolutions(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Conv2d(8, 8, 3), nn.Tanh())
    return nn.Sequential(body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)).double()


def build(rule: Rule, model: nn.Module, **more: Any) -> torch.optim.Optimizer:
    return rule.build(model.named_parameters(), **{**rule.options, **more})


# memory layouts


@pytest.mark.parametrize("leash", [True, False])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_network_may_become_channels_last(rule: Rule, leash: bool) -> None:
    changed, plain = convolutions(), convolutions()
    optimizers = [build(rule, model, leash=leash) for model in (changed, plain)]
    for model, optimizer in zip((changed, plain), optimizers, strict=True):
        train(model, optimizer, 3, dtype=torch.float64)
    changed.to(memory_format=LAST)
    for model, optimizer in zip((changed, plain), optimizers, strict=True):
        train(model, optimizer, 3, seed=2, dtype=torch.float64)
    assert torch.allclose(weights(changed), weights(plain), rtol=0, atol=1e-12)


@pytest.mark.parametrize("first", [LAST, torch.contiguous_format])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_checkpoint_goes_on_in_another_layout(rule: Rule, first: torch.memory_format) -> None:
    """And the loaded state lies in memory as the weights do, so that the next steps are as fast."""
    saved = convolutions().to(memory_format=first)
    optimizer = build(rule, saved)
    train(saved, optimizer, 3, dtype=torch.float64)
    again = convolutions(1).to(memory_format=torch.contiguous_format if first is LAST else LAST)
    again.load_state_dict(saved.state_dict())
    resumed = build(rule, again)
    resumed.load_state_dict(optimizer.state_dict())
    for param in again.parameters():
        strides = {value.stride() for value in resumed.state[param].values() if torch.is_tensor(value) and value.dim()}
        if param.dim() == 4:
            assert {stride for stride in strides if len(stride) == 4} == {param.stride()}
    train(saved, optimizer, 3, seed=2, dtype=torch.float64)
    train(again, resumed, 3, seed=2, dtype=torch.float64)
    assert torch.allclose(weights(saved), weights(again), rtol=0, atol=1e-12)


@pytest.mark.skipif(not hasattr(torch.Tensor, "grad_dtype"), reason="this torch has gradients of one dtype")
def test_a_gradient_may_have_another_dtype() -> None:
    """As torch's SGD takes it; its AdamW does not."""
    moved = []
    for dtype in (torch.bfloat16, torch.float32):
        param = nn.Parameter(torch.ones(4, 3))
        optimizer = SGDP([("w", param)], lr=0.1)
        for _ in range(3):
            if dtype == torch.bfloat16:
                param.grad_dtype = dtype
            param.grad = torch.full((4, 3), 0.5, dtype=dtype)
            optimizer.step()
        moved.append(param.detach())
    assert torch.allclose(*moved, rtol=1e-6, atol=0)
    assert not torch.allclose(moved[0], torch.ones(4, 3))


# who is on a leash


def far(optimizer: torch.optim.Optimizer, name: str, param: nn.Parameter, start: torch.Tensor) -> tuple[float, float]:
    """How far a layer is from where it was, and its gamma."""
    return float(mars_norm(param.detach() - start)), optimizer.constraints().get(name, 0.0)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("kernel", ["eager", None])
def test_a_group_is_let_off_its_leash(rule: Rule, kernel: str | None) -> None:
    """From then on it goes where torch's own optimizer takes it."""
    model, peer = network(), network()
    optimizer = build(rule, model, kernel=kernel)
    train(model, optimizer, 3)
    optimizer.param_groups[0]["leash"] = False
    assert optimizer.constraints() == {}
    peer.load_state_dict(model.state_dict())
    own = rule.peer(peer.parameters(), **rule.options)
    keys = ("momentum_buffer", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")
    for mine, theirs in zip(model.parameters(), peer.parameters(), strict=True):
        own.state[theirs] = {k: v.clone() for k, v in optimizer.state[mine].items() if k in keys}
    train(model, optimizer, 4, seed=2)
    train(peer, own, 4, seed=2)
    assert torch.allclose(weights(model), weights(peer), rtol=0, atol=1e-6)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_free_group_is_put_on_a_leash(rule: Rule) -> None:
    """Its weights of that moment are the anchors."""
    model = network()
    optimizer = build(rule, model, leash=False)
    train(model, optimizer, 3)
    optimizer.param_groups[0]["leash"] = True
    start = model.wide.weight.detach().clone()
    train(model, optimizer, 3, seed=2)
    distance, gamma = far(optimizer, "wide.weight", model.wide.weight, start)
    assert 0 < distance <= gamma * (1 + 1e-4)


def test_a_name_is_added_to_exclude_set() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.05)
    train(model, optimizer, 3)
    gamma = optimizer.constraints()["conv.weight"]
    optimizer.param_groups[0]["exclude_set"] = {"head.*"}
    train(model, optimizer, 3, seed=2)
    assert [name for name in optimizer.constraints() if name.startswith("head")] == []
    assert optimizer.constraints()["conv.weight"] > gamma  # the others keep theirs
    optimizer.param_groups[0]["exclude_set"] = {"haed.*"}
    with pytest.raises(ValueError, match=r"^exclude_set has 'haed.\*', which matches no parameter; the nearest"):
        train(model, optimizer, 1)


@pytest.mark.parametrize(("name", "value"), [("low_memory", True), ("per_element", True), ("row_axis", 1)])
def test_what_the_state_was_made_for_stays(name: str, value: object) -> None:
    model = network()
    optimizer = AdamP(model.named_parameters())
    train(model, optimizer, 1)
    before, was = weights(model), optimizer.param_groups[0][name]
    optimizer.param_groups[0][name] = value
    with pytest.raises(ValueError) as error:
        train(model, optimizer, 1)
    assert str(error.value) == (
        f"{name} of a group was {was!r} at its first step and is {value!r} now; it must stay, because the state was "
        "made for it: make a new optimizer"
    )
    assert torch.equal(weights(model), before)


def test_two_exclude_sets_of_which_one_speaks_of_nothing() -> None:
    model = network()
    groups = [{"params": list(model.named_parameters()), "exclude_set": {"head.*"}}]
    with pytest.raises(ValueError) as error:
        SGDP(groups, exclude_set={"conv.*"})
    assert str(error.value) == (
        "exclude_set is {'conv.*'} and every group has an exclude_set of its own, which counts instead; "
        "write these names into the groups"
    )


# names that look like a wrapper's


class Branches(nn.Module):
    """A network some of whose modules are called as wrappers call theirs."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            self.add_module(name, nn.Linear(3, 3, bias=False))


@pytest.mark.parametrize(
    ("names", "pattern", "tied"),
    [
        (("base_layer", "top"), "base_layer.*", ["top.weight"]),
        (("module", "top"), "module.*", ["top.weight"]),
        (("database_layer", "data"), "data.*", ["database_layer.weight"]),
    ],
)
def test_a_module_may_be_called_like_a_wrapper(names: tuple[str, ...], pattern: str, tied: list[str]) -> None:
    model = Branches(*names)
    assert list(SGDP(model.named_parameters(), exclude_set={pattern}).constraints()) == tied
    groups = ftp.named_groups(model, head=pattern.removesuffix(".*"))
    assert [name for group in groups if group["leash"] for name, _ in group["params"]] == tied


def test_a_wrappers_part_alone_does_not_stand_for_everything() -> None:
    with pytest.raises(ValueError, match=r"^exclude_set has 'module.\*', which matches no parameter"):
        SGDP(Branches("body", "top").named_parameters(), exclude_set={"module.*"})


# state


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("way", ["clear", "replace"])
def test_cleared_state_begins_a_new_leash(rule: Rule, way: str) -> None:
    model = network()
    optimizer = build(rule, model)
    train(model, optimizer, 3)
    if way == "clear":
        optimizer.state.clear()
    else:
        optimizer.state = type(optimizer.state)(dict)
    start = model.wide.weight.detach().clone()
    train(model, optimizer, 3, seed=2)
    distance, gamma = far(optimizer, "wide.weight", model.wide.weight, start)
    assert 0 < distance <= gamma * (1 + 1e-4)


@pytest.mark.parametrize("name", ["conv.weight", "wide.weight"])  # one that is packed, one that is not
def test_an_anchor_that_is_replaced_is_the_anchor(name: str) -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.05)
    train(model, optimizer, 3)
    param = model.get_parameter(name)
    optimizer.state[param]["anchor"] = torch.zeros_like(param)
    train(model, optimizer, 1)
    gamma = optimizer.constraints()[name]
    assert float(mars_norm(param.detach())) <= gamma * (1 + 1e-4)
    assert optimizer.report()[name].distance == pytest.approx(float(mars_norm(param.detach())))


@pytest.mark.parametrize("more", [{}, {"low_memory": True}, {"leash": False}], ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_no_gradient_outlives_zero_grad(rule: Rule, more: dict[str, Any]) -> None:
    model = network()
    optimizer = build(rule, model, **more)
    for _ in range(2):
        train(model, optimizer, 1)
        gradients = [weakref.ref(p.grad) for p in model.parameters() if p.grad is not None]
        optimizer.zero_grad()
        assert [ref() for ref in gradients] == [None] * len(gradients)


def alive() -> int:
    """The bytes of all tensors."""
    gc.collect()
    stores = {
        t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in gc.get_objects() if type(t) in KINDS
    }
    return sum(stores.values())


KINDS = (torch.Tensor, nn.Parameter)


def held_for_each_weight(**more: Any) -> float:
    """The bytes that an optimizer of small layers holds between two steps, beside weights and gradients."""
    params = [(f"{i}", nn.Parameter(torch.ones(200, 200))) for i in range(10)]
    before = alive()
    optimizer = SGDP(params, lr=0.1, momentum=0.9, **more)
    for _, param in params:
        param.grad = torch.ones_like(param)
    optimizer.step()
    optimizer.zero_grad()
    return (alive() - before) / sum(param.numel() for _, param in params)


def test_low_memory_holds_two_numbers_for_each_weight_of_small_layers_too() -> None:
    """Momentum and anchor, and scratch of the size of one layer; the packed layers of the default need more."""
    assert held_for_each_weight(low_memory=True) == pytest.approx(8, rel=0.1)
    assert held_for_each_weight() == pytest.approx(12 + 12, rel=0.05)


# what a checkpoint does not decide


def test_the_kernel_and_the_place_of_the_anchors_are_this_machines() -> None:
    model = network()
    saved = AdamP(model.named_parameters(), anchor_device="meta", kernel="native")
    checkpoint = saved.state_dict()
    here = AdamP(model.named_parameters(), kernel="eager", lr=9.0)
    here.load_state_dict(checkpoint)
    group = here.param_groups[0]
    assert (group["kernel"], group["anchor_device"], group["lr"]) == ("eager", None, 1e-3)


def test_who_moves_weights_is_told_where() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.05)
    train(model, optimizer, 2)
    with torch.no_grad():
        model.wide.weight.add_(1.0)
    (batch,) = batches(1)
    nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
    with pytest.warns(UserWarning, match="something that is not a step") as caught:
        optimizer.step()
    assert caught[0].filename == __file__


# LoRA


def trained_pair() -> tuple[nn.Parameter, nn.Parameter]:
    return nn.Parameter(torch.ones(2, 5)), nn.Parameter(torch.ones(4, 2))


def test_reanchor_refuses_a_trained_product_before_it_changes_anything() -> None:
    (a, b), other = trained_pair(), nn.Parameter(torch.ones(3, 3))
    with torch.no_grad():
        b.zero_()
    groups = [{"params": [("other", other)]}, {"params": [("lora_A", a), ("lora_B", b)], "product": 1.0}]
    optimizer = SGDP(groups, lr=0.1)
    for _ in range(5):
        for param in (other, a, b):
            param.grad = torch.ones_like(param)
        optimizer.step()
    before = optimizer.constraints()
    assert b.any()
    with pytest.raises(ValueError, match=r"^B of a LoRA pair is not zero when it is anchored anew; the leash ties"):
        optimizer.reanchor()
    assert optimizer.constraints() == before


def test_constraints_of_a_trained_product_can_be_read() -> None:
    a, b = trained_pair()
    optimizer = SGDP([{"params": [("lora_A", a), ("lora_B", b)], "product": 1.0}], lr=0.1)
    assert optimizer.constraints() == {"lora_B": pytest.approx(1e-8)}
    a.grad, b.grad = torch.ones_like(a), torch.ones_like(b)
    with pytest.raises(ValueError, match=r"^B of a LoRA pair is not zero at its first step"):
        optimizer.step()


# bfloat16


@pytest.mark.parametrize("stochastic", [False, True])
def test_a_number_that_is_none_stays_none(stochastic: bool) -> None:
    for bits in (0x7FFFFFFF, 0x7FC00000, -1):
        exact = torch.tensor([bits], dtype=torch.int32).view(torch.float32)
        assert round_to(exact, torch.ones(1, dtype=torch.bfloat16), stochastic).isnan()


def test_a_step_after_many_changes_still_has_the_kernel_that_was_asked_for() -> None:
    """Gradients that come and go end the packing, not a kernel that somebody named."""
    from ftp._plan import Plan
    from ftp._twopass import BaseRule

    model = nn.Linear(3, 2)
    optimizer = SGDP(model.named_parameters(), kernel="native")
    optimizer.anchor()
    group, states = optimizer.param_groups[0], [optimizer.state[p] for p in model.parameters()]
    rule = BaseRule("plain", 0.1, 0.0)
    kinds = []
    for may_pack in (True, False):
        try:
            plan = Plan(list(model.parameters()), states, [], group, rule, may_pack=may_pack)
        except RuntimeError as error:  # there is no compiler
            pytest.skip(str(error))
        kinds.append([type(part).__name__ for part in plan.parts([torch.zeros(2, 3), torch.zeros(2)], rule)])
    assert kinds == [["TwoPass"]] * 2
