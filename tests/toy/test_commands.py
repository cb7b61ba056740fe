"""Every command of ftp-lab in a process of its own, in a world that is not like the others."""

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab.cli import KEYS, LAB, apart

from ftp.lab import commands
from ftp.lab.record import RunRecord
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.store import Store

NO_SHIFTS = "the world toy has no shifts, so there is no OOD for WiSE to win; choose another world"
TRIED = {
    "list",
    "doctor",
    "run",
    "table",
    "compare",
    "sweep",
    "wise",
    "recipe",
    "runs",
    "export",
    "corrupt",
    "progress",
}
TRIED |= {"example"}  # which knows no world: tests/lab/test_compare.py


@pytest.fixture(scope="module")
def path(trained: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the store with all runs."""
    folder = tmp_path_factory.mktemp("commands") / "store"
    shutil.copytree(trained.path.parent, folder)
    return folder / trained.path.name


@pytest.fixture(autouse=True)
def own_store(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTP_STORE", str(path))
    monkeypatch.chdir(tmp_path)


def test_every_command_is_tried_here() -> None:
    assert set(commands.names()) == TRIED
    assert LAB[1:] == ("-m", "ftp.lab")


def test_progress_knows_no_world() -> None:
    assert apart("progress").code == 0


def test_list() -> None:
    said = apart("list")
    assert said.code == 0
    assert "shifts: none; measured: angle (°, lower is better)" in said.out
    assert "    option noise=0.02: how rough the pictures are\n    drawn on the spot; offline\n" in said.out
    assert "Halfway" in said.out


def test_doctor_times_a_world_of_two_phases() -> None:
    """It times the first world; here that is the toy, which is quick."""
    toy_first = "from ftp.lab import worlds; worlds.default = lambda: 'toy'"
    script = f"{toy_first}; from ftp.lab.__main__ import main; raise SystemExit(main(['doctor']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "All is well."), done.stderr
    assert "toy            its weights are there and fit" in done.stdout
    assert "(ftp on toy, 8 images, 1 thread)" in done.stdout
    assert "ftp-lab table toy --seeds 5" in done.stdout


def test_run_with_an_option_of_the_world_and_what_the_store_says_of_it() -> None:
    said = apart("run", "toy", "--method", "finetune", "--set", "noise=0.1", "--json", "-")
    assert said.code == 0, said.err
    result = json.loads(said.out)
    assert set(result) == KEYS
    assert result["run_id"] == identify(resolve("toy", "finetune", {"noise": 0.1}))
    assert result["settings"]["noise"] == 0.1
    assert result["metric"] == {"name": "angle", "unit": "°", "higher_is_better": False}
    assert (result["ood"], result["ood_avg"], list(result["corruptions"])) == ({}, None, ["fog"])
    again = apart("run", "toy", "--method", "finetune", "--set", "noise=0.1")
    assert again.code == 0
    assert "is in the store already" in again.err
    first, home, fog, average, _ = again.out.splitlines()
    assert first == f"Vanilla FT on toy, seed 0 (run {result['run_id']})"
    assert home.split() == ["ID", f"{result['id']:.1f}", "angle", "(°,", "lower", "is", "better)"]
    assert fog.split()[0] == "fog"
    assert average.split()[:2] == ["corruption", "avg."]
    assert average.endswith("over fog")
    line = next(line for line in apart("runs", "--world", "toy").out.splitlines() if line.startswith(result["run_id"]))
    assert f"{result['id']:.2f}°" in line
    assert line.endswith("noise=0.1")


@pytest.mark.parametrize("value", ["2", "rough"])
def test_an_option_that_makes_no_sense_is_one_sentence(value: str) -> None:
    said = apart("run", "toy", "--set", f"noise={value}")
    sentence = f"noise is {value!r}; it must be a number from 0 to 1, such as noise=0.02\n"
    assert said == (2, "", sentence)
    other = apart("run", "digits", "--set", "noise=0.1")
    assert (other.code, other.out, other.err.count("\n")) == (2, "", 1)
    assert other.err.startswith("ftp on digits has no setting 'noise'; ")


def test_a_method_that_does_not_fit_is_one_sentence() -> None:
    wanted = (2, "", "Shift reader needs shifts, and the world toy has none\n")
    assert apart("run", "toy", "--method", "shift_reader") == wanted
    assert apart("table", "toy", "--methods", "ftp,shift_reader", "--seeds", "1") == wanted


@pytest.mark.parametrize("form", ["md", "latex", "csv"])
def test_table_of_all_methods_that_fit(form: str, runs: dict[str, RunRecord]) -> None:
    said = apart("table", "toy", "--seeds", "1", "--format", form)
    assert said.code == 0, said.err
    assert f"{len(runs)} of {len(runs)} runs are in the store already" in said.err
    if form == "csv":
        lines = {line["method"]: line for line in csv.DictReader(io.StringIO(said.out))}
        assert set(lines) == set(runs)
        assert float(lines["ftp"]["id_delta"]) < 0 == float(lines["finetune"]["id_delta"])
    else:
        assert "ID ↓" in said.out if form == "md" else r"ID $\downarrow$" in said.out
        assert said.out.count("Halfway") == 1
    assert "OOD" not in said.out


def test_compare_tunes_runs_and_judges_and_then_remembers(tmp_path: Path) -> None:
    words = ("compare", "toy", "--methods", "finetune,ftp", "--seeds", "2", "--tune", "2", "--report", "report.html")
    said = apart(*words, "--jobs", "1")
    assert said.code == 0, said.err
    assert "tuning: 2 settings of each of 2 methods, chosen by home validation" in said.err
    assert "Whether FTP helps here cannot be told with 2 seeds" in said.err
    assert "No shift" not in said.err
    assert said.out.count("| FTP |") == 1
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'aria-label="differences"' in page
    assert "id_ood" not in page, "there are no shifts to draw"
    assert page.count("class=chosen") == 2
    again = apart(*words, "--format", "csv")
    assert again.out.splitlines()[0].startswith("method,name,seeds")
    assert again.err.count("4 of 4 runs are in the store already") == 2, "two trials and two seeds of each"


def test_sweep_over_the_option() -> None:
    said = apart("sweep", "toy", "--methods", "finetune", "--over", "noise=0.02,0.2", "--jobs", "1", "--format", "csv")
    assert said.code == 0, said.err
    assert "1 of 2 runs are in the store already" in said.err
    lines = list(csv.DictReader(io.StringIO(said.out)))
    assert [line["noise"] for line in lines] == ["0.02", "0.2"]
    assert len({line["id"] for line in lines}) == 2
    assert {line["ood_avg"] for line in lines} == {""}


def test_recipe() -> None:
    said = apart("recipe", "toy", "ftp")
    assert said.code == 0
    assert said.out.startswith("toy has no tuned recipe at scale quick, so runs use the settings of the world")
    rows = {words[0]: words[1:3] for words in map(str.split, said.out.splitlines()) if len(words) > 2}
    assert (rows["noise"], rows["steps"], rows["k"]) == (["0.02", "(default)"], ["4", "(world)"], ["1.0", "(default)"])


def test_runs_of_one_world_are_never_mixed_with_another_s(trained: Store) -> None:
    for world in ("toy", "digits"):
        listed = json.loads(apart("runs", "--world", world, "--json").out)
        assert {run["settings"]["world"] for run in listed} == {world}
        assert {run.run_id for run in trained.runs(world=world)} <= {run["run_id"] for run in listed}
    both = apart("runs").out
    assert "°" in both
    assert "%" in both  # each number with its own unit


def test_wise_is_a_sentence(runs: dict[str, RunRecord]) -> None:
    said = apart("wise", runs["ftp"].run_id)
    assert (said.code, said.out, said.err) == (2, "", f"{NO_SHIFTS}\n")


def test_export(runs: dict[str, RunRecord], tmp_path: Path) -> None:
    said = apart(
        *("export", runs["ftp"].run_id, "--out", "run.json", "--weights", "w.safetensors"),
        *("--figure", "training", "training.html"),
    )
    assert said.code == 0, said.err
    data = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert (data["phases"], data["measures"]["metrics"][0]["name"]) == (["steep", "gentle"], "angle")
    assert "lower is better" in (tmp_path / "training.html").read_text(encoding="utf-8")
    assert (tmp_path / "w.safetensors").stat().st_size > 1000
    refused = apart("export", runs["ftp"].run_id, "--figure", "id_ood", "plane.html")
    sentence = "no run has both an ID and an OOD score; choose runs of a world with shifts\n"
    assert refused == (2, "", sentence)


def test_corrupt_knows_no_world(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (16, 16), (90, 120, 60)).save(tmp_path / "in.png")
    assert apart("corrupt", "in.png", "out.png", "--kind", "zoom_blur").code == 0
    assert (tmp_path / "out.png").exists()
