"""Checkpoints: a run's weights and its optimizer's state in one safetensors file, complete or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ftp.lab.record import LabError
from ftp.lab.settings import deciding
from ftp.lab.store import write_atomic

if TYPE_CHECKING:
    from ftp.lab.train import FineTuning


def write_checkpoint(path: Path, run: FineTuning) -> None:
    """Everything that the next step depends on."""
    tensors: dict[str, Tensor] = {f"model.{name}": tensor for name, tensor in run.model.state_dict().items()}
    tensors |= {f"method.{name}": tensor for name, tensor in run.method.state_dict().items()}
    if run.phase:  # those of the first phase are the pre-trained weights
        tensors |= {f"anchor.{name}": tensor for name, tensor in run.task.anchors.items()}
    numbers: dict[str, Any] = {}
    for index, state in run.method.optimizer.state_dict()["state"].items():
        for key, value in state.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"optimizer.{index}.{key}"] = value
    note = {
        "step": str(run.step),
        "phase": str(run.phase),
        "settings": json.dumps(deciding(run.settings), sort_keys=True),
        "numbers": json.dumps(numbers),
        "scaler": json.dumps(run.scaler.state_dict()),
    }
    on_cpu = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_atomic(path, save(on_cpu, metadata=note))


def read_checkpoint(path: Path, run: FineTuning) -> int:
    """Bring a run to where the file left it; the step is returned."""
    try:
        with safe_open(path, framework="pt") as file:
            note, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise LabError(f"{path.name} is no checkpoint that can be read ({error}); delete it to start again") from None
    if note.get("settings") != json.dumps(deciding(run.settings), sort_keys=True):
        raise LabError(f"{path.name} is the checkpoint of a run with other settings; delete it to start again")
    if phase := int(note.get("phase", 0)):
        run.enter_phase(phase)
        saved = _part(tensors, "anchor.")
        run.task.anchors = {name: saved[name].to(run.device) for name in run.task.anchors}  # in the network's order
    run.model.load_state_dict(_part(tensors, "model."))
    if phase:
        run.method.begin_phase()
    run.method.load_state_dict({name: t.to(run.device) for name, t in _part(tensors, "method.").items()})
    state: dict[int, dict[str, Any]] = {}
    entries = {**_part(tensors, "optimizer."), **_part(json.loads(note["numbers"]), "optimizer.")}
    for name, value in entries.items():
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = value
    optimizer = run.method.optimizer
    params = [param for group in optimizer.param_groups for param in group["params"]]
    state = {
        index: {key: _as_it_lay(value, params[index]) for key, value in row.items()} for index, row in state.items()
    }
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    run.scaler.load_state_dict(json.loads(note["scaler"]))
    return int(note["step"])


def _as_it_lay(value: Any, param: Tensor) -> Any:
    """A tensor of the optimizer in the memory order of its parameter: a sum in another order has another last bit."""
    if not isinstance(value, Tensor) or value.shape != param.shape or value.stride() == param.stride():
        return value
    return torch.empty_like(param, dtype=value.dtype, device=value.device).copy_(value)


def _part(entries: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in entries.items() if name.startswith(prefix)}
