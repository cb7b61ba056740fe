"""The command line: every sentence for bad input, start-up, and what needs neither runs nor pictures."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from lab.cli import LAB, Call, run_of

from ftp.lab import commands, methods, recipes, worlds
from ftp.lab.catalogue import corruptions
from ftp.lab.commands import doctor
from ftp.lab.commands._timing import Cost
from ftp.lab.corruptions import KINDS
from ftp.lab.figures import FIGURES

NEEDS = "write it as in: ftp-lab"
SEVERITY = "it must be a whole number from 1 to 5, such as --severity 3"
PICTURES = "it must end with one of .png, .jpg, .jpeg, .webp, .bmp"
WISE = "method is 'wise', which is no training; walk over a finished run with: ftp-lab wise RUN"
SENTENCES = [
    ("rnu", "command is 'rnu'; did you mean run?"),
    ("xyz", f"command is 'xyz'; it must be one of {', '.join(commands.names())}"),
    ("--hepl", "ftp-lab has no option --hepl; did you mean --help?"),
    ("run", f"ftp-lab run needs WORLD; {NEEDS} run digits --method ftp --seed 0"),
    ("run digitz", "world is 'digitz'; did you mean digits?"),
    ("run digits --method fpt", "method is 'fpt'; did you mean ftp?"),
    ("run digits --metod ftp", "ftp-lab run has no option --metod; did you mean --method?"),
    (
        "run digits --steps 9",
        "ftp-lab run has no option --steps; steps is a setting: write --set steps=VALUE",
    ),
    ("run digits --seed", "--seed needs a value; see: ftp-lab run --help"),
    ("table digits --seed 1", "ftp-lab table has no option --seed; did you mean --seeds?"),
    (
        "compare digits --methods ftp",
        "--methods names ftp alone; name two or more to compare: --methods finetune,ftp",
    ),
    ("run digits --set lr", "--set is 'lr'; it must be name=value, such as --set lr=0.05"),
    ("run digits --set lr=fast", "lr is 'fast'; it must be a number from 1e-08 to 100, such as lr=0.05"),
    ("run digits --set k=2", "k is '2'; it must be a number from 0 to 1, such as k=1.0"),
    ("run digits --method finetune --set lrr=1", "finetune on digits has no setting 'lrr'; did you mean lr?"),
    ("run digits --set lr=1 --set lr=2", "lr is given twice, as 1 and as 2; give it once"),
    ("run digits --seed 1 --set seed=2", "seed is given twice, as 2 and as 1; give it once"),
    ("run digits --labels 0", "labels is '0'; it must be a number from 0.01 to 1, such as labels=1.0"),
    ("run digits more", f"ftp-lab run has no use for 'more'; {NEEDS} run digits --method ftp --seed 0"),
    ("run digits --corruptions some", "--corruptions is 'some'; it must be one of four, all"),
    ("run digits --device gpu", "--device is 'gpu'; it must be auto, cpu, cuda, cuda:1 or mps"),
    ("run digits --threads 0", "--threads is '0'; it must be a whole number from 1 to 1024, such as --threads 1"),
    ("run digits --json no/x.json", "no/x.json lies in no folder that is there; make it first: mkdir -p no"),
    ("run digits --json .", ". is a folder; name a file in it, such as result.json"),
    ("table digits --format pdf", "--format is 'pdf'; it must be one of md, latex, csv"),
    ("table digits --methods ftp,fpt", "method is 'fpt'; did you mean ftp?"),
    ("table digits --methods ,", "--methods is ',' and names none; write it as in: --methods finetune,ftp"),
    ("sweep digits --methods , ,", "--methods is ', ,' and names none; write it as in: --methods finetune,ftp"),
    ("run digits --method wise", WISE),
    ("table digits --methods ftp,wise", WISE),
    ("table digits --seeds 0", "--seeds is '0'; it must be a whole number from 1 to 1000, such as --seeds 5"),
    (
        "table digits --set seed=1",
        "seed is given by --set; it must be given by --seeds, such as --seeds 3 for 0, 1 and 2",
    ),
    ("table digits --backend spark", "--backend is 'spark'; it must be one of processes, ray, dask"),
    ("sweep digits", f"ftp-lab sweep needs --methods; {NEEDS} {commands.command('sweep').EXAMPLE[8:]}"),
    (
        "sweep digits --methods ftp --over lr",
        "--over is 'lr'; it must be name=value,value, such as --over lr=0.01,0.1",
    ),
    (
        "sweep digits --methods ftp --over seed=1,2",
        "seed is given by --over; it must be given by --seeds, such as --seeds 3 for 0, 1 and 2",
    ),
    (
        "sweep digits --methods ftp --over lr=1,2 --set lr=3",
        "lr is given twice; give it once, with all its values: --over lr=1,2",
    ),
    ("wise", f"ftp-lab wise needs RUN; {NEEDS} wise 1f2e3d4c --alphas 11"),
    ("wise 0000 --alphas 1", "--alphas is '1'; it must be a whole number from 2 to 1001, such as --alphas 11"),
    ("wise 000", "RUN is '000'; give at least the first 4 letters of an id that ftp-lab runs shows"),
    ("wise zzzz", "RUN is 'zzzz'; no run begins so: ftp-lab runs shows all"),
    ("runs undelete zzzz", "RUN is 'zzzz'; no deleted run begins so: ftp-lab runs --deleted shows the bin"),
    ("runs --status fine", "--status is 'fine'; did you mean failed?"),
    ("runs --method fpt", "method is 'fpt'; did you mean ftp?"),
    ("runs rename zzzz", "runs is followed by 'rename zzzz'; it must be runs rename RUN NAME, or nothing"),
    (
        "runs burn zzzz",
        "runs is followed by 'burn zzzz'; it must be runs rename RUN NAME, or runs delete RUN, or runs undelete RUN, "
        "or runs purge RUN, or runs resume RUN, or nothing",
    ),
    ("export zzzz --figure id_odd x.html", "figure is 'id_odd'; did you mean id_ood?"),
    (
        "export zzzz --figure id_ood x.png",
        "--figure id_ood goes to 'x.png'; it must be a page, such as --figure id_ood id_ood.html",
    ),
    ("export zzzz --figure id_ood", "--figure needs 2 values; see: ftp-lab export --help"),
    ("recipe digits fpt", "method is 'fpt'; did you mean ftp?"),
    ("list worldz", "list is 'worldz'; did you mean worlds?"),
    ("corrupt a.png b.png", f"ftp-lab corrupt needs --kind; {NEEDS} {commands.command('corrupt').EXAMPLE[8:]}"),
    ("corrupt a.png b.png --kind fogg", "--kind is 'fogg'; did you mean fog?"),
    ("corrupt a.png b.png --kind fog --severity 6", f"--severity is '6'; {SEVERITY}"),
    ("corrupt a.png b.png --kind fog --severity=", f"--severity is ''; {SEVERITY}"),
    ("corrupt a.png b.png --kind fog", "IN is 'a.png'; there is no such picture or folder"),
    ("corrupt empty b --kind fog", f"there are no pictures in empty; {PICTURES.replace('it must', 'they must')}"),
    ("corrupt note.txt b.png --kind fog", f"note.txt is no picture that is known here; {PICTURES}"),
    ("corrupt . sub --kind fog", "OUT is 'sub' and lies inside IN; name a folder beside it"),
    (
        "corrupt bad.png b.png --kind fog",
        "bad.png cannot be used (cannot identify image file 'bad.png'); give another picture",
    ),
    ("corrupt bad.png b.gif --kind fog", "OUT is 'b.gif'; for a picture " + PICTURES),
    ("corrupt bad.png bad.png --kind fog", "bad.png is there already; add --force to write over, or name another OUT"),
]


@pytest.mark.parametrize(("words", "sentence"), SENTENCES)
def test_bad_input_is_one_sentence(words: str, sentence: str, lab: Call, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("no picture")
    (tmp_path / "bad.png").write_text("no picture")
    assert lab(*words.split()) == (2, "", f"{sentence}\n")


def test_other_bad_input(lab: Call, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = f"there is no store at {path} yet; the first run makes it: ftp-lab run digits --method ftp\n"
    assert lab("wise", "0000") == (2, "", none)
    assert not path.exists()  # looking for a run makes no file
    assert lab("run", "digits", "--store", path.parent).err == (
        f"{path.parent} is a folder; name a file in it, such as {path}\n"
    )
    if not torch.cuda.is_available():
        assert lab("run", "digits", "--device", "cuda").err.startswith("device is 'cuda'; this machine has ")
    assert lab("runs") == (0, "", f"no such runs in {path}; make one with: ftp-lab run digits --method ftp\n")
    monkeypatch.setenv("FTP_SCALE", "big")
    for words in (("run", "digits"), ("recipe", "digits")):
        assert lab(*words) == (2, "", "FTP_SCALE is 'big'; it must be quick or full: write FTP_SCALE=quick\n")


def test_what_nobody_expected_is_a_sentence_too(lab: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options: object) -> int:
        raise RuntimeError("a\nb")

    def lacking(options: object) -> int:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")

    monkeypatch.setattr(commands.command("list"), "main", broken)
    sentence = "this should not have happened (RuntimeError: a); set FTP_DEBUG=1 to see where it did\n"
    assert lab("list") == (1, "", sentence)
    monkeypatch.setenv("FTP_DEBUG", "1")
    assert "Traceback" in lab("list").err
    monkeypatch.delenv("FTP_DEBUG")
    monkeypatch.setattr(commands.command("list"), "main", lacking)
    assert lab("list") == (1, "", "sklearn is not installed; write: pip install 'ftp-kit[lab]'\n")


# start-up


def test_start_up_without_torch(filled: Path) -> None:
    calls = [[], ["--help"], ["list"], ["runs"], ["recipe", "digits"], ["recipe", "digits", "ftp"], ["rnu"]]
    calls += [["run", "--help"], ["run", "digits"], ["run", "digits", "--corruptions", "all", "--help"]]
    calls += [["table", "digits", "--methods", "ftp", "--seeds", "2"], ["export", run_of("ftp")]]
    code = (
        "import sys\nfrom ftp.lab.__main__ import main\n"
        f"codes = [main(words) for words in {calls}]\n"
        "print(codes, 'torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0] False"


def test_a_reader_that_goes_away_ends_it_silently(filled: Path) -> None:
    with subprocess.Popen([*LAB, "export", run_of("ftp")], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lab:
        assert lab.stdout is not None
        assert lab.stderr is not None
        lab.stdout.close()
        assert lab.stderr.read() == b""
    assert lab.returncode == 141


@pytest.mark.parametrize("name", commands.names())
def test_every_command_keeps_the_contract(name: str, lab: Call) -> None:
    command = commands.command(name)
    assert "\n" not in command.HELP
    assert command.EXAMPLE.split()[:2] == ["ftp-lab", name]
    said = lab(name, "--help")
    assert (said.code, said.err) == (0, "")
    assert said.out.rstrip().endswith(" ".join(command.EXAMPLE.split()[-1:]))
    assert command.HELP in lab().out


# list, recipe, doctor


def test_list_has_everything(lab: Call) -> None:
    out = lab("list").out
    for name in (*worlds.names(), *methods.names(), *KINDS, *FIGURES):
        assert f"  {name}" in out
    for name in methods.names():
        assert methods.method(name).summary in out
    assert set(corruptions()) == set(KINDS)  # read without torch, and complete
    assert lab("list", "methods").out.splitlines()[0] == "methods"
    assert lab("list", "methods").out.splitlines()[-1].split()[:2] == ["wise", "WiSE"]
    assert "digits:" not in lab("list", "methods").out


SHEET: dict[str, Any] = {
    "quick": {
        "budget": {"trials": 2, "seeds": [7, 8], "chosen_by": "accuracy"},
        "grid": {"ftp": {"lr": [0.02, 0.05]}},
        "outcome": {
            "ftp": [
                {"settings": {"lr": 0.05}, "val": [95.0, 96.0], "val_mean": 95.5},
                {"settings": {"lr": 0.02}, "val": [96.5, 97.5], "val_mean": 97.0},
            ]
        },
        "recipe": {"ftp": {"lr": 0.02}},
    }
}


def test_recipe_shows_grid_outcome_and_choice(lab: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "sheet", lambda world: SHEET)
    head = [
        "Chosen on ID validation alone, with the same budget for every method:",
        *("  trials: 2", "  seeds: 7 8", "  chosen by: accuracy"),
    ]
    assert lab("recipe", "digits").out.splitlines() == [
        *head,
        "method  tried    val  choice   grid",
        "ftp         2  97.00  lr=0.02  lr: 0.02 0.05",
    ]
    lines = lab("recipe", "digits", "ftp").out.splitlines()
    assert lines[:7] == [
        *head,
        "  val  of each seed  settings",
        "97.00  96.50 97.50   lr=0.02   <- chosen",
        "95.50  95.00 96.00   lr=0.05",
    ]
    assert [line.split()[:3] for line in lines if line.startswith("  lr ")] == [["lr", "0.02", "(recipe)"]]
    assert lab("recipe", "digits", "tpgm").out.splitlines()[0] == "tpgm was not tuned here."


def test_recipe_at_full_scale(lab: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was tuned there; else what was tuned at quick scale, and it says so."""
    monkeypatch.setenv("FTP_SCALE", "full")
    monkeypatch.setattr(recipes, "sheet", lambda world: SHEET)
    lines = lab("recipe", "digits", "ftp").out.splitlines()
    assert lines[0] == "Nothing was tuned at scale full: a run takes the settings tuned at scale quick."
    assert [line.split()[:3] for line in lines if line.startswith("  lr ")] == [["lr", "0.02", "(recipe)"]]
    large = {**SHEET["quick"], "recipe": {"ftp": {"lr": 0.05}}}
    monkeypatch.setattr(recipes, "sheet", lambda world: {**SHEET, "full": large})
    lines = lab("recipe", "digits", "ftp").out.splitlines()
    assert lines[0].startswith("Chosen on ID validation alone")
    assert [line.split()[:3] for line in lines if line.startswith("  lr ")] == [["lr", "0.05", "(recipe)"]]


def test_recipe_of_a_world_that_has_none(lab: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "sheet", lambda world: {})
    sentence = "digits has no tuned recipe at scale quick, so runs use the settings of the world and the methods.\n"
    assert lab("recipe", "digits") == (0, sentence, "")


def test_doctor(lab: Call, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftp.lab.commands._timing.measure", lambda *_: Cost(0.1, 5.0))
    monkeypatch.setattr(doctor, "cores", lambda: 2)
    said = lab("doctor")
    lines = said.out.splitlines()
    assert (said.code, lines[-1]) == (0, "All is well."), said
    assert f"store          {path}: not there yet; the first run makes it" in lines
    assert "a run          about 35 s: ftp-lab run digits --method ftp" in lines
    minutes = round(len(methods.fitting(worlds.load("digits"))) * 5 * 35 / 2 / 60)
    assert f"a table        about {minutes} min: ftp-lab table digits --seeds 5" in lines
    assert not path.exists()
    path.write_text("no database, and long enough to be taken for one" * 100)
    said = lab("doctor")
    assert said.code == 1
    assert said.out.splitlines()[-1].startswith(f"To mend: {path} is damaged or no store of runs (")


def test_doctor_looks_for_all_packages() -> None:
    lab = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]
    wanted = [*lab["dependencies"], *lab["optional-dependencies"]["lab"]]
    assert {entry.split(">=")[0] for entry in wanted} == set(doctor.PACKAGES)
