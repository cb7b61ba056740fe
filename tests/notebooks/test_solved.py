"""What was solved on this machine is kept, and `ftp-lab progress` says what is left."""

import json
import sys
import types
from pathlib import Path

import pytest

from ftp.lab import exercises, lesson, solved
from ftp.lab.__main__ import main
from ftp.lab.exercises import check, load
from ftp.lab.exercises._exercise import define
from ftp.lab.predictions import predict
from ftp.lab.record import LabError


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FTP_PREDICTIONS", str(tmp_path / "new folder" / "predictions.json"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "new folder" / "exercises.json"


@pytest.fixture
def in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(get_ipython=lambda: 1, display=types.SimpleNamespace(display=lambda data, raw: None))
    monkeypatch.setitem(sys.modules, "IPython", shell)


def right(name: str) -> object:
    return define(load(name).solution, load(name).answer)


@pytest.mark.usefixtures("in_a_notebook")
def test_the_first_right_answer_is_kept(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.4)
    check("nearer_point", (9.0, 9.0))
    check("nearer_point", ...)
    assert not kept.exists()
    check("nearer_point", right("nearer_point"))
    monkeypatch.setattr("time.time", lambda: 2000.0)
    check("nearer_point", right("nearer_point"))
    check("mars_norm", right("mars_norm"))
    assert json.loads(kept.read_text()) == {"nearer_point": 1000, "mars_norm": 2000}


@pytest.mark.usefixtures("in_a_notebook")
def test_the_complete_notebooks_do_not_solve_for_the_learner(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "complete").mkdir()
    monkeypatch.chdir(tmp_path / "complete")
    check("mars_norm", right("mars_norm"))
    assert not kept.exists()


def test_outside_a_notebook_nothing_is_kept(kept: Path) -> None:
    check("mars_norm", right("mars_norm"))
    assert not kept.exists()


@pytest.mark.usefixtures("in_a_notebook")
def test_a_folder_that_cannot_be_written_does_not_make_an_answer_wrong(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.parent.write_text("a file where the folder should be")
    assert check("mars_norm", right("mars_norm"))
    assert capsys.readouterr().out.startswith("✓ mars_norm: right.")


def test_progress_names_what_is_left(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("mars_norm", "worst_x", "compose_bound", "broken_assumption"):
        solved.keep(name)
    predict("00.elsewhere", "it stays")
    predict("01.which_shake", "all")
    capsys.readouterr()
    main(["progress"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "00        1 guess",
        "01  ○●●   1 guess    left: estimate_constant",
        "02  ●●    0 guesses  all solved",
    ]
    total = len(exercises.names())
    assert lines[-1] == f"in all: 4 of {total} exercises solved on this machine, 2 guesses made"
    lesson.progress()
    assert capsys.readouterr().out.splitlines() == lines


def test_a_file_that_is_none_gets_one_sentence(kept: Path) -> None:
    kept.parent.mkdir()
    for broken in ("{", "[1]"):
        kept.write_text(broken)
        with pytest.raises(LabError) as error:
            solved.progress()
        assert str(error.value) == f"{kept} is not a file of solved exercises; move it away, and a new one is begun"
