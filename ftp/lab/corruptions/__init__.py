"""Corruptions: the 19 kinds of damage of ImageNet-C at 5 severities, for whole batches, on any device.

    corrupt(images, "fog", severity=3, generator=torch.Generator().manual_seed(0))

Each kind is one function with a `@corruption` line in `noise`, `blur`, `weather` or `digital`; a new kind, or
a new file beside them, is found by itself. Numbers are those of Hendrycks and Dietterich, "Benchmarking
Neural Network Robustness to Common Corruptions and Perturbations", for 224 pixels (ImageNet-C) and for 32
pixels (CIFAR-10-C).

Differs from the published files: frost is drawn instead of photographed; 8-bit results are rounded to the
nearest level, where the published ones are rounded down (half a level darker on average); elastic_transform,
motion_blur and snow follow the package imagecorruptions, which replaced the parts that need ImageMagick.
"""

import difflib
import importlib
import pkgutil

import torch
from torch import Generator, Tensor

from ftp.lab.corruptions._registry import REGISTRY, Corruption, corruption

__all__ = ["KINDS", "Corruption", "corrupt", "corruption"]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

# fmt: off
_PUBLISHED = (
    "gaussian_noise", "shot_noise", "impulse_noise",
    "defocus_blur", "glass_blur", "motion_blur", "zoom_blur",
    "snow", "frost", "fog", "brightness",
    "contrast", "elastic_transform", "pixelate", "jpeg_compression",
    "speckle_noise", "gaussian_blur", "spatter", "saturate",
)
# fmt: on


# the order of the paper's tables; kinds of your own come last
KINDS: tuple[str, ...] = tuple(sorted(REGISTRY, key=[*_PUBLISHED, *REGISTRY].index))

SMALL = 96  # pixels: below this side "auto" takes the parameters made for 32 pixels, from it on those for 224
LEAST_SIDE = 8
PIXELS, FEW = 4 * 224 * 224, 8  # of one group of images on a CPU


def corrupt(
    images: Tensor,
    kind: str,
    severity: int = 1,
    *,
    generator: Generator | None = None,
    parameters: str = "auto",
) -> Tensor:
    """Damage a batch of images: the same shape, dtype and device come back, and the input stays as it is.

    images: floats in [0, 1] or uint8 in [0, 255], of shape (batch, 3, height, width), or 1 channel, or without
        batch; at least 8 x 8 pixels. A grey image stays grey: noise is drawn for its one channel, and a kind
        that needs colours works on three equal channels, whose luma 0.299 r + 0.587 g + 0.114 b comes back.
        Floats are computed in float32; no gradient flows back.
    kind: one of KINDS.
    severity: 1 (mild) to 5.
    generator: the only source of randomness, on the images' device; None means torch's global one. Every image
        of a batch gets its own noise, fog, angle or drops.
    parameters: "imagenet" (made for 224 pixels), "tiny" (for 64), "cifar" (for 32), or "auto": cifar if the shorter
        side has fewer than 96 pixels, else imagenet.

    >>> images = torch.full((2, 3, 32, 32), 0.5)
    >>> foggy = corrupt(images, "fog", severity=3, generator=torch.Generator().manual_seed(0))
    >>> foggy.shape, foggy.dtype, bool((foggy != images).any())
    (torch.Size([2, 3, 32, 32]), torch.float32, True)
    >>> corrupt(torch.zeros(3, 32, 32, dtype=torch.uint8), "brightness", 2, parameters="imagenet")[:, 0, 0]
    tensor([51, 51, 51], dtype=torch.uint8)
    """
    _check(images, kind, severity, generator, parameters)
    chosen = REGISTRY[kind]
    if parameters == "auto":
        parameters = "cifar" if min(images.shape[-2:]) < SMALL else "imagenet"
    numbers = {"imagenet": chosen.imagenet, "cifar": chosen.cifar, "tiny": chosen.tiny}[parameters][severity - 1]
    random = {"generator": generator} if chosen.random else {}
    x = images.detach()[None] if images.dim() == 3 else images.detach()
    grey = x.shape[1] == 1 and chosen.colour
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    group = _group(x[0, 0].numel()) if x.device.type == "cpu" and len(x) else max(1, len(x))
    for part, place in ((x[i : i + group], out[i : i + group]) for i in range(0, len(x), group)):
        copy = _private_copy(part.expand(-1, 3, -1, -1) if grey else part, chosen.eight_bit)
        _write(chosen.function(copy, *numbers, **random), place, chosen.eight_bit)
    return out.view(images.shape)


def _group(pixels: int) -> int:
    """How many images a CPU takes at once: twice as fast if they fit into its cache, slower if they are too few.

    >>> _group(32 * 32), _group(224 * 224), _group(1000 * 1000)
    (196, 8, 1)
    """
    return max(1, PIXELS // pixels, min(FEW, 2 * PIXELS // pixels))


def _private_copy(x: Tensor, eight_bit: bool) -> Tensor:
    """A private copy: float32 in [0, 1], or uint8 for the kinds that work on files."""
    if x.dtype == torch.uint8:
        return x if eight_bit else x.float().contiguous().mul_(1 / 255)
    x = x.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
    return x.mul_(255).add_(0.5).to(torch.uint8) if eight_bit else x


def _write(x: Tensor, place: Tensor, levels: bool) -> None:
    """Clip a result (0 to 1, or levels, cut off) and put it into its place, which may be grey or of another dtype."""
    if place.shape[1] < x.shape[1]:
        weights = torch.tensor([0.299, 0.587, 0.114], device=x.device).view(1, 3, 1, 1)
        x = x.float().mul(weights).sum(1, keepdim=True).add_(0.5 * (levels and x.dtype == torch.uint8))
    if place.dtype != torch.uint8:
        place.copy_((x.float().floor_().mul_(1 / 255) if levels else x).clamp_(0, 1))
    elif x.dtype != torch.uint8:
        place.copy_((x if levels else x.mul_(255).add_(0.5)).clamp_(0, 255))
    else:
        place.copy_(x)


def _check(images: object, kind: object, severity: object, generator: object, parameters: object) -> None:
    """Refuse what cannot be meant, in one sentence."""
    if not isinstance(kind, str) or kind not in REGISTRY:
        close = difflib.get_close_matches(kind, KINDS, n=3, cutoff=0.4) if isinstance(kind, str) else []
        close = close or list(KINDS[:3])
        raise ValueError(f"kind is {kind!r}; it must be one of the {len(KINDS)} in KINDS, such as {', '.join(close)}")
    if not isinstance(severity, int) or isinstance(severity, bool) or not 1 <= severity <= 5:
        raise ValueError(f"severity is {severity!r}; it must be a whole number from 1 to 5, such as severity=3")
    if parameters not in ("auto", "imagenet", "cifar", "tiny"):
        raise ValueError(
            f'parameters is {parameters!r}; it must be "imagenet", "cifar", "tiny" or "auto": write parameters="auto"'
        )
    if not isinstance(images, Tensor):
        raise TypeError(f"images is of type {type(images).__name__}; give a tensor: write torch.as_tensor(images)")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise TypeError(
            f"images is of dtype {images.dtype}; it must be floats in [0, 1] or uint8 in [0, 255]: "
            "write images.to(torch.uint8)"
        )
    shape = tuple(images.shape)
    if images.dim() not in (3, 4) or shape[-3] not in (1, 3):
        raise ValueError(
            f"images has shape {shape}; it must be (batch, channels, height, width) or (channels, height, width) "
            "with 1 or 3 channels: write images.movedim(-1, -3) if the channels come last"
        )
    if min(shape[-2:]) < LEAST_SIDE:
        raise ValueError(
            f"images has shape {shape}; height and width must be at least {LEAST_SIDE}: "
            "enlarge them with torch.nn.functional.interpolate"
        )
    if generator is not None:
        if not isinstance(generator, Generator):
            raise TypeError(
                f"generator is of type {type(generator).__name__}; it must be None or a torch.Generator: "
                "write generator=torch.Generator().manual_seed(0)"
            )
        if generator.device.type != images.device.type:
            raise ValueError(
                f"generator is on {generator.device} and images on {images.device}; they must be on one device: "
                f'write torch.Generator("{images.device}")'
            )
    if images.is_floating_point() and images.numel():
        low, high = (float(v) for v in torch.aminmax(images.detach()))
        if low != low:
            raise ValueError("images holds NaN; it must be floats in [0, 1]: write images.nan_to_num(0.0)")
        if low < 0 or high > 1:
            raise ValueError(
                f"images has values from {low:.4g} to {high:.4g}; floats must be in [0, 1]: "
                "undo the normalisation, or write images / 255 or images.clamp(0, 1)"
            )
