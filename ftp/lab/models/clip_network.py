"""CLIP's image tower with a head made of words, from timm or open_clip; neither is needed until one is asked for.

    logits = W (f / |f|),   rows of W = s * mean over templates of the text vectors, each normalised before and after

The scale s = exp(t), about 100 in CLIP, is folded into W, as in WiSE-FT. It matters for FTP: a head that is stored 100
times longer is on a 100 times shorter leash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ftp.lab.models.zoo import read_state
from ftp.lab.record import LabError

EXTRA = "pip install open_clip_torch"
NORMS = {  # mean and deviation of the pixels: CLIP's own, or those of ImageNet
    "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "photographs": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
AT_ONCE = 256  # texts


class ClipNetwork(nn.Module):
    """Pixels in [0, 1] -> one score for each class: the image tower, a unit vector, and a head without bias.

    >>> network = ClipNetwork(nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), torch.ones(4, 5), "clip")
    >>> network(torch.zeros(2, 3, 2, 2)).shape
    torch.Size([2, 4])
    """

    def __init__(self, body: nn.Module, head: Tensor, norm: str) -> None:
        super().__init__()
        mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in NORMS[norm])
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", mean, persistent=False)  # constants: not part of what is trained or averaged
        self.register_buffer("std", std, persistent=False)
        self.body = body
        self.head = nn.Linear(head.shape[1], head.shape[0], bias=False)
        with torch.no_grad():
            self.head.weight.copy_(head)

    def features(self, x: Tensor) -> Tensor:
        return F.normalize(self.body((x - self.mean) / self.std), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))


@torch.no_grad()
def text_head(
    encode: Callable[[Sequence[str]], Tensor],
    names: Sequence[str],
    templates: Sequence[Callable[[str], str]],
    scale: float,
    progress: Callable[[int], None] = lambda done: None,
) -> Tensor:
    """The weight of a zero-shot head, (names, width). encode: texts to vectors of any length.

    >>> text_head(lambda texts: torch.tensor([[3.0, 4.0]] * len(texts)), ["cat"], ["a {}".format], 10.0)
    tensor([[6., 8.]])
    """
    rows = []
    for done, name in enumerate(names, start=1):
        texts = [template(name) for template in templates]
        parts = [encode(texts[i : i + AT_ONCE]) for i in range(0, len(texts), AT_ONCE)]
        mean = F.normalize(torch.cat(parts).float(), dim=-1).mean(0)
        rows.append(F.normalize(mean, dim=-1))
        progress(done)
    return scale * torch.stack(rows)


def head_from_file(path: Path, classes: int, scale: float) -> Tensor:
    """A head out of a file with one matrix, a row for each class in the order of the class folders.

    Each row is normalised and multiplied by the scale, so that embeddings and finished heads are both welcome.
    """
    matrices = {name: tensor for name, tensor in read_state(path).items() if tensor.dim() == 2}
    if len(matrices) != 1:
        raise LabError(f"{path} holds {len(matrices)} matrices; save one alone, with a row for each class")
    head = next(iter(matrices.values())).float()
    if len(head) != classes:
        raise LabError(f"{path} has {len(head)} rows, and there are {classes} classes; give a row for each class")
    if not bool(head.isfinite().all()) or not bool(head.norm(dim=1).min() > 0):
        raise LabError(f"{path} has a row without a direction (zeros or NaN); make the embeddings again")
    return scale * F.normalize(head, dim=-1)


def image_tower(model: str, weights: str, size: int, drop_path: float) -> nn.Module:
    """The image tower up to the common space. weights: "" for the published ones, "none" for random, or a file."""
    source, _, name = model.partition(":")
    if source == "timm" and name:
        return _timm(name, weights, size, drop_path)
    if source == "open_clip" and name:
        if drop_path:
            raise LabError(f"open_clip has no drop-path; write drop_path=0, or take a network of timm, not {model}")
        return cast(nn.Module, open_clip_model(name, weights, size).visual)
    raise LabError(f"model is {model!r}; write timm:NAME or open_clip:NAME/TAG, such as open_clip:ViT-B-16/openai")


def _timm(name: str, weights: str, size: int, drop_path: float) -> nn.Module:
    try:
        import timm
    except ImportError:
        raise LabError(f"timm:{name} needs the package timm, which is not installed; write: {EXTRA}") from None
    if not timm.is_model(name):
        raise LabError(f"model is 'timm:{name}', and timm has no such network; see timm.list_models('*clip*')")
    options: dict[str, Any] = {"drop_path_rate": drop_path, "img_size": size}
    if weights not in ("", "none"):
        _check_file(weights)
        options["pretrained_cfg_overlay"] = {"file": weights}
    try:
        network: nn.Module = timm.create_model(name, pretrained=weights != "none", **options)
    except (OSError, RuntimeError) as error:
        raise _unreachable(f"timm:{name}", error) from None
    return network


def open_clip_model(name: str, weights: str = "", size: int | None = None) -> Any:
    """A whole model of open_clip by NAME/TAG: both towers and the scale."""
    try:
        import open_clip
    except ImportError:
        raise LabError(f"the package open_clip is not installed; write: {EXTRA}, or give head=FILE") from None
    which, _, tag = name.partition("/")
    if which not in open_clip.list_models():
        raise LabError(f"open_clip has no network {which!r}; see open_clip.list_models()")
    if weights not in ("", "none"):
        _check_file(weights)
    source = None if weights == "none" else weights or tag
    try:
        return open_clip.create_model(which, pretrained=source, force_image_size=size)
    except (OSError, RuntimeError) as error:
        raise _unreachable(f"open_clip:{name}", error) from None


def open_clip_head(name: str, classes: int, progress: Callable[[int], None], weights: str = "") -> Tensor:
    """The head that open_clip's text tower makes of its 1,000 class names with CLIP's 80 templates."""
    model = open_clip_model(name, weights).eval()
    import open_clip

    names, templates = open_clip.IMAGENET_CLASSNAMES, open_clip.OPENAI_IMAGENET_TEMPLATES
    if len(names) != classes:
        raise LabError(f"open_clip has names for {len(names)} classes, and there are {classes}; write head=FILE")
    tokenizer = open_clip.get_tokenizer(name.partition("/")[0])

    def encode(texts: Sequence[str]) -> Tensor:
        return cast(Tensor, model.encode_text(tokenizer(list(texts))))

    return text_head(encode, names, templates, float(model.logit_scale.detach().exp()), progress)


def _check_file(weights: str) -> None:
    if not Path(weights).is_file():
        raise LabError(f"weights is {weights!r}, which is no file; give a file, none, or leave it out to download")


def _unreachable(model: str, error: Exception) -> LabError:
    return LabError(
        f"the weights of {model} cannot be read ({type(error).__name__}); go online once, or give weights=FILE"
    )
