"""Every wrong argument and its sentence: what was given, what is allowed, what to write instead."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ftp import SGDP, AdamP, HyperSGD, project_mars
from ftp._options import RULES


def model() -> nn.Module:
    return nn.ModuleDict({"body": nn.Linear(3, 3), "head": nn.Linear(3, 2)})


def sgdp(**options: Any) -> SGDP:
    return SGDP(model().named_parameters(), **options)


def adamp(**options: Any) -> AdamP:
    return AdamP(model().named_parameters(), **options)


RATE = "it must be a number >= 0 or a tensor with one element"
BETAS = "it must be two numbers in [0, 1), such as (0.9, 0.999)"
FLAG = "it must be True or False"
KAPPA = "it must be a number from 0 to 1, such as 1.0 (the paper's default)"
MU = "it must be a number > 0, such as 1e-2 (the paper's mu)"
ROWS = 'it must be "all" (the authors) or "outside" (the true derivative)'
COUNT = 'it must be "steps" (the authors) or "updates" (the textbook)'

VALUES: list[tuple[Callable[..., Any], str, Any, str]] = [
    (sgdp, "lr", -1.0, f"lr is -1.0; {RATE}"),
    (sgdp, "lr", float("nan"), f"lr is nan; {RATE}"),
    (sgdp, "lr", float("inf"), f"lr is inf; {RATE}"),
    (sgdp, "lr", "fast", f"lr is 'fast'; {RATE}"),
    (sgdp, "lr", True, f"lr is True; {RATE}"),
    (sgdp, "lr", torch.ones(2), f"lr is tensor([1., 1.]); {RATE}"),
    (sgdp, "momentum", -0.1, "momentum is -0.1; it must be a number >= 0"),
    (sgdp, "dampening", None, "dampening is None; it must be a number"),
    (sgdp, "weight_decay", -1, "weight_decay is -1; it must be a number >= 0"),
    (sgdp, "nesterov", 1, f"nesterov is 1; {FLAG}"),
    (sgdp, "maximize", "yes", f"maximize is 'yes'; {FLAG}"),
    (sgdp, "foreach", 1, "foreach is 1; it must be None, True or False"),
    (sgdp, "fused", 0, "fused is 0; it must be None, True or False"),
    (adamp, "betas", (0.9, 1.0), f"betas is (0.9, 1.0); {BETAS}"),
    (adamp, "betas", 0.9, f"betas is 0.9; {BETAS}"),
    (adamp, "eps", -1e-8, "eps is -1e-08; it must be a number >= 0"),
    (adamp, "amsgrad", None, f"amsgrad is None; {FLAG}"),
    (adamp, "capturable", None, f"capturable is None; {FLAG}"),
    (sgdp, "k", 1.5, f"k is 1.5; {KAPPA}"),
    (adamp, "k", -0.1, f"k is -0.1; {KAPPA}"),
    (sgdp, "k", None, f"k is None; {KAPPA}"),
    (sgdp, "gamma_lr", 0, f"gamma_lr is 0; {MU}"),
    (sgdp, "gamma_betas", (0.9,), f"gamma_betas is (0.9,); {BETAS}"),
    (sgdp, "gamma_rows", "some", f"gamma_rows is 'some'; {ROWS}"),
    (sgdp, "gamma_count", 3, f"gamma_count is 3; {COUNT}"),
    (sgdp, "per_element", 1, f"per_element is 1; {FLAG}"),
    (sgdp, "low_memory", "no", f"low_memory is 'no'; {FLAG}"),
    (sgdp, "stochastic_rounding", 1, f"stochastic_rounding is 1; {FLAG}"),
    (
        sgdp,
        "kernel",
        "cuda",
        'kernel is \'cuda\'; it must be None (the fastest at hand), "eager" (torch alone), "triton" (GPUs) or '
        '"native" (CPUs with a compiler)',
    ),
    (
        sgdp,
        "leash",
        "no",
        "leash is 'no'; it must be True or None (on a leash, but for what exclude_set names) or False (free)",
    ),
    (sgdp, "row_axis", -1, "row_axis is -1; it must be a whole number >= 0: the axis that counts the outputs"),
    (
        adamp,
        "split",
        0,
        "split is 0; it must be a whole number >= 1: how many matrices are stacked along the row axis, such as 3 for "
        "q, k, v",
    ),
    (
        sgdp,
        "product",
        0,
        "product is 0; it must be None, or for pairs A, B of LoRA a number > 0: the scale s of s B A",
    ),
    (
        sgdp,
        "anchor_dtype",
        torch.float16,
        "anchor_dtype is torch.float16; it must be None (as the weights), torch.bfloat16, torch.float32 or "
        "torch.float64",
    ),
    (
        sgdp,
        "anchor_device",
        3,
        'anchor_device is 3; it must be None (with the weights) or a device, such as "cpu"',
    ),
    (
        sgdp,
        "differentiable",
        True,
        "differentiable is True; it must be False, because the projection writes in place",
    ),
    (
        adamp,
        "decoupled_weight_decay",
        False,
        "decoupled_weight_decay is False; it must be True, as in AdamW: AdamP has no other decay",
    ),
]


@pytest.mark.parametrize(("build", "name", "value", "message"), VALUES)
def test_value(build: Callable[..., Any], name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        build(**{name: value})
    assert str(error.value) == message
    # the same sentence when the option is set for a late group, and the optimizer is as it was
    optimizer = build()
    with pytest.raises(ValueError) as error:
        optimizer.add_param_group({"params": [("late", nn.Parameter(torch.zeros(2)))], name: value})
    assert str(error.value) == message
    assert len(optimizer.param_groups) == 1


def test_every_rule_has_a_row_here() -> None:
    assert {name for _, name, _, _ in VALUES} | {"hyper_lr"} == set(RULES)


def begun(optimizer: SGDP) -> SGDP:
    optimizer.anchor()
    return optimizer


def half() -> list[nn.Parameter]:
    return [nn.Parameter(torch.zeros(2, dtype=torch.float16))]


def flat(mark: str) -> list[nn.Parameter]:
    param = nn.Parameter(torch.zeros(8))
    setattr(param, mark, True)
    return [param]


W = torch.zeros(2, 3)
PARAMS = "it takes names and parameters, or a list of groups: write model.named_parameters()"
ENTRIES = "it takes tensors or pairs (name, tensor): write model.named_parameters()"
SENTENCES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: sgdp(nesterov=True),
        ValueError,
        "nesterov=True with momentum=0 and dampening=0; it must have momentum > 0 and dampening = 0",
    ),
    (
        lambda: sgdp(nesterov=True, momentum=0.9, dampening=0.1),
        ValueError,
        "nesterov=True with momentum=0.9 and dampening=0.1; it must have momentum > 0 and dampening = 0",
    ),
    (
        lambda: sgdp(foreach=True, fused=True),
        ValueError,
        "foreach=True and fused=True; it must be one of them: both are ways to run the base rule",
    ),
    (
        lambda: adamp(lr=torch.tensor(0.1), foreach=True),
        ValueError,
        "lr is a tensor and foreach=True; it must be a number, or set foreach=False or capturable=True",
    ),
    (
        lambda: sgdp(exclude_set="head"),
        TypeError,
        "exclude_set is the string 'head'; it takes a set of names or patterns: write exclude_set={'head'}",
    ),
    (
        lambda: sgdp(exclude_set=3),
        TypeError,
        'exclude_set is of type int; it takes a set of names or patterns: write exclude_set={"head.*"}',
    ),
    (
        lambda: sgdp(exclude_set={nn.Parameter(torch.zeros(1))}),
        TypeError,
        'exclude_set holds an item of type Parameter; it takes names, not parameters: write exclude_set={"head.*"}',
    ),
    (
        lambda: sgdp(exclude_set={"heda.weight"}),
        ValueError,
        "exclude_set has 'heda.weight', which matches no parameter; "
        "the nearest names are head.weight, body.weight, head.bias",
    ),
    (
        lambda: sgdp(exclude_set={"head.*", "classifier.*"}),
        ValueError,
        "exclude_set has 'classifier.*', which matches no parameter; "
        "the nearest names are body.weight, body.bias, head.weight",
    ),
    (
        lambda: SGDP(model().parameters(), exclude_set={"head.*"}),
        ValueError,
        "exclude_set has 'head.*', which matches no parameter; "
        "the nearest names are param.3, param.2, param.1, because the parameters came without: "
        "pass model.named_parameters()",
    ),
    (
        lambda: sgdp().add_param_group({"params": [("late.w", nn.Parameter(W))], "exclude_set": {"later.*"}}),
        ValueError,
        "exclude_set has 'later.*', which matches no parameter; the nearest names are late.w",
    ),
    (
        lambda: sgdp(anchors=[W]),
        TypeError,
        "anchors is of type list; it takes a state dict (name to tensor), such as torch.load(path, weights_only=True)",
    ),
    (
        lambda: sgdp(anchors={"body.weight": torch.zeros(3, 3)}),
        ValueError,
        "anchors has no entry for 'body.bias'; the nearest names are body.weight; "
        "give its pre-trained weight, or put the name into exclude_set",
    ),
    (
        lambda: sgdp(anchors={**model().state_dict(), "head.weight": torch.zeros(5, 3)}),
        ValueError,
        "the anchor of 'head.weight' has shape (5, 3) but the parameter has (2, 3); "
        "they must be equal, or put the name into exclude_set",
    ),
    (
        lambda: sgdp(anchors={**model().state_dict(), "head.weight": 3}),
        TypeError,
        "the anchor of 'head.weight' is of type int; give a tensor",
    ),
    (
        lambda: SGDP(model().parameters(), anchors=model().state_dict()),
        ValueError,
        "anchors= needs names to match: pass model.named_parameters() as the parameters",
    ),
    (
        lambda: SGDP([{"params": [nn.Parameter(W)], "pre": [W], "name": ["w"]}], anchors={"w": W}),
        ValueError,
        'anchors= and the groups\' "pre" both give anchors; keep one of them',
    ),
    (
        lambda: SGDP([{"params": [nn.Parameter(W)], "name": ["a", "b"]}]),
        ValueError,
        'a group has 1 parameters and 2 entries in "name"; give one name per parameter',
    ),
    (
        lambda: SGDP([{"params": [nn.Parameter(W)], "pre": []}]),
        ValueError,
        'a group has 1 parameters and 0 entries in "pre"; give one anchor per parameter',
    ),
    (
        lambda: SGDP([{"params": [("a", nn.Parameter(W))]}, {"params": [("module.a", nn.Parameter(W))]}]),
        ValueError,
        "two parameters are called 'a'; constraints are kept by name: give each model its own prefix, "
        'as in [("encoder." + n, p) for n, p in encoder.named_parameters()]',
    ),
    (
        lambda: SGDP(half()),
        TypeError,
        "'param.0' is float16, which cannot hold the small steps of a short leash; "
        "keep float32 weights and use torch.autocast, or use bfloat16",
    ),
    (
        lambda: SGDP([nn.Parameter(torch.zeros(2, dtype=torch.complex64))]),
        TypeError,
        "'param.0' is complex; the projection is defined for real rows: put the name into exclude_set "
        "and optimize torch.view_as_real of it if it must be on the leash",
    ),
    (
        lambda: SGDP([nn.Parameter(torch.zeros(2, dtype=torch.int32), requires_grad=False)]),
        TypeError,
        "'param.0' is of dtype torch.int32; only real floating point parameters can be trained: "
        "leave it out of the optimizer, or put the name into exclude_set",
    ),
    *[
        (
            lambda mark=mark: SGDP(flat(mark)),
            TypeError,
            "'param.0' is a flat parameter of FSDP1, which mixes the rows of many layers; "
            "shard the model with torch.distributed.fsdp.fully_shard (FSDP2) instead",
        )
        for mark in ("_is_flat_param", "_fsdp_flattened")
    ],
    (
        lambda: sgdp().load_state_dict(torch.optim.SGD(model().parameters()).state_dict()),
        ValueError,
        "the state dict has no anchors and no constraints, so it was not saved by SGDP or AdamP; "
        "to go on from another optimizer's checkpoint, load the model and start a new optimizer with anchors=",
    ),
    (
        lambda: sgdp().load_state_dict({"model": 1}),
        ValueError,
        "the state dict has the keys ['model']; it must have state and param_groups: "
        "pass what optimizer.state_dict() returned",
    ),
    (
        lambda: HyperSGD(model().parameters(), hyper_lr=-1),
        ValueError,
        "hyper_lr is -1; it must be a number >= 0",
    ),
    (
        lambda: SGDP([{"parameters": []}]),
        ValueError,
        "a parameter group is {'parameters': []}; it must be a dict with the key \"params\": "
        'write {"params": module.named_parameters(), "lr": 1e-3}',
    ),
    (
        lambda: sgdp().add_param_group(3),
        ValueError,
        'a parameter group is 3; it must be a dict with the key "params": '
        'write {"params": module.named_parameters(), "lr": 1e-3}',
    ),
    (
        lambda: SGDP([("a", nn.Parameter(W)), nn.Parameter(W)]),
        ValueError,
        "1 of 2 parameters of a group have a name; name all of them or none: pass model.named_parameters()",
    ),
    (
        lambda: SGDP([{"params": {nn.Parameter(W)}}]),
        TypeError,
        "a group's params are a set, which has no order; give a list or model.named_parameters()",
    ),
    (
        lambda: sgdp(anchors={}),
        ValueError,
        "anchors has no entry for 'body.weight'; there is no name to compare it with: "
        "pass model.named_parameters(); give its pre-trained weight, or put the name into exclude_set",
    ),
    (
        lambda: sgdp(anchors={"a": W, "module.a": W}),
        ValueError,
        "two parameters are called 'a'; constraints are kept by name: give each model its own prefix, "
        'as in [("encoder." + n, p) for n, p in encoder.named_parameters()]',
    ),
    (
        lambda: sgdp().load_state_dict(adamp().state_dict()),
        ValueError,
        "the state dict has no dampening, momentum, nesterov; it was saved by the other base rule: "
        "SGDP and AdamP load only what they saved themselves",
    ),
    (
        lambda: sgdp().load_state_dict(sgdp(exclude_set={"head.bias"}).state_dict()),
        ValueError,
        "'head.bias' is off the leash in the state dict and on it here; "
        "use the exclude_set and leash that it was saved with",
    ),
    (
        lambda: sgdp(exclude_set={"body.bias"}).load_state_dict(sgdp().state_dict()),
        ValueError,
        "'body.bias' is on the leash in the state dict and off it here; "
        "use the exclude_set and leash that it was saved with",
    ),
    (
        lambda: SGDP([("p", nn.Parameter(W)), ("q", nn.Parameter(W))]).load_state_dict(
            SGDP([("q", nn.Parameter(W)), ("p", nn.Parameter(W))]).state_dict()
        ),
        ValueError,
        "the state dict has 'q' where this optimizer has 'p'; "
        "give the parameters in the order in which they were saved",
    ),
    (
        lambda: SGDP([("p", nn.Parameter(W))]).load_state_dict(
            begun(SGDP([("p", nn.Parameter(torch.zeros(5)))])).state_dict()
        ),
        ValueError,
        "the anchor of 'p' in the state dict has shape (5,) but the parameter has (2, 3); "
        "load a checkpoint of this model",
    ),
    (
        lambda: project_mars(W, W.double(), 1.0),
        ValueError,
        "unconstrained is torch.float32 and anchor torch.float64; "
        "a layer and its anchor must have the same real floating point dtype",
    ),
    (
        lambda: project_mars(W, torch.zeros(3, 2), 1.0),
        ValueError,
        "unconstrained has shape (2, 3) and anchor (3, 2); a layer and its anchor must have the same shape",
    ),
    (lambda: SGDP([]), ValueError, "optimizer got an empty parameter list"),
    *[
        (lambda given=given: SGDP(given), TypeError, f"params is of type {kind}; {PARAMS}")
        for given, kind in (
            (model(), "ModuleDict"),
            (nn.Sequential(nn.Linear(3, 3)), "Sequential"),
            (model().state_dict(), "OrderedDict"),
            (dict(model().named_parameters()), "dict"),
            (nn.Parameter(W), "Parameter"),
            (model().named_parameters, "method"),
            ("abc", "str"),
            ([{"params": model()}], "ModuleDict"),
            ([{"params": dict(model().named_parameters())}], "dict"),
        )
    ],
    (
        lambda: SGDP({"params": model().named_parameters(), "lr": 0.1}),
        TypeError,
        "params is one group; it takes a list of groups: put the group into [ ]",
    ),
    *[
        (lambda given=given: SGDP(given), TypeError, f"params holds {what}; {ENTRIES}")
        for given, what in (
            ([(param, name) for name, param in model().named_parameters()], "(Parameter, str)"),
            ([("a", nn.Parameter(W), 1)], "(str, Parameter, int)"),
            ([("a", "b")], "(str, str)"),
            ([W, "b"], "an item of type str"),
            ([nn.Linear(3, 3), nn.Linear(3, 2)], "an item of type Linear"),
            ([model().named_parameters()], "an item of type generator"),
            ([{"params": [nn.Parameter(W)], "name": [0]}], "(int, Parameter)"),
        )
    ],
    *[
        (
            lambda pattern=pattern: sgdp(exclude_set={pattern}),
            ValueError,
            f"exclude_set has {pattern!r}, which matches no parameter; for the parameters in it write 'head.*'",
        )
        for pattern in ("head", "head.", "module.head")
    ],
    (
        lambda: SGDP(nn.Sequential(*[nn.Linear(3, 3) for _ in range(6)]).named_parameters(), exclude_set={"5"}),
        ValueError,
        "exclude_set has '5', which matches no parameter; for the parameters in it write '5.*'",
    ),
    *[
        (
            lambda build=build, name=name: build(**{name: 1}),
            TypeError,
            f"{name} is not an argument of {kind}; did you mean {meant}?",
        )
        for build, kind in ((sgdp, "SGDP"), (adamp, "AdamP"))
        for name, meant in (
            ("kappa", "k"),
            ("mu", "gamma_lr"),
            ("gamma", "gamma_lr"),
            ("exclude", "exclude_set"),
            ("pre", "anchors"),
            ("anchor", "anchors"),
            ("learning_rate", "lr"),
            ("wd", "weight_decay"),
        )
    ],
    (
        lambda: adamp(nesterov=True),
        TypeError,
        "nesterov is not an argument of AdamP; it takes params, lr, betas, eps, weight_decay, amsgrad, maximize, "
        "foreach, capturable, fused, differentiable, decoupled_weight_decay, k, exclude_set, anchors, leash, row_axis, "
        "split, product, gamma_lr, gamma_betas, gamma_rows, gamma_count, per_element, low_memory, anchor_dtype, "
        "anchor_device, stochastic_rounding, kernel",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), SENTENCES, ids=[row[2][:40] for row in SENTENCES])
def test_sentence(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


def test_a_sparse_gradient_is_refused_at_the_first_step() -> None:
    embedding = nn.Embedding(10, 3, sparse=True)
    optimizer = SGDP(embedding.named_parameters(), lr=0.1)
    before = embedding.weight.detach().clone()
    embedding(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(RuntimeError) as error:
        optimizer.step()
    assert str(error.value) == (
        "a gradient is sparse; the projection needs dense rows: "
        "build the embedding with sparse=False, or put its name into exclude_set"
    )
    assert torch.equal(embedding.weight, before)


def test_a_sparse_gradient_in_a_later_group_leaves_the_first_group_alone() -> None:
    first, embedding = nn.Parameter(torch.ones(3)), nn.Embedding(10, 3, sparse=True)
    optimizer = SGDP([{"params": [first]}, {"params": [embedding.weight]}], lr=0.1)
    (first.sum() + embedding(torch.tensor([1, 2])).sum()).backward()
    with pytest.raises(RuntimeError, match="a gradient is sparse"):
        optimizer.step()
    assert first not in optimizer.state or optimizer.state[first]["gamma_state"][3] == 0
    assert torch.equal(first, torch.ones(3))


def test_a_sparse_gradient_off_the_leash_is_torchs_affair() -> None:
    ends = []
    for build in (lambda p: SGDP(p, lr=0.1, exclude_set={"*"}), lambda p: torch.optim.SGD(p, lr=0.1)):
        torch.manual_seed(0)
        embedding = nn.Embedding(10, 3, sparse=True)
        optimizer = build(embedding.named_parameters())
        embedding(torch.tensor([1, 2])).sum().backward()
        optimizer.step()
        ends.append(embedding.weight.detach())
    assert torch.equal(*ends)


def test_a_refused_checkpoint_changes_nothing() -> None:
    net = model()
    optimizer = SGDP(net.named_parameters(), lr=0.1)
    before = optimizer.state_dict()
    with pytest.raises(ValueError, match="no anchors"):
        optimizer.load_state_dict(torch.optim.SGD(net.parameters(), lr=7.0).state_dict())
    assert str(optimizer.state_dict()) == str(before)


def test_a_refused_group_changes_nothing() -> None:
    optimizer = sgdp()
    keys = len(optimizer.state)
    for params in ([("late", nn.Parameter(W.half()))], [nn.Parameter(W)], [("body.weight", nn.Parameter(W))]):
        with pytest.raises((TypeError, ValueError)):
            optimizer.add_param_group({"params": params})
    assert (len(optimizer.param_groups), len(optimizer.state)) == (1, keys)


def test_numbers_of_numpy_are_numbers() -> None:
    optimizer = sgdp(lr=np.float32(0.1), k=np.float64(0.5), momentum=np.float32(0.9))
    assert optimizer.param_groups[0]["k"] == 0.5


def test_a_parameter_list_holds_parameters_though_it_is_a_module() -> None:
    params = nn.ParameterList([nn.Parameter(W), nn.Parameter(W)])
    assert (
        list(SGDP(params, leash=True).constraints())
        == list(SGDP([{"params": params, "leash": True}]).constraints())
        == ["param.0", "param.1"]
    )


def test_excluded_parameters_may_be_what_the_leash_cannot_take() -> None:
    params = [("body", nn.Parameter(W)), ("odd", nn.Parameter(torch.zeros(2, dtype=torch.complex64)))]
    assert list(SGDP(params, exclude_set={"odd"}).constraints()) == ["body"]
