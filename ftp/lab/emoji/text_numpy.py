"""The text tower of `ftp.lab.models.caption_model` in numpy, for the page's server, which has no torch.

    tower = TextTower(path)                       # a safetensors file with both towers
    tower.encode(read("a tiger").ids)             # a unit vector of the common space

One caption at a time, so there is no padding and no mask. A test compares it with torch.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ftp.lab.record import LabError

Array = NDArray[np.float32]
PREFIX, HEADS, EPSILON = "text.", 2, 1e-5  # of its tensors' names; of the attention; of torch's LayerNorm
_erf = np.vectorize(math.erf, otypes=[np.float32])


class TextTower:
    """Numbers of words -> a unit vector. Reading the file takes milliseconds; keep the tower."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise LabError(f"{path.name} is missing from ftp/lab/models; install the kit again")
        try:
            tensors = load_file(path)
        except SafetensorError as error:
            raise LabError(f"{path.name} is damaged ({error}); install the kit again") from None
        self.weights = {n[len(PREFIX) :]: t.astype(np.float32) for n, t in tensors.items() if n.startswith(PREFIX)}
        if "words.weight" not in self.weights:
            raise LabError(f"{path.name} has no text tower; install the kit again")

    def encode(self, ids: Sequence[int]) -> Array:
        """The unit vector of a caption, given as the numbers of its words: (dimensions,)."""
        x = self.weights["words.weight"][list(ids)] + self.weights["place"][: len(ids)]  # (words, width)
        x = x + self._linear("out", self._attention(self._norm("norm1", x)))
        hidden = self._linear("mlp.0", self._norm("norm2", x))
        x = x + self._linear("mlp.2", hidden * 0.5 * (1 + _erf(hidden / math.sqrt(2))))  # GELU
        vector: Array = self._norm("norm", x.mean(0)) @ self.weights["proj.weight"].T
        return vector / np.linalg.norm(vector)

    def _linear(self, name: str, x: Array) -> Array:
        result: Array = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return result

    def _norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        result: Array = scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return result

    def _attention(self, x: Array) -> Array:
        """Every word looks at every word, by two heads: softmax(q k^T / sqrt(width)) v."""
        words = len(x)
        q, k, v = self._linear("qkv", x).reshape(words, 3, HEADS, -1).transpose(1, 2, 0, 3)  # (heads, words, width)
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        seen: Array = (shares / shares.sum(-1, keepdims=True)) @ v
        return seen.transpose(1, 0, 2).reshape(words, -1)
