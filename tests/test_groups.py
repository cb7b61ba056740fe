"""What a row is, for every kind of module: measured against the true norm. And the groups that are made from it."""

from collections.abc import Callable

import pytest
import torch
from cases import gradients, network
from torch import Tensor, nn

from ftp import SGDP, AdamP, mars_norm, named_groups
from ftp.groups import Rows, rows_of
from ftp.projection import cut


class Conv1D(nn.Module):
    """GPT-2's linear layer, whose weight is (inputs, outputs)."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.nf = outputs
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


def true_norms(function: Callable[[Tensor], Tensor], inputs: tuple[int, ...], parts: int = 1) -> list[float]:
    """The infinity norm of each part of a linear function's outputs, from its matrix: the largest absolute row sum."""
    matrix = torch.autograd.functional.jacobian(
        lambda x: function(x.view(inputs)).flatten(), torch.zeros(inputs).flatten()
    )
    return [float(part.abs().sum(1).max()) for part in matrix.chunk(parts)]


def measured(module: nn.Module, attribute: str, name: str = "layer.weight") -> list[float]:
    param = getattr(module, attribute)
    return [float(mars_norm(layer)) for layer in cut(param.detach(), *rows_of(module, attribute, name, param))]


def plain(module: nn.Module) -> nn.Module:
    """A layer whose bias is zero, so that it is linear; what it computes is then the change that a leash holds."""
    for name, param in module.named_parameters():
        nn.init.zeros_(param) if "bias" in name else nn.init.normal_(param)
    return module


IMAGE = (1, 4, 7, 7)
EXACT: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "Linear": (nn.Linear(5, 3), (1, 5)),
    "Conv1d": (nn.Conv1d(4, 3, 3), (1, 4, 7)),
    "Conv2d": (nn.Conv2d(4, 6, 3), IMAGE),
    "Conv2d, padded": (nn.Conv2d(4, 6, 3, padding=1), IMAGE),
    "Conv2d, strided": (nn.Conv2d(4, 6, 3, stride=2), IMAGE),
    "Conv2d, groups": (nn.Conv2d(4, 6, 3, groups=2), IMAGE),
    "Conv2d, depthwise": (nn.Conv2d(4, 4, 3, groups=4), IMAGE),
    "Conv3d": (nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
    "ConvTranspose1d": (nn.ConvTranspose1d(4, 3, 3), (1, 4, 7)),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 6, 3), IMAGE),
    "ConvTranspose2d, one output": (nn.ConvTranspose2d(4, 1, 3), IMAGE),
    "Conv1D of GPT-2": (Conv1D(3, 5), (1, 5)),
}


@pytest.mark.parametrize("kind", EXACT)
def test_gamma_is_the_infinity_norm(kind: str) -> None:
    module, inputs = EXACT[kind]
    module = plain(module)
    assert measured(module, "weight") == pytest.approx(true_norms(module, inputs), rel=1e-5)


ABOVE: dict[str, tuple[nn.Module, tuple[int, ...], float]] = {
    # each output sees only every second tap of the kernel in each direction
    "ConvTranspose2d, stride 2": (nn.ConvTranspose2d(4, 6, 4, stride=2), IMAGE, 5.0),
    # each output sees only the inputs of its own group
    "ConvTranspose2d, groups": (nn.ConvTranspose2d(4, 6, 3, groups=2), IMAGE, 3.0),
}


@pytest.mark.parametrize("kind", ABOVE)
def test_gamma_is_never_below_the_infinity_norm(kind: str) -> None:
    module, inputs, most = ABOVE[kind]
    module = plain(module)
    (ours,), (truth,) = measured(module, "weight"), true_norms(module, inputs)
    assert truth < ours < most * truth


def test_axis_0_would_be_wrong_where_the_table_says_1() -> None:
    for kind in ("ConvTranspose2d", "Conv1D of GPT-2"):
        module, inputs = EXACT[kind]
        module = plain(module)
        assert abs(float(mars_norm(module.weight.detach())) / true_norms(module, inputs)[0] - 1) > 0.05


def test_stacked_matrices_have_a_leash_each() -> None:
    attention = plain(nn.MultiheadAttention(8, 2))
    parts = true_norms(lambda x: x @ attention.in_proj_weight.t(), (1, 8), parts=3)
    assert measured(attention, "in_proj_weight") == pytest.approx(parts, rel=1e-5)
    qkv = plain(nn.Linear(8, 24))
    assert measured(qkv, "weight", "blocks.0.attn.qkv.weight") == pytest.approx(true_norms(qkv, (1, 8), 3), rel=1e-5)
    for inputs in (4, 9):  # three times something else: parts of other sizes, or none
        uneven = plain(nn.Linear(inputs, 24))
        assert rows_of(uneven, "weight", "blocks.0.attn.qkv.weight", uneven.weight) == Rows()
    c_attn = plain(Conv1D(24, 8))
    assert measured(c_attn, "weight", "h.0.attn.c_attn.weight") == pytest.approx(
        true_norms(c_attn, (1, 8), 3), rel=1e-5
    )
    for cell, gates in ((nn.LSTM(5, 4), 4), (nn.GRU(5, 4), 3), (nn.RNN(5, 4), 1)):
        weight = plain(cell).weight_ih_l0
        parts = true_norms(lambda x, weight=weight: x @ weight.t(), (1, 5), gates)
        assert measured(cell, "weight_ih_l0") == pytest.approx(parts, rel=1e-5)


def test_a_table_has_a_row_for_each_entry() -> None:
    """An index picks one row: what comes out changes by at most its largest entry, and gamma bounds their sum."""
    table = plain(nn.Embedding(9, 4))
    answers = table(torch.arange(9)).detach()
    assert measured(table, "weight") == pytest.approx([float(answers.abs().sum(1).max())])

    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pos_embed, self.cls_token = nn.Parameter(torch.randn(1, 5, 4)), nn.Parameter(torch.randn(1, 1, 4))

    module = Positions()
    assert measured(module, "pos_embed") == pytest.approx([float(module.pos_embed.detach().abs().sum(2).max())])
    assert measured(module, "cls_token") == pytest.approx([float(module.cls_token.detach().abs().sum())])


def test_a_gain_is_exact_with_per_element() -> None:
    norm = nn.BatchNorm1d(4, affine=True).eval()
    nn.init.normal_(norm.weight)
    (truth,) = true_norms(norm, (1, 4))
    assert float(mars_norm(norm.weight.detach(), per_element=True)) == pytest.approx(truth, rel=1e-4)
    assert float(mars_norm(norm.weight.detach())) >= truth  # one row for the vector: an upper bound


# the step itself, along other axes and in parts


@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 3, 3), (400, 600)])
def test_row_axis_is_the_same_as_the_transposed_layer(shape: tuple[int, ...], low_memory: bool) -> None:
    start = torch.randn(shape, dtype=torch.float64)
    here, there = nn.Parameter(start.clone()), nn.Parameter(start.transpose(0, 1).contiguous())
    first = SGDP([("w", here)], lr=0.05, momentum=0.9, row_axis=1, low_memory=low_memory)
    second = SGDP([("w", there)], lr=0.05, momentum=0.9, low_memory=low_memory)
    for grad in gradients(shape, 20, torch.float64):
        here.grad, there.grad = grad.clone(), grad.transpose(0, 1).contiguous()
        first.step()
        second.step()
    assert torch.allclose(here.detach().transpose(0, 1), there.detach(), rtol=0, atol=1e-12)
    assert first.constraints() == pytest.approx(second.constraints(), abs=1e-12)
    assert first.report()["w"] == pytest.approx(second.report()["w"], abs=1e-12)


@pytest.mark.parametrize("per_element", [False, True])
@pytest.mark.parametrize("build", [SGDP, AdamP])
@pytest.mark.parametrize(("shape", "row_axis"), [((6, 4), 0), ((4, 6), 1), ((6,), 0), ((6,), 1), ((600, 300), 0)])
def test_split_is_the_same_as_separate_layers(
    shape: tuple[int, ...], row_axis: int, build: type, per_element: bool
) -> None:
    start = torch.randn(shape, dtype=torch.float64)
    axis = row_axis if len(shape) > 1 else 0
    whole = nn.Parameter(start.clone())
    parts = [nn.Parameter(part.clone()) for part in start.chunk(3, axis)]
    options = {"lr": 0.02, "row_axis": row_axis, "per_element": per_element}
    first = build([("w", whole)], split=3, **options)
    second = build([(f"w[{i}]", part) for i, part in enumerate(parts)], **options)
    for grad in gradients(shape, 20, torch.float64, seed=5):
        whole.grad = grad.clone()
        for part, piece in zip(parts, grad.chunk(3, axis), strict=True):
            part.grad = piece.clone()
        first.step()
        second.step()
    assert torch.allclose(whole.detach(), torch.cat([p.detach() for p in parts], axis), rtol=0, atol=1e-12)
    assert list(first.constraints()) == list(second.constraints()) == ["w[0]", "w[1]", "w[2]"]
    assert first.constraints() == pytest.approx(second.constraints(), abs=1e-12)
    assert first.report()["w[1]"] == pytest.approx(second.report()["w[1]"], abs=1e-12)
    assert len(set(first.constraints().values())) == 3


def test_split_and_row_axis_resume_exactly() -> None:
    import copy

    torch.manual_seed(0)
    start = torch.randn(4, 6)
    ends = []
    for stop in (False, True):
        param = nn.Parameter(start.clone())
        optimizer = SGDP([("w", param)], lr=0.05, row_axis=1, split=3, momentum=0.9)
        for i, grad in enumerate(gradients((4, 6), 12, torch.float32)):
            if stop and i == 6:
                saved = copy.deepcopy(optimizer.state_dict())
                optimizer = SGDP([("w", param)], lr=0.05, row_axis=1, split=3, momentum=0.9)
                optimizer.load_state_dict(saved)
            param.grad = grad.clone()
            optimizer.step()
        ends.append((param.detach(), optimizer.constraints()))
    assert torch.equal(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_split_and_row_axis_compile() -> None:
    torch.compiler.reset()
    ends = []
    for compiled in (False, True):
        torch.manual_seed(0)
        param = nn.Parameter(torch.randn(4, 6, 2, dtype=torch.float64))
        optimizer = SGDP([("w", param)], lr=0.05, row_axis=1, split=3, momentum=0.9)
        step = torch.compile(lambda o=optimizer: o.step(), fullgraph=True) if compiled else optimizer.step
        for grad in gradients((4, 6, 2), 8, torch.float64):
            param.grad = grad.clone()
            step()
        ends.append(param.detach())
    assert torch.allclose(*ends, rtol=0, atol=1e-12)
    torch.compiler.reset()


def test_weights_whose_memory_is_replaced_are_still_the_ones_that_are_moved() -> None:
    param = nn.Parameter(torch.randn(6, 300, 40))
    optimizer = SGDP([("w", param)], lr=0.05, split=3)
    for i, grad in enumerate(gradients((6, 300, 40), 6, torch.float32)):
        if i == 3:
            param.data = param.data.clone()  # as model.to(...) does
        before = param.detach().clone()
        param.grad = grad
        optimizer.step()
    assert not torch.equal(param.detach(), before)


# the groups


def test_groups_of_a_small_network() -> None:
    groups = named_groups(network(), weight_decay=0.1, head="head")
    rows = [([n for n, _ in g["params"]], g["weight_decay"], g["leash"], g["row_axis"], g["split"]) for g in groups]
    assert rows == [
        (["scale", "norm.weight", "norm.bias"], 0.0, True, 0, 1),
        (["conv.weight", "wide.weight"], 0.1, True, 0, 1),
        (["head.weight"], 0.1, False, 0, 1),
        (["head.bias"], 0.0, False, 0, 1),
    ]
    optimizer = SGDP(groups, lr=0.1)
    assert sorted(optimizer.constraints()) == ["conv.weight", "norm.bias", "norm.weight", "scale", "wide.weight"]


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pos_embed = nn.Parameter(torch.zeros(1, 5, 8))
        self.embed = nn.Linear(3, 8)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 16) for _ in range(3)])
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 2)

    def no_weight_decay(self) -> set[str]:
        return {"pos_embed"}


def by_name(groups: list[dict]) -> dict[str, dict]:
    return {name: group for group in groups for name, _ in group["params"]}


def test_groups_of_a_transformer() -> None:
    model = Transformer()
    groups = by_name(named_groups(model, lr=1.0, weight_decay=0.1, layer_decay=0.5, head={"head"}))
    assert list(groups) != []
    assert set(groups) == {name for name, _ in model.named_parameters()}
    assert (groups["pos_embed"]["row_axis"], groups["pos_embed"]["weight_decay"]) == (1, 0.0)
    assert groups["blocks.1.self_attn.in_proj_weight"]["split"] == 3
    assert groups["blocks.1.self_attn.in_proj_bias"]["split"] == 3
    assert groups["blocks.1.norm1.weight"]["weight_decay"] == 0
    rates = {name: group["lr"] for name, group in groups.items()}
    assert (rates["pos_embed"], rates["embed.weight"]) == (0.5**4, 0.5**4)
    assert [rates[f"blocks.{i}.linear1.weight"] for i in range(3)] == [0.5**3, 0.5**2, 0.5]
    assert (rates["norm.weight"], rates["head.bias"]) == (0.5, 1.0)


def test_layer_decay_of_a_plain_chain() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.Linear(2, 2))
    rates = {name: g["lr"] for name, g in by_name(named_groups(model, lr=1.0, layer_decay=0.1)).items()}
    assert [rates[f"{i}.weight"] for i in (0, 2, 3)] == pytest.approx([0.01, 0.1, 1.0])


def test_frozen_parameters_are_left_out_unless_they_are_wanted() -> None:
    model = network()
    model.conv.weight.requires_grad_(False)
    assert "conv.weight" not in by_name(named_groups(model))
    assert "conv.weight" in by_name(named_groups(model, trainable_only=False))


def test_a_tied_head_is_found_under_its_second_name() -> None:
    model = nn.Module()
    model.embed, model.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
    model.head.weight = model.embed.weight
    (group,) = named_groups(model, head="head")
    assert ([name for name, _ in group["params"]], group["leash"]) == (["embed.weight"], False)


def test_rows_of_an_unknown_module_are_along_axis_0() -> None:
    module = nn.Module()
    module.weight = nn.Parameter(torch.zeros(3, 4, 5))
    assert rows_of(module, "weight", "weight", module.weight) == Rows(0, 1)


SENTENCES = [
    (
        lambda: named_groups(network(), layer_decay=0.5),
        "layer_decay is 0.5 and lr is None; each layer's rate is a part of lr: pass lr=",
    ),
    (
        lambda: named_groups(network(), head="heda"),
        "head has 'heda', which matches no parameter; the nearest names are head.bias, head.weight",
    ),
    (
        lambda: named_groups(network().requires_grad_(False)),
        "no parameter of the model needs a gradient; unfreeze some, or pass trainable_only=False",
    ),
    (
        lambda: SGDP([("w", nn.Parameter(torch.zeros(2, 2)))], row_axis=2),
        "row_axis is 2 and 'w' has shape (2, 2); it must be an axis of the parameter: "
        "give parameters with other rows a group of their own, or use ftp.named_groups(model)",
    ),
    (
        lambda: SGDP([("w", nn.Parameter(torch.zeros(4, 2)))], split=3),
        "split is 3 and 'w' has 4 rows; the stacked matrices must be of equal size: "
        "give parameters with other rows a group of their own, or use ftp.named_groups(model)",
    ),
]


@pytest.mark.parametrize(("call", "message"), SENTENCES, ids=[row[1][:40] for row in SENTENCES])
def test_sentence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
