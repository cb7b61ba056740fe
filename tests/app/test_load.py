"""A small crowd on a real server while a worker trains; `make bench` has the whole class, and looks at the times."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "app_load.py"


@pytest.mark.slow
def test_ten_viewers_and_no_error() -> None:
    command = [sys.executable, str(BENCHMARK), "--sessions", "10", "--seconds", "10", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert found["errors"] == 0
    assert found["asked"] >= 10
    assert found["moved"] >= 1
    assert found["trained_steps"] > 0
    assert 0 < found["rss_mb"] < 1000  # far above the target of 400: torch alone would not fit
