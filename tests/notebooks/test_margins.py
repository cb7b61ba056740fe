"""What the lessons claim about training holds with margin over all recorded seeds, and no such claim is forgotten."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from notebooks.lessons import COMPLETE, NOTEBOOKS, ROOT, code, load, number, read

margins = load(ROOT / "data_scripts" / "margins.py")
KEPT = json.loads((NOTEBOOKS / "margins" / "digits.json").read_text(encoding="utf-8"))
LIVE = json.loads((NOTEBOOKS / "margins" / "digits_live.json").read_text(encoding="utf-8"))
LEAST = 3.0  # standard errors of the mean
SEEDS = {"13": 5, "14": 3, "15": 5}  # of a lesson whose runs have fewer than ten
TRAINS = re.compile(r"\b(runs|recorded|finetune|execute)\(")


def sentences(path: Path) -> list[str]:
    """What a lesson claims."""
    nodes = [node for cell in code(read(path)) for node in ast.walk(ast.parse(cell.source))]
    calls = [n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "claim"]
    return [str(call.args[0].value) for call in calls if isinstance(call.args[0], ast.Constant)]


def kept(part: str, lesson: str) -> list[str]:
    return [row["claim"] for row in KEPT[part] if row["lesson"] == lesson]


TRAINING = [path for path in COMPLETE if any(TRAINS.search(cell.source) for cell in code(read(path)))]


def test_lessons_that_train_are_found() -> None:
    assert {"00", "06"} <= {number(path) for path in TRAINING}


@pytest.mark.parametrize("row", [*KEPT["claims"], *LIVE], ids=lambda row: f"{row['lesson']} {row['claim'][:50]}")
def test_every_margin_is_three_sigma(row: dict[str, Any]) -> None:
    values = row["values"]
    mean = sum(values) / len(values)
    sd = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    assert row["seeds"] == len(values)
    assert len(values) >= SEEDS.get(row["lesson"], 10)
    assert mean > LEAST * sd / len(values) ** 0.5
    assert row["sigmas"] == pytest.approx(mean / (sd / len(values) ** 0.5), rel=0.02)


@pytest.mark.parametrize("path", TRAINING, ids=lambda p: p.stem)
def test_no_claim_about_training_is_without_its_margin(path: Path) -> None:
    lesson = number(path)
    known = [*kept("claims", lesson), *kept("exact", lesson)]
    assert known == ["*"] or sorted(known) == sorted(set(sentences(path)))


def test_the_table_is_what_the_script_makes() -> None:
    assert margins.text() == (NOTEBOOKS / "margins" / "digits.json").read_text(encoding="utf-8"), (
        "run data_scripts/margins.py"
    )


def test_the_sides_of_a_margin() -> None:
    assert margins.above(2, [3.0, 1.0]) == [1.0, -1.0]
    assert margins.within(1, [0.5, 0.7]) == pytest.approx([0.5, 0.3])
    assert margins.within(1, [-0.5, -0.7]) == pytest.approx([0.5, 0.3])
    assert margins.within(1, [9.5], 10.0) == [0.5]
    assert margins.sigmas([1.0, 2.0, 3.0]) == pytest.approx(2 / (1 / 3**0.5))


def test_lessons_that_train_for_themselves_hold_in_every_seed() -> None:
    live = load(ROOT / "data_scripts" / "margins_live.py")
    assert {row["lesson"]: row["claim"] for row in LIVE}.keys() == live.CLAIMS.keys()
    for row in LIVE:
        path = next(path for path in COMPLETE if number(path) == row["lesson"])
        assert row["claim"] in sentences(path)
        assert row["claim"] in live.CLAIMS[row["lesson"]]
        assert min(row["values"]) == row["least"] > 0
    assert len(LIVE) == sum(map(len, live.CLAIMS.values()))
