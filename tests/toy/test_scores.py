"""Angles against a slow loop, scoring that keeps nothing, and damages that would move the targets."""

import copy
import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from lab.stores import told
from torch import Tensor, nn

from ftp.lab import evaluate, worlds
from ftp.lab.catalogue import all_kinds, corruptions, fitting_kinds
from ftp.lab.evaluate import Corrupted, corruption_scores, score
from ftp.lab.record import RunRecord
from ftp.lab.run import missing_kinds
from ftp.lab.settings import resolve
from ftp.lab.train import finetune
from ftp.lab.worlds import World

TOY = worlds.load("toy")


def slow_angle(outputs: Tensor, targets: Tensor) -> float:
    """The mean over all pixels, one by one, in double precision."""
    angles = []
    for out, target in zip(outputs.double(), targets.double(), strict=True):
        for y in range(out.shape[1]):
            for x in range(out.shape[2]):
                (a, b), (c, d) = out[:, y, x].tolist(), target[:, y, x].tolist()
                angles.append(abs(math.degrees(math.atan2(a * d - b * c, a * c + b * d))))
    return sum(angles) / len(angles)


@torch.no_grad()
def test_the_meter_is_the_slow_loop() -> None:
    model = TOY.model(0).eval()
    images, targets = TOY.split("id").batch(torch.arange(24))
    outputs = model(images)
    wanted = slow_angle(outputs, targets)
    meter = TOY.meter()
    for part in torch.split(torch.arange(24), 7):  # batches of any size add up
        meter.add(outputs[part], targets[part])
    assert meter.values() == {"angle": pytest.approx(wanted, abs=1e-3)}
    assert score(model, TOY, "id").main == pytest.approx(wanted, abs=1e-3)
    assert score(model, TOY, "id", limit=5) == ({"angle": pytest.approx(slow_angle(outputs[:5], targets[:5]), 1e-4)}, 5)


class Alive:
    """How many tensors of a kind are alive, and the most that ever were."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def watch(self, tensor: Tensor) -> Tensor:
        self.now += 1
        self.most = max(self.most, self.now)
        weakref.finalize(tensor, self.gone)
        return tensor

    def gone(self) -> None:
        self.now -= 1


class Large:
    """Many batches, each made when it is asked for."""

    def __init__(self, batches: int) -> None:
        self.batches, self.inputs, self.targets = batches, Alive(), Alive()

    def __len__(self) -> int:
        return self.batches * TOY.evaluated_at_once

    def batch(self, indices: Tensor, generator: Any = None) -> tuple[Tensor, Tensor]:
        return tuple(  # type: ignore[return-value]
            alive.watch(torch.ones(len(indices), channels, 4, 4))
            for alive, channels in ((self.inputs, 3), (self.targets, 2))
        )


class Watched(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.outputs = nn.Conv2d(3, 2, 1), Alive()

    def forward(self, x: Tensor) -> Tensor:
        return self.outputs.watch(self.layer(x))


def test_scoring_keeps_no_batch() -> None:
    split, model = Large(12), Watched()
    assert score(model, TOY, split).images == 12 * TOY.evaluated_at_once
    gc.collect()
    assert [alive.now for alive in (split.inputs, split.targets, model.outputs)] == [0, 0, 0]
    # the one that is scored, and the next one while it is made
    assert max(alive.most for alive in (split.inputs, split.targets, model.outputs)) <= 2


def test_a_damage_that_moves_pixels_is_left_out_and_refused_by_name(runs: dict[str, RunRecord]) -> None:
    assert TOY.corruptions == ("fog", "zoom_blur")
    assert fitting_kinds(TOY) == ("fog",)
    final = runs["ftp"].final
    assert final is not None
    assert list(final.corruptions) == ["fog"]
    moving = {name for name, kind in corruptions().items() if kind.moves_pixels}
    assert moving == {"zoom_blur", "glass_blur", "elastic_transform"}
    assert set(all_kinds(TOY)) == set(corruptions()) - moving
    why = "its targets are maps, and this damage moves pixels"
    sentence = f"zoom_blur does not fit the world toy: {why}; the others fit: {', '.join(all_kinds(TOY))}"
    refused: tuple[Callable[[], Any], ...] = (
        lambda: Corrupted(TOY, "zoom_blur", 1),
        lambda: fitting_kinds(TOY, ["fog", "zoom_blur"]),
        lambda: corruption_scores(TOY.model(0), TOY, ["zoom_blur"]),
        lambda: finetune(resolve("toy", "ftp"), device="cpu", kinds=["zoom_blur"]),
        lambda: missing_kinds(runs["ftp"], ["zoom_blur"]),
    )
    for asked_by_name in refused:
        assert told(asked_by_name) == sentence
    assert list(corruption_scores(TOY.model(0), TOY, ["brightness"])) == ["brightness"]
    assert worlds.load("digits").dense is False
    assert "zoom_blur" in fitting_kinds(worlds.load("digits"), ["zoom_blur"])


def test_a_world_without_corruptions_refuses_one_by_name() -> None:
    bare = copy.copy(TOY)
    bare.corruptions = ()  # type: ignore[misc]
    assert fitting_kinds(bare) == fitting_kinds(bare, []) == all_kinds(bare) == ()
    why = "it has no corruptions; leave the kinds of damage out"
    assert told(fitting_kinds, bare, ["fog"]) == f"fog does not fit the world toy: {why}"
    assert told(fitting_kinds, bare, ["fogg"]).startswith("kind is 'fogg'")


def test_a_damage_leaves_the_targets_alone() -> None:
    clean, damaged = TOY.split("id"), Corrupted(TOY, "fog", 5)
    (images, targets), (foggy, same) = (split.batch(torch.arange(6)) for split in (clean, damaged))
    assert torch.equal(targets, same)
    assert not torch.equal(images, foggy)


def test_a_phase_looks_at_its_own_splits_alone() -> None:
    model = TOY.model(0)
    looked: dict[str, Callable[..., Any]] = {"watch": evaluate.watch, "whole": evaluate.whole}
    seen = {(name, phase): set(look(model, TOY, 1, phase).main) for name, look in looked.items() for phase in (0, 1)}
    assert seen == {
        ("watch", 0): {"id"},
        ("watch", 1): {"id"},  # validation is for the end
        ("whole", 0): {"id"},
        ("whole", 1): {"id", "val"},
    }


def test_looking_a_world_up_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model", "split", "data_version", "layers"):
        monkeypatch.setattr(worlds.world("toy"), name, lambda *_: pytest.fail("a world was read"))
    world: World = worlds.load("toy", {"noise": 0.7})
    assert (world.title, world.option("noise"), world.shifts, world.home) == ("Toy slopes", 0.7, (), "id")
