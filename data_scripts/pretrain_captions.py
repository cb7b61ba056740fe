"""Make the weights of the captions world again: a tiny model of pictures and captions learns emoji by their names.

    .venv/bin/python data_scripts/pretrain_captions.py              both pre-trainings, one after the other, and the card
    .venv/bin/python data_scripts/pretrain_captions.py --seeds 0 --steps 100 --out FOLDER    tries it quickly
    .venv/bin/python data_scripts/pretrain_captions.py --seeds      the card alone, of the weights that are there

Writes ftp/lab/models/captions-0.safetensors, captions-1.safetensors and the card captions.md; about 17 minutes
each on one core, without any download. All 1,410 things are shown, drawn by five artists; the sixth, Fluent 3D, is never shown.
"""

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch.nn import functional as F

from ftp.lab.emoji import artists, pictures, things
from ftp.lab.emoji.words import PADDING, STYLES, TEMPLATES, UNSEEN, read, sentences_for, vocabulary
from ftp.lab.models import sha256, write_weights
from ftp.lab.models.caption_model import (
    LARGEST_SCALE,
    CaptionModel,
    load_caption_model,
    loss_floor,
    zero_shot_head,
)
from ftp.lab.worlds import _emoji, load

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "models"
SEEDS, STEPS, BATCH, LR, DECAY = (0, 1), 8000, 128, 3e-3, 0.05
KINDS = {"name": 0.5, "style": 0.25, "kind and name": 0.15, "kind": 0.1}  # of captions, and how often
SEEN = tuple(STYLES)  # the artists that are shown


def filename(seed: int) -> str:
    return f"captions-{seed}.safetensors"


def empty_cells() -> set[tuple[str, int]]:
    """The few pictures that are empty on their sheet."""
    return {(a, n) for a in SEEN for n, cell in enumerate(pictures(a)[..., 3].any((1, 2))) if not cell}


class Pairs:
    """Batches of pictures with captions; no thing is twice in a batch, but two pictures may have one caption."""

    def __init__(self, seed: int) -> None:
        self.g, self.dice = torch.Generator().manual_seed(seed), random.Random(f"captions {seed}")
        self.numbers: dict[str, int] = {}  # caption -> its number
        self.empty = empty_cells()

    def batch(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Pixels, numbers of words, and numbers of captions: equal ones are one caption."""
        chosen = torch.randperm(len(things()), generator=self.g)[:BATCH]
        p = _emoji.poses(chosen, len(things()), self.g)
        by = torch.randint(len(SEEN), (BATCH,), generator=self.g)
        for row, thing in enumerate(chosen.tolist()):
            if (SEEN[by[row]], thing) in self.empty:
                by[row] = 0
        pixels = torch.empty(BATCH, 3, _emoji.SIDE, _emoji.SIDE)
        for n, artist in enumerate(SEEN):
            mine = by == n
            pixels[mine] = _emoji.draw(artist, _emoji.Poses(*(part[mine] for part in p)))
        captions = []
        for thing, n in zip(chosen.tolist(), by.tolist(), strict=True):
            kind = self.dice.choices(list(KINDS), list(KINDS.values()))[0]
            captions.append(self.dice.choice(sentences_for(things()[thing], SEEN[n], kind)))
        rows = [read(caption).ids for caption in captions]
        ids = torch.full((BATCH, max(map(len, rows))), PADDING)
        for row, words in enumerate(rows):
            ids[row, : len(words)] = torch.tensor(words)
        numbers = torch.tensor([self.numbers.setdefault(c, len(self.numbers)) for c in captions])
        return pixels, ids, numbers


def pretrain(steps: int, seed: int) -> tuple[CaptionModel, dict[str, Any]]:
    torch.set_num_threads(1)  # the same bits however many cores there are
    torch.manual_seed(seed)
    model, pairs = CaptionModel().to(memory_format=torch.channels_last), Pairs(seed)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]  # norms, biases and the scale are not decayed
    groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, LR, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=steps, pct_start=0.1)
    begin, losses, floors = time.process_time(), [], []
    for step in range(steps):
        pixels, ids, numbers = pairs.batch()
        loss = model.loss(pixels.contiguous(memory_format=torch.channels_last), ids, numbers)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, torch.tensor(LARGEST_SCALE).log())
        losses.append(loss.item())
        floors.append(loss_floor(numbers))
        if (step + 1) % 100 == 0:
            means = [sum(values[-100:]) / 100 for values in (losses, floors)]
            print(step + 1, f"loss {means[0]:.3f} floor {means[1]:.3f} scale {model.logit_scale.exp().item():.1f}",
                  f"{time.process_time() - begin:.0f} s", flush=True)  # fmt: skip
    last = min(100, steps)
    about = {
        "made_by": f"data_scripts/pretrain_captions.py --seeds {seed}",
        "steps": steps,
        "loss": round(sum(losses[-last:]) / last, 3),
        "floor": round(sum(floors[-last:]) / last, 3),
        "scale": round(model.logit_scale.exp().item(), 2),
        "seconds": round(time.process_time() - begin),
        "torch": torch.__version__,
    }
    return model.to(memory_format=torch.contiguous_format).eval(), about


@torch.no_grad()
def read_right(model: CaptionModel, templates: tuple[str, ...]) -> dict[str, float]:
    """Percent right without any fine-tuning, by artist, with a head made of these templates."""
    world = load("captions")
    head = zero_shot_head(model, world.classes, templates)
    right = {}
    for name in (world.home, *world.shifts):
        split = world.split(name)
        pixels, labels = split.batch(torch.arange(len(split)))
        said = torch.cat([F.linear(model.image(part), head).argmax(1) for part in pixels.split(500)])
        right[name] = 100 * (said == labels).float().mean().item()
    return right


CARD = """# captions-0.safetensors, captions-1.safetensors

What the `captions` world starts from: a tiny model of pictures and captions (`caption_model.py`), pre-trained twice, with
two seeds. Made by `data_scripts/pretrain_captions.py`: batch {batch}, AdamW, one-cycle rate up to {lr}, weight decay {decay} of matrices alone, the contrastive loss of CLIP with equal captions as no negatives of each other,
scale at most {largest:g}.

| | seen |
|---|---|
| pictures | {things} emoji of five artists ({artists}), {side} pixels, in scenes made anew at every step: turned by up to 20 degrees, {smallest:.0%} to 100 % wide, moved, on a pale ground, in half of them another emoji in a corner |
| never shown | any picture by {unseen_artist} |
| captions | Unicode's name or the short name in {templates} templates; with words for the artist's style ({style:.0%}); with the name of its group ({both:.0%}); the group alone ({kind:.0%}) |
| never shown | the template "{unseen}", in captions of any thing |
| words | {words}, a closed vocabulary. The text tower is mostly a table of them: it can combine words it knows and knows no others |

All {classes} things that the world asks for were seen with their names by five artists: zero-shot means that the head is
made of words and no picture of the task was labelled, not that the things are new.

| | {titles} |
|---|{line}|
{facts}

Percent right by a head made of the names of the {classes} things, nothing fine-tuned; chance is {chance:.1f}:

| weights | templates | {sets} |
|---|---|{setline}|
{scores}

The emoji are the work of their artists: [whose, and under which licences](../emoji/LICENCES.md). The weights are under the
kit's own licence, MIT.
"""


def card(home: Path) -> str:
    paths = [home / filename(seed) for seed in SEEDS if (home / filename(seed)).exists()]
    world = load("captions")
    about, scores = [], []
    for path in paths:
        with safe_open(path, "pt") as file:
            about.append(json.loads(file.metadata()["about"]))
        model = load_caption_model(path)
        for title, templates in (("all", TEMPLATES), ("the unseen one alone", (UNSEEN,))):
            values = read_right(model, templates)
            scores.append(f"| {path.stem} | {title} | " + " | ".join(f"{v:.1f}" for v in values.values()) + " |")
    facts = [
        ("sha256", [f"`{sha256(path)}`" for path in paths]),
        ("bytes", [f"{path.stat().st_size:,}" for path in paths]),
        ("steps", [f"{a['steps']:,}" for a in about]),
        ("loss at the end, mean of 100 steps", [a["loss"] for a in about]),
        ("the least it can be, for equal captions", [a["floor"] for a in about]),
        ("scale at the end", [a["scale"] for a in about]),
        ("seconds of processor time, one thread", [a["seconds"] for a in about]),
        ("torch", [a["torch"] for a in about]),
    ]
    sets = (world.home, *world.shifts)
    return CARD.format(
        batch=BATCH, lr=LR, decay=DECAY, largest=LARGEST_SCALE, things=f"{len(things()):,}", side=_emoji.SIDE,
        artists=", ".join(SEEN), smallest=_emoji.SMALLEST, templates=len(TEMPLATES) - 1, style=KINDS["style"],
        unseen_artist=next(a for a in artists() if a not in SEEN), both=KINDS["kind and name"], kind=KINDS["kind"],
        unseen=UNSEEN, words=f"{len(vocabulary()) - 1:,}", classes=len(world.classes), chance=100 / len(world.classes),
        titles=" | ".join(path.name for path in paths), line="|".join("---" for _ in paths),
        facts="\n".join(f"| {name} | " + " | ".join(map(str, values)) + " |" for name, values in facts),
        sets=" | ".join(sets), setline="|".join("---:" for _ in sets), scores="\n".join(scores),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Pre-train the model of the captions world.")
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS), choices=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS, help="of each; fewer for a quick try")
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for seed in asked.seeds:
        model, about = pretrain(asked.steps, seed)
        # one entry only: safetensors writes several in an order that changes from day to day
        write_weights(model, asked.out / filename(seed), {"about": json.dumps(about)})
        print(json.dumps(about), flush=True)
    (asked.out / "captions.md").write_text(card(asked.out), encoding="utf-8")


if __name__ == "__main__":
    main()
