"""Lesson 02: a bound for a fine-tuned network, from the pre-trained layers and their leashes."""

import itertools

import torch
from torch import Tensor

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals
from ftp.lab.exercises.mars_norm import strongest


def layer_by_layer(weights: list[Tensor], leashes: list[float]) -> float:
    """Carry a shake of size 1 through the layers: each can make it (L_0 + L_d) times as large, ReLU no larger.

    >>> layer_by_layer([torch.tensor([[2.0]]), torch.tensor([[3.0]])], [0.5, 0.0])
    7.5
    """
    shake = 1.0
    for weight, leash in zip(weights, leashes, strict=True):
        shake = float(strongest(weight)) * shake + leash * shake
    return shake


def _questions() -> tuple[Question, ...]:
    random = torch.Generator().manual_seed(4)

    def chain(*sizes: int) -> list[Tensor]:
        return [torch.randn(b, a, generator=random, dtype=torch.float64) for a, b in itertools.pairwise(sizes)]

    one, two = torch.tensor([[3.0, -4.0], [1.0, 1.0]]).double(), torch.tensor([[1.0, -1.0]]).double()
    return (
        Question("one layer with L_0 = 7 on a leash of 0", ([one], [0.0])),
        Question("one layer with L_0 = 7 on a leash of 0.5", ([one], [0.5])),
        Question("two layers with L_0 = 7 and 2 on leashes of 0.5 and 1", ([one, two], [0.5, 1.0])),
        Question("three random layers, the second one not fine-tuned", (chain(4, 5, 3, 2), [0.3, 0.0, 2.0])),
        Question("four random layers", (chain(6, 6, 6, 6, 3), [0.1, 0.2, 0.3, 0.4])),
    )


EXERCISE = Exercise(
    name="compose_bound",
    lesson="02",
    answer="my_bound",
    missing="one number, the bound of the whole network",
    well_done="Within a layer constants add up (Lemma 1), from layer to layer they multiply.",
    hints=(
        "follow a shake of size 1 through the network: how large can it be after the first layer, after the second?",
        "Lemma 1 gives each fine-tuned layer the constant L_0 + L_d; ftp.mars_norm(weight) is L_0, its leash is L_d.",
        "start with 1 and multiply by (ftp.mars_norm(weight) + leash) for each layer; ReLU never enlarges a shake.",
    ),
    solution="""
def my_bound(weights, leashes):
    bound = 1.0
    for weight, leash in zip(weights, leashes, strict=True):
        bound = bound * (ftp.mars_norm(weight) + leash)
    return bound
""",
    questions=_questions(),
    judge=equals(layer_by_layer),
    mistakes=(
        Mistake(
            "my_bound = lambda weights, leashes: sum(ftp.mars_norm(w) + d for w, d in zip(weights, leashes))",
            "you added up the layers; a shake passes through one layer after the other, so their constants multiply.",
        ),
        Mistake(
            "my_bound = lambda weights, leashes: math.prod(ftp.mars_norm(w) for w in weights) + sum(leashes)",
            "you added the leashes at the end; a leash of an early layer is enlarged by all later layers, so add it "
            "within its own layer.",
        ),
        Mistake(
            """
def my_bound(weights, leashes):
    return math.prod(ftp.mars_norm(w) for w in weights) + math.prod(leashes)
""",
            "product of L_0 plus product of L_d leaves out the mixed terms; each layer has L_0 + L_d, then multiply.",
        ),
        Mistake(
            "my_bound = lambda weights, leashes: math.prod(ftp.mars_norm(w) for w in weights)",
            "that is the bound of the pre-trained network; the leashes are missing.",
        ),
        Mistake(
            "my_bound = lambda weights, leashes: math.prod(1 + d for d in leashes)",
            "you took every L_0 for 1; a fine-tuned layer has L_0 + L_d, with ftp.mars_norm(weight) as its L_0.",
        ),
        Mistake(
            "my_bound = lambda weights, leashes: math.prod(leashes)",
            "you multiplied the leashes alone; a fine-tuned layer has L_0 + L_d.",
        ),
        Mistake(
            "my_bound = lambda weights, leashes: math.prod(ftp.mars_norm(w) * d for w, d in zip(weights, leashes))",
            "within a layer L_0 and L_d add up: the fine-tuned layer is the pre-trained one plus a difference.",
        ),
        Mistake(
            """
def my_bound(weights, leashes):
    return math.prod(torch.linalg.matrix_norm(w, 2) + d for w, d in zip(weights, leashes))
""",
            "you took the spectral norm for L_0; in the max norm it is ftp.mars_norm.",
        ),
        Mistake(
            """
def my_bound(weights, leashes):
    return math.prod(w.abs().sum() + d for w, d in zip(weights, leashes))
""",
            "you took the norm of the whole tensor; MARS is per row.",
        ),
        Mistake(
            "my_bound = lambda weights, leashes: [ftp.mars_norm(w) + d for w, d in zip(weights, leashes)]",
            "that is one constant per layer; multiply them to get the network's.",
        ),
        Mistake(
            "my_bound = lambda weights, leashes: max(ftp.mars_norm(w) + d for w, d in zip(weights, leashes))",
            "you took the largest layer only; every layer can enlarge the shake again, so their constants multiply.",
        ),
    ),
    variants=(
        "my_bound = lambda weights, leashes: math.prod(float(ftp.mars_norm(w)) + d for w, d in zip(weights, leashes))",
        """
from ftp.lipschitz import finetuned_bound
my_bound = lambda weights, leashes: finetuned_bound([float(ftp.mars_norm(w)) for w in weights], leashes)
""",
        "from ftp.lab.exercises.compose_bound import layer_by_layer as my_bound",
    ),
)
