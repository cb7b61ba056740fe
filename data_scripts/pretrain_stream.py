"""Make the weights of the stream world again: a small ViT that learns to read print in scripts of other alphabets.

    .venv/bin/python data_scripts/pretrain_stream.py

Writes ftp/lab/models/stream.safetensors and its card stream.md; about 12 minutes on one core, without any download.
`--steps 200 --out FOLDER` tries it quickly.

The stance on what may be seen in print: no letter of an alphabet of the stream. matplotlib's fonts have two of the
eight, Latin and Greek; both are left out, and so is every letter of another script that is drawn as one of theirs
(Cyrillic А is Latin A). What remains is told apart by shape alone, not by the name of its script.
"""

import argparse
import functools
import hashlib
import importlib.util
import json
import string
import time
import unicodedata
from pathlib import Path

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from ftp.lab.models import write_weights
from ftp.lab.models.small_vit import SmallViT
from ftp.lab.worlds import _glyphs as glyphs

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "models"
SEED, STEPS, BATCH, LR, DECAY = 0, 3000, 96, 1.5e-3, 0.05
BEND = 0.7  # print is slanted and wobbles; handwriting does more
# the mean difference of two drawings (64 x 64 pixels, centred, of one size) under which they count as one shape
TWINS, AS_LATIN = 0.02, 0.04
SCRIPTS = {
    "Cyrillic": "CYRILLIC",
    "Armenian": "ARMENIAN",
    "Georgian": "GEORGIAN",
    "Hebrew": "HEBREW LETTER",
    "Arabic": "ARABIC LETTER",
    "Canadian syllabics": "CANADIAN SYLLABICS",
    "Lao": "LAO LETTER",
    "Tifinagh": "TIFINAGH LETTER",
    "N'Ko": "NKO LETTER",
}
NOT_IN_PRINT = string.ascii_letters + "".join(c for c in map(chr, range(0x391, 0x3CA)) if c.isalpha())
# pen: by how many of 64 pixels strokes may grow; thin strokes would vanish if they shrank
FONTS = {
    "DejaVuSans": (-1, 1),
    "DejaVuSans-Bold": (-2, 0),
    "DejaVuSans-Oblique": (-1, 1),
    "DejaVuSans-BoldOblique": (-2, 0),
    "DejaVuSansMono": (-1, 1),
    "DejaVuSansMono-Bold": (-2, 0),
    "DejaVuSerif": (0, 1),
    "DejaVuSerif-Italic": (0, 1),
}


def covered(font: str) -> set[str]:
    """The characters that a font can draw."""
    from fontTools.ttLib import TTFont

    spec = importlib.util.find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    with TTFont(Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / f"{font}.ttf") as file:
        return {chr(code) for code in file.getBestCmap()}


@functools.cache
def alphabet() -> dict[str, str]:
    """Script -> its characters, none of them drawn as a Latin or Greek letter or as another one."""
    drawable = sorted(covered("DejaVuSans"))
    print_only = glyphs.atlas(("DejaVuSans",), NOT_IN_PRINT)[0].flatten(1)
    chosen_shapes, scripts = torch.zeros(0, print_only.shape[1]), {}
    for script, prefix in SCRIPTS.items():
        candidates = "".join(
            c
            for c in drawable
            if unicodedata.name(c, "").startswith(prefix)
            and unicodedata.category(c) in ("Lo", "Ll", "Lu")
            and not unicodedata.decomposition(c)
        )
        shapes = glyphs.atlas(("DejaVuSans",), candidates)[0].flatten(1)
        pixels = shapes.shape[1]
        foreign = torch.cdist(shapes, print_only, p=1).min(1).values / pixels > AS_LATIN
        scripts[script] = ""
        for character, shape, unlike in zip(candidates, shapes, foreign, strict=True):
            rows = torch.cdist(shape[None], chosen_shapes, p=1) / pixels
            if unlike and (not len(chosen_shapes) or rows.min() > TWINS):
                chosen_shapes = torch.cat([chosen_shapes, shape[None]])
                scripts[script] += character
    return scripts


@functools.cache
def sheets() -> tuple[Tensor, Tensor, Tensor]:
    """All drawings (n, 64, 64) as bytes, the class of each, and the least and most that its pen may grow."""
    characters = "".join(alphabet().values())
    drawings, labels, pens = [], [], []
    for font, pen in FONTS.items():
        there = covered(font)
        places = [n for n, c in enumerate(characters) if c in there]
        shapes = glyphs.atlas((font,), "".join(characters[n] for n in places))[0]
        drawings.append(shapes.mul(255).round().to(torch.uint8))
        labels.append(torch.tensor(places))
        pens.append(torch.tensor([pen] * len(places)))
    return torch.cat(drawings), torch.cat(labels), torch.cat(pens)


def draw(n: int, g: Generator) -> tuple[Tensor, Tensor]:
    """n characters in random fonts, shapes and pens, and their classes; every class as often, in any of its fonts."""
    drawings, labels, pens = sheets()
    weight = 1 / torch.bincount(labels)[labels].float()
    place = torch.multinomial(weight, n, replacement=True, generator=g)
    shapes = drawings[place].float().div_(255).unsqueeze(1)
    shapes = glyphs.bend(shapes, g, BEND)
    low, high = pens[place].T
    pen = (low + torch.rand(n, generator=g) * (high - low + 1)).floor().long()
    for radius in range(-2, 2):
        chosen = pen == radius
        shapes[chosen] = glyphs.grow(shapes[chosen], radius)
    return glyphs.shrink(shapes), labels[place]


def pretrain(steps: int, seed: int, checkpoints: Path | None) -> SmallViT:
    torch.set_num_threads(1)  # the same bits however many cores there are
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    model = SmallViT(len("".join(alphabet().values())))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, LR, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=steps, pct_start=0.1)
    begin = time.time()
    for step in range(steps):
        images, labels = draw(BATCH, g)
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % 100 == 0:
            print(step + 1, f"loss {loss.item():.3f}", f"{time.time() - begin:.0f} s", flush=True)
        if checkpoints and (step + 1) % 500 == 0:
            write_weights(model, checkpoints / f"stream-{step + 1}.safetensors")
    return model.eval()


@torch.no_grad()
def accuracy(model: SmallViT) -> float:
    """On 4,000 new draws."""
    images, labels = draw(4000, torch.Generator().manual_seed(12345))
    return 100 * torch.cat([model(part).argmax(1) for part in images.split(500)]).eq(labels).float().mean().item()


CARD = """# stream.safetensors

What the `stream` world starts from: a small ViT (`small_vit.py`) that reads {classes} printed letters of nine scripts.
Nothing in it has seen handwriting, nor a letter of one of the stream's eight alphabets in print.

| | |
|---|---|
| made by | `data_scripts/pretrain_stream.py`, seed {seed}, {steps} steps of batch {batch}, AdamW, one-cycle rate up to {lr}, weight decay {decay} |
| data | letters in {fonts} fonts that matplotlib carries, slanted, scaled, shifted, bent elastically, with pens of several widths; ink on empty paper |
| left out | all Latin and Greek letters, the two alphabets of the stream that these fonts have, and every letter that is drawn as one of those (Cyrillic А, Е, О ...) or as another one |
| accuracy on new draws | {accuracy:.1f} % of {classes} letters |
| size | {weights} weights, {size} bytes; the head for print is kept in the file and not used |
| sha256 | `{sha}` |
| took | {seconds:.0f} s of processor time, {threads} thread, torch {torch} |
| fonts' licence | DejaVu (Bitstream Vera); no font is contained in the weights |

The paper's pre-training data (ImageNet) hold all 200 classes of ImageNet-R as photographs. Here no class of the stream
was seen in any look, so more is left to learn; shapes that two scripts share by chance (a circle, a cross, a vertical
line) cannot be left out.

## The characters seen in print

| script | letters |
|---|---|
{letters}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Pre-train the small ViT of the stream world.")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=HOME)
    parser.add_argument("--checkpoints", type=Path, help="a folder for the weights of every 500th step")
    asked = parser.parse_args()
    begin = time.process_time()
    model = pretrain(asked.steps, asked.seed, asked.checkpoints)
    seconds = time.process_time() - begin
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / "stream.safetensors"
    # one entry only: safetensors writes several in an order that changes from day to day
    write_weights(model, path, {"made_by": f"data_scripts/pretrain_stream.py --seed {asked.seed}"})
    read = accuracy(model)
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    card = CARD.format(
        classes=model.head.out_features,
        seed=asked.seed,
        steps=asked.steps,
        batch=BATCH,
        lr=LR,
        decay=DECAY,
        fonts=len(FONTS),
        accuracy=read,
        weights=sum(p.numel() for p in model.parameters()),
        size=path.stat().st_size,
        sha=sha,
        seconds=seconds,
        threads=torch.get_num_threads(),
        torch=torch.__version__,
        letters="\n".join(f"| {script} | {' '.join(letters)} |" for script, letters in alphabet().items()),
    )
    (asked.out / "stream.md").write_text(card, encoding="utf-8")
    print(json.dumps({"accuracy": read, "seconds": round(seconds), "sha256": sha}))


if __name__ == "__main__":
    main()
