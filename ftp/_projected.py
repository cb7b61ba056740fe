"""What SGDP and AdamP share: the state, and the order UGD -> ProjUpdate -> Projection (Alg. 1).

Everything a parameter needs lives in `optimizer.state[param]`, made when the parameter is added:

    anchor       W0
    deviation    W~_{t-1} - W0 (not with low_memory)
    row_l1       the row norms of that deviation
    gamma_state  gamma, its two Adam moments, and t; float32 or better
    floor        the shortest leash (only with low_memory)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from ftp import _sharded, anchors
from ftp._layers import GAMMA, Layers, Leash
from ftp._options import check_group
from ftp._packed import Pack
from ftp._plan import LEASH_KEYS, Plan
from ftp._state import KEPT_WIDE, appendix_layout, check_state, leash_state, unpack
from ftp.projection import mars_norm

MOST_PACKS = 8  # times that a group is packed again because other parameters have gradients


class LayerReport(NamedTuple):
    """One layer on its leash, as numbers.

    >>> LayerReport(gamma=0.5, distance=0.4, boundary=0.0, rows=8).gamma
    0.5
    """

    gamma: float  # the constraint: how far a row may go
    distance: float  # how far the farthest row is: the MARS norm of W - W0
    boundary: float  # the share of rows that the last step pulled back, 0 to 1
    rows: int


class Projected(Optimizer):
    """A base rule on a learned leash. Subclasses give the base rule and its state.

    >>> from ftp import SGDP, AdamP
    >>> issubclass(SGDP, Projected), issubclass(AdamP, Projected)
    (True, True)
    """

    # the keys of the base rule's state, in the order in which `_base_rule` takes them
    _base_keys: tuple[str, ...] = ()

    def __init__(self, params: ParamsT, defaults: dict[str, Any], given_anchors: Mapping[str, Tensor] | None) -> None:
        anchors.check_params(params)
        if given_anchors is not None and not isinstance(given_anchors, Mapping):
            raise TypeError(
                f"anchors is of type {type(given_anchors).__name__}; it takes a state dict (name to tensor), "
                "such as torch.load(path, weights_only=True)"
            )
        defaults["exclude_set"] = anchors.check_patterns(defaults["exclude_set"])
        if given_anchors is not None:
            anchors.check_unique(given_anchors, ())
            given_anchors = {anchors.plain_name(name): weight for name, weight in given_anchors.items()}
        self._given_anchors = given_anchors  # for `add_param_group`, which the next line calls; not kept
        super().__init__(params, defaults)
        del self._given_anchors
        inherited = [group for group in self.param_groups if group["exclude_set"] is defaults["exclude_set"]]
        names = [name for group in inherited for name in group.get("param_names", ())]
        anchors.check_matched(defaults["exclude_set"], names)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, now or in the middle of training; their weights of this moment are their anchors.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> optimizer.add_param_group({"params": [("late", torch.nn.Parameter(torch.zeros(2)))], "k": 0.5})
        >>> list(optimizer.constraints())
        ['weight', 'bias', 'late']
        """
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise ValueError(
                f'a parameter group is {param_group!r}; it must be a dict with the key "params": '
                'write {"params": module.named_parameters(), "lr": 1e-3}'
            )
        group = {**self.defaults, **param_group}
        own_patterns = "exclude_set" in param_group
        if own_patterns:
            group["exclude_set"] = anchors.check_patterns(group["exclude_set"])
        given = appendix_layout(group)
        check_group(group)
        entries = group["params"]
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        tensors = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        anchors.check_unique(names, [name for g in self.param_groups for name in g.get("param_names", ())])
        if own_patterns:
            anchors.check_matched(group["exclude_set"], names)
        start = sum(len(g["params"]) for g in self.param_groups)
        labels = names if names else [f"param.{start + i}" for i in range(len(tensors))]
        state_dict = getattr(self, "_given_anchors", None)
        if state_dict is not None and given is not None:
            raise ValueError('anchors= and the groups\' "pre" both give anchors; keep one of them')
        if state_dict is not None and not names:
            raise ValueError("anchors= needs names to match: pass model.named_parameters() as the parameters")
        found = anchors.find_anchors(labels, tensors, group["exclude_set"], given, state_dict)
        super().add_param_group(group)  # torch's own checks come before any state is made
        for tensor, anchor in zip(tensors, found, strict=True):
            state = self._base_state(tensor, group)
            if anchor is not None:
                state.update(leash_state(tensor, anchor, group))
            self.state[tensor] = state

    def _base_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _base_rule(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], *state: list[Any]) -> None:
        raise NotImplementedError

    def _init_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], *columns: list[Any]
    ) -> None:
        """Gather the tensors of a step, a column for each key of the state.

        torch.compile runs this method as it is, without tracing it. It asks for all keys, and for
        state that is not packed; otherwise the plan of the group has the rest.
        """
        params.extend([param for param in group["params"] if param.grad is not None])
        grads.extend([param.grad for param in params])  # type: ignore[misc]
        states = [self.state[param] for param in params]
        if len(columns) == len(self._base_keys) + len(LEASH_KEYS):
            for state in states:
                unpack(state)
        for key, column in zip((*self._base_keys, *LEASH_KEYS), columns, strict=False):
            column.extend([state.get(key) for state in states])
        if any([grad.is_sparse and "anchor" in state for grad, state in zip(grads, states, strict=True)]):  # noqa: C419
            raise RuntimeError(
                "a gradient is sparse; the projection needs dense rows: "
                "build the embedding with sparse=False, or put its name into exclude_set"
            )

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
        keys = LEASH_KEYS if torch.compiler.is_compiling() else LEASH_KEYS[:1]
        work = []
        for index, group in enumerate(self.param_groups):  # gather first: what is refused has changed nothing
            params: list[Tensor] = []
            grads: list[Tensor] = []
            base: list[list[Any]] = [[] for _ in self._base_keys]
            columns: list[list[Any]] = [[] for _ in keys]
            self._init_group(group, params, grads, *base, *columns)
            work.append((group, params, grads, base, self._parts(index, params, grads, columns)))
        for group, params, grads, base, parts in work:
            leash = Leash(*(group[name] for name in Leash._fields))
            for part in parts:
                part.before(leash)  # Eq. 4 needs g_t and W_{t-1}: torch's base rules may overwrite both
            self._base_rule(group, params, grads, *base)  # UGD, Eq. 1
            for part in parts:
                part.after(leash)  # ProjUpdate and Projection
        return loss

    def _parts(
        self, index: int, params: list[Tensor], grads: list[Tensor], columns: list[list[Any]]
    ) -> Sequence[Layers | Pack]:
        """The leashed layers of group `index`, laid out for the step."""
        leashed = [i for i, gamma_state in enumerate(columns[0]) if gamma_state is not None]
        if not leashed:
            return ()
        if torch.compiler.is_compiling():  # a compiler makes few kernels by itself
            kinds: dict[Any, list[int]] = {}
            for i in leashed:
                kinds.setdefault((params[i].device, params[i].dtype), []).append(i)
            chosen: Any = [[[c[i] for i in indices] for c in (params, grads, *columns)] for indices in kinds.values()]
            return [Layers(*fields) for fields in chosen]
        plans: dict[int, tuple[Plan, int]] = self.__dict__.setdefault("_plans", {})
        plan, made = plans.get(index, (None, 0))
        if plan is None or not plan.holds(params, columns[0]):
            for param in self.param_groups[index]["params"]:
                unpack(self.state[param])  # a layer that drops out must not hold on to the others' memory
            # gradients that come and go would mean packing again and again: then better not at all
            states = [self.state[param] for param in params]
            plan = Plan(params, states, self.param_groups[index]["per_element"], may_pack=made < MOST_PACKS)
            plans[index] = plan, made + 1
        return plan.parts(grads)

    def _leashed(self) -> Iterator[tuple[str, Tensor, dict[str, Any], dict[str, Any]]]:
        index = 0
        for group in self.param_groups:
            names = group.get("param_names") or [f"param.{index + i}" for i in range(len(group["params"]))]
            index += len(group["params"])
            for name, param in zip(names, group["params"], strict=True):
                if "anchor" in self.state[param]:
                    yield anchors.plain_name(name), param, self.state[param], group

    def constraints(self) -> dict[str, float]:
        """gamma of every layer on the leash, by name. Reads from the device.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> {name: f"{gamma:.0e}" for name, gamma in optimizer.constraints().items()}
        {'weight': '1e-08', 'bias': '1e-08'}
        """
        rows = [(name, state["gamma_state"][GAMMA]) for name, _, state, _ in self._leashed()]
        values = torch.stack([gamma.cpu().double() for _, gamma in rows]).tolist() if rows else []
        return {name: value for (name, _), value in zip(rows, values, strict=True)}

    @torch.no_grad()
    def report(self) -> dict[str, LayerReport]:
        """gamma, distance, share of rows on the boundary and number of rows of every layer. Reads from the device.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> optimizer.report()["weight"].distance, optimizer.report()["weight"].rows
        (0.0, 2)
        """
        names, sizes, values = [], [], []
        for name, param, state, group in self._leashed():
            gamma, norms = state["gamma_state"][GAMMA], _sharded.whole(state["row_l1"])
            distance = mars_norm(_sharded.whole(param) - _sharded.whole(state["anchor"]), group["per_element"])
            values += [gamma, distance, (norms > gamma).to(gamma.dtype).mean()]
            names.append(name)
            sizes.append(norms.numel())
        if len({value.device for value in values}) > 1:
            values = [value.cpu() for value in values]
        rows = torch.stack(values).view(-1, 3).tolist() if values else []  # one read for all layers
        found = zip(names, rows, sizes, strict=True)
        return {name: LayerReport(gamma, far, share, size) for name, (gamma, far, share), size in found}

    @torch.no_grad()
    def reanchor(self) -> None:
        """Today's weights become the anchors and every constraint starts again at 1e-8.

        For a stream of tasks: call it before each new task. The base rule's own state (momentum,
        Adam's moments) is kept; make a new optimizer if it should go too.

        >>> from ftp import SGDP
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = SGDP(model.named_parameters(), lr=0.1)
        >>> _ = model.weight.data.add_(1.0)
        >>> round(optimizer.report()["weight"].distance, 4)
        3.0
        >>> optimizer.reanchor()
        >>> optimizer.report()["weight"].distance
        0.0
        """
        for _, param, state, group in list(self._leashed()):
            state.update(leash_state(param, param, group))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume exactly; anchors and constraints come from the checkpoint, which is copied.

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
            check_state(final, self.param_groups, self.state)  # before torch changes anything
            saved.update(final)

        handle = self.register_load_state_dict_pre_hook(last_word)
        try:
            super().load_state_dict(state_dict)
        finally:
            handle.remove()
        self.__dict__.pop("_plans", None)
        ids = chain.from_iterable(group["params"] for group in saved["param_groups"])
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        for key, param in zip(ids, params, strict=True):
            state = self.state[param]
            state.update({name: saved["state"][key][name].to(param.device) for name in KEPT_WIDE if name in state})
            # torch lets the state share its memory with the state dict; a step would write into both
            self.state[param] = {name: v.clone() if isinstance(v, Tensor) else v for name, v in state.items()}
