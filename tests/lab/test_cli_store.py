"""The command line on runs that are there: nothing is trained."""

import json
from pathlib import Path

from lab.cli import KEYS, Call, made_up, run_of

from ftp.lab.record import CORRUPTIONS
from ftp.lab.store import Store


def test_a_run_from_the_store(lab: Call, filled: Path, tmp_path: Path) -> None:
    told = f"run {run_of('ftp')} is in the store already, so nothing was trained\n"
    said = lab("run", "digits", "--method", "ftp", "--json", "-")
    assert (said.code, said.err) == (0, told)
    result = json.loads(said.out)
    assert set(result) == KEYS
    assert set(result["corruptions"]) == set(CORRUPTIONS)
    said = lab("run", "digits", "--json", tmp_path / "x.json")
    assert said.out.splitlines()[0] == f"FTP on digits, seed 0 (run {run_of('ftp')})"
    assert f"  OOD avg.         {result['ood_avg']:.2f}" in said.out.splitlines()
    assert json.loads((tmp_path / "x.json").read_text()) == result


def test_a_table_from_the_store(lab: Call, filled: Path) -> None:
    words = ("table", "digits", "--methods", "ftp,finetune", "--seeds", 2)
    said = lab(*words)
    assert (said.code, said.err) == (0, "4 of 4 runs are in the store already\n")
    assert [line.split(" | ")[0] for line in said.out.splitlines()[2:]] == ["| Vanilla FT", "| FTP"]
    assert lab(*words, "--format", "csv").out.splitlines()[2].startswith("ftp,FTP,2,")
    assert lab(*words, "--format", "latex").out.startswith("% needs")
    text = lab("sweep", "digits", "--methods", "ftp", "--seeds", 2, "--over", "k=1").out.splitlines()
    assert text[0].split() == ["run", "method", "seed", "k", "val", "ID", "OOD", "avg."]
    assert [line.split()[:4] for line in text[1:]] == [[run_of("ftp", s), "ftp", str(s), "1.0"] for s in (0, 1)]
    lines = lab("sweep", "digits", "--methods", "ftp", "--over", "k=1", "--format", "csv").out.splitlines()
    assert lines[0] == "run_id,method,seed,k,val,id,ood_avg,corruption_avg,seconds_per_step,error"


def test_runs(lab: Call, filled: Path) -> None:
    lines = lab("runs").out.splitlines()
    assert lines[0].split() == ["run", "status", "world", "method", "seed", "ID", "OOD", "avg.", "made"]
    assert [line.split()[1] for line in lines[1:]] == ["failed", "done", "done", "done", "done"]
    assert lines[1].endswith("ago  the third; the loss is nan at step 3")
    assert len(lab("runs", "--method", "ftp", "--status", "done").out.splitlines()) == 3
    shown = json.loads(lab("runs", "--world", "digits", "--json").out)
    assert [entry["settings"]["method"] for entry in shown][:2] == ["tpgm", "ftp"]
    said = lab("runs", "--limit", 2)
    assert (len(said.out.splitlines()), said.err) == (3, "these are the newest 2; --limit shows more\n")


def test_names_and_the_bin(lab: Call, filled: Path) -> None:
    run = run_of("ftp", 1)
    assert lab("runs", "rename", run[:8], "my best").err == f"run {run} is now called 'my best'\n"
    assert "my best" in lab("runs").out
    assert (
        lab("runs", "delete", run).err == f"run {run} is in the bin; it comes back with: ftp-lab runs undelete {run}\n"
    )
    assert run not in lab("runs").out
    assert run in lab("runs", "--deleted").out
    assert lab("runs", "undelete", run).err == f"run {run} is out of the bin\n"
    assert run in lab("runs").out
    assert lab("runs", "purge", run).err == f"run {run} and its files are gone for good\n"
    assert lab("runs", "undelete", run).code == 2
    assert run not in lab("runs").out


def test_two_runs_with_the_same_first_letters(lab: Call, filled: Path) -> None:
    with Store(filled) as store:
        for end in "ab":
            store.create(f"77777777{end * 8}", made_up("ftp").settings)
    assert lab("export", "7777").err == "RUN is '7777'; 2 runs begin so: write more letters, such as 77777777bbbbbbbb\n"
    assert json.loads(lab("export", "77777777A").out)["run_id"] == "77777777aaaaaaaa"


def test_export(lab: Call, filled: Path, tmp_path: Path) -> None:
    run = run_of("ftp")
    with Store(tmp_path / "other.db") as other, Store(filled) as store:
        other.import_(json.loads(lab("export", run[:6]).out))
        assert other.load(run) == store.load(run)
    assert lab("export", run, "--out", "run.json", "--figure", "constraint_growth", "γ.html") == (
        *(0, ""),
        "wrote γ.html\nwrote run.json\n",
    )
    assert json.loads((tmp_path / "run.json").read_text())["run_id"] == run
    assert "plotly" in (tmp_path / "γ.html").read_text()
    purge = f"remove it with: ftp-lab runs purge {run}, then run it again"
    sentence = f"run {run} is done, but its weights are not here; {purge}\n"
    assert lab("export", run, "--weights", "w.safetensors") == (2, "", sentence)
