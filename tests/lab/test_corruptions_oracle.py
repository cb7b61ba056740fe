"""Corruptions: how near each kind comes to the package imagecorruptions, and to what it is said to be."""

import inspect
from functools import lru_cache

import imagecorruptions
import numpy as np
import pytest
import torch
from lab.pictures import EXACT, RANDOM, levels, pictures, seeded
from torch import Tensor

from ftp.lab.corruptions import corrupt, digital
from ftp.lab.corruptions._registry import REGISTRY
from ftp.lab.corruptions.blur import shuffle
from ftp.lab.corruptions.noise import shot_noise

CPU = torch.device("cpu")
SEVERITIES = (1, 2, 3, 4, 5)


def oracle(image: Tensor, kind: str, severity: int, seed: int = 0) -> Tensor:
    """One uint8 image (3, h, w) through imagecorruptions, which draws from NumPy's global state."""
    np.random.seed(seed)
    options = {"seed": seed} if kind in ("glass_blur", "impulse_noise") else {}
    array = image.permute(1, 2, 0).contiguous().numpy()
    out = imagecorruptions.corrupt(array, severity=severity, corruption_name=kind, **options)
    return torch.from_numpy(np.array(out)).permute(2, 0, 1)


# Ours rounds to the nearest level, theirs cuts off: one level of difference is the least that can be asked.
TOLERANCE = {"jpeg_compression": 0}  # the same libjpeg


@pytest.mark.parametrize("size", [(224, 224), (96, 131), (32, 32)], ids=str)
@pytest.mark.parametrize("kind", EXACT)
def test_exact_kinds_agree_with_the_oracle(kind: str, size: tuple[int, int]) -> None:
    images = levels(pictures(3, *size))
    for severity in SEVERITIES:
        ours = corrupt(images, kind, severity, parameters="imagenet").int()
        theirs = torch.stack([oracle(image, kind, severity) for image in images]).int()
        assert (ours - theirs).abs().max() <= TOLERANCE.get(kind, 1), severity


@pytest.mark.parametrize("size", [(224, 224), (96, 131), (17, 33)], ids=str)
@pytest.mark.parametrize("quality", [80, 40, 25, 15, 7])
def test_jpeg_by_formula_is_what_libjpeg_does(quality: int, size: tuple[int, int]) -> None:
    """libjpeg computes in integers. Where a coefficient lies within its rounding error of the middle between two
    multiples of a step, it falls to the other side, and the 8 x 8 block (16 x 16 for colour) differs."""
    images = levels(pictures(3, *size))
    formula = digital.jpeg_by_formula(images, quality).clamp(0, 255).int()
    difference = (formula - digital.jpeg_compression(images, quality).int()).abs()
    assert difference.max() <= 40
    assert (difference > 2).float().mean() <= 0.015


def test_jpeg_without_libjpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    images = levels(pictures(2, 96, 131))
    exact = corrupt(images, "jpeg_compression", 3).int()
    monkeypatch.setattr(digital, "libjpeg", lambda: None)
    difference = (corrupt(images, "jpeg_compression", 3).int() - exact).abs()
    assert 0 < (difference > 2).float().mean() <= 0.015


def statistics(image: Tensor, clean: Tensor) -> Tensor:
    """Numbers that describe a damaged image: colour, contrast, change, fine and coarse structure, histogram."""
    x = image.float()
    change = x - clean.float()
    grey = change.mean(0, keepdim=True)
    spectrum = torch.fft.rfft2(grey - grey.mean(), norm="ortho").abs()[0]
    half = spectrum.shape[-1]
    bands = [spectrum[:b, :b].mean() for b in (4, 16, half)]
    # how far values lie above or below an edge, at most 8 levels: a histogram that a small shift changes little
    histogram = torch.stack([(x - edge).clamp(-8, 8).mean() for edge in range(32, 256, 32)])
    parts = [
        x.mean((1, 2)),
        x.std((1, 2)),
        torch.stack([change.abs().mean(), change.std(), grey.std()]),
        torch.stack([x.diff(dim=2).abs().mean(), x.diff(dim=1).abs().mean()]),
        torch.stack(bands),
        histogram,
    ]
    return torch.cat(parts)


@lru_cache(maxsize=1)
def scene() -> Tensor:
    return levels(pictures(1, 224, 224, seed=5))[0]


def both(kind: str, severity: int, ours: int, theirs: int) -> tuple[Tensor, Tensor]:
    """Statistics over many draws of one picture: (draws, numbers)."""
    clean = scene()
    batch = corrupt(clean.expand(ours, -1, -1, -1), kind, severity, generator=seeded(severity))
    mine = torch.stack([statistics(image, clean) for image in batch])
    # theirs is cut off to whole levels: half a level is missing on average
    other = torch.stack([statistics(oracle(clean, kind, severity, seed) + 0.5, clean) for seed in range(theirs)])
    return mine, other


# Beyond sampling error, in levels: half a level for the rounding, and for two kinds what their note says.
SLACK = {
    # cv2's distances are those of a chamfer mask (up to 2% off), and Canny's weak edges are left out
    "spatter": 1.0,
    # theirs cuts off after the first blur, too
    "glass_blur": 1.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in RANDOM if kind != "frost"])
def test_random_kinds_agree_with_the_oracle_in_distribution(kind: str) -> None:
    for severity in (1, 3, 5):
        mine, other = both(kind, severity, ours=16, theirs=10)
        error = (mine.var(0) / len(mine) + other.var(0) / len(other)).sqrt()
        gap = (mine.mean(0) - other.mean(0)).abs()
        # 21 numbers, 30 cases: 5 standard errors of a mean over few draws, plus the known differences
        allowed = 5 * error + SLACK.get(kind, 0.5)
        assert (gap <= allowed).all(), (severity, gap - allowed)


def test_drawn_frost_is_as_bright_and_as_rough_as_the_photographs() -> None:
    for severity in (1, 3, 5):
        mine, other = both("frost", severity, ours=48, theirs=24)
        # mean and spread of the channel means over draws, in levels
        assert ((mine[:, :3].mean(0) - other[:, :3].mean(0)).abs() < 20).all()
        assert mine[:, :3].std(0).mean() / other[:, :3].std(0).mean() == pytest.approx(1, abs=0.5)
        # contrast of the change within an image, and its fine structure
        assert mine[:, 7].mean() / other[:, 7].mean() == pytest.approx(1, abs=0.35)
        assert mine[:, 9].mean() / other[:, 9].mean() == pytest.approx(1, abs=0.4)


@pytest.mark.parametrize("photons", [3.0, 25.0, 60.0])
def test_shot_noise_is_poisson(photons: float) -> None:
    draws = 400_000
    for value in (0.0, 10 / 255, 0.3337, 1.0):
        x = torch.full((1, 1, 1, draws), value)
        counts = shot_noise(x, photons, generator=seeded()).mul(photons).round().long().flatten()
        rate = round(value * 2040) / 2040 * photons
        k = torch.arange(128, dtype=torch.float64)
        expected = torch.exp(torch.special.xlogy(k, torch.tensor(rate)) - rate - torch.lgamma(k + 1)) * draws
        seen = torch.bincount(counts, minlength=128)
        # every frequent count lies within 5 standard deviations, and no impossible one appears
        assert ((seen - expected).abs() <= 5 * expected.sqrt() + 5).all()
        assert abs(rate - value * photons) <= photons / 4080 + 1e-6


@pytest.mark.parametrize("reach", [1, 2, 4])
def test_glass_moves_pixels_as_the_loop_does(reach: int) -> None:
    count, height, width = 2, 17, 13
    source = shuffle(count, height, width, reach, seeded(4), CPU).view(count, height, width)
    shape = (count, height - 2 * reach, width - 2 * reach)
    draw = torch.randint((2 * reach) ** 2, shape, generator=seeded(4), dtype=torch.int32).tolist()
    content = torch.arange(count * height * width).view(count, height, width).clone()
    for image in range(count):
        for h in range(height - reach, reach, -1):
            for w in range(width - reach, reach, -1):
                down, right = divmod(draw[image][h - reach - 1][w - reach - 1], 2 * reach)
                content[image, h, w] = content[image, h + down - reach, w + right - reach]
    assert torch.equal(source.long(), content)


def test_motion_blur_is_the_sum_of_shifts() -> None:
    from imagecorruptions.corruptions import _motion_blur

    from ftp.lab.corruptions._filters import streak

    images = pictures(3, 60, 70)
    for low in (-44.3, -9.7, 31.2, -134.1, -61.3):  # no ties when a step is rounded to a pixel
        ours = streak(images, 10, 4.0, low, low, None)
        for image, result in zip(images, ours, strict=True):
            theirs = _motion_blur(image.permute(1, 2, 0).numpy(), radius=10, sigma=4.0, angle=low)
            assert np.abs(result.permute(1, 2, 0).numpy() - theirs).max() < 1e-5


def test_numbers_are_the_published_ones() -> None:
    from imagecorruptions import corruptions

    for name in ("gaussian_noise", "contrast", "pixelate", "jpeg_compression", "shot_noise"):
        source = inspect.getsource(getattr(corruptions, name))
        numbers = [float(n) for n in source.split("c = [")[1].split("]")[0].split(",")]
        assert [row[0] for row in REGISTRY[name].imagenet] == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("kind", "reader"),
    [("snow", 7), ("spatter", 6), ("fog", 2), ("frost", 2), ("glass_blur", 3), ("defocus_blur", 2), ("motion_blur", 2)],
)
def test_tuples_are_the_published_ones(kind: str, reader: int) -> None:
    from imagecorruptions import corruptions

    source = inspect.getsource(getattr(corruptions, kind)).split("c = [")[1].split("]")[0]
    theirs = eval(f"[{source}]")
    assert [tuple(map(float, row)) for row in REGISTRY[kind].imagenet] == [tuple(map(float, row)) for row in theirs]
    assert {len(row) for row in REGISTRY[kind].imagenet + REGISTRY[kind].cifar + REGISTRY[kind].tiny} == {reader}
