"""named_groups: read a model's modules and make the parameter groups of a fine-tuning run.

What a row is depends on the module: `Linear` counts its outputs along axis 0, `ConvTranspose2d` along axis 1, and an
attention layer stacks three matrices in one tensor. A tensor alone does not say so; its module does.
"""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from torch import Tensor, nn

from ftp.anchors import matched, nearest, plain_name


class Rows(NamedTuple):
    """Which axis of a parameter counts the outputs, and how many matrices are stacked along it.

    >>> Rows()
    Rows(row_axis=0, split=1)
    """

    row_axis: int = 0
    split: int = 1


GATES = {nn.LSTM: 4, nn.GRU: 3, nn.LSTMCell: 4, nn.GRUCell: 3}
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
LINEAR = (nn.Linear, nn.Bilinear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
STACKED = ("qkv", "c_attn")  # what timm and GPT-2 call a layer that computes q, k and v at once
ADAPTERS = ("lora_", "hada_", "lokr_")  # what PEFT calls the parts of an adapter
NO_PRODUCT = (
    "{name!r} is part of an adapter that is not a plain pair of LoRA's A and B. It is on a leash of its own, which "
    "does not bound what the adapter adds to its layer; write head='*{part}*' to let them run free"
)


def named_groups(
    model: nn.Module,
    *,
    lr: float | None = None,
    weight_decay: float = 0.0,
    head: str | Iterable[str] = (),
    layer_decay: float | None = None,
    trainable_only: bool = True,
) -> list[dict[str, Any]]:
    """Parameter groups with names, for SGDP and AdamP: rows right, the head off its leash, no decay where none is due.

    weight_decay: for matrices; biases, norms and what `model.no_weight_decay()` names have none
    head: new modules, by name ("fc") or pattern; they run free
    layer_decay: each block learns this much slower than the one above it; needs `lr`, the rate of the top
    trainable_only: leave out what is frozen now; False if something will be unfrozen later

    >>> model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    >>> for group in named_groups(model, weight_decay=0.1, head="2"):
    ...     print([name for name, _ in group["params"]], group["weight_decay"], group["leash"])
    ['0.weight'] 0.1 True
    ['0.bias', '1.weight', '1.bias'] 0.0 True
    ['2.weight'] 0.1 False
    ['2.bias'] 0.0 False
    """
    if layer_decay is not None and lr is None:
        raise ValueError(f"layer_decay is {layer_decay} and lr is None; each layer's rate is a part of lr: pass lr=")
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    free = {name for pattern in ([head] if isinstance(head, str) else head) for name in _inside(pattern, names)}
    undecayed = set(getattr(model, "no_weight_decay", tuple)())  # timm's models say so themselves
    scales = _layer_scales(model, layer_decay, free) if layer_decay is not None else {}
    groups: dict[Any, dict[str, Any]] = {}
    pairs = _lora_pairs(model)
    loose: list[str] = []
    for param, owners in _owners(model):
        if trainable_only and not param.requires_grad:
            continue
        if id(param) in pairs:
            pair = pairs[id(param)]
            options: dict[str, Any] = {
                "weight_decay": weight_decay,
                "leash": True,
                **Rows()._asdict(),
                "product": pair.scale,
            }
            if lr is not None:
                options["lr"] = lr * scales.get(pair.names[1], 1.0)
            if param is pair.params[1]:  # once for both
                group = groups.setdefault(tuple(options.values()), {"params": [], **options})
                group["params"] += zip(pair.names, pair.params, strict=True)
            continue
        first = owners[0]
        name = first.name
        plain = {plain_name(owner.name) for owner in owners}  # more than one for tied weights
        is_norm = any("norm" in type(owner.module).__name__.lower() for owner in owners)
        has_decay = param.dim() > 1 and not is_norm and not plain & undecayed
        options = {
            "weight_decay": weight_decay if has_decay else 0.0,
            "leash": not plain & free,
            **rows_of(first.module, first.attribute, first.name, param, first.around)._asdict(),
            "product": None,
        }
        part = next((part for part in ADAPTERS if f".{part}" in name), "")
        if part and options["leash"] and not loose:
            loose.append(name)
            warnings.warn(NO_PRODUCT.format(name=name, part=part), stacklevel=2)
        if lr is not None:
            options["lr"] = lr * scales.get(name, 1.0)
        group = groups.setdefault(tuple(options.values()), {"params": [], **options})
        group["params"].append((name, param))
    if not groups:
        raise ValueError("no parameter of the model needs a gradient; unfreeze some, or pass trainable_only=False")
    return list(groups.values())


def rows_of(module: nn.Module, attribute: str, name: str, param: Tensor, around: nn.Module | None = None) -> Rows:
    """What a row of a parameter is, by the module that has it and the one around that; axis 0 where nothing is known.

    >>> layer = nn.ConvTranspose2d(3, 8, 2)
    >>> rows_of(layer, "weight", "up.weight", layer.weight)
    Rows(row_axis=1, split=1)
    """
    kind = type(module)
    if isinstance(module, nn.MultiheadAttention):
        return Rows(0, 3) if attribute in ("in_proj_weight", "in_proj_bias") else Rows()
    for gated, gates in GATES.items():
        if isinstance(module, gated):
            return Rows(0, gates) if not attribute.startswith("weight_hr") else Rows()
    parent = name.split(".")[-2] if "." in name else ""
    if kind.__name__ == "Conv1D" and hasattr(module, "nf"):  # GPT-2's layer: x @ W + b
        inputs, outputs = module.weight.shape  # type: ignore[misc]
        stacked = outputs // inputs if parent in STACKED else 1
        return Rows(1 if attribute == "weight" else 0, stacked)
    if isinstance(module, TRANSPOSED):
        return Rows(1 if attribute == "weight" else 0)
    if isinstance(module, LINEAR):
        inputs = getattr(module, "in_features", None) or getattr(module, "in_channels", None)
        # some networks of timm put q, k and v of each head side by side instead
        stacked = parent in STACKED and param.shape[0] == 3 * (inputs or 0) and not getattr(around, "head_first", False)
        return Rows(0, 3) if stacked else Rows()
    if param.dim() > 2 and param.shape[0] == 1 and param.shape[1] > 1:
        return Rows(1)  # a table with a batch axis before it, such as position embeddings: a row for each position
    return Rows()


class _Owner(NamedTuple):
    name: str
    module: nn.Module
    attribute: str
    around: nn.Module  # what holds the module


def _owners(model: nn.Module) -> Iterator[tuple[nn.Parameter, list[_Owner]]]:
    """Every parameter once, with all the modules that hold it, in the order of `model.named_parameters()`."""
    modules = dict(model.named_modules(remove_duplicate=False))
    by_param: dict[nn.Parameter, list[_Owner]] = {}
    for name, param in model.named_parameters(remove_duplicate=False):
        prefix, _, attribute = name.rpartition(".")
        around = modules[prefix.rpartition(".")[0]]
        by_param.setdefault(param, []).append(_Owner(name, modules[prefix], attribute, around))
    yield from by_param.items()


class _Pair(NamedTuple):
    names: tuple[str, str]
    params: tuple[nn.Parameter, nn.Parameter]  # A and B
    scale: float


def _lora_pairs(model: nn.Module) -> dict[int, _Pair]:
    """The pairs A, B of PEFT's LoRA layers, by the ids of both; B that is frozen is left alone."""
    pairs: dict[int, _Pair] = {}
    for name, module in model.named_modules():
        rights, lefts = getattr(module, "lora_A", None), getattr(module, "lora_B", None)
        if not isinstance(rights, nn.ModuleDict) or not isinstance(lefts, nn.ModuleDict):
            continue
        for adapter in lefts:
            a, b = rights[adapter].weight, lefts[adapter].weight
            if isinstance(a, nn.Parameter) and isinstance(b, nn.Parameter) and b.requires_grad:
                names = (f"{name}.lora_A.{adapter}.weight", f"{name}.lora_B.{adapter}.weight")
                pair = _Pair(names, (a, b), float(module.scaling[adapter]))
                pairs |= {id(a): pair, id(b): pair}
    return pairs


def _inside(pattern: str, names: list[str]) -> set[str]:
    """The plain names of the parameters that a name or pattern stands for; `fc` stands for all that are in it."""
    inside = matched(pattern, names) or matched(pattern.rstrip(".") + ".*", names)
    if not inside:
        raise ValueError(f"head has {pattern!r}, which matches no parameter; {nearest(pattern, names)}")
    return inside


def _layer_scales(model: nn.Module, decay: float, head: set[str]) -> dict[str, float]:
    """decay ** (how many layers are above), by parameter name: 1 for the head.

    A layer is a block: an entry of a ModuleList or Sequential that has several modules with parameters, and no such
    block inside. What comes before the first block is one more, and so is the head. What lies between two blocks or
    after the last belongs to the one below it, as in timm.
    """
    entries = [
        (f"{prefix}.{key}" if prefix else key, child)
        for prefix, module in model.named_modules()
        if isinstance(module, nn.ModuleList | nn.Sequential)
        for key, child in module.named_children()
        if sum(bool(list(leaf.parameters(recurse=False))) for leaf in child.modules()) > 1
    ]
    if not entries:  # a plain chain: every module with parameters is a block
        entries = [(name, m) for name, m in model.named_modules() if name and list(m.parameters(recurse=False))][1:]
    names = [name for name, _ in entries]
    blocks = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    order: dict[str, int] = {}
    depth, seen = 0, []
    for name, _ in model.named_parameters():
        block = next((block for block in blocks if name.startswith(f"{block}.")), None)
        if block is not None and block not in seen:
            seen.append(block)
            depth = len(seen)
        if plain_name(name) in head:
            order[name] = len(blocks) + 1
        else:
            order[name] = depth if block is None else seen.index(block) + 1
    top = max(order.values())
    return {name: decay ** (top - layer) for name, layer in order.items()}
