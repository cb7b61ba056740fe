"""How nbval runs the complete notebooks: what it compares, and at the end the seconds and the memory of each lesson."""

import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

# these differ from machine to machine, or are compared to the last bit
NOT_COMPARED = ("text/html", "application/javascript", "application/vnd.plotly.v1+json", "stderr")
STRICT = ("00", "01", "02", "03")  # the lemma lessons: every printed line must be the same; the others have claims
SCRATCH = pytest.StashKey[str]()
SPENT: dict[str, tuple[float, float]] = {}  # lesson: seconds, peak memory in MB


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SCRATCH] = tempfile.mkdtemp(prefix="ftp-lessons-")
    os.environ["FTP_PREDICTIONS"] = os.path.join(config.stash[SCRATCH], "predictions.json")  # not the person's own


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[SCRATCH])


def pytest_collectstart(collector: Any) -> None:
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += NOT_COMPARED
        collector.compare_outputs = collector.path.name[:2] in STRICT


def pytest_itemcollected(item: Any) -> None:
    if hasattr(item, "output_timeout"):
        item.output_timeout = 60  # a busy machine may need more than nbval's 5 seconds to deliver a printed line


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, Any]:
    if call.when == "call" and hasattr(item, "cell_num"):
        item.user_properties.append(("lesson", (item.path.stem, call.duration, peak_mb(item.parent.kernel))))
    return (yield)


def peak_mb(kernel: Any) -> float:
    """The most memory that the kernel has held so far; 0 if it is gone."""
    if not hasattr(kernel, "km"):  # nbval has stopped it after a timeout
        return 0.0
    pid = kernel.km.provisioner.pid
    try:
        if sys.platform == "linux":
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            return next((float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)
        return float(psutil.Process(pid).memory_info().rss) / 2**20
    except (OSError, psutil.NoSuchProcess):
        return 0.0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    properties: Any = report.user_properties
    for name, value in properties:
        if report.when == "call" and name == "lesson":
            lesson, seconds, memory = value
            before = SPENT.get(lesson, (0.0, 0.0))
            SPENT[lesson] = (before[0] + seconds, max(before[1], memory))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if SPENT:
        terminalreporter.write_line("\nlesson,seconds,peak_mb")
        for lesson, (seconds, memory) in sorted(SPENT.items()):
            terminalreporter.write_line(f"{lesson},{seconds:.1f},{memory:.0f}")
