"""Models: small networks whose weights ship with the kit, and torchvision's by name for full scale."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from ftp.lab.record import LabError
from ftp.lab.store.database import write_atomic

HOME = Path(__file__).resolve().parent


def write_weights(model: nn.Module, path: Path, note: Mapping[str, str] | None = None) -> None:
    """Parameters and buffers as one safetensors file, complete or not at all."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    write_atomic(path, save(tensors, metadata=dict(note or {})))


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise LabError(f"{path} is damaged ({error}); delete it, then train its run again") from None


def sha256(path: Path) -> str:
    """The hash of a file, as model cards and provenance give it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
