"""Questions to recorded networks: the text tower in numpy is torch's, a walk begins and ends at its two networks."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ftp.lab import ask, ask_walk, worlds
from ftp.lab.ask import Asking, asking
from ftp.lab.emoji.text_numpy import TextTower
from ftp.lab.emoji.words import read
from ftp.lab.models import write_weights
from ftp.lab.models.caption_model import CaptionModel, load_caption_model
from ftp.lab.record import LabError
from ftp.lab.recordings import recorded
from ftp.lab.recordings.extras import HOME, extra, has_extra

WORLD = next(name for name in worlds.names() if has_extra("ask", name))
ALPHAS = (0.0, 0.5, 1.0)
TEXTS = ("tiger", "a picture of a tiger", "some kind of food: a red apple, flat and bright, soft and round", "a " * 24)


@pytest.mark.parametrize("trained", [False, True])
def test_the_text_tower_is_that_of_torch(trained: bool, tmp_path: Path) -> None:
    path = ask.MODELS / extra("ask", WORLD)["towers"] if trained else tmp_path / "random.safetensors"
    if not trained:
        torch.manual_seed(0)
        write_weights(CaptionModel(), path)
    model, tower = load_caption_model(path), TextTower(path)
    with torch.no_grad():
        wanted = model.encode_text(TEXTS).numpy()  # padded and masked, where ours has one caption at a time
    found = np.stack([tower.encode(read(text).ids) for text in TEXTS])
    assert np.abs(found - wanted).max() < 1e-5


def test_a_file_without_a_text_tower_is_a_sentence(tmp_path: Path) -> None:
    write_weights(torch.nn.Linear(2, 2), tmp_path / "other.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(b"1234")
    for name, sentence in (("other", "has no text tower"), ("cut", "is damaged"), ("none", "is missing")):
        with pytest.raises(LabError, match=sentence):
            TextTower(tmp_path / f"{name}.safetensors")


@pytest.fixture(scope="module")
def walked() -> tuple[ask_walk.Walk, dict[str, torch.Tensor]]:
    """A network that took one large step, asked at three alphas, and the weights at its end."""
    world = worlds.load(WORLD)
    model = world.model(0)
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    inputs, targets = world.split(world.home).batch(torch.arange(32))
    world.loss(model, inputs, targets).backward()
    torch.optim.AdamW(model.parameters(), lr=0.01).step()
    end = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return ask_walk.between(world, model, start, end, ALPHAS), end


def test_a_walk_begins_at_zero_shot_and_ends_at_the_fine_tuned_network(
    walked: tuple[ask_walk.Walk, dict[str, torch.Tensor]],
) -> None:
    walk, end = walked
    world = worlds.load(WORLD)
    for place, state in ((0, None), (-1, end)):
        model = world.model(0)
        model.load_state_dict(state or model.state_dict())
        model.eval()
        for n, name in enumerate(ask_walk.sets_of(world)):
            with torch.no_grad():
                wanted = model(ask_walk.pictures(world, name)).softmax(-1)
            assert torch.allclose(walk.chances[place, n], wanted, atol=1e-6)
    assert not torch.allclose(walk.chances[0], walk.chances[-1], atol=0.1)
    middle = (walk.chances[0] + walk.chances[-1]) / 2
    assert not torch.allclose(walk.chances[1], middle, atol=0.01)  # weights are mixed, not answers


def test_the_recording_begins_at_the_zero_shot_network_of_its_world() -> None:
    asked, world = asking(WORLD), worlds.load(WORLD)
    model = world.model(0).eval()
    for n, name in enumerate(asked.sets):
        with torch.no_grad():
            wanted = model(ask_walk.pictures(world, name)).softmax(-1)
        for way in range(len(asked.methods)):
            assert asked.right(way)[n][0] == int((wanted.argmax(-1) == torch.arange(len(wanted))).sum())
        for thing in range(0, len(asked.things), 10):
            cell = asked.answers(thing)[0][n]
            chances = [values[0] for values in cell.values]
            assert chances == pytest.approx(wanted[thing, list(cell.labels)].tolist(), abs=1e-3)


def test_the_recording_ends_at_the_recorded_runs() -> None:
    asked = asking(WORLD)
    for way, method in enumerate(asked.methods):
        result = recorded(WORLD, method, asked.seed)[0].result
        assert result is not None
        for n, name in enumerate(asked.sets):
            right = 100 * asked.right(way)[n][-1] / len(asked.things)
            # 150 of the test pictures, so a few points of sampling noise
            assert right == pytest.approx(result["id"] if n == 0 else result["ood"][name], abs=12)


def test_what_is_packed_is_what_was_walked(walked: tuple[ask_walk.Walk, dict[str, torch.Tensor]]) -> None:
    walk, _ = walked
    sets = [{"name": name, "title": name, "sheet": ""} for name in ask_walk.sets_of(worlds.load(WORLD))]
    contents = {
        **{key: extra("ask", WORLD)[key] for key in ("things", "short", "examples", "towers", "across")},
        "alphas": ALPHAS,
        "found_at": (0.0, 1.0),
        "seed": 0,
        "sets": sets,
        "vectors": ask.packed(ask.bytes_of(walk.vectors[:1].numpy())),
        "ways": [{"method": "finetune", **ask_walk.packed_walk(walk, (1.0,))}],
    }
    asked = Asking(json.loads(json.dumps(contents)))
    for thing in (0, 77, 149):
        for n, cell in enumerate(asked.answers(thing)[0]):
            for at in range(len(ALPHAS)):
                wanted = walk.chances[at, n, thing]
                best = sorted(zip(cell.labels, cell.values, strict=True), key=lambda row: -row[1][at])[: ask.TOP]
                assert [values[at] for _, values in best] == pytest.approx(
                    wanted.topk(ask.TOP).values.tolist(), abs=1e-4
                )
                assert all(values[at] == pytest.approx(float(wanted[k]), abs=1e-4) for k, values in best)
    right = (walk.chances.argmax(-1) == torch.arange(len(asked.things))).sum(-1)  # (alphas, sets)
    assert asked.right(0) == right.T.tolist()
    assert [sum(asked.named(0, n, -1)) for n in range(6)] == pytest.approx(right[-1].tolist(), abs=1)  # a tie in 65,535
    text = torch.from_numpy(ask._tower(asked.recorded["towers"]).encode(read("a tiger").ids))
    for n, cell in enumerate(asked.found("a tiger").cells[0]):
        for at, place in enumerate((0, -1)):
            cosines = walk.vectors[place, n] @ text
            assert all(
                values[at] == pytest.approx(float(cosines[k]), abs=0.01)
                for k, values in zip(cell.labels, cell.values, strict=True)
            )
            assert max(values[at] for values in cell.values) == pytest.approx(float(cosines.max()), abs=0.01)


def test_the_recording_is_small_and_whole() -> None:
    path = HOME / WORLD / "ask.json.gz"
    assert path.stat().st_size < 1_500_000
    asked, world = asking(WORLD), worlds.load(WORLD)
    assert asked.things == world.classes
    assert asked.sets == (world.home, *world.shifts)
    assert (asked.alphas[0], asked.alphas[-1], len(asked.alphas)) == (0.0, 1.0, 11)
    assert asked.right(0)[0][0] == asked.right(1)[0][0]  # both walks begin at W0
    assert all(asked.sheet(name)[8:12] == b"WEBP" for name in asked.sets)


def test_a_caption_names_things_finds_pictures_and_tells_unknown_words() -> None:
    asked = asking(WORLD)
    thing = next(n for n, name in enumerate(asked.things) if " " not in name)
    found = asked.found(f"a picture of a {asked.things[thing]} qqq")
    assert thing in found.named
    assert "qqq" in found.remark
    assert asked.found(f"a {asked.things[thing]}").remark == ""
    for bad in ("", " ", "qqqq qqq", "tiger " * 30, "x" * 300):
        with pytest.raises(LabError):
            asked.found(bad)


def test_no_torch_is_needed_to_answer() -> None:
    code = f"""
import sys
import app.views.ask
from ftp.lab.ask import asking
asking({WORLD!r}).found("a tiger")
asking({WORLD!r}).answers(0)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
