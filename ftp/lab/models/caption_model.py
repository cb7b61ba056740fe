"""A model of pictures and captions, small enough for a laptop: two towers that meet in 64 numbers.

The image tower is a residual network with GroupNorm, so that weights of two networks can be averaged without any
statistics to measure again. The text tower reads words of a closed vocabulary: an embedding, one layer of attention,
and the mean over the words; much of what it knows is that table of embeddings. CLIP (Radford et al. 2021) in miniature.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ftp.lab.emoji.words import MOST_WORDS, PADDING, TEMPLATES, padded, vocabulary
from ftp.lab.models import read_weights
from ftp.lab.record import LabError

WIDTHS, MEETING, TEXT = (16, 40, 96), 64, 64  # channels of the image tower; of the common space; of a word
GROUP = 8  # channels that are normalised together
MEAN, STD = 0.75, 0.3  # of the pixels, for every channel: pale grounds
FIRST_SCALE, LARGEST_SCALE = 1 / 0.07, 30.0  # few negatives would let it race to CLIP's 100


class Block(nn.Module):
    """Two convolutions with a bridge around them; with `drop`, whole pictures skip them in training (drop path).

    >>> Block(8, 16, stride=2)(torch.zeros(1, 8, 8, 8)).shape
    torch.Size([1, 16, 4, 4])
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(outputs // GROUP, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(outputs // GROUP, outputs)
        self.bridge: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.bridge = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        self.drop = 0.0

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        if self.training and self.drop:
            keep = 1 - self.drop
            y = y * (torch.rand(len(y), 1, 1, 1, device=y.device) < keep).to(y.dtype).div_(keep)
        return F.relu(self.bridge(x) + y, inplace=True)


class ImageTower(nn.Module):
    """Pixels in [0, 1] of shape (batch, 3, 32, 32) -> unit vectors of the common space.

    >>> tower = ImageTower()
    >>> tower(torch.zeros(2, 3, 32, 32)).shape, sum(p.numel() for p in tower.parameters())
    (torch.Size([2, 64]), 354640)
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTHS[0], 5, 2, 2, bias=False)
        self.stem_norm = nn.GroupNorm(WIDTHS[0] // GROUP, WIDTHS[0])
        blocks, inputs = [], WIDTHS[0]
        for n, outputs in enumerate(WIDTHS):
            blocks += [Block(inputs, outputs, stride=1 if n == 0 else 2), Block(outputs, outputs, stride=1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.proj = nn.Linear(WIDTHS[-1], MEETING, bias=False)

    def drop_path(self, rate: float) -> None:
        """Let blocks be skipped in training: never the first, the last at this rate, in between linearly."""
        last = len(self.blocks) - 1
        for n, block in enumerate(self.blocks):
            cast(Block, block).drop = rate * n / last

    def features(self, x: Tensor) -> Tensor:
        """A unit vector for each picture."""
        x = F.relu(self.stem_norm(self.stem((x - MEAN) / STD)), inplace=True)
        return F.normalize(self.proj(self.blocks(x).mean((2, 3))), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        return self.features(x)


class NamedPictures(ImageTower):
    """The image tower with a head on its unit vectors: one score for each class.

    >>> NamedPictures(150)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 150])
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(MEETING, classes, bias=False)
        with torch.no_grad():  # rows as long as those that a text tower would give at first
            self.head.weight.copy_(F.normalize(torch.randn(classes, MEETING), dim=1) * FIRST_SCALE)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))


class TextTower(nn.Module):
    """Numbers of words, (batch, words), filled up with zeros -> unit vectors of the common space.

    >>> tower = TextTower(100)
    >>> tower(torch.tensor([[3, 4, 0], [3, 4, 5]])).shape
    torch.Size([2, 64])
    """

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, TEXT, padding_idx=PADDING)
        nn.init.normal_(self.words.weight, std=0.05)  # a word is met seldom, so its few steps must count
        self.place = nn.Parameter(0.02 * torch.randn(MOST_WORDS, TEXT))
        self.norm1 = nn.LayerNorm(TEXT)
        self.qkv = nn.Linear(TEXT, 3 * TEXT)
        self.out = nn.Linear(TEXT, TEXT)
        self.norm2 = nn.LayerNorm(TEXT)
        self.mlp = nn.Sequential(nn.Linear(TEXT, 2 * TEXT), nn.GELU(), nn.Linear(2 * TEXT, TEXT))
        self.norm = nn.LayerNorm(TEXT)
        self.proj = nn.Linear(TEXT, MEETING, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        is_word = ids != PADDING  # (batch, words)
        x = self.words(ids) + self.place[: ids.shape[1]]
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in (q, k, v))  # two heads
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=is_word[:, None, None, :])
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        x = x + self.mlp(self.norm2(x))
        weight = is_word.to(x.dtype).unsqueeze(-1)
        mean = (x * weight).sum(1) / weight.sum(1)  # over the words that are there
        return F.normalize(self.proj(self.norm(mean)), dim=-1)


class CaptionModel(nn.Module):
    """Both towers, and the logarithm t of the scale by which cosines become logits."""

    def __init__(self) -> None:
        super().__init__()
        self.image = ImageTower()
        self.text = TextTower(len(vocabulary()))
        self.logit_scale = nn.Parameter(torch.tensor(FIRST_SCALE).log())

    def encode_text(self, texts: Sequence[str]) -> Tensor:
        """A unit vector for each caption, (captions, 64); a text that cannot be read is refused with a sentence."""
        if not texts:
            raise LabError('there is no caption; give at least one, such as "a drawing of a tiger"')
        device = self.logit_scale.device
        return cast(Tensor, self.text(torch.tensor(padded(texts), device=device)))

    def encode_pictures(self, pixels: Tensor) -> Tensor:
        """A unit vector for each picture of shape (3, 32, 32) with values in [0, 1]."""
        return cast(Tensor, self.image(pixels))

    def loss(self, pixels: Tensor, ids: Tensor, same: Tensor) -> Tensor:
        """The contrastive loss of a batch of pairs."""
        return contrastive_loss(self.image(pixels), self.text(ids), self.logit_scale.exp(), same)


def contrastive_loss(u: Tensor, v: Tensor, scale: Tensor | float, caption: Tensor) -> Tensor:
    """CLIP's loss where equal captions are no negatives of each other.

    With logits s u v^T, picture i should find every caption that equals its own, each with the same probability, and a
    caption every picture that has it: L = (CE(s u v^T, P) + CE(s v u^T, P)) / 2, P_ij = [c_i = c_j] / #{j: c_i = c_j}.

    u, v: unit vectors of pictures and of their captions, (batch, dimensions). caption: numbers; equal captions have
    equal ones, (batch,). The loss cannot fall below `loss_floor(caption)`.

    >>> u = torch.eye(2)
    >>> round(float(contrastive_loss(u, u, 10.0, torch.tensor([0, 1]))), 4)
    0.0
    """
    logits = scale * u @ v.T
    same = (caption[:, None] == caption[None, :]).to(logits.dtype)
    wanted = same / same.sum(1, keepdim=True)
    return (F.cross_entropy(logits, wanted) + F.cross_entropy(logits.T, wanted)) / 2


def loss_floor(caption: Tensor) -> float:
    """The least that `contrastive_loss` can be: the mean of ln c, where a caption is there c times.

    >>> loss_floor(torch.tensor([4, 5, 6])), round(loss_floor(torch.tensor([1, 1, 2])), 4)
    (0.0, 0.4621)
    """
    copies = (caption[:, None] == caption[None, :]).sum(1).double()
    return float(copies.log().mean())


@torch.no_grad()
def zero_shot_head(model: CaptionModel, names: Sequence[str], templates: Sequence[str] = TEMPLATES) -> Tensor:
    """The weight of a head made of names alone, (names, 64).

    Fill each template with a name, encode, normalise, take the mean, normalise again, multiply by exp(t): the logits of
    a picture are then s cos(picture, name), with s folded into the weight, as in CLIP and WiSE-FT.
    """
    if not templates:
        raise LabError('there is no template; give at least one, such as "a picture of a {name}"')
    if bad := next((template for template in templates if "{name}" not in template), None):
        raise LabError(
            f'the template {bad!r} has no place for the name; write {{name}} in it: "a picture of a {{name}}"'
        )
    vectors = model.encode_text([template.format(name=name) for name in names for template in templates])
    mean = vectors.view(len(names), len(templates), -1).mean(1)
    return F.normalize(mean, dim=-1) * model.logit_scale.exp()


def load_caption_model(path: Path) -> CaptionModel:
    """Both towers from a file that `data_scripts/` made, ready to encode."""
    if not path.exists():
        raise LabError(f"{path.name} is missing from ftp/lab/models; install the kit again")
    model, weights = CaptionModel(), read_weights(path)
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if {name: tensor.shape for name, tensor in weights.items()} != shapes:
        raise LabError(f"{path.name} does not fit the model; install the kit again")
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return model.eval()
