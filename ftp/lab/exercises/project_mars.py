"""Lesson 03: the projection of Eq. 2 and 10, for layers of any shape. The truth is a loop over plain numbers."""

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals, show


def row_by_row(unconstrained: Tensor, anchor: Tensor, gamma: float) -> Tensor:
    """Eq. 10 written out: each row walks back along its own way until it is within reach.

    >>> row_by_row(torch.tensor([[3.0, -1.0]]), torch.zeros(1, 2), 1.0).tolist()
    [[0.75, -0.25]]
    """
    rows = []
    for wanted, post in zip(unconstrained.flatten(1).tolist(), anchor.flatten(1).tolist(), strict=True):
        way = [w - p for w, p in zip(wanted, post, strict=True)]
        length = sum(abs(step) for step in way)
        share = gamma / length if length > gamma else 1.0
        rows.append([p + share * step for p, step in zip(post, way, strict=True)])
    return torch.tensor(rows, dtype=torch.float64).reshape(anchor.shape)


def _questions() -> tuple[Question, ...]:
    random = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def small(wanted: list[list[float]], post: list[list[float]], gamma: float) -> Question:
        w, p = torch.tensor(wanted, dtype=torch.float64), torch.tensor(post, dtype=torch.float64)
        return Question(f"W~ = {show(w)}, W0 = {show(p)}, γ = {gamma:g}", (w, p, gamma))

    post = draw(4, 5)
    return (
        small([[3.0, -1.0]], [[0.0, 0.0]], 1.0),
        small([[3.0, -1.0], [0.25, 0.25]], [[0.0, 0.0], [0.0, 0.0]], 1.0),
        small([[4.0, 0.0], [1.0, 1.5]], [[1.0, 1.0], [1.0, 1.0]], 2.0),
        small([[2.0, 1.0], [5.0, 1.0]], [[2.0, 1.0], [1.0, 1.0]], 1.0),
        Question("a random layer of shape (4, 5)", (post + draw(4, 5), post, 3.0)),
        Question("a convolution of shape (3, 2, 3, 3)", (draw(3, 2, 3, 3), 0.1 * draw(3, 2, 3, 3), 14.0)),
    )


def _code(last: str, size: str = ".abs()") -> str:
    """A wrong answer: the solution with another last line, or with another length."""
    lines = [
        "way = unconstrained - anchor",
        f"length = way{size}.flatten(1).sum(1).view(-1, *[1] * (anchor.dim() - 1))",
    ]
    lines += ["factor = (gamma / (length + 1e-8)).clamp(max=1)", f"return {last}"]
    return "\n    ".join(["def my_project(unconstrained, anchor, gamma):", *lines])


EXERCISE = Exercise(
    name="project_mars",
    lesson="03",
    answer="my_project",
    missing="each row pulled back to within γ of its anchor",
    well_done="Row by row, straight back, also for a convolution: this is the whole projection of FTP.",
    hints=(
        "work with the way W~ - W0, not with W~: shorten the way, then add W0 again.",
        "the length of each row's way is its sum of sizes; flatten(1) makes rows of any layer.",
        "factor = min(1, γ / length) has one entry per row; reshape it to (-1, 1) or (-1, 1, 1, 1) to multiply.",
    ),
    solution="""
def my_project(unconstrained, anchor, gamma):
    way = (unconstrained - anchor).flatten(1)
    length = way.abs().sum(dim=1, keepdim=True)
    factor = (gamma / (length + 1e-8)).clamp(max=1)
    return anchor + (factor * way).reshape(anchor.shape)
""",
    questions=_questions(),
    judge=equals(row_by_row),
    mistakes=(
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    length = unconstrained.flatten(1).abs().sum(1).view(-1, *[1] * (anchor.dim() - 1))
    return unconstrained * (gamma / (length + 1e-8)).clamp(max=1)
""",
            "you pulled towards zero; a row is pulled towards its anchor, so shorten W~ - W0 and add W0.",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = unconstrained - anchor
    length = way.flatten(1).abs().sum(1).view(-1, *[1] * (anchor.dim() - 1))
    return way * (gamma / (length + 1e-8)).clamp(max=1)
""",
            "you returned the shortened way; add the anchor to get the weights.",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = unconstrained - anchor
    return anchor + way * (gamma / (way.abs().sum() + 1e-8)).clamp(max=1)
""",
            "you took the norm of the whole tensor; MARS is per row.",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = unconstrained - anchor
    longest = way.flatten(1).abs().sum(1).max()
    return anchor + way * (gamma / (longest + 1e-8)).clamp(max=1)
""",
            "you gave every row the factor of the longest one; a row within reach must stay as it is.",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = unconstrained - anchor
    return anchor + way * (gamma / (way.abs().sum(0, keepdim=True) + 1e-8)).clamp(max=1)
""",
            "you added up the columns; each row has its own leash, so add up within rows (dim=1).",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = unconstrained - anchor
    return anchor + way * (gamma / (way.flatten(1).abs().sum(1) + 1e-8)).clamp(max=1)
""",
            "you multiplied the columns by the rows' factors; give them the shape (rows, 1), as keepdim=True does.",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = unconstrained - anchor
    length = way.flatten(1).norm(dim=1).view(-1, *[1] * (anchor.dim() - 1))
    return anchor + way * (gamma / (length + 1e-8)).clamp(max=1)
""",
            "you measured the Euclidean length of the rows; MARS adds up sizes.",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = unconstrained - anchor
    length = way.flatten(1).abs().sum(1).view(-1, *[1] * (anchor.dim() - 1))
    return anchor + way * gamma / (length + 1e-8)
""",
            "a row within reach was pushed out to the end of its leash; Eq. 10 has min(1, ...).",
        ),
        Mistake(
            "my_project = lambda unconstrained, anchor, gamma: anchor + (unconstrained - anchor).clamp(-gamma, gamma)",
            "you cut each weight on its own; a row is shortened as a whole, along its own way.",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = unconstrained - anchor
    return anchor + way * (gamma / (way.abs().sum(1, keepdim=True) + 1e-8)).clamp(max=1)
""",
            "right for a matrix; a row of a convolution is a whole output channel, so flatten(1) before you add up.",
        ),
        Mistake(
            """
def my_project(unconstrained, anchor, gamma):
    way = (unconstrained - anchor).flatten(1)
    size = way.abs()
    sorted_size = size.sort(dim=1, descending=True).values
    excess = sorted_size.cumsum(1) - gamma
    rank = torch.arange(1, way.shape[1] + 1)
    count = (sorted_size - excess / rank > 0).sum(1, keepdim=True)
    cut = (excess.gather(1, count - 1) / count).clamp(min=0)
    return anchor + (way.sign() * (size - cut).clamp(min=0)).reshape(anchor.shape)
""",
            "you took the nearest point by the Euclidean ruler, which bends the way; FTP pulls straight back.",
        ),
        Mistake(
            _code("anchor - factor * way"),
            "the sign is turned round: the row went to the other side of its anchor; add the shortened way to it.",
        ),
        Mistake(
            _code("unconstrained - factor * way"),
            "you took the share that a row may keep away from where it wanted to be; add that share to the anchor.",
        ),
        Mistake(
            _code("anchor + factor * way", size=""),
            "you added up the way with its signs, so they cancel; the length is the sum of sizes: abs() first.",
        ),
    ),
    variants=(
        "my_project = ftp.project_mars",
        "from ftp.lab.exercises.project_mars import row_by_row as my_project",
        """
def my_project(unconstrained, anchor, gamma):
    rows = []
    for row, post in zip(unconstrained, anchor):
        length = (row - post).abs().sum()
        rows.append(post + (row - post) * gamma / length if length > gamma else row)
    return torch.stack(rows)
""",
    ),
)
