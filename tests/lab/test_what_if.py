"""What-ifs of FTP: a layer frozen at its anchor, or without a leash."""

import pytest

from ftp.lab import worlds
from ftp.lab.record import LabError
from ftp.lab.settings import resolve
from ftp.lab.train import finetune


def last_step(**given):
    settings = resolve("digits", "ftp", {"steps": 3, "batch": 8, **given})
    start, *_, last = finetune(settings, watches=0, evaluate_at_end=False, device="cpu")
    return {name: i for i, name in enumerate(start.layers)}, last


def test_a_frozen_layer_stays_at_its_anchor_and_the_others_walk():
    at, last = last_step(frozen="stem.weight")
    assert last.distance[at["stem.weight"]] == 0.0
    assert last.gamma[at["stem.weight"]] == 0.0
    assert last.distance[at["stem_norm.weight"]] > 0.0


def test_a_free_layer_has_no_leash_and_walks_farther():
    at, leashed = last_step()
    _, free = last_step(free="blocks.5.*")
    for name in ("blocks.5.conv1.weight", "blocks.5.norm2.bias"):
        assert leashed.gamma[at[name]] is not None
        assert free.gamma[at[name]] is None
        assert free.distance[at[name]] > leashed.distance[at[name]]
    assert free.gamma[at["blocks.4.conv1.weight"]] is not None


def test_one_that_is_not_asked_leaves_the_settings_as_they_are():
    assert resolve("digits", "ftp", {"frozen": "", "free": ""}) == resolve("digits", "ftp")
    assert resolve("digits", "ftp", {"frozen": "stem.weight"}).options["frozen"] == "stem.weight"


def test_a_world_says_its_layers_without_torch():
    model = worlds.load("digits").model(0)
    anchored = {name for name, _ in model.named_parameters() if not name.startswith("head.")}
    assert set(worlds.load("digits").layers()) == anchored


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("stem.weigt", "frozen is 'stem.weigt', and no layer is called so; did you mean stem.weight?"),
        (
            "x",
            "frozen is 'x', and no layer is called so; write one of its 45 tensors, such as "
            "frozen=blocks.0.conv1.weight",
        ),
        (3, "frozen is 3; it must be text, such as frozen=stem.weight"),
        ("head.weight", "frozen is 'head.weight', and no layer is called so; did you mean stem.weight?"),
    ],
)
def test_a_layer_that_is_not_there_is_a_sentence(given, sentence):
    with pytest.raises(LabError) as caught:
        resolve("digits", "ftp", {"frozen": given})
    assert str(caught.value) == sentence
