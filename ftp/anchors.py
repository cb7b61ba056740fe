"""Anchors: which parameter is tied to which pre-trained weight, by name.

Names are the only link. They are compared without what wrappers add (`module.` of DistributedDataParallel,
`_orig_mod.` of torch.compile, `base_model.model.` of PEFT), and a name or pattern that matches nothing
is an error: a head that stays on its leash by a typing mistake is a bug nobody sees.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from ftp import _sharded

# what wrappers put before a name, and what they put into it: torch.compile and activation checkpoints; PEFT
PREFIXES = ("module.", "base_model.model.")
ANYWHERE = ("_orig_mod", "_checkpoint_wrapped_module")
INSIDE = (".base_layer.", ".modules_to_save.default.")


def plain_name(name: str) -> str:
    """A parameter's name without what wrappers added to it.

    >>> plain_name("module._orig_mod.layer1.0.weight"), plain_name("encoder._orig_mod.weight")
    ('layer1.0.weight', 'encoder.weight')
    >>> plain_name("module.base_model.model.fc.base_layer.weight")
    'fc.weight'
    >>> plain_name("base_layer.0.weight"), plain_name("database_layer.weight")  # a model's own names
    ('base_layer.0.weight', 'database_layer.weight')
    """
    name = ".".join(part for part in name.split(".") if part not in ANYWHERE)
    while name.startswith(PREFIXES):
        name = name.removeprefix("module.").removeprefix("base_model.model.")
    for part in INSIDE:
        while part in name:
            name = name.replace(part, ".")
    return name


def group_labels(groups: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """The plain names of each group's parameters, or `param.0`, `param.1`, ... where a group has no names.

    >>> list(group_labels([{"params": [0], "param_names": ["module.a"]}, {"params": [1, 2]}]))
    [['a'], ['param.1', 'param.2']]
    """
    before = 0
    for group in groups:
        yield labels_of(group, before)
        before += len(group["params"])


def labels_of(group: Mapping[str, Any], before: int) -> list[str]:
    """The plain names of a group's parameters; without names they are numbered, after those of the groups before.

    before: how many parameters those have

    >>> labels_of({"params": [1, 2]}, before=3)
    ['param.3', 'param.4']
    """
    names = group.get("param_names") or [f"param.{before + i}" for i in range(len(group["params"]))]
    return [plain_name(name) for name in names]


def on_leash(labels: Sequence[str], group: Mapping[str, Any]) -> list[bool]:
    """Which parameters of a group are on a leash, by its options `leash` and `exclude_set`.

    >>> on_leash(["body", "head"], {"leash": None, "exclude_set": ["head"]})
    [True, False]
    """
    if group.get("leash") is False:
        return [False] * len(labels)
    names = group.get("param_names") or labels  # as they were given
    free = {name for pattern in group["exclude_set"] for name in matched(pattern, names)}
    if group.get("product") is not None:
        free |= {plain_name(label) for label in labels[::2]}  # A of each pair A, B: the leash pulls B
    return [plain_name(label) not in free for label in labels]


def check_params(params: object) -> None:
    """Raise if what should hold parameters is something else, such as the model itself.

    >>> check_params(nn.Linear(2, 2).named_parameters())
    """
    if isinstance(params, Mapping) and "params" in params:
        raise TypeError("params is one group; it takes a list of groups: put the group into [ ]")
    no_list = isinstance(params, (nn.Module, Mapping, Tensor, str)) and not isinstance(params, nn.ParameterList)
    if no_list or not isinstance(params, Iterable):
        raise TypeError(
            f"params is of type {type(params).__name__}; it takes names and parameters, or a list of groups: "
            "write model.named_parameters()"
        )


def check_entries(entries: Iterable[object]) -> None:
    """Raise unless each entry of a group is a tensor, or a name and a tensor.

    >>> check_entries([("a", torch.zeros(1))])
    """
    for entry in entries:
        parts = entry if isinstance(entry, tuple) else ("", entry)
        if len(parts) == 2 and isinstance(parts[0], str) and isinstance(parts[1], Tensor):
            continue
        kinds = ", ".join(type(part).__name__ for part in parts)
        what = f"({kinds})" if isinstance(entry, tuple) else f"an item of type {type(entry).__name__}"
        raise TypeError(
            f"params holds {what}; it takes tensors or pairs (name, tensor): write model.named_parameters()"
        )


def check_patterns(exclude_set: object) -> tuple[str, ...]:
    """The names and patterns of `exclude_set` as a sorted tuple.

    >>> check_patterns({"head.*", "fc.bias"})
    ('fc.bias', 'head.*')
    """
    if isinstance(exclude_set, str):
        raise TypeError(
            f"exclude_set is the string {exclude_set!r}; it takes a set of names or patterns: "
            f"write exclude_set={{{exclude_set!r}}}"
        )
    if not isinstance(exclude_set, Iterable):
        raise TypeError(
            f"exclude_set is of type {type(exclude_set).__name__}; it takes a set of names or patterns: "
            'write exclude_set={"head.*"}'
        )
    patterns = list(exclude_set)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(
                f"exclude_set holds an item of type {type(pattern).__name__}; it takes names, not parameters: "
                'write exclude_set={"head.*"}'
            )
    return tuple(sorted(set(patterns)))


def matched(pattern: str, names: Iterable[str]) -> set[str]:
    """The plain names that a name or a glob pattern stands for; a name that is there stands for itself only.

    A wrapper's part in the pattern is left out, unless the pattern fits as it stands.

    >>> sorted(matched("head.*", ["module.head.weight", "head.bias", "ahead.weight"]))
    ['head.bias', 'head.weight']
    >>> matched("a[0]", ["a[0]", "a0"])
    {'a[0]'}
    >>> matched("module.*", ["module.fc.weight", "body.weight"])  # a module that is called so
    {'fc.weight'}
    """
    names, wanted = list(names), plain_name(pattern)
    if wanted != pattern:
        literal = {plain_name(name) for name in names if name == pattern or fnmatchcase(name, pattern)}
        if literal or not wanted.strip("*?."):  # without the wrapper's part it would say "all"
            return literal
    known = {plain_name(name) for name in names}
    return {wanted} if wanted in known else {name for name in known if fnmatchcase(name, wanted)}


def untie(group: dict[str, Any], listed: list[Any] | None = None) -> dict[str, list[str]]:
    """Keep a tied parameter once, under its first name; returns the other names of each, as plain names.

    `named_parameters(remove_duplicate=False)` lists a tied weight under all of its names. `listed` are the anchors
    of the group, one for each entry.

    >>> weight = nn.Parameter(torch.zeros(2))
    >>> group = {"params": [("embed", weight), ("head", weight)]}
    >>> untie(group), len(group["params"])
    ({'embed': ['head']}, 1)
    """
    first: dict[Tensor, str] = {}
    others: dict[str, list[str]] = {}
    unique = []
    for i, entry in enumerate(group["params"]):
        if isinstance(entry, tuple) and entry[1] in first:
            others.setdefault(first[entry[1]], []).append(plain_name(entry[0]))
            continue
        if isinstance(entry, tuple):
            first[entry[1]] = plain_name(entry[0])
        unique.append(i)
    group["params"] = [group["params"][i] for i in unique]
    if listed is not None:
        listed[:] = [listed[i] for i in unique]
    return others


def check_unique(names: Iterable[str], taken: Iterable[str]) -> None:
    """Raise if two parameters would have one name.

    >>> check_unique(["a.weight"], taken=["b.weight"])
    """
    known = {plain_name(name) for name in taken}
    for name in map(plain_name, names):
        if name in known:
            raise ValueError(
                f"two parameters are called {name!r}; constraints are kept by name: "
                'give each model its own prefix, as in [("encoder." + n, p) for n, p in encoder.named_parameters()]'
            )
        known.add(name)


def check_matched(patterns: Sequence[str], names: Sequence[str]) -> None:
    """Raise if a pattern fits none of the names, and say what is near: a module's parameters, or some names.

    >>> check_matched(["head.*"], ["head.weight", "body.weight"])
    >>> check_matched(["head"], ["head.weight", "body.weight"])
    Traceback (most recent call last):
    ValueError: exclude_set has 'head', which matches no parameter; for the parameters in it write 'head.*'
    """
    for pattern in patterns:
        if not matched(pattern, names):
            inside = plain_name(pattern).rstrip(".") + ".*"
            is_module = matched(inside, names)
            near = f"for the parameters in it write {inside!r}" if is_module else nearest(pattern, names)
            raise ValueError(f"exclude_set has {pattern!r}, which matches no parameter; {near}")


def nearest(wanted: str, names: Iterable[str]) -> str:
    """The end of an error sentence: the names that look most like the one that was given.

    >>> nearest("heda.weight", ["body.weight", "head.weight", "x"])
    'the nearest names are head.weight, body.weight'
    """
    known = [plain_name(name) for name in names]
    if not known:
        return "there is no name to compare it with: pass model.named_parameters()"
    close = difflib.get_close_matches(plain_name(wanted), known, n=3, cutoff=0.3) or known[:3]
    nameless = all(name.startswith("param.") for name in known)
    why = ", because the parameters came without: pass model.named_parameters()" if nameless else ""
    return f"the nearest names are {', '.join(close)}{why}"


def find_anchor(name: str, param: Tensor, anchors: Mapping[str, Tensor]) -> Tensor:
    """The tensor of a state dict (with plain names) that belongs to a parameter; checked for its shape.

    >>> find_anchor("module.w", torch.zeros(2), {"w": torch.ones(2)})
    tensor([1., 1.])
    """
    name = plain_name(name)
    if name not in anchors:
        raise ValueError(
            f"anchors has no entry for {name!r}; {nearest(name, anchors)}; "
            "give its pre-trained weight, or put the name into exclude_set"
        )
    return check_anchor(name, param, anchors[name])


def check_anchor(name: str, param: Tensor, anchor: object) -> Tensor:
    """An anchor must be a tensor of its parameter's shape.

    >>> check_anchor("w", torch.zeros(2), torch.ones(2))
    tensor([1., 1.])
    """
    if not isinstance(anchor, Tensor):
        raise TypeError(f"the anchor of {name!r} is of type {type(anchor).__name__}; give a tensor")
    if anchor.shape != param.shape:
        raise ValueError(
            f"the anchor of {name!r} has shape {tuple(anchor.shape)} but the parameter has "
            f"{tuple(param.shape)}; they must be equal, or put the name into exclude_set"
        )
    return anchor.detach()


def check_pairs(labels: Sequence[str], params: Sequence[Tensor]) -> None:
    """The parameters of a group with `product` must be A, B, A, B, ..., so that B A is a matrix.

    >>> check_pairs(["a", "b"], [torch.zeros(2, 5), torch.zeros(4, 2)])
    """
    shapes = [tuple(param.shape) for param in params]
    fit = all(len(a) > 1 and len(b) > 1 and a[0] == b[1] for a, b in zip(shapes[::2], shapes[1::2], strict=False))
    if len(params) % 2 or not fit:
        names = ", ".join(f"{label} {shape}" for label, shape in zip(labels, shapes, strict=True))
        raise ValueError(
            f"a group with product has the parameters {names}; it takes pairs A (r, inputs), B (outputs, r), one after "
            "the other: use ftp.named_groups(model)"
        )
    if any(_sharded.is_sharded(param) for param in params):
        raise TypeError("a group with product has sharded parameters; a leash on LoRA's product needs whole factors")


def check_parameter(name: str, param: Tensor, row_axis: int = 0, split: int = 1) -> None:
    """Refuse the kinds of parameter on which the projection would be wrong, with the way out.

    >>> check_parameter("w", torch.zeros(2))
    """
    if param.dim() > 1 and row_axis >= param.dim():
        raise ValueError(
            f"row_axis is {row_axis} and {name!r} has shape {tuple(param.shape)}; it must be an axis of the parameter: "
            "give parameters with other rows a group of their own, or use ftp.named_groups(model)"
        )
    count = param.shape[row_axis if param.dim() > 1 else 0] if param.dim() else 1
    if count % split:
        raise ValueError(
            f"split is {split} and {name!r} has {count} rows; the stacked matrices must be of equal size: "
            "give parameters with other rows a group of their own, or use ftp.named_groups(model)"
        )
    _sharded.check_placements(name, param, row_axis, split)
    if param.dtype == torch.float16:
        raise TypeError(
            f"{name!r} is float16, which cannot hold the small steps of a short leash; "
            "keep float32 weights and use torch.autocast, or use bfloat16"
        )
    if param.is_complex():
        raise TypeError(
            f"{name!r} is complex; the projection is defined for real rows: put the name into exclude_set "
            "and optimize torch.view_as_real of it if it must be on the leash"
        )
    if not param.is_floating_point():
        raise TypeError(
            f"{name!r} is of dtype {param.dtype}; only real floating point parameters can be trained: "
            "leave it out of the optimizer, or put the name into exclude_set"
        )
    if getattr(param, "_is_flat_param", False) or getattr(param, "_fsdp_flattened", False):
        raise TypeError(
            f"{name!r} is a flat parameter of FSDP1, which mixes the rows of many layers; "
            "shard the model with torch.distributed.fsdp.fully_shard (FSDP2) instead"
        )
