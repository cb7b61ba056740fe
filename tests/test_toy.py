"""The contract of a world that is not like the others, in a process of its own: plug-ins are found at import."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
LEAST = 126  # tests of the contract; one that is not collected cannot fail


@pytest.mark.slow
def test_the_toy_world_passes_the_whole_contract(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FTP_", "PYTEST_"))}
    own = {
        "FTP_PLUGINS": str(TESTS / "plugins"),
        "FTP_STORE": str(tmp_path / "runs.db"),
        "FTP_APP_STORE": str(tmp_path / "app.db"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'tests'}"]
    done = subprocess.run(
        [*command, "tests/toy"], cwd=TESTS.parent, env={**clean, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|skipped)", done.stdout.splitlines()[-1])}
    assert sum(counts.values()) >= LEAST, done.stdout
    assert counts.get("skipped", 0) <= 2, done.stdout  # those of the browser, where there is none


def test_without_its_folder_nothing_of_the_toy_is_there() -> None:
    from ftp.lab import methods, worlds

    assert "toy" not in worlds.names()
    assert not {"halfway", "shift_reader"} & set(methods.names())
