"""The tuned settings: every method had the same budget, and what was chosen is the best on validation."""

import pytest

from ftp.lab import methods, recipes

every_scale = pytest.mark.parametrize("scale", ["quick", "full"])


@every_scale
def test_every_method_had_as_many_trials(scale: str) -> None:
    sheet = recipes.sheet("digits")[scale]
    assert set(sheet["outcome"]) == set(sheet["grid"]) == set(sheet["recipe"]) == set(methods.PAPER)
    assert {len(trials) for trials in sheet["outcome"].values()} == {sheet["budget"]["trials"]}
    seeds = {len(trial["val"]) for trials in sheet["outcome"].values() for trial in trials}
    assert seeds == {len(sheet["budget"]["seeds"])}


@every_scale
def test_the_best_on_validation_was_chosen(scale: str) -> None:
    sheet = recipes.sheet("digits")[scale]
    for method, trials in sheet["outcome"].items():
        best = max(trials, key=lambda trial: (trial["val_mean"], -trial["val_loss_mean"]))
        assert recipes.recipe("digits", method, scale) == best["settings"], method


def test_full_scale_keeps_what_is_no_learning_rate() -> None:
    for method in methods.PAPER:
        quick, full = (recipes.recipe("digits", method, scale) for scale in ("quick", "full"))
        assert quick.keys() == full.keys()
        for name, value in quick.items():
            factors = (1, 2, 4) if name in ("lr", "probe_lr") else (1,)
            assert full[name] in [factor * value for factor in factors]


def test_a_method_that_was_not_tuned_there_has_its_quick_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {"recipe": {"ftp": {"lr": 0.1}, "tpgm": {"lr": 0.2}}}
    monkeypatch.setattr(recipes, "sheet", lambda world: {"quick": quick, "full": {"recipe": {"ftp": {"lr": 0.4}}}})
    assert recipes.recipe("digits", "ftp", "full") == {"lr": 0.4}
    assert recipes.recipe("digits", "tpgm", "full") == {"lr": 0.2}
