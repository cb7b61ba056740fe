"""What training does to a picture, as torchvision's references do: a random crop, a flip, RandAugment; mixup, cutmix.

Every function here is pure: the random numbers come in as numbers in [0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ftp.lab.worlds._pictures import resample

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image
    from torch import Tensor

KINDS = ("light", "none", "randaugment")
SCALE, RATIO, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10  # of torchvision's RandomResizedCrop
OPERATIONS, MAGNITUDE, BINS = 2, 9, 31  # of torchvision's RandAugment
DRAWS = 2 * TRIES + 3 + 2 * OPERATIONS  # random numbers for one picture


def centre(pixels: NDArray[Any], size: int) -> NDArray[Any]:
    """The middle of a picture, as torchvision's CenterCrop cuts it."""
    height, width = pixels.shape[:2]
    top, left = round((height - size) / 2), round((width - size) / 2)
    return pixels[top : top + size, left : left + size]


def crop_box(width: int, height: int, draws: NDArray[Any]) -> tuple[int, int, int, int]:
    """A random part of a picture: left, top, right, bottom. The first of ten tries that fits, else the middle.

    >>> import numpy as np
    >>> crop_box(100, 100, np.full(DRAWS, 0.5))
    (14, 14, 87, 87)
    """
    across, down = float(draws[2 * TRIES]), float(draws[2 * TRIES + 1])
    for area, shape in draws[: 2 * TRIES].reshape(TRIES, 2):
        ratio = math.exp(math.log(RATIO[0]) + shape * (math.log(RATIO[1]) - math.log(RATIO[0])))
        pixels = width * height * (SCALE[0] + area * (SCALE[1] - SCALE[0]))
        w, h = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(across * (width - w + 1)), int(down * (height - h + 1))
            return left, top, left + w, top + h
    w = min(width, round(height * RATIO[1]))
    h = min(height, round(width / RATIO[0]))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h


def augmented(pixels: NDArray[Any], size: int, kind: str, interpolation: str, draws: NDArray[Any]) -> NDArray[Any]:
    """A picture as training sees it: (size, size, 3), bytes."""
    import numpy as np
    from PIL import Image

    if kind == "none":
        return centre(pixels, size)
    image = Image.fromarray(pixels)
    image = image.resize((size, size), resample(interpolation), box=crop_box(image.width, image.height, draws))
    if draws[2 * TRIES + 2] < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if kind == "randaugment":
        for which, sign in draws[2 * TRIES + 3 :].reshape(OPERATIONS, 2):
            image = _operation(image, int(which * len(_ACTIONS)), -1.0 if sign < 0.5 else 1.0)
    return np.asarray(image)


def _operation(image: Image, which: int, sign: float) -> Image:
    return _ACTIONS[which](image, sign)


def _strength(low: float, high: float) -> float:
    return low + (high - low) * MAGNITUDE / (BINS - 1)


def _moved(image: Image, *matrix: float) -> Image:
    from PIL import Image

    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST)


def _shear_x(image: Image, sign: float) -> Image:
    return _moved(image, 1, sign * _strength(0, 0.3), 0, 0, 1, 0)


def _shear_y(image: Image, sign: float) -> Image:
    return _moved(image, 1, 0, 0, sign * _strength(0, 0.3), 1, 0)


def _slide_x(image: Image, sign: float) -> Image:
    return _moved(image, 1, 0, -sign * int(_strength(0, 150 / 331 * image.width)), 0, 1, 0)


def _slide_y(image: Image, sign: float) -> Image:
    return _moved(image, 1, 0, 0, 0, 1, -sign * int(_strength(0, 150 / 331 * image.height)))


def _turn(image: Image, sign: float) -> Image:
    return image.rotate(sign * _strength(0, 30))


def _enhanced(name: str) -> Callable[[Image, float], Image]:
    def change(image: Image, sign: float) -> Image:
        from PIL import ImageEnhance

        enhanced: Image = getattr(ImageEnhance, name)(image).enhance(1 + sign * _strength(0, 0.9))
        return enhanced

    return change


def _posterised(image: Image, sign: float) -> Image:
    from PIL import ImageOps

    return ImageOps.posterize(image, 8 - round(MAGNITUDE / ((BINS - 1) / 4)))


def _solarised(image: Image, sign: float) -> Image:
    from PIL import ImageOps

    return ImageOps.solarize(image, round(_strength(255, 0)))


def _stretched(image: Image, sign: float) -> Image:
    from PIL import ImageOps

    return ImageOps.autocontrast(image)


def _equalised(image: Image, sign: float) -> Image:
    from PIL import ImageOps

    return ImageOps.equalize(image)


_ACTIONS: tuple[Callable[[Image, float], Image], ...] = (
    *(lambda image, sign: image, _shear_x, _shear_y, _slide_x, _slide_y, _turn),
    *(_enhanced("Brightness"), _enhanced("Color"), _enhanced("Contrast"), _enhanced("Sharpness")),
    *(_posterised, _solarised, _stretched, _equalised),
)


def mixed(images: Tensor, labels: Tensor, classes: int, mixup: float, cutmix: float, rng: Any) -> tuple[Tensor, Tensor]:
    """Each picture mixed with its neighbour in the batch: all over (mixup) or a box of it (cutmix), and so its label.

    mixup, cutmix: the alpha of their Beta distribution; 0 for neither. Where both are on, a coin decides each batch.
    """
    from torch.nn import functional as F

    chosen = [name for name, alpha in (("mixup", mixup), ("cutmix", cutmix)) if alpha > 0]
    kind = chosen[int(rng.integers(len(chosen)))]
    share = float(rng.beta(*2 * [mixup if kind == "mixup" else cutmix]))  # of the picture's own
    targets = F.one_hot(labels, classes).to(images.dtype)
    other = images.roll(1, 0)
    if kind == "mixup":
        images = images.lerp(other, 1 - share)
    else:
        height, width = images.shape[-2:]
        half = 0.5 * math.sqrt(1 - share)
        y, x = int(rng.integers(height)), int(rng.integers(width))
        top, bottom = max(0, int(y - half * height)), min(height, int(y + half * height))
        left, right = max(0, int(x - half * width)), min(width, int(x + half * width))
        images[:, :, top:bottom, left:right] = other[:, :, top:bottom, left:right]
        share = 1 - (bottom - top) * (right - left) / (height * width)
    return images, targets * share + targets.roll(1, 0) * (1 - share)
