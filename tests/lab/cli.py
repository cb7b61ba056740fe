"""What the tests of the command line share: calls in this process or in one of their own, and runs nobody trained."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lab.records import make

from ftp.lab.__main__ import main
from ftp.lab.record import RunRecord, finite, result_of
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.store.serialisation import to_form

KEYS = {  # of the JSON of a run
    *(
        "run_id",
        "world",
        "method",
        "seed",
        "settings",
        "metric",
        "id",
        "val",
        "ood",
        "ood_avg",
        "corruptions",
        "corruption_avg",
    ),
    *("scores", "lipschitz", "seconds_per_step", "constraints", "provenance"),
}
LAB = (sys.executable, "-m", "ftp.lab")


class Said(NamedTuple):
    """The exit code and what was written to standard output and standard error."""

    code: int
    out: str
    err: str


Call = Callable[..., Said]


def environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, and everything relative to the folder."""
    monkeypatch.setenv("FTP_STORE", str(folder / "runs.db"))
    monkeypatch.setenv("FTP_SCALE", "quick")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("FTP_DEBUG", raising=False)
    monkeypatch.chdir(folder)
    return folder / "runs.db"


def caller(capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*words: object) -> Said:
        code = main([str(word) for word in words])
        return Said(code, *capsys.readouterr())

    return call


def apart(*words: object) -> Said:
    """The same in a process of its own."""
    done = subprocess.run([*LAB, *map(str, words)], capture_output=True, text=True, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


def made_up(method: str, seed: int = 0, **given: Any) -> RunRecord:
    """A finished run that was never trained, under the id that a real one would have."""
    settings = resolve("digits", method, {"seed": seed, **given})
    record = dataclasses.replace(make(method, seed), settings=settings, run_id=identify(settings))
    return dataclasses.replace(record, result=finite(result_of(record)))


def fill(path: Path) -> None:
    """Two methods with two seeds, and a run that failed."""
    with Store(path) as store:
        for record in [made_up(method, seed) for method in ("finetune", "ftp") for seed in (0, 1)]:
            store.import_(to_form(record))
        failed = made_up("tpgm")
        store.create(failed.run_id, failed.settings, name="the third")
        store.finish(failed.run_id, "failed", "the loss is nan\nat step 3")


def run_of(method: str, seed: int = 0, **given: Any) -> str:
    return identify(resolve("digits", method, {"seed": seed, **given}))
