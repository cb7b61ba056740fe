"""Commands that make many runs: what holds if nothing is said."""

import os

import pytest
from lab.cli import caller

from ftp.lab import commands
from ftp.lab.commands._parser import Parser
from ftp.lab.commands._timing import at_a_time, cores


def test_help_tells_the_defaults_that_hold(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("table", "sweep"):
        parser = Parser(name)
        commands.command(name).arguments(parser)
        assert f"0 to N - 1 ({parser.get_default('seeds')})" in caller(capsys)(name, "--help").out


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not say which cores are ours")
def test_runs_are_made_on_the_cores_that_are_ours() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert (cores(), at_a_time(None, 5), at_a_time(3, 5)) == (1, 1, 3)
    finally:
        os.sched_setaffinity(0, before)
    assert at_a_time(None, 1000) == len(before)
