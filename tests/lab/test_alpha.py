"""How alpha is chosen: each rule against a plain loop, ties, what is missing, and the rows that it gives a table."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
from lab.cli import apart

from ftp.lab.alpha import IN_TABLE, RULES, all_sets, choose_all, from_dict, rows_of
from ftp.lab.figures import WiseCurve
from ftp.lab.figures.data import example
from ftp.lab.record import LabError
from ftp.lab.summary import Metric
from ftp.lab.table import groups, rows

ALPHAS = tuple(round(0.1 * i, 1) for i in range(11))
WORLD = '''"""Hills: a network that is pre-trained from head to foot, two shifts; BatchNorm has buffers."""
from ftp.lab.worlds._classification import Classification
import torch
from torch import nn

class Split:
    def __init__(self, seed, slope):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(3, (90,), generator=g)
        self.x = torch.rand(90, 3, 4, 4, generator=g) * 0.6
        self.x[torch.arange(90), self.y] += slope
    def __len__(self):
        return 90
    def batch(self, indices, generator=None):
        return self.x[indices].clamp(0, 1), self.y[indices]

class Hills(Classification):
    title, summary, licence, size = "Hills", "Three colours.", "MIT", "drawn"
    defaults = {"quick": {"steps": 4, "batch": 16, "lr": 0.1}}
    corruptions, lipschitz = (), False
    classes, readout = ("a", "b", "c"), ("2.*",)
    roles = {"train": "train", "val": "val", "id": "home", "steep": "shift", "flat": "shift"}
    def data_version(self):
        return "hills 1"
    def model(self, seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            return nn.Sequential(nn.Conv2d(3, 6, 4), nn.BatchNorm2d(6), nn.Conv2d(6, 3, 1), nn.Flatten())
    def split(self, name, labels=1.0):
        return Split(list(self.roles).index(name), {"steep": 0.3, "flat": 0.02}.get(name, 0.1))

WORLD = Hills
'''


def curve(seed: int = 0, metric: Metric | None = None, **given: Any) -> WiseCurve:
    r = random.Random(seed)
    numbers = [tuple(round(r.uniform(40, 99), 1) for _ in ALPHAS) for _ in range(4)]
    shifts = {"a": numbers[1], "b": numbers[2]}
    mean = tuple((a + b) / 2 for a, b in zip(*shifts.values(), strict=True))
    error = tuple(r.uniform(0.5, 8.0) for _ in ALPHAS)
    more = {"val": numbers[3], "val_error": error, "shifts": shifts, **given}
    return WiseCurve(f"{seed:016x}", "ftp", ALPHAS, numbers[0], mean, seed, metric or Metric("accuracy"), **more)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("metric", [Metric("accuracy"), Metric("angle", "°", higher_is_better=False)])
def test_every_rule_equals_a_plain_loop(seed: int, metric: Metric) -> None:
    c = curve(seed, metric)
    sign = 1 if metric.higher_is_better else -1
    best_mean = best_val = knee = 0
    for i in range(11):
        mean = [(c.id[j] + c.shifts["a"][j] + c.shifts["b"][j]) / 3 for j in (i, best_mean)]
        if sign * mean[0] > sign * mean[1] + 1e-9:
            best_mean = i
        if sign * c.val[i] > sign * c.val[best_val]:
            best_val = i
        chord = [sign * c.val[j] - sign * (c.val[0] + (c.val[10] - c.val[0]) * j / 10) for j in (i, knee)]
        if chord[0] > chord[1] + 1e-9:
            knee = i
    one_error = best_val
    for i in reversed(range(11)):
        if abs(c.val[i] - c.val[best_val]) <= c.val_error[best_val]:
            one_error = i
    wanted = [best_mean / 10, best_val / 10, one_error / 10, knee / 10]
    assert list(choose_all(c).values()) == pytest.approx(wanted)


def test_of_equals_the_smallest_alpha_is_taken() -> None:
    flat = curve(val=(70.0,) * 11, val_error=(0.0,) * 11)
    assert [RULES[name].choose(flat) for name in ("best_val", "one_error", "knee")] == [0.0, 0.0, 0.0]
    unknown = curve(val=(*range(80, 90), 89.0), val_error=(math.nan,) * 11)  # too few pictures: no room at all
    assert RULES["one_error"].choose(unknown) == RULES["best_val"].choose(unknown) == 0.9


def test_no_rule_of_home_looks_at_the_shifts() -> None:
    c, other = curve(1), curve(2)
    moved = WiseCurve(
        c.run_id, c.method, ALPHAS, other.id, other.ood_avg, 1, c.metric, c.val, c.val_error, other.shifts
    )
    for name in ("best_val", "one_error", "knee"):
        assert RULES[name].sees == "home validation only"
        assert RULES[name].choose(c) == RULES[name].choose(moved)
    assert "every shift" in RULES["best_mean"].sees
    assert RULES["best_mean"].choose(c) != RULES["best_mean"].choose(moved)


def test_what_a_curve_lacks_is_a_sentence() -> None:
    old = from_dict({"run_id": "a run", "method": "ftp", "alphas": [0, 1], "id": [90, 91], "ood_avg": [80, 70]})
    assert (old.val, old.shifts, old.seed) == ((), {}, 0)
    with pytest.raises(LabError) as error:
        all_sets(old)
    assert str(error.value) == "the curve of a run has no scores of single shifts; walk again: ftp-lab wise RUN"
    with pytest.raises(LabError) as error:
        RULES["one_error"].choose(old)
    assert str(error.value) == "the curve of a run has no validation scores; walk again: ftp-lab wise RUN"
    with pytest.raises(LabError) as error:
        curve(val=(1.0, 2.0))
    assert str(error.value).endswith("has 11 alphas and 2 of val; give one of each per point")


def test_rows_are_means_of_what_each_run_chose() -> None:
    records = [example("finetune", seed) for seed in (0, 1)]
    curves = {r.run_id: curve(r.settings.seed) for r in records}
    group = groups(records)[0]
    row = rows_of(group, curves)[0]
    places = [ALPHAS.index(RULES["best_mean"].choose(c)) for c in curves.values()]
    assert row.id.mean == pytest.approx(sum(c.id[i] for c, i in zip(curves.values(), places, strict=True)) / 2)
    assert row.seeds == 2
    assert rows_of(group, {}) == []  # a run that was not walked: no row of fewer runs
    above = rows_of(group, curves, lambda home, shifted: shifted - home)[0].robustness
    assert above.mean == pytest.approx(row.ood_avg.mean - row.id.mean)


def test_a_table_has_gains_over_fine_tuning_in_its_further_rows() -> None:
    records = [example("finetune"), example("ftp")]
    run = records[0].run_id
    shifts = {"sketch": (1.0, 70.0), "typeset": (1.0, 98.0)}
    more = {"val": (1.0, 97.0), "val_error": (0.1, 0.1), "shifts": shifts}
    walk = WiseCurve(run, "finetune", (0.0, 1.0), (1.0, 97.0), (1.0, 84.0), **more)  # type: ignore[arg-type]
    made = rows(records, lambda group: rows_of(group, {run: walk}) if group.method == "finetune" else ())
    assert [row.method for row in made] == ["finetune", "ftp", "wise", "wise"]
    assert made[-1].ood_delta == pytest.approx(100 * (84 / 80 - 1))
    assert len(IN_TABLE) == 2


def test_the_table_of_a_world_whose_beginning_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugins" / "worlds").mkdir(parents=True)
    (tmp_path / "plugins" / "worlds" / "hills.py").write_text(WORLD)
    monkeypatch.setenv("FTP_PLUGINS", str(tmp_path / "plugins"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    words = ("table", "hills", "--methods", "finetune,ftp", "--seeds", 2, "--jobs", 1, "--device", "cpu")
    said = apart(*words, "--format", "csv", "--store", tmp_path / "runs.db")
    assert said.code == 0, said.err
    assert "best mean of all sets: looks at the test sets of home and of every shift" in said.err
    assert "one standard error of validation: looks at home validation only" in said.err
    names = [line.split(",")[0] for line in said.out.splitlines()]
    assert names == ["method", "finetune", "ftp", "wise", "wise", "wise", "wise"]
    assert len(list(tmp_path.rglob("*.wise_table.json"))) == 4
    again = apart(*words, "--format", "csv", "--store", tmp_path / "runs.db")
    assert again.out == said.out
