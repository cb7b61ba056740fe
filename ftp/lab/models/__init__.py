"""Models: small networks whose weights ship with the kit, and torchvision's by name for full scale."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save
from torch import Tensor, nn

HOME = Path(__file__).resolve().parent


def write_weights(model: nn.Module, path: Path, note: Mapping[str, str] | None = None) -> None:
    """Parameters and buffers as one safetensors file, complete or not at all."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(save(tensors, metadata=dict(note or {})))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name."""
    return load_file(path)


def sha256(path: Path) -> str:
    """The hash of a file, as model cards and provenance give it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
