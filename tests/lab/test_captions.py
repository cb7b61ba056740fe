"""The captions world: loss, head and mixing against slow loops, free text, fresh scenes, both ends of WiSE, resume."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lab.runs import equal, weights
from torch.nn import functional as F

from ftp.lab import emoji, lesson, methods, recipes, worlds
from ftp.lab.emoji import words
from ftp.lab.models import read_weights, sha256
from ftp.lab.models.caption_model import (
    MEETING,
    Block,
    CaptionModel,
    ImageTower,
    contrastive_loss,
    loss_floor,
    zero_shot_head,
)
from ftp.lab.record import LabError, StartEvent, StepEvent
from ftp.lab.recordings import described, groups, recorded
from ftp.lab.settings import resolve
from ftp.lab.train import FineTuning, finetune
from ftp.lab.wise import interpolate
from ftp.lab.worlds import _emoji, captions

SHIFTS = ("twemoji", "openmoji", "openmoji_black", "fluent_3d", "fluent_flat")
ALL_ON = {"mixup": 0.8, "cutmix": 1.0, "smoothing": 0.1, "drop_path": 0.2}


def start(method: str, checkpoint: Path | None = None, **given: Any) -> FineTuning:
    how = {name: given.pop(name) for name in ("stop",) if name in given}
    settings = resolve("captions", method, {"steps": 4, "batch": 8, **given})
    return finetune(settings, device="cpu", watches=0, evaluate_at_end=False, checkpoint=checkpoint, **how)


# the loss and the head, against slow loops


@pytest.mark.parametrize("captions_in_batch", [[0, 1, 2, 3, 4], [0, 1, 0, 2, 0], [7, 7, 7, 7, 7]])
def test_the_contrastive_loss_against_a_slow_loop(captions_in_batch: list[int]) -> None:
    g = torch.Generator().manual_seed(0)
    u, v = (F.normalize(torch.randn((5, 6), generator=g, dtype=torch.float64), dim=1) for _ in range(2))
    slow = 0.0
    for i in range(5):
        equals = [j for j in range(5) if captions_in_batch[j] == captions_in_batch[i]]
        for rows, columns in ((u, v), (v, u)):  # picture i among all captions, then caption i among all pictures
            logits = [9.0 * float(rows[i] @ columns[j]) for j in range(5)]
            whole = math.log(sum(math.exp(z) for z in logits))
            slow += sum(whole - logits[j] for j in equals) / len(equals) / 5 / 2
    value = contrastive_loss(u, v, 9.0, torch.tensor(captions_in_batch))
    assert float(value) == pytest.approx(slow, rel=1e-10)


def test_without_equal_captions_it_is_the_loss_of_clip() -> None:
    g = torch.Generator().manual_seed(1)
    u, v = (F.normalize(torch.randn((6, 8), generator=g), dim=1) for _ in range(2))
    logits, diagonal = 14.0 * u @ v.T, torch.arange(6)
    clip = (F.cross_entropy(logits, diagonal) + F.cross_entropy(logits.T, diagonal)) / 2
    torch.testing.assert_close(contrastive_loss(u, v, 14.0, torch.tensor([5, 4, 3, 2, 1, 0])), clip)


def test_equal_captions_are_not_pushed_apart_and_the_floor_is_reached() -> None:
    """Two pictures with one caption, perfectly encoded: the loss is at its floor, which CLIP's own would punish."""
    vectors, numbers = torch.eye(3)[[0, 0, 1, 2]], torch.tensor([0, 0, 1, 2])
    value = float(contrastive_loss(vectors, vectors, 60.0, numbers))
    assert value == pytest.approx(loss_floor(numbers), abs=1e-6)
    assert loss_floor(numbers) == pytest.approx(2 * math.log(2) / 4)
    apart = torch.eye(4)
    assert float(contrastive_loss(apart, apart, 60.0, numbers)) > value + 10


def test_the_zero_shot_head_against_a_slow_loop() -> None:
    both, names = captions.towers(), captions.asked_things()[:3]
    head = zero_shot_head(both, [thing.name for thing in names])
    assert head.shape == (3, MEETING)
    for row, thing in zip(head, names, strict=True):
        total = [0.0] * MEETING
        for template in words.TEMPLATES:  # one caption at a time: no filling up
            [vector] = both.encode_text([template.format(name=thing.name)]).tolist()
            length = math.sqrt(sum(x * x for x in vector))
            total = [t + x / length for t, x in zip(total, vector, strict=True)]
        mean = [t / len(words.TEMPLATES) for t in total]
        length = math.sqrt(sum(x * x for x in mean))
        scale = math.exp(float(both.logit_scale.detach()))
        torch.testing.assert_close(row, torch.tensor([scale * x / length for x in mean]), rtol=1e-4, atol=1e-5)


def test_the_world_begins_with_that_head_on_unit_vectors() -> None:
    world: Any = worlds.load("captions")
    model: Any = world.model(0)
    both = captions.towers()
    assert torch.equal(model.head.weight, zero_shot_head(both, world.classes))
    assert model.head.bias is None
    pixels, _ = world.split("noto").batch(torch.arange(3))
    with torch.no_grad():
        cosines = both.encode_pictures(pixels) @ F.normalize(model.head.weight).T
        torch.testing.assert_close(model.eval()(pixels), both.logit_scale.exp() * cosines, rtol=1e-4, atol=1e-4)
    assert torch.equal(world.model(0).head.weight, world.model(7).head.weight)  # nothing in it is new
    assert (world.unanchored, world.readout) == ((), ("head.*",))
    assert set(world.layers()) == {name for name, _ in model.named_parameters()}
    assert not list(model.buffers())


def test_filling_up_changes_no_caption() -> None:
    both = captions.towers()
    together = both.encode_text(["tiger", "a small drawing of a tiger on a flat and bold drawing"])
    torch.testing.assert_close(together[:1], both.encode_text(["tiger"]))


def test_a_template_without_a_name_is_refused() -> None:
    with pytest.raises(LabError, match=r"the template 'a tiger' has no place for the name; write {name} in it"):
        zero_shot_head(captions.towers(), ["tiger"], ["a tiger"])
    with pytest.raises(LabError, match="there is no template"):
        zero_shot_head(captions.towers(), ["tiger"], [])
    with pytest.raises(LabError, match="there is no caption"):
        captions.towers().encode_text([])


# free text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", 'the caption is empty; write what a picture shows, such as "a drawing of a tiger"'),
        (" \t\n", 'the caption is empty; write what a picture shows, such as "a drawing of a tiger"'),
        ("?!", "the caption '?!' has no word; write what a picture shows, such as \"a drawing of a tiger\""),
        ("cat " * 25, 'the caption has 25 words; at most 24 are read, such as "a drawing of a tiger"'),
        ("c" * 201, 'the caption has 201 characters; at most 200 are read, such as "a drawing of a tiger"'),
        (3, 'the caption is 3; it must be text, such as "a drawing of a tiger"'),
        (
            "xqzt tigr",
            "no word of the caption was in any caption of the pre-training: xqzt, tigr (did you mean tiger?); "
            'write "a drawing of a tiger"',
        ),
    ],
)
def test_a_text_that_cannot_be_read_gets_a_sentence(text: Any, sentence: str) -> None:
    with pytest.raises(LabError) as error:
        words.read(text)
    assert str(error.value) == sentence


def test_unknown_words_are_told_and_left_out() -> None:
    reading = words.read("A wug TIGER, wug!")
    assert (reading.ids, reading.unknown) == (words.read("a tiger").ids, ("wug",))
    assert reading.remark == "left out, for these words were in no caption: wug"
    assert words.read("a tiger").remark == ""


def test_every_name_and_every_caption_of_the_pre_training_can_be_read() -> None:
    for thing in emoji.things():
        for text in (thing.name, thing.short):
            assert words.read(text).unknown == ()
    for thing, kind in itertools.product(emoji.things()[::37], ("name", "style", "kind and name", "kind")):
        for caption in words.sentences_for(thing, "openmoji_black", kind):
            assert words.read(caption).unknown == ()
            assert "an icon that shows" not in caption  # the template that is kept for later
    assert set(words.STYLES) == set(emoji.artists()) - {"fluent_3d"}


def test_the_text_is_checked_without_torch() -> None:
    import subprocess
    import sys

    code = "import sys; from ftp.lab.emoji import words; words.read('a tiger'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


# pictures


def test_the_test_sets_are_one_set_of_scenes_by_six_hands() -> None:
    world: Any = worlds.load("captions")
    assert (world.home, world.shifts) == ("noto", SHIFTS)
    home = world.split("noto")
    assert len(home) == 600
    assert len(set(world.classes)) == 150
    for name in SHIFTS:
        other = world.split(name)
        assert torch.equal(other.targets, home.targets)
        assert not torch.equal(other.pixels, home.pixels)
        # a corner that no thing covers shows the same ground
        assert (other.pixels[:, :, 0, 16] == home.pixels[:, :, 0, 16]).all(1).float().mean() > 0.5
    assert len(set(home.targets[:200].tolist())) > 90  # the first ones are a fair sample
    with pytest.raises(LabError, match="split is 'apple'"):
        world.split("apple")


def test_no_scene_is_in_two_splits_and_fresh_ones_follow_from_the_generator() -> None:
    world: Any = worlds.load("captions")
    train = world.split("train")
    everything = torch.arange(len(train))
    pixels = {
        "train": train.batch(everything)[0].mul(255).round().to(torch.uint8),
        "val": world.split("val").pixels,
        "noto": world.split("noto").pixels,
    }
    seen = {name: {bytes(picture) for picture in p.flatten(1).numpy()} for name, p in pixels.items()}
    assert [len(s) for s in seen.values()] == [3000, 600, 600]
    for a, b in itertools.combinations(seen.values(), 2):
        assert not a & b
    first, again, other = (train.batch(everything[:9], torch.Generator().manual_seed(s)) for s in (3, 3, 4))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])
    assert not torch.equal(first[0], train.batch(everything[:9])[0])
    assert first[1].tolist() == list(range(9))
    few = world.split("train", 0.1)
    assert len(few) == 300
    plain, same = few.batch(everything[:9])[0], few.batch(everything[:9], torch.Generator().manual_seed(3))[0]
    assert torch.equal(plain, same)  # with few labels there are no fresh scenes


def test_a_scene_against_a_slow_loop() -> None:
    """One picture, pixel by pixel: look up where a pixel lies on the glyph, blend its four neighbours, lay it over."""
    g = torch.Generator().manual_seed(5)
    p = _emoji.poses(torch.tensor([100]), 1410, g)
    fast = _emoji.draw("twemoji", p)[0]
    slow = [[list(map(float, p.ground[0])) for _ in range(32)] for _ in range(32)]
    layers = [(p.other[0], p.behind[0])] if p.behind[0, 1] > 0 else []
    for thing, pose in [*layers, (p.thing[0], p.front[0])]:
        glyph = _emoji.sheet("twemoji")[thing].double().div(255).numpy()
        angle, size, x, y = map(float, pose)
        for row, column in itertools.product(range(32), range(32)):
            across, down = (2 * column + 1) / 32 - 1 - x, (2 * row + 1) / 32 - 1 - y
            a = (math.cos(angle) * across + math.sin(angle) * down) / size
            b = (-math.sin(angle) * across + math.cos(angle) * down) / size
            left, top = ((a + 1) * 32 - 1) / 2, ((b + 1) * 32 - 1) / 2
            ink = np.zeros(4)
            for i, j in itertools.product((0, 1), (0, 1)):
                r, c = math.floor(top) + i, math.floor(left) + j
                if 0 <= r < 32 and 0 <= c < 32:
                    ink += (1 - abs(top - r)) * (1 - abs(left - c)) * glyph[:, r, c]
            slow[row][column] = [(1 - ink[3]) * under + ink[n] for n, under in enumerate(slow[row][column])]
    torch.testing.assert_close(fast, torch.tensor(slow).permute(2, 0, 1).clamp(0, 1).float(), rtol=0, atol=2e-4)


# regularisers


def test_mixed_targets_are_shares_and_the_loss_smooths_them() -> None:
    world = worlds.load("captions", {"mixup": 0.8, "smoothing": 0.1})
    pixels, targets = world.split("train").batch(torch.arange(6), torch.Generator().manual_seed(0))
    assert targets.shape == (6, 150)
    torch.testing.assert_close(targets.sum(1), torch.ones(6))
    share = float(targets[0, 0])
    plain = worlds.load("captions").split("train").batch(torch.arange(6), torch.Generator().manual_seed(0))[0]
    torch.testing.assert_close(pixels, share * plain + (1 - share) * plain.roll(1, 0), rtol=1e-4, atol=1e-5)
    logits = torch.randn((6, 150), generator=torch.Generator().manual_seed(2))
    slow = 0.0
    for row, wanted in zip(logits.tolist(), targets.tolist(), strict=True):
        whole = math.log(sum(math.exp(z) for z in row))
        slow += sum((0.9 * w + 0.1 / 150) * (whole - z) for w, z in zip(wanted, row, strict=True)) / 6
    assert float(world.loss(lambda x: logits, pixels, targets)) == pytest.approx(slow, rel=1e-5)
    assert world.split("val").batch(torch.arange(3))[1].dim() == 1  # evaluation knows nothing of it


def test_drop_path_skips_whole_pictures_in_training_alone() -> None:
    model = worlds.load("captions", {"drop_path": 0.5}).model(0)
    blocks = [block for block in model.modules() if isinstance(block, Block)]
    assert [round(block.drop, 2) for block in blocks] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    block, x = blocks[-1], torch.rand((400, 96, 4, 4), generator=torch.Generator().manual_seed(0))
    plain = F.relu(x)  # the bridge alone: this block keeps its shape
    with torch.no_grad():
        torch.manual_seed(0)
        y = block.train()(x)
        branch = block.norm2(block.conv2(F.relu(block.norm1(block.conv1(x)))))
        skipped = (y == plain).flatten(1).all(1)
        assert 150 < int(skipped.sum()) < 250
        torch.testing.assert_close(y[~skipped], F.relu(x + branch / 0.5)[~skipped])  # kept ones are divided
        torch.testing.assert_close(block.eval()(x), F.relu(x + branch))


# methods


def test_zero_shot_trains_nothing_and_fits_where_the_head_is_known() -> None:
    assert "zero_shot" in methods.fitting(worlds.load("captions"))
    with pytest.raises(LabError) as error:
        resolve("digits", "zero_shot")
    assert str(error.value) == (
        "Zero-shot trains nothing, and the head of the world digits is new and knows nothing; "
        "choose a method that trains it, such as linear_probe"
    )
    run = start("zero_shot", weight_decay=0.5)
    before = weights(run)
    for _ in run:
        pass
    assert equal(weights(run), before)


def test_ftp_has_a_leash_on_every_layer_and_on_the_head() -> None:
    run = start("ftp")
    run.advance()
    run.advance()
    assert set(run.method.report()) == {name for name, _ in run.model.named_parameters()} == set(run.task.anchors)
    assert "head.weight" in run.method.report()


def test_both_ends_of_wise_are_the_two_networks_bit_for_bit() -> None:
    run = start("finetune")
    while run.step < 4:
        run.advance()
    first, last = run.pretrained.state_dict(), run.model.state_dict()
    assert list(first) == list(last)
    assert not torch.equal(first["head.weight"], last["head.weight"])
    for alpha, end in ((0.0, first), (1.0, last)):
        made = interpolate(first, last, alpha)
        assert all(torch.equal(made[name], tensor) for name, tensor in end.items())
    assert all(torch.equal(first[name], t) for name, t in worlds.load("captions").model(0).state_dict().items())


def numbers(events: list[Any]) -> list[tuple[Any, ...]]:
    points = [event for event in events if isinstance(event, StepEvent)]
    return [(p.step, p.loss, p.lr, p.gamma, p.distance, p.boundary) for p in points]


@pytest.mark.parametrize("method", ["finetune", "ftp", "lp_ft", "l2_sp", "linear_probe", "zero_shot"])
def test_a_run_goes_on_to_the_same_bits(method: str, tmp_path: Path) -> None:
    """With everything random switched on: fresh scenes, mixing, skipped blocks."""
    given = {} if method in ("linear_probe", "zero_shot") else ALL_ON
    whole = start(method, **given)
    wanted = numbers(list(whole))
    for stop in (1, 3):
        path = tmp_path / f"{stop}.checkpoint"
        count = itertools.count()
        before = list(start(method, path, stop=lambda count=count, stop=stop: next(count) == stop, **given))
        again = start(method, path, **given)
        after = list(again)
        assert isinstance(after[0], StartEvent)
        assert after[0].step == stop
        assert numbers(before) + numbers(after) == wanted
        assert equal(weights(again), weights(whole))


# what ships


@pytest.mark.parametrize("pretrained", ["first", "second"])
def test_the_card_is_that_of_the_weights(pretrained: str) -> None:
    path = captions.weights_path(pretrained)
    text = path.with_name("captions.md").read_text(encoding="utf-8")
    assert sha256(path) in text
    assert f"{path.stat().st_size:,}" in text
    assert path.stat().st_size < 3_000_000
    assert f"{len(words.vocabulary()) - 1:,}, a closed vocabulary" in text
    assert {n: t.shape for n, t in read_weights(path).items()} == {
        n: t.shape for n, t in CaptionModel().state_dict().items()
    }
    assert sum(p.numel() for p in ImageTower().parameters()) == 354_640
    with path.open("rb") as file:
        note = json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"]
    about = json.loads(note["about"])
    assert about["floor"] < about["loss"] < 3.0
    assert 1 < about["scale"] <= 30.01


@pytest.mark.parametrize("pretrained", ["first", "second"])
def test_zero_shot_is_well_above_chance_everywhere(pretrained: str) -> None:
    """Also for the artist whom pre-training never showed; chance is 0.67 %."""
    world: Any = worlds.load("captions", {"pretrained": pretrained})
    model = world.model(0).eval()
    for name in (world.home, *world.shifts):
        pixels, labels = world.split(name).batch(torch.arange(300))
        with torch.no_grad():
            assert (model(pixels).argmax(1) == labels).float().mean() > 0.7


def test_two_pre_trainings_and_none_are_three_networks() -> None:
    places = [worlds.load("captions", {"pretrained": name}) for name in ("first", "second", "none")]
    models = [place.model(0).state_dict() for place in places]
    for one, other in itertools.combinations(models, 2):
        assert not torch.equal(one["head.weight"], other["head.weight"])
        assert not torch.equal(one["stem.weight"], other["stem.weight"])
    assert len({place.data_version() for place in places}) == 3
    assert equal(places[2].model(3).state_dict(), places[2].model(3).state_dict())
    assert not equal(places[2].model(3).state_dict(), models[2])
    pixels, labels = places[2].split("noto").batch(torch.arange(200))
    with torch.no_grad():
        assert (places[2].model(0).eval()(pixels).argmax(1) == labels).float().mean() < 0.1


def test_every_method_had_the_same_budget_and_the_best_was_chosen() -> None:
    sheet = recipes.sheet("captions")["quick"]
    assert set(sheet["recipe"]) == {*sheet["grid"], "zero_shot"}
    assert set(described("captions")["methods"].methods) == set(sheet["recipe"])
    for method, trials in sheet["outcome"].items():
        assert len(trials) == sheet["budget"]["trials"]
        best = max(trials, key=lambda row: (row["val_mean"], -row["val_loss"]))
        assert best["settings"] == sheet["recipe"][method]


@pytest.mark.parametrize("group", groups("captions"))
def test_the_recorded_runs_are_those_that_the_lab_would_make_today(group: str) -> None:
    runs = recorded("captions", group=group)
    seeds = {run.settings.seed for run in runs}
    assert [run.settings for run in runs] == [s for s in lesson.plan(group, world="captions") if s.seed in seeds]
    assert all(run.status == "done" for run in runs)
    if group == "methods":
        assert len(seeds) >= 3
