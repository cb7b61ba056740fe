"""What SGDP and AdamP share: the state, and the order UGD -> ProjUpdate -> Projection (Alg. 1).

Everything a parameter needs lives in `optimizer.state[param]`, made at the first step in which it has a gradient
(or by `anchor()`), on its device and in its dtype of then:

    anchor       W0
    deviation    W~_{t-1} - W0 (not with low_memory)
    row_l1       the row norms of that deviation
    gamma_state  gamma, its two Adam moments, and t; float32 or better
    floor        the shortest leash (only with low_memory)
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from ftp import _sharded, anchors
from ftp._layers import Layers, Leash
from ftp._members import read_group, warn_of_leashes
from ftp._packed import Pack
from ftp._plan import HELD, LEASH_KEYS, Plan, layer_views
from ftp._product import Products, partners
from ftp._reports import LayerReport, Leashed, read_gammas, read_reports
from ftp._state import KEPT_WIDE, anchor_copy, check_state, check_zero, leash_state, own_copy, unpack
from ftp._twopass import BaseRule, TwoPass
from ftp._watch import has_strayed, moved_message, stamp

# options of a group that its state is made for, and those that say who is on a leash
FIXED = ("row_axis", "split", "per_element", "low_memory", "product")
SPEAKING = ("leash", "exclude_set")
MOST_PACKS = 8  # times that a group is packed again because other parameters have gradients


class Projected(Optimizer):
    """A base rule on a learned leash. Subclasses give the base rule and its state.

    >>> from ftp import SGDP, AdamP
    >>> issubclass(SGDP, Projected), issubclass(AdamP, Projected)
    (True, True)
    """

    # the keys of the base rule's state, in the order in which `_base_rule` takes them
    _base_keys: tuple[str, ...] = ()
    _takes_sparse = False  # whether the base rule has an answer to a sparse gradient

    def __init__(self, params: ParamsT, options: dict[str, Any]) -> None:
        anchors.check_params(params)
        state_dict = options.pop("anchors", None)
        if state_dict is not None:
            if not isinstance(state_dict, Mapping):
                raise TypeError(
                    f"anchors is of type {type(state_dict).__name__}; it takes a state dict (name to tensor), "
                    "such as torch.load(path, weights_only=True)"
                )
            anchors.check_unique(state_dict, ())
            state_dict = {anchors.plain_name(name): weight for name, weight in state_dict.items()}
        options["exclude_set"] = anchors.check_patterns(options["exclude_set"])
        self._forget()
        self._given_anchors: dict[Tensor, Tensor] = {}  # anchors that were given and that no step has used yet
        # for `add_param_group`, which the next line calls: W0 by name, and the names that `exclude_set` speaks of
        self._anchors_by_name: dict[str, Tensor] | None = state_dict
        self._names_in_common: list[str] = []
        super().__init__(params, options)
        if options["exclude_set"] and not self._names_in_common and any(g["params"] for g in self.param_groups):
            raise ValueError(
                f"exclude_set is {set(options['exclude_set'])} and every group has an exclude_set of its own, which "
                "counts instead; write these names into the groups"
            )
        anchors.check_matched(options["exclude_set"], self._names_in_common)
        self._anchors_by_name = None
        warn_of_leashes(self.param_groups, self._given_anchors, stacklevel=4)

    def _forget(self) -> None:
        """What is known beside the state, and can be found out again: all of it on the host."""
        self._ready: set[Tensor] = set()  # parameters that have all their state
        self._begun: dict[int, list[Any]] = {}  # by the id of a group: FIXED and SPEAKING as its state was made
        self._plans: dict[int, tuple[Plan, int]] = {}  # by the number of the group; how often it was made
        self._stamps: dict[Tensor, tuple[int, int]] = {}  # how the last step left the weights, see `_watch.stamp`
        self._warned = False  # whether `_warn_if_moved` has spoken
        self._dry = False  # whether the only step so far was one without a learning rate

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_given_anchors": self._given_anchors, "_dry": self._dry}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._forget()
        super().__setstate__(state)
        self._anchors_by_name, self._names_in_common = None, []
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)  # an option that an older version did not have

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, now or in the middle of training; their weights at their first step are their anchors.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> optimizer.add_param_group({"params": [("late", torch.nn.Parameter(torch.zeros(2)))], "k": 0.5})
        >>> list(optimizer.constraints())
        ['weight', 'bias', 'late']
        """
        members = read_group(param_group, self.defaults, self.param_groups, self._anchors_by_name)
        super().add_param_group(members.group)  # torch's own checks come before anything is kept
        if "exclude_set" not in param_group:
            self._names_in_common += members.names
        # a copy: a state dict of the model itself changes with the model
        copies = {param: _sharded.placed_like(param, anchor).clone() for param, anchor in members.given.items()}
        self._given_anchors |= copies

    def _base_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _base_rule(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], *state: list[Any]) -> None:
        raise NotImplementedError

    def _kernel_rule(self, group: dict[str, Any]) -> BaseRule:
        """The base rule of a group for a kernel of our own; one that no kernel knows is torch's alone."""
        return BaseRule("torch", group["lr"], group["weight_decay"])

    def _init_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], unpacked: bool, *columns: list[Any]
    ) -> None:
        """Gather the tensors of a step, a column for each key of the state; make the state that is missing.

        torch.compile runs this method as it is, without tracing it, and asks for state that is not packed.
        """
        params.extend([param for param in group["params"] if param.grad is not None])
        grads.extend([param.grad for param in params])  # type: ignore[misc]
        if any([grad.is_sparse for grad in grads]):  # noqa: C419
            self._check_sparse(group, params, grads)
        self._undo_dry_step()
        if len(self.state) < len(self._ready):  # somebody has cleared it: begin again
            self._forget()
        self._follow_changes(group)
        if not self._ready.issuperset(params):
            self._make_state(group, params)
        self._warn_if_moved(group, params)
        states = [self.state[param] for param in params]
        if unpacked:
            for state in states:
                unpack(state)
        for key, column in zip((*self._base_keys, *LEASH_KEYS), columns, strict=False):
            column.extend([state.get(key) for state in states])

    def _undo_dry_step(self) -> None:
        """After a dry step no layer has moved: the anchors are the weights of now, which may be others than then."""
        if self._dry:
            for state in self.state.values():
                for key in LEASH_KEYS:
                    state.pop(key, None)
            self._forget()

    def _follow_changes(self, group: dict[str, Any]) -> None:
        """Parameters that a group has let off the leash since the last step lose it; those newly on it begin one."""
        now = [group[name] for name in (*FIXED, *SPEAKING)]
        before = self._begun.setdefault(id(group), now)
        if now == before:
            return
        for name, old, new in zip(FIXED, before, now, strict=False):
            if old != new:
                raise ValueError(
                    f"{name} of a group was {old!r} at its first step and is {new!r} now; it must stay, because the "
                    "state was made for it: make a new optimizer"
                )
        group["exclude_set"] = anchors.check_patterns(group["exclude_set"])
        anchors.check_matched(group["exclude_set"], [*chain.from_iterable(anchors.group_labels(self.param_groups))])
        for _, param, is_on in self._labelled(group):
            state = self.state.get(param, {})
            if is_on != ("anchor" in state):
                for key in LEASH_KEYS:
                    state.pop(key, None)
                self._ready.discard(param)
        self._plans.clear()
        self._begun[id(group)] = [group[name] for name in (*FIXED, *SPEAKING)]

    def _labelled(self, group: dict[str, Any]) -> Iterator[tuple[str, Tensor, bool]]:
        """Name, parameter and whether it is on a leash, for every parameter of a group."""
        before = sum(len(g["params"]) for g in takewhile(lambda g: g is not group, self.param_groups))
        labels = anchors.labels_of(group, before)
        for label, param, is_on in zip(labels, group["params"], anchors.on_leash(labels, group), strict=True):
            yield label, param, is_on and param.numel() > 0

    def _make_state(self, group: dict[str, Any], params: Sequence[Tensor]) -> None:
        """State for those of `params` that have none yet: base rule, anchor and the shortest leash."""
        wanted = set(params) - self._ready
        fresh = {}
        for label, param, is_on in self._labelled(group):
            if param not in wanted:
                continue
            state = self.state.get(param) or self._base_state(param, group)
            if is_on and "anchor" not in state:
                anchors.check_parameter(label, param, group["row_axis"], group["split"])  # again: it may have changed
                if group["product"] is not None:
                    check_zero([param], "at its first step")
                anchor = self._given_anchors.get(param, param)
                state = {**state, **leash_state(param, anchor, group)}
            fresh[param] = state
        _sharded.check_agreement([state["anchor"] for param, state in fresh.items() if param in self._given_anchors])
        self.state.update(fresh)
        self._ready |= wanted

    def _check_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        leashed = {param for _, param, is_on in self._labelled(group) if is_on}
        if any(grad.is_sparse and param in leashed for param, grad in zip(params, grads, strict=True)):
            raise RuntimeError(
                "a gradient is sparse; the projection needs dense rows: "
                "build the embedding with sparse=False, or put its name into exclude_set"
            )
        if not self._takes_sparse:
            raise RuntimeError(
                f"a gradient is sparse, and {type(self).__name__} has no rule for that, as torch.optim.AdamW has none: "
                "build the embedding with sparse=False, or give it to torch.optim.SparseAdam"
            )

    def _warn_if_moved(self, group: dict[str, Any], params: Sequence[Tensor]) -> None:
        """Warn once if something that is no step moved weights off their leash, such as load_state_dict.

        Seen by torch's counters of writes, on the host. Only if these have moved are the weights looked at,
        and only then does a step wait for the device.
        """
        if self._warned or group["product"] is not None:  # LoRA's product also moves by A, which has no leash
            return
        stamps = [stamp(param) for param in params]
        suspects = [param for param, now in zip(params, stamps, strict=True) if self._stamps.get(param, now) != now]
        strayed = {param for param in suspects if has_strayed(param, self.state[param], group)}
        if strayed:
            self._warned = True
            names = [label for label, param, _ in self._labelled(group) if param in strayed]
            warnings.warn(moved_message(names), stacklevel=6)

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One step of Alg. 1 on every parameter that has a gradient.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> start = model.weight.detach().clone()
        >>> model(torch.ones(4, 3)).sum().backward()
        >>> optimizer.step()
        >>> torch.allclose(model.weight, start, atol=1e-6)  # the first step goes nowhere
        True
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        compiling = torch.compiler.is_compiling()
        # torch's distributed checkpoint makes state by a step without gradients and without a learning rate
        dry = not compiling and not self.state and all(_is_zero(group["lr"]) for group in self.param_groups)
        keys = LEASH_KEYS if compiling else HELD
        work = []
        for index, group in enumerate(self.param_groups):  # gather first: what is refused has moved no weight
            params: list[Tensor] = []
            grads: list[Tensor] = []
            base: list[list[Any]] = [[] for _ in self._base_keys]
            columns: list[list[Any]] = [[] for _ in keys]
            self._init_group(group, params, grads, compiling, *base, *columns)
            parts, rest = ((), None) if dry else self._parts(index, params, grads, base, columns)
            work.append((group, params, grads, base, parts, rest))
        for group, params, grads, base, parts, rest in work:
            leash = Leash.of(group)
            for part in parts:
                part.before(leash)  # Eq. 4 needs g_t and W_{t-1}: torch's base rules may overwrite both
            if rest is None:
                self._base_rule(group, params, grads, *base)  # UGD, Eq. 1
            elif rest:  # a kernel has done the others
                self._base_rule(group, *[[column[i] for i in rest] for column in (params, grads, *base)])
            for part in parts:
                part.after(leash)  # ProjUpdate and Projection
                part.grads = []  # they are the caller's to drop
        if not compiling:
            self._dry = dry
            self._remember_stamps(chain.from_iterable(params for _, params, *_ in work))
        return loss

    def _remember_stamps(self, params: Iterable[Tensor]) -> None:
        """Remember how a step leaves the weights."""
        self._stamps.update({param: stamp(param) for param in params})
        if self._given_anchors and not self._dry:
            self._given_anchors = {
                param: anchor for param, anchor in self._given_anchors.items() if param not in self._ready
            }

    def _parts(
        self,
        index: int,
        params: list[Tensor],
        grads: list[Tensor],
        base: list[list[Any]],
        columns: list[list[Any]],
    ) -> tuple[Sequence[Layers | Pack | Products | TwoPass], list[int] | None]:
        """The leashed layers of group `index`, laid out for the step, and which parameters need torch's base rule."""
        leashed = [i for i, gamma_state in enumerate(columns[0]) if gamma_state is not None]
        if not leashed:
            return (), None
        group = self.param_groups[index]
        if group["product"] is not None:
            rights = partners(group)
            norms = columns[LEASH_KEYS.index("row_l1")] if torch.compiler.is_compiling() else None
            parts = [
                Products(
                    group["product"],
                    [rights[id(params[i])] for i in leashed],
                    [params[i] for i in leashed],
                    [grads[i] for i in leashed],
                    [columns[0][i] for i in leashed],
                    [self.state[params[i]]["row_l1"] if norms is None else norms[i] for i in leashed],
                )
            ]
            return parts, None
        if torch.compiler.is_compiling():  # a compiler makes few kernels by itself
            kinds: dict[Any, list[int]] = {}
            for i in leashed:
                kinds.setdefault((params[i].device, params[i].dtype), []).append(i)
            fields = zip(("param", "grad", *LEASH_KEYS), (params, grads, *columns), strict=True)
            by_name = list(fields)
            chosen: Any = [
                [layer_views([column[i] for i in indices], key, group) for key, column in by_name]
                for indices in kinds.values()
            ]
            return [Layers(*views) for views in chosen], None
        rule = self._kernel_rule(group)
        plan, made = self._plans.get(index, (None, 0))
        if plan is None or not plan.holds(params, columns, base, rule.kind):
            for param in group["params"]:
                unpack(self.state.get(param, {}))  # a layer that drops out must not hold on to the others' memory
            # gradients that come and go would mean packing again and again: then better not at all
            states = [self.state[param] for param in params]
            plan = Plan(params, states, base, group, rule, may_pack=made < MOST_PACKS)
            self._plans[index] = plan, made + 1
        return plan.parts(grads, rule), plan.rest

    def _leashed(self) -> Iterator[Leashed]:
        """Every parameter on a leash; one that has not begun yet as it would begin now. The frozen ones not."""
        for group in self.param_groups:
            for label, param, is_on in self._labelled(group):
                state = self.state.get(param, {})
                if is_on and "anchor" in state and not self._dry:
                    yield Leashed(label, param, state, group)
                elif is_on and (param.requires_grad or param.grad is not None):
                    yield Leashed(label, param, leash_state(param, self._given_anchors.get(param, param), group), group)

    def constraints(self) -> dict[str, float]:
        """gamma of every layer on the leash, by name. Reads from the device.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> {name: f"{gamma:.0e}" for name, gamma in optimizer.constraints().items()}
        {'weight': '1e-08', 'bias': '1e-08'}
        """
        return read_gammas(self._leashed())

    @torch.no_grad()
    def report(self) -> dict[str, LayerReport]:
        """gamma, distance, share of rows on the boundary and number of rows of every layer. Reads from the device.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> optimizer.report()["weight"].distance, optimizer.report()["weight"].rows
        (0.0, 2)
        """
        return read_reports(self._leashed())

    @torch.no_grad()
    def anchor(self) -> None:
        """Take the anchors now, instead of at the first step, and make all state of what needs a gradient.

        Under DistributedDataParallel call it after wrapping the model: only then do all ranks have the same weights.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> optimizer.anchor()
        >>> _ = model.weight.data.add_(1.0)
        >>> round(optimizer.report()["weight"].distance, 4)
        3.0
        """
        self._undo_dry_step()
        for group in self.param_groups:
            self._follow_changes(group)
            self._make_state(group, [param for param in group["params"] if param.requires_grad])
        self._remember_stamps(self._ready)

    @torch.no_grad()
    def reanchor(self) -> None:
        """Today's weights become the anchors and every constraint starts again at 1e-8.

        For a stream of tasks: call it before each new task. The base rule's own state (momentum,
        Adam's moments) is kept; make a new optimizer if it should go too.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> optimizer.anchor()
        >>> _ = model.weight.data.add_(1.0)
        >>> optimizer.reanchor()
        >>> optimizer.report()["weight"].distance
        0.0
        """
        pairs = (group["params"][1::2] for group in self.param_groups if group["product"] is not None)
        check_zero(chain.from_iterable(pairs), "when it is anchored anew")
        self._undo_dry_step()
        self._given_anchors.clear()
        for leashed in self._leashed():
            if "anchor" in self.state.get(leashed.param, {}):
                self.state[leashed.param].update(leash_state(leashed.param, leashed.param, leashed.group))
        self._stamps.clear()
        self.anchor()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume exactly; anchors and constraints come from the checkpoint, which is copied.

        `kernel` and `anchor_device` are about the machine and stay as they are here.

        torch casts every float of the state to the weights' dtype, which would round a float32 gamma
        to bfloat16: the narrow values are replaced by the saved ones.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> again = SGDP(model.named_parameters(), lr=9.0)
        >>> again.load_state_dict(optimizer.state_dict())
        >>> again.param_groups[0]["lr"]
        0.1
        """
        saved: dict[str, Any] = {}

        def last_word(_: Optimizer, final: dict[str, Any]) -> None:
            check_state(final, self.param_groups)  # before torch changes anything
            saved.update(final)

        here = [{name: group[name] for name in ("kernel", "anchor_device")} for group in self.param_groups]
        handle = self.register_load_state_dict_pre_hook(last_word)
        try:
            super().load_state_dict(state_dict)
        finally:
            handle.remove()
        self._forget()
        for group, machine in zip(self.param_groups, here, strict=True):
            group.update(machine)
        ids = chain.from_iterable(group["params"] for group in saved["param_groups"])
        for group in self.param_groups:
            for param in group["params"]:
                loaded = saved["state"].get(next(ids), {})
                if not loaded:  # it had not begun when the checkpoint was made
                    continue
                state = self.state[param]
                state.update({name: loaded[name].to(param.device) for name in KEPT_WIDE if name in loaded})
                self.state[param] = {name: own_copy(value, param) for name, value in state.items()}
                if "anchor" in loaded:
                    self.state[param]["anchor"] = anchor_copy(param, loaded["anchor"], group)
                    self._given_anchors.pop(param, None)


def _is_zero(lr: Any) -> bool:
    """Whether a learning rate is zero, as far as the host knows: a tensor on a device is not read."""
    return lr.device.type == "cpu" and lr.item() == 0 if isinstance(lr, Tensor) else lr == 0
