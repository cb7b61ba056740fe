"""Lesson 06: a corruption from its formula, the flat picture of ImageNet-C."""

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals


def pixel_by_pixel(images: Tensor, factor: float) -> Tensor:
    """Each pixel by itself, with the mean of its own channel of its own image, in plain Python.

    >>> pixel_by_pixel(torch.tensor([[[[0.0, 1.0]]]]), 0.5).flatten()
    tensor([0.2500, 0.7500])
    """
    out = torch.empty(images.shape)
    for n, image in enumerate(images.tolist()):
        for c, channel in enumerate(image):
            pixels = [pixel for line in channel for pixel in line]
            mean = sum(pixels) / len(pixels)
            out[n, c] = torch.tensor([[(pixel - mean) * factor + mean for pixel in line] for line in channel])
    return out


def _drawn(count: int, channels: int) -> Tensor:
    return torch.rand(count, channels, 2, 3, generator=torch.Generator().manual_seed(6))


EXERCISE = Exercise(
    name="contrast",
    lesson="06",
    answer="my_contrast",
    missing="(x - mean) · factor + mean, with the mean of each channel of each image",
    well_done="All pixels move towards the mean, and the mean stays where it is: the picture gets flat, not dark.",
    hints=(
        "how far is each pixel from the mean brightness? Keep only a part of that distance, and start from the mean.",
        "images has the shape (batch, channel, height, width); the mean runs over height and width, so over 2 and 3.",
        "images.mean((2, 3), keepdim=True) has one entry for each channel of each image, in a shape that fits images.",
    ),
    solution="""
def my_contrast(images, factor):
    mean = images.mean((2, 3), keepdim=True)
    return (images - mean) * factor + mean
""",
    questions=(
        Question("one image of two pixels, 0 and 1, factor 0.5", (torch.tensor([[[[0.0, 1.0]]]]), 0.5)),
        Question("pixels 0.2, 0.4 and 0.9, factor 0.5", (torch.tensor([[[[0.2, 0.4, 0.9]]]]), 0.5)),
        Question(
            "a red and a blue half, factor 0.4", (torch.tensor([[[[1.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.6]]]]), 0.4)
        ),
        Question("a dark and a bright image, factor 0.3", (torch.tensor([[[[0.0, 0.2]]], [[[0.8, 1.0]]]]), 0.3)),
        Question("four small images in colour, factor 0.1", (_drawn(4, 3), 0.1)),
    ),
    judge=equals(pixel_by_pixel),
    mistakes=(
        Mistake(
            "my_contrast = lambda images, factor: images * factor",
            "that makes the picture dark; contrast keeps its mean and pulls the pixels towards it.",
        ),
        Mistake(
            "my_contrast = lambda images, factor: (images - images.mean((2, 3), keepdim=True)) * factor",
            "the mean was taken away and not added again.",
        ),
        Mistake(
            "my_contrast = lambda images, factor: (images - images.mean()) * factor + images.mean()",
            "you took one mean for the whole batch; each channel of each image has its own.",
        ),
        Mistake(
            "my_contrast = lambda images, factor: "
            "(images - images.mean((1, 2, 3), keepdim=True)) * factor + images.mean((1, 2, 3), keepdim=True)",
            "you took one mean for all channels of an image; each channel has its own, or the colours fade.",
        ),
        Mistake(
            "my_contrast = lambda images, factor: "
            "(images - images.mean((0, 2, 3), keepdim=True)) * factor + images.mean((0, 2, 3), keepdim=True)",
            "you took one mean for a channel of all images; a dark image and a bright one must not share it.",
        ),
        Mistake(
            "my_contrast = lambda images, factor: (images - images.mean((2, 3))) * factor + images.mean((2, 3))",
            "the mean has lost the two dimensions of the pixels and lines up with the wrong ones; write keepdim=True.",
        ),
        Mistake(
            "my_contrast = lambda images, factor: (images - 0.5) * factor + 0.5",
            "you pulled the pixels towards 0.5; it must be the mean of the picture.",
        ),
        Mistake(
            "my_contrast = lambda images, factor: "
            "(images - images.mean((2, 3), keepdim=True)) / factor + images.mean((2, 3), keepdim=True)",
            "dividing by the factor gives more contrast; less of it needs a product.",
        ),
    ),
    variants=(
        "my_contrast = lambda images, factor: torch.lerp(images.mean((2, 3), keepdim=True), images, factor)",
        "my_contrast = lambda images, factor: "
        "factor * images + (1 - factor) * images.flatten(2).mean(2)[:, :, None, None]",
    ),
)
