"""Make the weights of the digits world again: a small ResNet that learns to read 62 rendered characters.

    .venv/bin/python data_scripts/pretrain_digits.py

Writes ftp/lab/models/digits.safetensors and its card digits.md; about 7 minutes on one core, without any download.
`--steps 200 --out FOLDER` tries it quickly.
"""

import argparse
import hashlib
import json
import time
from pathlib import Path

import torch
from torch import Generator, Tensor
from torch.nn import functional as F
from tqdm import tqdm

from ftp.lab.corruptions import KINDS, corrupt
from ftp.lab.models import write_weights
from ftp.lab.models.small_resnet import SmallResNet
from ftp.lab.worlds import _glyphs as glyphs

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "models"
SEED, BATCH, LR, DECAY = 0, 128, 0.15, 2e-4
BEND = 0.4  # printed characters are slanted and wobble a little; handwriting does much more
CARD = """# digits.safetensors

What the `digits` world starts from: a small ResNet (`small_resnet.py`) that reads 62 rendered characters
(0-9, A-Z, a-z). Nothing in it has seen a handwritten digit.

| | |
|---|---|
| made by | `data_scripts/pretrain_digits.py`, seed {seed}, {steps} steps of batch {batch}, SGD with Nesterov momentum 0.9, one-cycle rate up to {lr}, weight decay {decay} |
| data | glyphs of {fonts} fonts that matplotlib carries, bent, thickened, outlined, coloured, textured ({textures}); three in ten corrupted by a random one of the {kinds} kinds |
| held out for the shifts | fonts {held}; textures {held_textures}; the pencil |
| accuracy on new draws | {clean:.1f} % of all 62, {digits:.1f} % of the ten digits; {corrupted:.1f} % of all when corrupted; {unseen:.1f} % in the held-out fonts |
| why not more | o O 0, s S, l I 1 and other pairs look alike once bent and scaled |
| size | {weights} weights, {size} bytes |
| sha256 | `{sha}` |
| took | {seconds:.0f} s with {threads} threads, torch {torch} |
| fonts' licences | DejaVu (Bitstream Vera), STIX (OFL), Computer Modern as matplotlib ships it; no font is contained in the weights |
"""


def draw(n: int, g: Generator, fonts: tuple[str, ...] = glyphs.FONTS) -> tuple[Tensor, Tensor]:
    """n characters in random fonts, shapes, colours and textures, and their classes."""
    sheets = glyphs.atlas(fonts)
    font = torch.randint(len(fonts), (n,), generator=g)
    label = torch.randint(len(glyphs.CHARACTERS), (n,), generator=g)
    shapes = glyphs.bend(sheets[font, label].unsqueeze(1), g, BEND)
    style = torch.rand(n, generator=g)
    for low, high, change in (
        (0.00, 0.15, lambda s: glyphs.grow(s, 1)),
        (0.15, 0.28, lambda s: glyphs.grow(s, 2)),
        (0.28, 0.40, lambda s: glyphs.grow(s, -1)),
        (0.40, 0.52, lambda s: glyphs.outline(s, 1, 1)),
        (0.52, 0.60, lambda s: glyphs.outline(s, 2, 1)),
    ):
        chosen = (style >= low) & (style < high)
        shapes[chosen] = change(shapes[chosen])
    ink, paper = (colour.expand(-1, -1, glyphs.SIDE, glyphs.SIDE).clone() for colour in glyphs.two_colours(n, g))
    look = torch.rand(n, generator=g)
    ink[look < 0.3], paper[look < 0.3] = 1.0, 0.0  # as MNIST: white on black
    ink[(look >= 0.3) & (look < 0.4)], paper[(look >= 0.3) & (look < 0.4)] = 0.0, 1.0
    depth = (look > 0.6).float().view(-1, 1, 1, 1) * glyphs.uniform((n, 1, 1, 1), 0.2, 0.7, g)
    kinds = torch.randint(len(glyphs.TEXTURES), (n,), generator=g)
    for i, kind in enumerate(glyphs.TEXTURES):
        chosen = kinds == i
        count = int(chosen.sum())
        paper[chosen] = glyphs.textured(paper[chosen], glyphs.texture(kind, count, g), depth[chosen])
        ink[chosen] = glyphs.textured(ink[chosen], glyphs.texture(kind, count, g), 0.5 * depth[chosen])
    return glyphs.paint(glyphs.shrink(shapes), ink, paper), label


def damage(images: Tensor, share: float, g: Generator) -> Tensor:
    """Corrupt the first `share` of a batch, a quarter of it at a time with one kind each."""
    count = int(len(images) * share)
    for start in range(0, count, max(1, count // 4)):
        part = slice(start, min(count, start + max(1, count // 4)))
        kind = KINDS[int(torch.randint(len(KINDS), (), generator=g))]
        severity = int(torch.randint(1, 6, (), generator=g))
        images[part] = corrupt(images[part], kind, severity, generator=g)
    return images


def pretrain(steps: int, seed: int) -> SmallResNet:
    torch.set_num_threads(1)  # the same bits however many cores there are
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    model = SmallResNet(len(glyphs.CHARACTERS)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), LR, momentum=0.9, nesterov=True, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=steps, pct_start=0.15)
    bar = tqdm(range(steps), mininterval=5)
    for step in bar:
        images, labels = draw(BATCH, g)
        images = damage(images, 0.3, g)
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            bar.set_postfix(loss=f"{loss.item():.2f}")
    return model.eval()


@torch.no_grad()
def accuracy(
    model: SmallResNet, *, corrupted: bool = False, fonts: tuple[str, ...] = glyphs.FONTS
) -> tuple[float, float]:
    """Of all characters, and of the digits among them, on 4,000 new draws."""
    g = torch.Generator().manual_seed(12345)
    images, labels = draw(4000, g, fonts)
    if corrupted:
        images = torch.cat([damage(part, 1.0, g) for part in images.split(80)])
    right = torch.cat([model(part).argmax(1) for part in images.split(500)]) == labels
    digit = labels < 10
    return 100 * right.float().mean().item(), 100 * right[digit].float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description="Pre-train the small ResNet of the digits world.")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    begin = time.time()
    model = pretrain(asked.steps, asked.seed)
    seconds = time.time() - begin
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / "digits.safetensors"
    # one entry only: safetensors writes several in an order that changes from day to day
    write_weights(model, path, {"made_by": f"data_scripts/pretrain_digits.py --seed {asked.seed}"})
    (clean, digits), (corrupted, _), (unseen, _) = (
        accuracy(model),
        accuracy(model, corrupted=True),
        accuracy(model, fonts=glyphs.HELD_OUT_FONTS),
    )
    numbers = {"clean": clean, "digits": digits, "corrupted": corrupted, "unseen": unseen}
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    card = CARD.format(
        **numbers,
        seed=asked.seed,
        steps=asked.steps,
        batch=BATCH,
        lr=LR,
        decay=DECAY,
        fonts=len(glyphs.FONTS),
        held=", ".join(glyphs.HELD_OUT_FONTS),
        textures=", ".join(glyphs.TEXTURES),
        held_textures=", ".join(glyphs.HELD_OUT_TEXTURES),
        kinds=len(KINDS),
        weights=sum(p.numel() for p in model.parameters()),
        size=path.stat().st_size,
        sha=sha,
        seconds=seconds,
        threads=torch.get_num_threads(),
        torch=torch.__version__,
    )
    (asked.out / "digits.md").write_text(card)
    print(json.dumps({**numbers, "seconds": round(seconds), "sha256": sha}))


if __name__ == "__main__":
    main()
