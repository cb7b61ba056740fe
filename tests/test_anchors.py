"""Names: prefixes of wrappers, patterns, and the paper's Appendix 8.7 as printed."""

import copy
import re

import pytest
import torch
from torch import nn

from ftp import SGDP
from ftp.anchors import matched, plain_name


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.body(x))
        return out


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."])
def test_prefixes_are_ignored_on_both_sides(prefix: str) -> None:
    named = [(prefix + name, param) for name, param in Small().named_parameters()]
    for pattern in ("head.*", "module.head.*", "_orig_mod.head.*"):
        optimizer = SGDP(named, lr=0.1, exclude_set={pattern})
        assert list(optimizer.constraints()) == ["body.weight", "body.bias"]


def test_wrapped_models() -> None:
    model = Small()
    wrapped = torch.compile(model)
    optimizer = SGDP(wrapped.named_parameters(), lr=0.1, exclude_set={"head.weight", "head.bias"})
    assert list(optimizer.constraints()) == ["body.weight", "body.bias"]


def test_patterns_match_whole_names() -> None:
    assert matched("a.*", ["a.b.weight", "b.a.weight", "A.weight"]) == {"a.b.weight"}
    assert matched("*.weight", ["module.a.weight", "a.bias"]) == {"a.weight"}
    assert plain_name("module.module.x") == "x"
    assert plain_name("my.module.x") == "my.module.x"


def test_a_name_with_brackets_is_that_name() -> None:
    params = [(name, nn.Parameter(torch.zeros(2))) for name in ("a[0]", "a0", "a1")]
    assert list(SGDP(params, exclude_set={"a[0]"}).constraints()) == ["a0", "a1"]
    assert list(SGDP(params, exclude_set={"a[01]"}).constraints()) == ["a[0]"]


APPENDIX = """
from FTP import SGDP

# Parameters to be optimized
params_to_opt = [x[1] for x in model.named_parameters()]
# Names of parameters to be optimized
params_to_opt_name = [x[0] for x in model.named_parameters()]
# Copy the initial parameters as the anchor
params_anchor = copy.deepcopy(params_to_opt)
# Set up the parameter groups
param_group = [{"params":params_to_opt,
                "pre": params_anchor,
                "name": params_to_opt_name}]
# Set up the optimization hyper-parameters
optimizer_params = {
        "lr": 1e-2,
        "weight_decay": 5.0e-4,
        "momentum": 0.9,
        "nesterov": True,
        "k":1.0,
        "exclude_set":{"module.head.weight","module.head.bias"}
    }
optimizer = SGDP(param_group,**optimizer_params)
"""


def test_appendix_8_7_runs_as_printed_but_for_the_import_line() -> None:
    scope = {"model": Small(), "copy": copy}
    exec(re.sub("from FTP", "from ftp", APPENDIX), scope)
    optimizer, model = scope["optimizer"], scope["model"]
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(8, 3)).square().mean().backward()
        optimizer.step()
    assert list(optimizer.constraints()) == ["body.weight", "body.bias"]
    assert not any(key in group for group in optimizer.param_groups for key in ("pre", "name"))
    assert not any(torch.is_tensor(v) for group in optimizer.state_dict()["param_groups"] for v in group.values())


def test_the_anchor_is_a_copy() -> None:
    model = Small()
    start = copy.deepcopy(model.state_dict())
    optimizer = SGDP(model.named_parameters(), lr=0.1)
    optimizer.anchor()
    with torch.no_grad():
        model.body.weight.add_(1.0)
    model(torch.randn(8, 3)).square().mean().backward()
    with pytest.warns(UserWarning, match="something that is not a step has moved 'body.weight' off the leash"):
        optimizer.step()
    assert torch.allclose(model.body.weight, start["body.weight"], atol=1e-6)
