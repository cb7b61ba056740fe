"""The id of a run follows the code that decides it, and no other: what is added beside it changes nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ftp.lab import code, methods

ROOT = Path(code.__file__).resolve().parent.parent.parent
WORLD = '''"""A world for a test: digits under another name."""

from ftp.lab.worlds.digits import Digits


class Mine(Digits):
    title = "Mine"


WORLD = Mine
'''
METHOD = '''"""A method for a test: fine-tuning under another name."""

from ftp.lab.methods import Method


class Mine(Method):
    title = "Mine"
    summary = "Changes nothing."


METHOD = Mine
'''
# the id of every world with every method
IDS = """
import json
from ftp.lab import methods, worlds
from ftp.lab.run import identify
from ftp.lab.settings import resolve
ready = [place for name in worlds.names() if not (place := worlds.load(name)).missing()]
print(json.dumps({f"{w.name} {m}": identify(resolve(w.name, m)) for w in ready for m in methods.fitting(w)}))
"""


def ids(folder: Path | None = None, root: Path = ROOT) -> dict[str, str]:
    """The ids that a fresh process gives, with a folder of a person's own worlds and methods."""
    environment = {key: value for key, value in os.environ.items() if key != "FTP_PLUGINS"}
    environment |= {"PYTHONPATH": str(root), "FTP_SCALE": "quick"}
    if folder is not None:
        environment["FTP_PLUGINS"] = str(folder)
    done = subprocess.run([sys.executable, "-c", IDS], env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {run for run in before if before[run] != after[run]}


def test_adding_a_world_and_a_method_changes_no_id(tmp_path: Path) -> None:
    plain = ids()
    assert len(set(plain.values())) == len(plain) >= len(methods.PAPER)
    write(tmp_path, "methods/mine.py", METHOD)
    write(tmp_path, "worlds/other.py", WORLD)
    added = ids(tmp_path)
    assert changed(plain, added) == set()
    new = set(added) - set(plain)
    mine = {f"{run.split()[0]} mine" for run in plain}  # in every world that was there
    assert new == {*mine, *(f"other {name}" for name in (*methods.PAPER, "mine"))}
    assert len(set(added.values())) == len(added)
    write(tmp_path, "methods/mine.py", METHOD.replace("class Mine", "LENGTH = 2.0\n\n\nclass Mine"))
    assert changed(added, ids(tmp_path)) == {*mine, "other mine"}
    write(tmp_path, "methods/mine.py", METHOD)
    write(tmp_path, "worlds/other.py", WORLD.replace("class Mine", "SIZE = 7\n\n\nclass Mine"))
    assert changed(added, ids(tmp_path)) == {run for run in added if run.startswith("other ")}


def test_comments_docstrings_and_layout_change_no_id(tmp_path: Path) -> None:
    write(tmp_path, "methods/mine.py", METHOD)
    before = ids(tmp_path)
    text = METHOD.replace("A method for a test", "Something else").replace("class Mine", "# a note\n\n\nclass Mine")
    write(tmp_path, "methods/mine.py", text)
    assert changed(before, ids(tmp_path)) == set()


EVERY = {"finetune", "tpgm"}  # stand for all methods
DECIDES = {
    "ftp/lab/methods/tpgm.py": {"tpgm"},
    "ftp/lab/worlds/digits.py": EVERY,
    "ftp/lab/worlds/_glyphs.py": EVERY,
    "ftp/lab/models/small_resnet.py": EVERY,
    "ftp/lab/corruptions/weather.py": EVERY,
    "ftp/lab/evaluate.py": EVERY,
    "ftp/projection.py": EVERY,
    "ftp/lab/figures/training.py": set(),
    "ftp/lab/store/__init__.py": set(),
    "ftp/lab/commands/run.py": set(),
}


def test_a_change_in_a_file_changes_the_ids_that_it_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a copy of the sources, read by this process."""

    def versions() -> dict[str, str]:
        code.forget()
        return {name: code.code_version("digits", name) for name in sorted(EVERY)}

    try:
        before = versions()
        left_out = shutil.ignore_patterns("*.gz", "*.safetensors", "__pycache__")
        shutil.copytree(ROOT / "ftp", tmp_path / "ftp", ignore=left_out)
        monkeypatch.setattr(code, "ROOT", tmp_path)
        for file, whose in DECIDES.items():
            text = (tmp_path / file).read_text()
            (tmp_path / file).write_text(f"{text}\nSOMETHING = 1\n")
            assert changed(before, versions()) == whose, file
            (tmp_path / file).write_text(text)
        assert versions() == before
    finally:
        code.forget()


def test_who_has_no_damage_does_not_depend_on_it() -> None:
    with_damage, without = (code.decisive("digits", "ftp", damages) for damages in (True, False))
    gone = set(with_damage) - set(without)
    assert gone == {name for name in with_damage if name.startswith("ftp.lab.corruptions")}
    assert {"ftp.lab.corruptions.blur", "ftp.lab.corruptions._jpeg"} <= gone


@pytest.mark.slow
def test_every_module_that_a_run_loads_is_known_to_its_id() -> None:
    """The oracle: what a training process has really imported of ftp, less what only checks, names or keeps."""
    script = (
        "import sys\n"
        "from ftp.lab.train import finetune\n"
        "run = finetune('digits', 'tpgm', {'steps': 1, 'batch': 8}, device='cpu', watches=1, evaluate_at_end=False)\n"
        "list(run)\n"
        "print(*(name for name in sys.modules if name.partition('.')[0] == 'ftp'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not code._is_bookkeeping(name)}
    assert loaded - set(code.decisive("digits", "tpgm")) == set()


def test_the_hash_is_made_without_torch() -> None:
    script = "import sys, ftp.lab.code as c; c.code_version('digits', 'ftp'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"
