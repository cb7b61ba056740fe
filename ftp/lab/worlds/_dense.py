"""Worlds whose targets are maps: what is at each pixel (semseg), body parts (parts), surface normals (normals).

Targets of semseg and parts are labels of shape (batch, height, width); 255 is ignored everywhere. Targets of normals
are unit vectors of shape (batch, 3, height, width); a value of 255 is ignored. One network for each task; what it says
has the size of its target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ftp.lab.options import Option
from ftp.lab.record import Value
from ftp.lab.summary import Metric
from ftp.lab.worlds._base import Meter, World

if TYPE_CHECKING:
    from torch import Tensor

IGNORED = 255  # in a map of labels and in a map of normals
SHORT = 1e-6  # a vector below this length has no direction
PARTS = ("background", "head", "torso", "upper arm", "lower arm", "upper leg", "lower leg")
MIOU = Metric("mIoU", "%", per_picture=False)
# the paper's "RMSE" is probably the first of these two; both are measured, and each is called what it is
ANGLE = Metric("mean angle", "°", higher_is_better=False, high=180.0, per_picture=False)
ANGLE_RMSE = Metric("angle RMSE", "°", higher_is_better=False, high=180.0, per_picture=False)
TASK = Option(
    "semseg",
    "what is drawn: kinds of things, body parts, or surface normals",
    choices=("semseg", "parts", "normals"),
)


class DenseWorld(World):
    """A subclass has the option `task`, and says in `kinds` what the labels of semseg are, background first."""

    dense = in_colours = True
    metrics: ClassVar[tuple[Metric, ...]] = (MIOU,)  # of the default task; the options decide
    corruptions = ("fog", "defocus_blur", "gaussian_noise", "brightness")  # the paper's four
    unanchored = readout = ("decoder.*",)
    kinds: ClassVar[tuple[str, ...]] = ("background",)

    def __init__(self, options: Mapping[str, Value]) -> None:
        super().__init__(options)
        self.task = str(self.option("task"))
        self.classes = {"semseg": self.kinds, "parts": PARTS}.get(self.task, ())
        self.metrics = (ANGLE, ANGLE_RMSE) if self.task == "normals" else (MIOU,)  # type: ignore[misc]

    @property
    def outputs(self) -> int:
        """Numbers that the network says of each pixel."""
        return len(self.classes) or 3

    def loss(self, model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, phase: int = 0) -> Tensor:
        loss = normals_loss if self.task == "normals" else labels_loss
        return loss(model(inputs), targets)

    def meter(self) -> Meter:
        return NormalMeter() if self.task == "normals" else LabelMapMeter(self.classes)


def labels_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy, the mean over valid pixels; 0 with a gradient of 0 where none is valid.

    outputs: (batch, classes, height, width); targets: (batch, height, width)

    >>> import torch
    >>> round(float(labels_loss(torch.zeros(1, 4, 2, 2), torch.tensor([[[0, 3], [255, 255]]]))), 4)  # log 4
    1.3863
    >>> float(labels_loss(torch.zeros(1, 4, 2, 2), torch.full((1, 2, 2), 255)))
    0.0
    """
    from torch.nn import functional as F

    targets = targets.long()
    count = (targets != IGNORED).sum().clamp(min=1)
    wide = outputs if outputs.element_size() >= 4 else outputs.float()
    return F.cross_entropy(wide, targets, ignore_index=IGNORED, reduction="sum") / count


def normals_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Each vector divided by its length, then the mean absolute difference over valid values; 0 where none is valid.

    A difference, not an angle: the slope of arccos is infinite where a prediction is right.

    >>> import torch
    >>> up, right = torch.tensor([0.0, 0.0, 5.0]), torch.tensor([1.0, 0.0, 0.0])
    >>> float(normals_loss(up.view(1, 3, 1, 1), right.view(1, 3, 1, 1)))  # (1 + 0 + 1) / 3
    0.6666666865348816
    """
    import torch

    wide = outputs if outputs.element_size() >= 4 else outputs.float()
    valid = targets != IGNORED
    difference = (unit(wide) - targets.to(wide.dtype)).abs()
    # what is ignored is taken out before the sum: 0 times a difference that is not finite would be NaN
    return torch.where(valid, difference, torch.zeros_like(difference)).sum() / valid.sum().clamp(min=1)


def unit(vectors: Tensor) -> Tensor:
    """Vectors along axis 1 divided by their length; one without a direction becomes 0, with a gradient of 0.

    >>> import torch
    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    import torch

    squared = vectors.square().sum(1, keepdim=True)
    has_direction = squared > SHORT**2
    # the root of what has no direction is never taken: its slope is infinite, and infinite times 0 is NaN
    length = torch.where(has_direction, squared, torch.ones_like(squared)).sqrt()
    return torch.where(has_direction, vectors / length, torch.zeros_like(vectors))


def angles(a: Tensor, b: Tensor) -> Tensor:
    """The angle between vectors along axis 1, in degrees; exact also where they are nearly equal or opposite.

    A vector without a direction is at 90° to every other.

    >>> import torch
    >>> a = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    >>> angles(a, torch.tensor([[0.0, 2.0], [-1.0, 0.0], [0.0, 1.0]])).tolist()
    [90.0, 180.0, 90.0]
    """
    import torch

    a, b = unit(a), unit(b)
    half = torch.atan2((a - b).square().sum(1).sqrt(), (a + b).square().sum(1).sqrt())
    return torch.rad2deg(2 * half)


class LabelMapMeter:
    """mIoU over a whole set, in percent: true and false pixels are counted class by class over all pictures.

    The mean is over all classes, background included. A class that neither truth nor prediction shows in the whole set
    counts 0, as in the published evaluation; with leave_out_absent=True the mean is over the others.

    >>> import torch
    >>> meter = LabelMapMeter(("background", "cat", "dog"))
    >>> said = torch.tensor([[[0, 1], [1, 1]]])
    >>> meter.add(torch.nn.functional.one_hot(said, 3).permute(0, 3, 1, 2), torch.tensor([[[0, 0], [1, 255]]]))
    >>> {name: round(value, 3) for name, value in meter.values().items()}  # (1/2 + 1/2 + 0) / 3
    {'mIoU': 33.333}
    """

    def __init__(self, classes: Sequence[str], leave_out_absent: bool = False) -> None:
        import torch

        self.classes, self.leave_out_absent = tuple(classes), leave_out_absent
        self.confusion = torch.zeros(len(self.classes), len(self.classes), dtype=torch.int64)  # truth, prediction

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """outputs: (batch, classes, height, width), scores; targets: (batch, height, width), labels or 255."""
        self.add_labels(outputs.argmax(1), targets)

    def add_labels(self, labels: Tensor, targets: Tensor) -> None:
        """The same for labels that are chosen already."""
        import torch

        count = len(self.classes)
        targets = targets.to(labels.device).long()
        valid = targets != IGNORED
        pairs = targets[valid] * count + labels[valid].long()
        self.confusion += torch.bincount(pairs, minlength=count * count).view(count, count).cpu()

    def by_class(self) -> dict[str, float]:
        """IoU of each class in percent; NaN for one that is nowhere."""
        true = self.confusion.diagonal().double()
        union = self.confusion.sum(0) + self.confusion.sum(1) - self.confusion.diagonal()
        return dict(zip(self.classes, (100 * true / union).tolist(), strict=True))  # 0 / 0 is NaN

    def values(self) -> dict[str, float]:
        shown = [value for value in self.by_class().values() if value == value]
        counted = len(shown) if self.leave_out_absent else len(self.classes)
        return {MIOU.name: sum(shown) / counted if counted else float("nan")}


class NormalMeter:
    """The mean angle between prediction and truth, and the root of the mean squared angle, in degrees, over a set.

    NaN if no pixel of the whole set is valid.

    >>> import torch
    >>> meter = NormalMeter()
    >>> truth = torch.tensor([[[[0.0, 0.0]], [[0.0, 0.0]], [[1.0, 1.0]]]])  # two pixels that look at us
    >>> meter.add(torch.tensor([[[[0.0, 1.0]], [[0.0, 0.0]], [[2.0, 0.0]]]]), truth)  # 0° and 90°
    >>> {name: round(value, 3) for name, value in meter.values().items()}
    {'mean angle': 45.0, 'angle RMSE': 63.64}
    """

    def __init__(self) -> None:
        self.total, self.squares, self.count = 0.0, 0.0, 0

    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """outputs: (batch, 3, height, width), of any length; targets: the same, with 255 where nothing is known."""
        targets = targets.to(outputs.device)
        valid = (targets != IGNORED).all(1)
        said, true = (maps.movedim(1, -1)[valid].cpu().double() for maps in (outputs, targets))
        apart = angles(said, true)
        self.total += apart.sum().item()
        self.squares += apart.square().sum().item()
        self.count += len(apart)

    def values(self) -> dict[str, float]:
        if not self.count:
            return {ANGLE.name: float("nan"), ANGLE_RMSE.name: float("nan")}
        return {ANGLE.name: self.total / self.count, ANGLE_RMSE.name: (self.squares / self.count) ** 0.5}
