"""Worlds whose pictures have one label each: cross-entropy, accuracy, and the expected calibration error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ftp.lab.summary import Metric
from ftp.lab.worlds._base import Meter, World

if TYPE_CHECKING:
    from torch import Tensor

ACCURACY = Metric("accuracy", "%")
ECE = Metric("ece", "%", higher_is_better=False)  # expected calibration error
BINS = 15  # of the calibration error


class Classification(World):
    metrics = (ACCURACY, ECE)

    def loss(self, model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, phase: int = 0) -> Tensor:
        from torch.nn import functional as F

        return F.cross_entropy(model(inputs), targets)

    def meter(self) -> Meter:
        return LabelMeter()


class LabelMeter:
    """Percent right, and how far confidence and accuracy are apart: the mean gap over equal bins of confidence.

    >>> import torch
    >>> meter = LabelMeter()
    >>> meter.add(torch.tensor([[9.0, 0.0], [9.0, 0.0]]).log_softmax(1), torch.tensor([0, 1]))  # sure, right once
    >>> {name: round(value, 1) for name, value in meter.values().items()}
    {'accuracy': 50.0, 'ece': 50.0}
    """

    def __init__(self) -> None:
        import torch

        self.right, self.count = 0.0, 0
        self.gaps = torch.zeros(BINS, dtype=torch.float64)

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        confidence, guess = outputs.float().softmax(1).cpu().max(1)
        right = (guess == targets.cpu()).double()
        self.right += right.sum().item()
        self.count += len(right)
        add_gaps(self.gaps, confidence.double(), right)

    def values(self) -> dict[str, float]:
        gap = self.gaps.abs().sum().item() / self.count
        return {"accuracy": 100 * (self.right / self.count), "ece": 100 * gap}


def add_gaps(gaps: Tensor, confidence: Tensor, right: Tensor) -> None:
    """Add each confidence minus 1 (right) or 0 (wrong) to the gap of its bin."""
    place = (confidence * len(gaps)).ceil().long().clamp(1, len(gaps)) - 1
    gaps.index_add_(0, place, confidence - right)
