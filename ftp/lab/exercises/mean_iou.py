"""Lesson 15: mIoU of a set of label maps with ignored pixels. The truth counts pixel by pixel, in fractions."""

from fractions import Fraction

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals

IGNORED = 255


def counted(said: Tensor, truth: Tensor, classes: int) -> float:
    """The mean over all classes of the shared pixels over the pixels of either, in percent.

    >>> counted(torch.tensor([[0, 1, 1]]), torch.tensor([[0, 0, 1]]), 2)
    50.0
    """
    pixels = [(a, b) for a, b in zip(said.flatten().tolist(), truth.flatten().tolist(), strict=True) if b != IGNORED]
    total = Fraction(0)
    for c in range(classes):
        both = sum(a == c and b == c for a, b in pixels)
        either = sum(a == c or b == c for a, b in pixels)
        total += Fraction(both, either) if either else Fraction(0)
    return float(100 * total / classes)


def _case(text: str, said: list[list[int]], truth: list[list[int]], classes: int) -> Question:
    return Question(text, (torch.tensor(said), torch.tensor(truth), classes))


MISSING = "the mean over all classes of shared pixels over pixels of either, in percent, without ignored ones"
HEAD = "def my_mean_iou(said, truth, classes):\n    valid = truth != 255\n    said, truth = said[valid], truth[valid]\n"
EACH = "    hits = [((said == c) & (truth == c)).sum() for c in range(classes)]\n"
UNION = "    any_of = [((said == c) | (truth == c)).sum() for c in range(classes)]\n"
EXERCISE = Exercise(
    name="mean_iou",
    lesson="15",
    answer="my_mean_iou",
    missing=MISSING,
    well_done="One count over all pictures, the background as one class among others, and ignored pixels nowhere.",
    hints=(
        "first throw away every pixel whose truth is 255; what was said there must not count anywhere.",
        "for class c: both say c, over at least one of them says c; counted over all pictures together.",
        "the mean is over all classes, 0 for one that is nowhere: divide by union.clamp(min=1), then by `classes`.",
    ),
    solution="""
def my_mean_iou(said, truth, classes):
    valid = truth != 255
    said, truth = said[valid], truth[valid]
    total = 0.0
    for c in range(classes):
        both = ((said == c) & (truth == c)).sum()
        either = ((said == c) | (truth == c)).sum()
        total += float(both / either.clamp(min=1))
    return 100 * total / classes
""",
    questions=(
        _case("one picture, said [0 1 1], truth [0 0 1], two classes", [[0, 1, 1]], [[0, 0, 1]], 2),
        _case("said [0 1 1 0], truth [0 0 1 255]", [[0, 1, 1, 0]], [[0, 0, 1, 255]], 2),
        _case("said [0 1 1 1], truth [0 0 1 255]", [[0, 1, 1, 1]], [[0, 0, 1, 255]], 2),
        _case(
            "two pictures, a thing on most of one and on one pixel of the other",
            [[1, 1, 1, 0], [0, 0, 0, 0]],
            [[1, 1, 1, 1], [0, 0, 0, 1]],
            2,
        ),
        _case("three classes, one of them nowhere", [[0, 1, 1, 0, 0]], [[0, 0, 1, 0, 0]], 3),
        _case("four classes, one only said, one nowhere", [[0, 2, 1, 1, 0]], [[0, 0, 1, 1, 255]], 4),
    ),
    judge=equals(counted),
    mistakes=(
        Mistake(
            "def my_mean_iou(said, truth, classes):\n"
            + EACH
            + UNION
            + "    return 100 * sum(float(h / u.clamp(min=1)) "
            "for h, u in zip(hits, any_of)) / classes",
            "you counted what was said of ignored pixels; where the truth is 255, nothing that is said can be wrong.",
        ),
        Mistake(
            "def my_mean_iou(said, truth, classes):\n    means = []\n    for s, t in zip(said, truth):\n"
            "        s, t = s[t != 255], t[t != 255]\n        means.append(sum(float(((s == c) & (t == c)).sum() / "
            "((s == c) | (t == c)).sum().clamp(min=1)) for c in range(classes)) / classes)\n"
            "    return 100 * sum(means) / len(means)",
            "you took the mean over pictures; mIoU counts the pixels of the whole set first, and divides once.",
        ),
        Mistake(
            HEAD
            + EACH
            + UNION
            + "    return 100 * sum(float(h / u.clamp(min=1)) for h, u in list(zip(hits, any_of))[1:])"
            " / (classes - 1)",
            "you left the background out; here it is a class like the others.",
        ),
        Mistake(
            HEAD + "    return 100 * float((said == truth).sum() / len(truth))",
            "that is the share of right pixels; a network that says background everywhere would do well in it.",
        ),
        Mistake(
            HEAD + EACH + UNION + "    shown = [float(h / u) for h, u in zip(hits, any_of) if u]\n"
            "    return 100 * sum(shown) / len(shown)",
            "you left out the class that is nowhere; the published evaluation counts it as 0 and divides by all.",
        ),
        Mistake(
            HEAD + EACH + "    of_truth = [(truth == c).sum().clamp(min=1) for c in range(classes)]\n"
            "    return 100 * sum(float(h / n) for h, n in zip(hits, of_truth)) / classes",
            "you divided by the pixels of the truth alone (recall); what was wrongly said to be c belongs below, too.",
        ),
        Mistake(
            HEAD + EACH + "    both = [((said == c).sum() + (truth == c).sum()).clamp(min=1) for c in range(classes)]\n"
            "    return 100 * sum(float(2 * h / n) for h, n in zip(hits, both)) / classes",
            "that is Dice, twice the shared pixels over the sum of both; IoU counts the shared ones once below.",
        ),
        Mistake(
            HEAD + EACH + UNION + "    return sum(float(h / u.clamp(min=1)) for h, u in zip(hits, any_of)) / classes",
            "that is a share from 0 to 1; the score is in percent.",
        ),
        Mistake(
            "def my_mean_iou(said, truth, classes):\n    truth = torch.where(truth == 255, 0, truth)\n"
            + EACH
            + UNION
            + "    return 100 * sum(float(h / u.clamp(min=1)) for h, u in zip(hits, any_of)) / classes",
            "you made the ignored pixels background; nothing is known of them, so they must leave both maps.",
        ),
        Mistake(
            HEAD + EACH + UNION + "    return 100 * sum(float(h / u) for h, u in zip(hits, any_of)) / classes",
            "a class that is nowhere is 0 / 0 here, and one nan makes the mean nan; divide by union.clamp(min=1).",
        ),
        Mistake(
            HEAD
            + EACH
            + UNION
            + "    return 100 * sum(float(h / u) if u else 1.0 for h, u in zip(hits, any_of)) / classes",
            "you counted a class that is nowhere as right; the published evaluation counts it as 0.",
        ),
        Mistake(
            HEAD + EACH + "    of_said = [(said == c).sum().clamp(min=1) for c in range(classes)]\n"
            "    return 100 * sum(float(h / n) for h, n in zip(hits, of_said)) / classes",
            "you divided by what was said to be c alone (precision); what is c and was missed belongs below, too.",
        ),
        Mistake(
            HEAD + EACH + "    both = [((said == c).sum() + (truth == c).sum()).clamp(min=1) for c in range(classes)]\n"
            "    return 100 * sum(float(h / n) for h, n in zip(hits, both)) / classes",
            "the shared pixels are counted twice below, once in each map; the union has them once.",
        ),
        Mistake(
            "def my_mean_iou(said, truth, classes): return 100 * float((said == truth).float().mean())",
            "that is the share of right pixels, the ignored ones among them: neither what is asked nor of whom.",
        ),
    ),
    variants=(
        """
def my_mean_iou(said, truth, classes):
    valid = truth != 255
    pairs = classes * truth[valid] + said[valid]
    table = torch.bincount(pairs, minlength=classes**2).reshape(classes, classes).double()
    hits = table.diagonal()
    return 100 * (hits / (table.sum(0) + table.sum(1) - hits).clamp(min=1)).mean()
""",
        """
from ftp.lab.worlds._dense import LabelMapMeter
def my_mean_iou(said, truth, classes):
    meter = LabelMapMeter([str(c) for c in range(classes)])
    meter.add_labels(said, truth)
    return meter.values()["mIoU"]
""",
    ),
)
