"""docs/recipes.md, run as it stands: every block of code, with small models in place of yours."""

import re
from pathlib import Path
from typing import Any

import pytest
from integrations.small import Sentences, bert, loader, net, timm_vit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"
SECTIONS = {
    title: code
    for title, code in re.findall(r"^## (.*?)\n.*?(?:```python\n(.*?)```|(?=^## |\Z))", PAGE.read_text(), re.S | re.M)
    if code
}
QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
}


def scene(title: str, folder: Path) -> dict[str, Any]:
    """The names that a recipe takes for granted."""
    if "Hugging Face" in title:
        return {"model": bert(), "dataset": Sentences(), "output_dir": str(folder)}
    if "timm" in title or "PEFT" in title:
        return {"model": timm_vit(), "loader": loader((3, 8, 8))}
    given = {"model": net(), "loader": loader(), "output_dir": str(folder), "cpu": True, "options": QUIET}
    if "unfreezing" in title:
        exec(SECTIONS["Lightning"].split("trainer =")[0], given)
    return given


def optimizer_of(scope: dict[str, Any]) -> Any:
    """The optimizer that a recipe has trained with."""
    trainer = scope.get("trainer")
    optimizer = scope.get("optimizer")
    if optimizer is None:
        optimizer = trainer.optimizers[0] if hasattr(trainer, "optimizers") else trainer.optimizer
    return getattr(optimizer, "optimizer", optimizer)  # accelerate's wrapper


@pytest.mark.parametrize("title", SECTIONS)
def test_recipe(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    if "accelerate" in title or "Hugging Face" in title:
        from accelerate.state import AcceleratorState

        AcceleratorState._reset_state(reset_partial_state=True)
    scope = scene(title, tmp_path)
    head = "classifier" if "Hugging Face" in title else "head"
    exec(compile(SECTIONS[title], f"{PAGE.name}: {title}", "exec"), scope)
    optimizer = optimizer_of(scope)
    report = optimizer.report()
    assert report
    assert not any(name.startswith(head) for name in report)
    assert max(row.distance for row in report.values()) > 1e-4  # it was trained
    assert all(row.distance <= row.gamma * (1 + 1e-4) + 1e-6 for row in report.values())
    if "accelerate" in title or "Hugging Face" in title:
        AcceleratorState._reset_state(reset_partial_state=True)


def test_every_recipe_is_short_and_there() -> None:
    assert len(SECTIONS) == 8
    for title, code in SECTIONS.items():
        lines = [line for line in code.splitlines() if line.strip()]
        assert len(lines) <= 18, title
