"""The chooser of one's own runs: a run with one layer frozen is told from the run that it varies."""

from app import run_chooser
from ftp.lab.record import RunRecord
from ftp.lab.settings import resolve


def test_what_ifs_are_told_apart() -> None:
    changes: list[dict[str, object]] = [{}, {"frozen": "stem.weight"}, {"free": "stem.weight"}, {"lr": 0.01}]
    runs = [RunRecord(f"{n:016x}", resolve("digits", "ftp", one), "done") for n, one in enumerate(changes)]
    labels = [run_chooser._label(run) for run in runs]
    assert labels[0].endswith("FTP, seed 0, 300 steps")
    assert labels[1].endswith("frozen stem.weight")
    assert labels[2].endswith("free stem.weight")
    assert labels[3].endswith("lr 0.01")
