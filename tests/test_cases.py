"""Everything that happens to an optimizer in a real training loop, as one table, for both base rules."""

import copy
from collections.abc import Callable

import pytest
import torch
from cases import RULES, Network, Rule, batches, network, train, train_step, weights
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR

from ftp import SGDP, AdamP

# a case does the same thing in two ways; the weights must agree but for float64's rounding
WIDE = {"dtype": torch.float64}  # in float32 Adam would blow up the rounding of a gradient that is zero
Case = Callable[[Rule], tuple[Network, Network]]
CASES: list[Case] = []


def case(function: Case) -> Case:
    CASES.append(function)
    return function


def pair() -> tuple[Network, Network]:
    return network(**WIDE), network(**WIDE)


def build(rule: Rule, model: nn.Module, **more: object) -> torch.optim.Optimizer:
    return rule.build(model.named_parameters(), **{**rule.options, **more})


@case
def a_closure_is_called_once_and_its_loss_returned(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    first, second = build(rule, a), build(rule, b)
    for x, y in batches(6, **WIDE):
        losses: list[torch.Tensor] = []

        def closure(x: torch.Tensor = x, y: torch.Tensor = y, losses: list[torch.Tensor] = losses) -> torch.Tensor:
            second.zero_grad()
            losses.append(nn.functional.cross_entropy(b(x), y))
            losses[-1].backward()
            return losses[-1]

        returned = second.step(closure)
        train_step(a, first, (x, y))
        assert len(losses) == 1
        assert returned is losses[0]
    return a, b


@case
def schedulers_set_the_rate_as_for_torch(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    first, second = build(rule, a, exclude_set={"*"}), rule.peer(b.parameters(), **rule.options)
    for model, optimizer in ((a, first), (b, second)):
        scheduler = CosineAnnealingLR(optimizer, T_max=6)
        for batch in batches(6, **WIDE):
            train_step(model, optimizer, batch)
            scheduler.step()
    return a, b


@case
def maximize_is_minimizing_the_negative(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    first, second = build(rule, a), build(rule, b, maximize=True)
    for x, y in batches(6, **WIDE):
        for model, optimizer, sign in ((a, first, 1.0), (b, second, -1.0)):
            optimizer.zero_grad()
            (sign * nn.functional.cross_entropy(model(x), y)).backward()
            optimizer.step()
    return a, b


@case
def a_tensor_rate_is_the_number(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    lr = torch.tensor(rule.options["lr"], dtype=torch.float64)
    train(a, build(rule, a), 6, **WIDE)
    train(b, build(rule, b, lr=lr), 6, **WIDE)
    return a, b


@case
def accumulated_gradients_are_one_large_batch(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    a.eval(), b.eval()  # batch statistics would differ between halves
    first, second = build(rule, a), build(rule, b)
    for x, y in batches(6, **WIDE):
        first.zero_grad()
        for half in (slice(0, 8), slice(8, 16)):
            (nn.functional.cross_entropy(a(x[half]), y[half]) / 2).backward()
        first.step()
        train_step(b, second, (x, y))
    return a, b


@case
def groups_may_be_split(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    train(a, build(rule, a), 6, **WIDE)
    named = list(b.named_parameters())
    groups = [{"params": named[:2]}, {"params": named[2:5]}, {"params": named[5:]}]
    train(b, rule.build(groups, **rule.options), 6, **WIDE)
    return a, b


@case
def a_late_group_is_as_if_it_had_been_there(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    first = build(rule, a)
    for p in a.head.parameters():
        p.requires_grad_(False)
    second = rule.build([(n, p) for n, p in b.named_parameters() if not n.startswith("head")], **rule.options)
    for p in b.head.parameters():
        p.requires_grad_(False)
    for i, batch in enumerate(batches(8, **WIDE)):
        if i == 4:
            for model in (a, b):
                for p in model.head.parameters():
                    p.requires_grad_(True)
            second.add_param_group({"params": [(n, p) for n, p in b.named_parameters() if n.startswith("head")]})
        train_step(a, first, batch)
        train_step(b, second, batch)
    return a, b


@case
def a_missing_gradient_shifts_no_neighbour(rule: Rule) -> tuple[Network, Network]:
    # each parameter has its own optimizer in b, so nothing can be confused there
    a, b = pair()
    first = build(rule, a)
    alone = [rule.build([(n, p)], **rule.options) for n, p in b.named_parameters()]
    for i, (x, y) in enumerate(batches(10, **WIDE)):
        for model in (a, b):
            model.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            for j, p in enumerate(model.parameters()):
                if (i + j) % 3 == 0 or (j == 2 and i < 5):
                    p.grad = None
        first.step()
        for optimizer in alone:
            optimizer.step()
    return a, b


@case
def frozen_and_unfrozen(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    first, second = build(rule, a), build(rule, b)
    for i, batch in enumerate(batches(9, **WIDE)):
        for model, optimizer in ((a, first), (b, second)):
            frozen = 3 <= i < 6
            if model is a:
                model.conv.weight.requires_grad_(not frozen)
                train_step(model, optimizer, batch)
            else:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
                if frozen:
                    model.conv.weight.grad = None
                optimizer.step()
    return a, b


@case
def a_step_that_the_scaler_skips_does_not_count(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    first, second = build(rule, a, fused=True), build(rule, b, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    for i, batch in enumerate(batches(6, **WIDE)):
        train_step(a, first, batch)
        for poisoned in (True, False) if i == 3 else (False,):
            second.zero_grad()
            scaler.scale(nn.functional.cross_entropy(b(batch[0]), batch[1])).backward()
            if poisoned:
                b.conv.weight.grad.fill_(float("inf"))
            scaler.step(second)
            scaler.update()
    return a, b


@case
def zero_grad_to_zero_or_to_none(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    train(a, build(rule, a), 5, **WIDE)
    optimizer = build(rule, b)
    for x, y in batches(5, **WIDE):
        optimizer.zero_grad(set_to_none=False)
        nn.functional.cross_entropy(b(x), y).backward()
        optimizer.step()
    return a, b


@case
def names_are_not_needed(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    train(a, build(rule, a), 5, **WIDE)
    train(b, rule.build(b.parameters(), leash=True, **rule.options), 5, **WIDE)
    return a, b


@case
def the_appendix_layout_is_the_same(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    train(a, build(rule, a, exclude_set={"head.*"}), 5, **WIDE)
    group = {
        "params": [p for _, p in b.named_parameters()],
        "pre": copy.deepcopy(list(b.parameters())),
        "name": [n for n, _ in b.named_parameters()],
    }
    train(b, rule.build([group], exclude_set={"module.head.weight", "module.head.bias"}, **rule.options), 5, **WIDE)
    return a, b


@case
def anchors_from_a_state_dict(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    anchors = {f"module.{name}": value for name, value in network(**WIDE).state_dict().items()}
    train(a, build(rule, a), 5, **WIDE)
    train(b, build(rule, b, anchors=anchors), 5, **WIDE)
    return a, b


@case
def channels_last_changes_nothing(rule: Rule) -> tuple[Network, Network]:
    a, b = pair()
    b.to(memory_format=torch.channels_last)
    first, second = build(rule, a), build(rule, b)
    for batch in batches(5, **WIDE):
        train_step(a, first, batch)
        second.zero_grad()
        for p, q in zip(a.parameters(), b.parameters(), strict=True):
            q.grad = p.grad.clone().contiguous()
        second.step()
    return a, b


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", [c.__name__ for c in CASES])
def test_case(name: str, rule: Rule) -> None:
    first, second = next(c for c in CASES if c.__name__ == name)(rule)
    assert torch.isfinite(weights(first)).all()
    assert torch.allclose(weights(first), weights(second), rtol=0, atol=1e-12), name
    assert not torch.equal(weights(first), weights(network(**WIDE))), "nothing was trained"


def test_one_cycle_moves_the_momentum_too() -> None:
    model = network()
    optimizer = SGDP(model.named_parameters(), lr=0.01, momentum=0.9)
    scheduler = OneCycleLR(optimizer, max_lr=0.05, total_steps=8)
    for batch in batches(8):
        train_step(model, optimizer, batch)
        scheduler.step()
    assert optimizer.param_groups[0]["momentum"] != 0.9
    assert torch.isfinite(weights(model)).all()


def test_step_hooks_run_once() -> None:
    model = network()
    torch.optim.SGD(model.parameters())  # patches hooks into torch's own step
    optimizer = SGDP(model.named_parameters(), lr=0.1)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    train(model, optimizer, 1)
    assert calls == ["before", "after"]


def test_reanchor_starts_again_from_todays_weights() -> None:
    model = network()
    optimizer = AdamP(model.named_parameters(), lr=0.01)
    train(model, optimizer, 8)
    here = weights(model)
    assert max(row.distance for row in optimizer.report().values()) > 1e-3
    optimizer.reanchor()
    assert list(optimizer.constraints().values()) == pytest.approx([1e-8] * len(optimizer.constraints()))
    assert all(row.distance == 0 for row in optimizer.report().values())
    train(model, optimizer, 1)
    assert torch.allclose(weights(model), here, atol=1e-7)  # again a step to nowhere
    train(model, optimizer, 5)
    assert 0 < max(row.distance for row in optimizer.report().values()) < 0.1


def test_the_report_says_what_the_weights_say() -> None:
    model = network()
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = SGDP(model.named_parameters(), lr=0.05, momentum=0.9, exclude_set={"head.*"})
    train(model, optimizer, 10)
    report = optimizer.report()
    assert list(report) == [name for name in start if not name.startswith("head")]
    for name, param in model.named_parameters():
        if name in report:
            rows = (param.detach() - start[name]).reshape(len(param) if param.dim() > 1 else 1, -1)
            lengths = rows.abs().sum(1)
            assert report[name].rows == len(rows)
            assert report[name].distance == pytest.approx(lengths.max().item(), rel=1e-5)
            assert report[name].gamma == pytest.approx(optimizer.constraints()[name])
            on_the_boundary = (lengths > (1 - 1e-5) * report[name].gamma).double().mean().item()
            assert report[name].boundary == pytest.approx(on_the_boundary, abs=0.02)
            assert report[name].distance <= report[name].gamma * 1.0001 + 1e-7


def test_anchors_pull_back_a_model_that_has_already_moved() -> None:
    model = network()
    anchors = copy.deepcopy(model.state_dict())
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 5)
    for low_memory in (False, True):
        moved = copy.deepcopy(model)
        optimizer = SGDP(moved.named_parameters(), lr=0.01, anchors=anchors, low_memory=low_memory)
        train(moved, optimizer, 1)
        back = max(row.distance for row in optimizer.report().values())
        assert back < 1e-3


def test_options_may_differ_between_groups() -> None:
    model = network()
    groups = [
        {"params": list(model.conv.named_parameters("conv")), "k": 0.0, "gamma_lr": 0.1},
        {"params": list(model.wide.named_parameters("wide")), "gamma_betas": (0.5, 0.9), "per_element": True},
        {"params": list(model.head.named_parameters("head")), "exclude_set": {"head.*"}},
    ]
    optimizer = SGDP(groups, lr=0.05)
    train(model, optimizer, 4)
    assert list(optimizer.constraints()) == ["conv.weight", "wide.weight"]
    assert optimizer.constraints()["conv.weight"] > 0.1
    assert optimizer.constraints()["wide.weight"] < 0.1


def test_a_group_may_have_a_label_of_its_own() -> None:
    model = network()
    optimizer = SGDP([{"params": list(model.parameters()), "name": "everything"}], lr=0.05, leash=True)
    train(model, optimizer, 2)
    assert optimizer.param_groups[0]["name"] == "everything"


def test_boundary_counts_the_rows_that_were_pulled_back() -> None:
    param = nn.Parameter(torch.zeros(4, 1, dtype=torch.float64))
    optimizer = SGDP([param], lr=1.0)
    optimizer.anchor()
    optimizer.state[param]["gamma_state"][0] = 0.5
    param.grad = torch.tensor([[0.4], [0.49], [0.51], [2.0]], dtype=torch.float64)
    optimizer.step()
    assert optimizer.report()["param.0"].boundary == 0.5


def test_layers_that_drop_out_do_not_pin_the_memory_of_the_others() -> None:
    params = [nn.Parameter(torch.randn(32, 32)) for _ in range(20)]
    optimizer = SGDP(params, lr=0.1, leash=True)

    def memory() -> int:
        storages = {
            v.untyped_storage().data_ptr(): v.untyped_storage().nbytes()
            for state in optimizer.state.values()
            for v in state.values()
            if torch.is_tensor(v)
        }
        return sum(storages.values())

    sizes = []
    for frozen in range(20):
        for i, p in enumerate(params):
            p.grad = None if i < frozen else torch.randn_like(p)
        optimizer.step()
        sizes.append(memory())
    assert max(sizes) <= 1.01 * sizes[0]


def test_gradients_that_come_and_go_do_not_pack_again_and_again() -> None:
    params = [nn.Parameter(torch.randn(8, 8)) for _ in range(10)]
    optimizer = SGDP(params, lr=0.1, leash=True)
    for step in range(24):
        for i, p in enumerate(params):
            p.grad = None if i == step % 2 else torch.randn_like(p)
        optimizer.step()
    assert optimizer._plans[0][1] == 24
    assert optimizer.state[params[5]]["anchor"]._base is None  # one by one by now
