"""Who belongs to a parameter group: under which names, with which anchors, and who is on a leash by mistake."""

import warnings
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from torch import Tensor

from ftp import anchors
from ftp._options import check_group
from ftp._state import appendix_layout

UNNAMED = (
    "the parameters have no names, so every one of them is on a leash, a new head too: pass model.named_parameters() "
    "and exclude_set, or ftp.named_groups(model, head=...), or give the head a group with leash=False; "
    "leash=True says that all of them are meant"
)
FACTORS = (
    "LoRA's factors A and B are on leashes of their own, which do not bound what LoRA adds to a layer, s B A: "
    "ftp.named_groups(model) ties the product instead; leash=True says that the factors are meant"
)


class Members(NamedTuple):
    """A group that is complete and checked, the names that `exclude_set` may speak of, and the anchors it was given.

    >>> from ftp._options import LEASH_DEFAULTS
    >>> weight = Tensor([1.0])
    >>> members = read_group({"params": [("w", weight)], "pre": [Tensor([2.0])]}, LEASH_DEFAULTS, [])
    >>> members.names, members.given[weight]
    (['w'], tensor([2.]))
    """

    group: dict[str, Any]
    names: list[str]
    given: dict[Tensor, Tensor]


def read_group(
    param_group: object,
    defaults: Mapping[str, Any],
    others: Iterable[dict[str, Any]],
    by_name: Mapping[str, Tensor] | None = None,
) -> Members:
    """A group as somebody wrote it, made complete and checked beside the groups that are there; nothing is kept yet.

    by_name: anchors by plain name, for all groups

    >>> from ftp._options import LEASH_DEFAULTS
    >>> read_group({"params": [("w", Tensor([1.0]))], "k": 2}, LEASH_DEFAULTS, [])
    Traceback (most recent call last):
    ValueError: k is 2; it must be a number from 0 to 1, such as 1.0 (the paper's default)
    """
    if not isinstance(param_group, Mapping) or "params" not in param_group:
        raise ValueError(
            f'a parameter group is {param_group!r}; it must be a dict with the key "params": '
            'write {"params": module.named_parameters(), "lr": 1e-3}'
        )
    others = list(others)
    group = {**defaults, **param_group}
    if "exclude_set" in param_group:
        group["exclude_set"] = anchors.check_patterns(group["exclude_set"])
    listed = appendix_layout(group)
    check_group(group)
    other_names = anchors.untie(group, listed)
    names = [entry[0] for entry in group["params"] if isinstance(entry, tuple)]
    params = [entry[1] if isinstance(entry, tuple) else entry for entry in group["params"]]
    anchors.check_unique(names, [name for other in others for name in other.get("param_names", ())])
    *_, labels = anchors.group_labels([*others, {"params": params, **({"param_names": names} if names else {})}])
    known = [*(names or labels), *chain.from_iterable(other_names.values())]
    if "exclude_set" in param_group:
        anchors.check_matched(group["exclude_set"], known)
    freed = [name for name, aliases in other_names.items() if not all(anchors.on_leash(aliases, group))]
    group["exclude_set"] = (*group["exclude_set"], *freed)
    if by_name is not None and listed is not None:
        raise ValueError('anchors= and the groups\' "pre" both give anchors; keep one of them')
    if by_name is not None and not names:
        raise ValueError("anchors= needs names to match: pass model.named_parameters() as the parameters")
    if group["product"] is not None:
        anchors.check_pairs(labels, params)
    given: dict[Tensor, Tensor] = {}
    on = anchors.on_leash(names or labels, group)
    for i, (label, param, is_on) in enumerate(zip(labels, params, on, strict=True)):
        if not is_on or param.numel() == 0:
            continue
        anchors.check_parameter(label, param, group["row_axis"], group["split"])
        if by_name is not None:
            aliases = (label, *other_names.get(label, ()))
            given[param] = anchors.find_anchor(next((a for a in aliases if a in by_name), label), param, by_name)
        elif listed is not None:
            given[param] = anchors.check_anchor(label, param, listed[i])
    return Members(group, known, given)


def warn_of_leashes(groups: list[dict[str, Any]], given: Collection[Tensor], stacklevel: int) -> None:
    """Say so if a leash is likely where none is meant, unless somebody spoke of leashes.

    Without names nobody can take a new head off its leash; and leashes on LoRA's factors bound no product.

    >>> warn_of_leashes([{"params": [], "leash": True, "exclude_set": (), "product": None}], given=(), stacklevel=2)
    """
    for group, labels in zip(groups, anchors.group_labels(groups), strict=True):
        on = [label for label, is_on in zip(labels, anchors.on_leash(labels, group), strict=True) if is_on]
        if group["leash"] is None and group["product"] is None and any("lora_B." in label for label in on):
            warnings.warn(FACTORS, stacklevel=stacklevel)
            break
    silent = [g for g in groups if g["leash"] is None and not g["exclude_set"]]
    nameless = [p for g in silent if "param_names" not in g for p in g["params"] if p not in given]
    if len(silent) == len(groups) and sum(p.dim() > 1 for p in nameless) > 1:
        warnings.warn(UNNAMED, stacklevel=stacklevel)
