"""Lesson 07: bytes that each method keeps for a weight from one step to the next."""

from typing import Any

import torch

import ftp
from ftp.lab.exercises._exercise import Exercise, Mistake, Question, numbers, show

ENTRIES = 10_000  # so many that what is kept once per row or per layer rounds away


def truth() -> list[int]:
    """Count what two real optimizers hold after a step of one wide row; TPGM is SGD and its anchor.

    >>> truth()
    [4, 8, 12]
    """
    held = []
    for make in (torch.optim.SGD, ftp.SGDP):
        layer = torch.nn.Parameter(torch.zeros(1, ENTRIES, dtype=torch.float32))
        optimizer = make([("layer", layer)], lr=0.1, momentum=0.9)
        layer.grad = torch.ones_like(layer)
        optimizer.step()
        tensors = [value for value in optimizer.state[layer].values() if isinstance(value, torch.Tensor)]
        held.append(round(sum(tensor.nbytes for tensor in tensors) / ENTRIES))
    sgd, sgdp = held
    return [sgd, sgd + layer.element_size(), sgdp]


def judge(given: Any) -> str | None:
    """Right is what the real optimizers hold.

    >>> judge((4, 8, 12)), judge((4, 8))
    (None, 'three whole numbers are expected (fine-tuning, TPGM, FTP), yours has shape (2,)')
    """
    value, expected = numbers(given), truth()
    if value.shape != (3,):
        return f"three whole numbers are expected (fine-tuning, TPGM, FTP), yours has shape {tuple(value.shape)}"
    wrong = [
        name for name, x, y in zip(("fine-tuning", "TPGM", "FTP"), value.tolist(), expected, strict=True) if x != y
    ]
    differ = "differs" if len(wrong) == 1 else "differ"
    return f"{' and '.join(wrong)} {differ} from what is counted, yours are {show(value)}" if wrong else None


EXERCISE = Exercise(
    name="state_bytes",
    lesson="07",
    answer="my_bytes",
    missing="bytes per weight that fine-tuning, TPGM and FTP keep from step to step",
    well_done="The gradient of the leash is cheap in time because FTP remembers the way that each row wanted to go.",
    hints=(
        "what must each method still know when the next batch comes, besides the weights themselves?",
        "a float32 is 4 bytes. SGD remembers its momentum; a leash needs its post; Eq. 4 needs one thing more.",
        "fine-tuning: momentum. TPGM: momentum and anchor. FTP: momentum, anchor and deviation (lesson 04).",
    ),
    solution="""
my_bytes = (4, 8, 12)  # momentum; momentum and anchor; momentum, anchor and deviation
""",
    questions=(Question(""),),
    judge=judge,
    mistakes=(
        Mistake(
            "my_bytes = (4, 8, 8)", "FTP also keeps where each row wanted to go: Eq. 4 needs it at the next batch."
        ),
        Mistake("my_bytes = (0, 4, 8)", "SGD with momentum keeps one number for each weight, in all three methods."),
        Mistake("my_bytes = (4, 4, 8)", "a leash needs its post: TPGM keeps W0 as well."),
        Mistake("my_bytes = (4, 4, 12)", "a leash needs its post: TPGM keeps W0 as well."),
        Mistake(
            "my_bytes = (4, 4, 4)",
            "a leash needs its post: TPGM and FTP keep W0 as well, and FTP also where each row wanted to go.",
        ),
        Mistake("my_bytes = (1, 2, 3)", "these are numbers per weight; each of them is a float32 of 4 bytes."),
        Mistake("my_bytes = (4, 12, 8)", "TPGM projects the weights anew in every turn; it is FTP that keeps the way."),
        Mistake(
            "my_bytes = (4, 12, 12)", "TPGM projects the weights anew in every turn; it is FTP that keeps the way."
        ),
        Mistake("my_bytes = (8, 12, 16)", "the weights themselves are not counted here, nor their gradients."),
    ),
    variants=("my_bytes = [4, 8, 12]", "my_bytes = torch.tensor([4, 8, 12])"),
    takes="value",
)
