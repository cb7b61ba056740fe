"""Short runs for tests: a few steps of the digits world on small batches."""

from typing import Any

import torch

from ftp.lab.record import Settings
from ftp.lab.settings import resolve
from ftp.lab.train import FineTuning, finetune


def short(method: str, **given: Any) -> Settings:
    return resolve("digits", method, {"steps": 6, "batch": 16, **given})


def start(method: str, **given: Any) -> FineTuning:
    """A run that is not evaluated, on the CPU."""
    return finetune(short(method, **given), device="cpu", watches=0, evaluate_at_end=False)


def trained(method: str, **given: Any) -> FineTuning:
    run = start(method, **given)
    for _ in run:
        pass
    return run


def weights(run: FineTuning) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in run.model.state_dict().items()}


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    """To the last bit."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
