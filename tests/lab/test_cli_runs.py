"""The command line with real training, in processes of their own: from end to end, stopped, failed, gone on with."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from lab.cli import KEYS, LAB, Call, Said, apart, run_of
from safetensors.torch import load_file

from ftp.lab.corruptions import KINDS
from ftp.lab.record import LabError
from ftp.lab.store import Store

pytestmark = pytest.mark.slow
TINY = ("--set", "steps=4", "--set", "batch=8")
given = {"steps": 4, "batch": 8}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """A store with one finished run, and what was said while it was made."""
    path = tmp_path_factory.mktemp("tiny") / "runs.db"
    return path, apart("run", "digits", "--method", "ftp", *TINY, "--json", "-", "--store", path)


def test_from_end_to_end(tiny: tuple[Path, Said]) -> None:
    _, said = tiny
    assert said.code == 0, said.err
    result = json.loads(said.out)  # and nothing else
    assert set(result) == KEYS
    assert result["settings"]["steps"] == 4
    lines = said.err.splitlines()
    assert lines[0] == "FTP on digits, seed 0: 4 steps of 8 images, scale quick; loading"
    assert lines[1].startswith("device ")
    assert lines[1].endswith(" s (Ctrl-C keeps what is done)")
    assert lines[-2].startswith("4/4 steps, loss ")
    assert "Traceback" not in said.err


def test_what_can_be_done_with_a_finished_run(tiny: tuple[Path, Said], lab: Call, tmp_path: Path) -> None:
    path, made = tiny
    result = json.loads(made.out)
    run = run_of("ftp", **given)
    words = ("run", "digits", *TINY, "--store", path)
    again = lab(*words, "--json", "-")
    assert json.loads(again.out) == result
    assert again.err == f"run {run} is in the store already, so nothing was trained\n"

    said = lab("wise", run[:4], "--alphas", 3, "--images", 1500, "--json", "--store", path)
    curve = json.loads(said.out)
    names = {"run_id", "method", "seed", "metric", "alphas", "id", "ood_avg", "val", "val_error", "shifts"}
    assert set(curve) == names | {"best", "chosen"}
    assert set(curve["chosen"]) == {"best_mean", "best_val", "one_error", "knee"}
    assert curve["alphas"] == [0.0, 0.5, 1.0]
    assert curve["id"][-1] == pytest.approx(result["id"])  # the end of the way is the run itself
    assert curve["ood_avg"][-1] == pytest.approx(result["ood_avg"])
    lines = lab("wise", run, "--alphas", 2, "--images", 50, "--store", path).out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["alpha", "0", "1"]
    assert sum("<-" in line and "best mean of all sets" in line for line in lines) == 1
    assert "looks at the test sets of home and of every shift" in lines[4]
    assert all("looks at home validation only" in line for line in lines[5:8])

    assert lab("export", run, "--weights", "w.safetensors", "--store", path).code == 0
    assert "stem.weight" in load_file(tmp_path / "w.safetensors")
    assert lab("export", run, "--figure", "wise_curve", "wise.html", "--store", path).code == 0
    assert "plotly" in (tmp_path / "wise.html").read_text()

    more = lab(*words, "--corruptions", "all", "--json", "-")
    assert set(json.loads(more.out)["corruptions"]) == set(KINDS)
    assert "steps, loss" not in more.err  # evaluated, not trained again


def act(words: list[str], ready: Callable[[], bool], action: Callable[[int], None]) -> Said:
    """Start a command as a terminal does, wait until it is ready, and do something to its process."""
    with subprocess.Popen(
        [*LAB, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as lab:
        while lab.poll() is None and not ready():
            time.sleep(0.05)
        action(lab.pid)
        out, err = lab.communicate()
    return Said(lab.returncode, out, err)


def ctrl_c(pid: int) -> None:
    os.killpg(pid, signal.SIGINT)


def kill_a_worker(pid: int) -> None:
    workers = [child for child in psutil.Process(pid).children() if "LokyProcess-1" in " ".join(child.cmdline())]
    workers[0].kill()


def points(path: Path, run: str) -> int:
    with Store(path) as store:
        try:
            return len(store.load(run).points)
        except LabError:
            return 0


def test_ctrl_c_and_the_same_command_again(path: Path, tmp_path: Path) -> None:
    words = ["run", "digits", "--method", "ftp", "--set", "steps=240", "--set", "batch=8"]
    run = run_of("ftp", steps=240, batch=8)
    said = act(words, lambda: points(path, run) >= 2, ctrl_c)
    assert said.code == 130
    assert said.out == ""
    told = said.err.splitlines()[-1]
    assert told.startswith("stopped after step ")
    assert told.endswith(f" of 240; what is done is kept, and the same command goes on: ftp-lab {' '.join(words)}")
    with Store(path) as store:
        assert store.status(run) == "stopped"
    again = apart(*words)
    assert again.code == 0
    assert any(line.startswith("going on from step ") for line in again.err.splitlines())
    whole = apart(*words, "--store", tmp_path / "whole.db")
    assert whole.code == 0
    one, other = (tmp_path / f"{name}-weights" / f"{run}.safetensors" for name in ("runs", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_a_table_with_a_run_that_fails(lab: Call, path: Path) -> None:
    broken = run_of("ftp", 1, **given)
    with Store(path) as store:
        checkpoint = store.checkpoint_path(broken)
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"no checkpoint")
    said = lab("table", "digits", "--methods", "finetune", "ftp", "--seeds", 2, "--jobs", 2, "--format", "csv", *TINY)
    assert said.code == 1
    assert [line.split(",")[:3] for line in said.out.splitlines()[1:]] == [
        ["finetune", "Vanilla FT", "2"],
        ["ftp", "FTP", "1"],
    ]
    lines = said.err.splitlines()
    assert lines[0] == "4 runs to make on digits, scale quick; loading"
    assert [line.split(",")[0] for line in lines[2:6]] == [f"{n}/4 runs" for n in (1, 2, 3, 4)]
    assert lines[-2] == "1 of 4 runs failed:"
    assert lines[-1].startswith(f"  ftp, seed 1 (run {broken}): {checkpoint.name} is no checkpoint that can be read (")
    checkpoint.unlink()
    assert lab("table", "digits", "--methods", "finetune,ftp", "--seeds", 2, *TINY).code == 0


def test_a_sweep_whose_loss_is_no_number(lab: Call) -> None:
    more = ("--set", "weight_decay=10", "--set", "steps=40", "--set", "batch=16")
    said = lab("sweep", "digits", "--methods", "finetune", "--over", "lr=0.01,100", *more, "--jobs", 1)
    assert said.code == 1
    assert [line.split()[3] for line in said.out.splitlines()[1:]] == ["0.01", "100.0"]
    assert said.out.splitlines()[2].split()[-3:] == ["-", "-", "-"]
    assert said.err.splitlines()[-1].endswith("; lower the learning rate (lr is 100)")


@pytest.mark.parametrize("action", [ctrl_c, kill_a_worker])
def test_a_table_that_is_stopped_goes_on_at_once(action: Callable[[int], None], path: Path) -> None:
    long = {"steps": 2000, "batch": 2}  # so that no run ends before the other one begins
    words = ["table", "digits", "--methods", "finetune,ftp", "--seeds", "1", "--set", "steps=2000", "--set", "batch=2"]
    runs = [run_of(method, **long) for method in ("finetune", "ftp")]
    said = act([*words, "--jobs", "2"], lambda: all(points(path, run) for run in runs), action)
    assert (said.code, said.out) == (130 if action is ctrl_c else 1, ""), said.err
    last = said.err.splitlines()[-1]
    stopped = "stopped with 0 of 2 runs done; what is done is kept, and the same command goes on: ftp-"
    if action is ctrl_c:
        assert last.startswith(stopped)
    else:
        assert last.startswith(f"  ftp, seed 0 (run {runs[1]}): its process was killed, maybe for lack of memory; the ")
    before = [points(path, run) for run in runs]
    assert min(before) > 0
    again = act([*words, "--jobs", "1"], lambda: points(path, runs[0]) > before[0], ctrl_c)
    assert again.code == 130, again.err
    assert again.err.splitlines()[-1].startswith(stopped)
    with Store(path) as store:
        steps = [point.step for point in store.load(runs[0]).points]
    assert steps == sorted(set(steps))  # it went on, and did not begin again


def test_doctor_for_real(lab: Call) -> None:
    said = lab("doctor")
    assert (said.code, said.out.splitlines()[-1]) == (0, "All is well."), said
    assert {"a step", "a run", "a table"} <= {line[:10].rstrip() for line in said.out.splitlines()}
