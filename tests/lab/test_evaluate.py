"""Evaluation against slow loops."""

import math

import numpy as np
import pytest
import torch
from lab.runs import trained
from torch import nn

from ftp.lab import evaluate, worlds
from ftp.lab.worlds._classification import BINS


class Fixed(nn.Module):
    """Says what it was told to say, image by image."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits, self.place = nn.Parameter(logits), 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.place += len(images)
        return self.logits[self.place - len(images) : self.place]


class Answers:
    def __init__(self, labels: torch.Tensor) -> None:
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: torch.Tensor, generator: object = None) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros(len(indices), 3, 32, 32), self.labels[indices]


def slow_ece(probabilities: np.ndarray, labels: np.ndarray, bins: int) -> float:
    """Guo et al. 2017, Eq. 3, written as loops."""
    total = 0.0
    for b in range(bins):
        inside = [i for i, p in enumerate(probabilities) if b / bins < p.max() <= (b + 1) / bins]
        if inside:
            accuracy = sum(probabilities[i].argmax() == labels[i] for i in inside) / len(inside)
            confidence = sum(probabilities[i].max() for i in inside) / len(inside)
            total += len(inside) / len(labels) * abs(accuracy - confidence)
    return total


def test_accuracy_and_calibration_against_loops() -> None:
    logits, labels = 3 * torch.randn(613, 10), torch.randint(10, (613,))
    world = worlds.load("digits")
    found = evaluate.score(Fixed(logits), world, Answers(labels))
    p = logits.softmax(1).numpy()
    assert found.values["accuracy"] == found.main == pytest.approx(100 * np.mean(p.argmax(1) == labels.numpy()))
    assert found.values["ece"] == pytest.approx(100 * slow_ece(p, labels.numpy(), BINS), abs=1e-4)
    assert found.images == 613
    assert evaluate.score(Fixed(logits), world, Answers(labels), limit=100).images == 100


def test_every_run_sees_the_same_damage() -> None:
    world = worlds.load("digits")
    evaluate._damaged.cache_clear()
    first = evaluate._damaged(world, "gaussian_noise", 3)
    evaluate._damaged.cache_clear()
    second = evaluate._damaged(world, "gaussian_noise", 3)
    assert first is not None
    assert second is not None
    assert all(torch.equal(a, b) for (a, _), (b, _) in zip(first, second, strict=True))
    clean, labels = world.split("id").batch(torch.arange(500))
    assert torch.equal(torch.cat([y for _, y in first]), labels)
    error = (torch.cat([x for x, _ in first]).float() / 255 - clean).abs().mean()
    assert 0.01 < error < 0.2


def test_large_images_are_not_kept() -> None:
    world = worlds.load("digits")
    split = evaluate.Corrupted(world, "fog", 2, 300)
    kept = evaluate._damaged(world, "fog", 2)
    assert kept is not None
    fresh = split.batch(torch.arange(250))[0]
    assert torch.equal(kept[0][0].float() / 255, fresh.mul(255).round() / 255)
    assert len(split) == 300


def test_corruptions_hurt_more_when_they_are_worse() -> None:
    run = trained("ftp", steps=40, batch=32, lr=0.05)
    found = evaluate.corruption_scores(run.model, run.world, ["gaussian_noise", "fog"])
    assert set(found) == {"gaussian_noise", "fog"}
    assert all(values[0] >= values[4] for values in found.values())


def test_lipschitz_report_against_numpy() -> None:
    run = trained("ftp", lr=0.1)
    run.final()
    images = torch.rand(4, 3, 32, 32)
    report = evaluate.lipschitz_report(run.model, run.pretrained, images)
    product = 0.0
    after = dict(run.model.named_parameters())
    matrices = {n: p for n, p in run.pretrained.named_parameters() if p.dim() > 1}
    assert set(report["layers"]) == set(matrices)
    for name, anchor in matrices.items():
        before, now = anchor.detach().numpy(), after[name].detach().numpy()
        l_0 = max(np.abs(row).sum() for row in before)
        l_d = max(np.abs(row).sum() for row in now - before)
        assert report["layers"][name] == pytest.approx((l_0, l_d), rel=1e-5, abs=1e-7)
        product += math.log10((l_0 + l_d) / l_0)
    assert report["growth"] == pytest.approx(product, rel=1e-5)
    assert all(value > 0 for value in report["found"].values())
    # the pre-trained network against itself differs nowhere
    same = evaluate.lipschitz_report(run.pretrained, run.pretrained, images)
    assert same["growth"] == 0
    assert same["found"]["difference"] == 0


def test_distances_are_mars_norms() -> None:
    run = trained("finetune")
    after = dict(run.model.named_parameters())
    for (name, anchor), found in zip(
        run.task.anchors.items(), evaluate.distances(run.model, run.task.anchors), strict=True
    ):
        moved = (after[name].detach() - anchor).numpy()
        rows = moved.reshape(len(moved), -1) if moved.ndim > 1 else moved.reshape(1, -1)
        assert found == pytest.approx(np.abs(rows).sum(1).max(), rel=1e-5)
