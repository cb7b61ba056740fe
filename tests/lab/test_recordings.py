"""The runs that ship with the kit: whole, small, of today's recipes, and readable without torch."""

import gzip
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ftp.lab import lesson, methods, recipes, recordings
from ftp.lab.record import LabError, RunRecord, result_of
from ftp.lab.recordings import Group, described, find, groups, pack, recorded
from ftp.lab.recordings.extras import extra
from ftp.lab.settings import rate
from ftp.lab.store import Store

every_group = pytest.mark.parametrize("group", groups())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of recordings of digits, which has their description."""
    folder = tmp_path / "digits"
    folder.mkdir()
    (folder / "groups.json").write_text((recordings.HOME / "digits" / "groups.json").read_text())
    monkeypatch.setattr(recordings, "HOME", tmp_path)
    return folder


def test_every_group_is_there_and_all_are_small() -> None:
    assert groups("digits") == tuple(described("digits"))
    assert sum(path.stat().st_size for path in (recordings.HOME / "digits").glob("*.json.gz")) < 1_500_000


def test_at_full_scale_the_same_runs_are_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the batch, and the learning rates that were tuned with it; the rest stays."""
    quick = {group: lesson.plan(group, seed=0) for group in groups()}
    monkeypatch.setenv("FTP_SCALE", "full")
    for group, runs in quick.items():
        for few, many in zip(runs, lesson.plan(group, seed=0), strict=True):
            tuned = recipes.recipe("digits", few.method, "full")
            given = described()[group].given.get("lr")
            lr = tuned["lr"] if given is None else rate(given)
            options = {name: tuned.get(name, value) for name, value in few.options.items()}
            assert (few.batch, many.batch) == (64, 256)
            assert many == replace(few, batch=256, lr=lr, options=options)
    [usual] = lesson.plan("methods", method="finetune", seed=0)
    [gentle] = lesson.plan("gentle", seed=0)
    assert gentle.lr == usual.lr / 2
    assert len({s.lr for s in lesson.plan("tiny_lr", seed=0)}) == 1  # the same for both


def test_the_methods_have_ten_seeds_each() -> None:
    assert {(run.settings.method, run.settings.seed) for run in recorded()} == {
        (method, seed) for method in methods.PAPER for seed in range(10)
    }
    assert {run.settings.method for run in recorded(seed=0) if run.points} == set(methods.PAPER)
    assert all(run.points for run in recorded(method="ftp"))


@every_group
def test_every_run_is_done_and_says_who_made_it(group: str) -> None:
    runs = recorded(group=group)
    assert len({run.run_id for run in runs}) == len(runs)
    for run in runs:
        assert run.status == "done"
        assert {"code", "torch", "weights_sha256"} <= set(run.provenance)
        assert run.evals[0].step == 0
        assert run.result is not None
        again = result_of(run)
        for name in ("id", "ood_avg", "corruption_avg"):
            assert math.isclose(again[name], run.result[name], abs_tol=1e-3)


@every_group
def test_the_settings_are_those_that_the_lab_would_choose_today(group: str) -> None:
    runs = recorded(group=group)
    seeds = {run.settings.seed for run in runs}
    assert len(seeds) >= 5 or seeds == {recordings.typical_seed()}  # of one seed no table is made, only a replay
    assert [run.settings for run in runs] == [s for s in lesson.plan(group) if s.seed in seeds]


def test_a_world_without_recordings_has_none() -> None:
    assert (groups("elsewhere"), described("elsewhere")) == ((), {})
    assert "digits" in recordings.worlds()


def test_live_opens_with_runs_that_have_the_answers_of_the_network() -> None:
    """Labels of the world at every evaluation, more and more of them right."""
    sheet = extra("pictures", "digits")
    first = recordings.replays("digits")[: len(methods.PAPER)]
    assert [run.settings.method for run in first] == list(methods.PAPER)
    for run in first:
        assert run.points
        for event in run.evals:
            assert list(event.answers) == sheet["sets"]
            assert all(len(said) == 5 and set(said) <= set(range(10)) for said in event.answers.values())
        answered = run.final.answers if run.final else {}
        right = [a == b for row, name in zip(sheet["labels"], sheet["sets"], strict=True)
                 for a, b in zip(answered[name], row, strict=True)]  # fmt: skip
        assert sum(right) > 15  # of 30
        early = run.evals[0].answers
        assert early != answered


def test_one_method_or_one_seed() -> None:
    assert [run.settings.method for run in recorded(seed=3)] == list(methods.PAPER)
    [run] = recorded(method="ftp", seed=3)
    assert find(run.run_id) is run
    assert find("0" * 16) is None


def test_what_is_not_there_is_one_sentence() -> None:
    cases = {
        "world is 'digit'; did you mean digits?": {"world": "digit"},
        "group is 'gentel'; did you mean gentle?": {"group": "gentel"},
        "the method of the recordings 'gentle' is 'ftp'; it must be one of finetune": {
            "group": "gentle",
            "method": "ftp",
        },
        "seed is 10; the recordings 'methods' have the seeds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9": {"seed": 10},
    }
    for sentence, asked in cases.items():
        with pytest.raises(LabError) as error:
            recorded(**asked)  # type: ignore[arg-type]
        assert str(error.value) == sentence
    with pytest.raises(LabError) as error:
        lesson.runs("kapa", train=True)
    assert str(error.value) == "group is 'kapa'; did you mean kappa?"


def test_a_list_that_is_changed_leaves_the_next_one_whole() -> None:
    runs = recorded(seed=0)
    runs.clear()
    assert recorded(seed=0)


def test_the_same_runs_give_the_same_bytes_and_come_back(home: Path) -> None:
    runs = [replace(run, name="a name") for run in _shipped()[:2]]
    kept = [runs[0].run_id]
    first = pack(runs, kept)
    assert first == pack(list(runs), kept)
    assert first[4:8] == bytes(4)  # no time in the header
    (home / "methods.json.gz").write_bytes(first)
    back = recorded()
    assert pack(back, kept) == first  # rounding twice is rounding once
    assert back[0].points == runs[0].points != ()
    assert back[1].points == ()
    assert back[1].result == runs[1].result


def _shipped() -> list[RunRecord]:
    path = Path(recordings.__file__).parent / "digits" / "methods.json.gz"
    return list(recordings._read(path))


def test_numbers_are_rounded(home: Path) -> None:
    run = _shipped()[0]
    long = replace(run.points[0], loss=0.123456789)
    packed = gzip.decompress(pack([replace(run, points=(long,))], [run.run_id]))
    assert json.loads(packed)[0]["points"][0]["loss"] == 0.1235


def test_a_damaged_file_is_one_sentence(home: Path) -> None:
    (home / "methods.json.gz").write_bytes(b"not a gzip file")
    with pytest.raises(LabError) as error:
        recorded()
    assert str(error.value) == "digits/methods.json.gz is damaged; install the kit again"


def test_recordings_are_read_without_torch() -> None:
    code = "import sys; from ftp.lab.recordings import recorded; print(len(recorded()), 'torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "110 False\n"


@pytest.mark.slow
def test_train_it_yourself_fills_your_own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTP_STORE", str(tmp_path / "runs.db"))
    tiny = {"tiny": Group("a very short run", ("linear_probe",), {"steps": 2, "batch": 8})}
    monkeypatch.setattr(lesson, "described", lambda world=None: tiny)
    [run] = lesson.runs("tiny", seed=4, train=True)
    assert (run.settings.method, run.settings.seed, run.settings.steps, run.status) == ("linear_probe", 4, 2, "done")
    with Store() as store:
        assert [kept.run_id for kept in store.runs()] == [run.run_id]


@pytest.mark.slow
def test_what_a_reader_trains_takes_the_place_of_the_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTP_STORE", str(tmp_path / "runs.db"))
    monkeypatch.setattr(recordings, "_trained", {})
    tiny = Group("a very short run", ("linear_probe",), {"steps": 2, "batch": 8}, seeds=(3, 4))
    monkeypatch.setattr(lesson, "described", lambda world=None: {"low_label": tiny})
    before = {method: recorded(method=method, group="low_label") for method in ("ftp", "linear_probe")}
    lesson.retrain(("ftp", "linear_probe"), groups=("low_label",))
    now = recorded(method="linear_probe", group="low_label")
    assert [(run.settings.seed, run.settings.steps) for run in now] == [(3, 2), (4, 2)]
    assert len(before["linear_probe"]) == 10
    assert recorded(method="ftp", group="low_label") == before["ftp"]  # not trained, so still the recorded ones
    with pytest.raises(LabError):
        recordings.use([], "low_labels")
