"""The contract of a world that is not like the others. `tests/test_toy.py` runs it: plug-ins are found at import."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ftp.lab import methods, worlds
from ftp.lab.record import RunRecord
from ftp.lab.recordings import recorded
from ftp.lab.store import Store, serialisation

PLUGINS = Path(__file__).resolve().parent.parent / "plugins"
named = [Path(name).expanduser().absolute() for name in os.environ.get("FTP_PLUGINS", "").split(os.pathsep) if name]
collect_ignore_glob = [] if PLUGINS in named else ["test_*.py"]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One run of every method that fits the toy, and beside them recorded runs of another world."""
    from ftp.lab.run import execute
    from ftp.lab.settings import resolve

    with Store(tmp_path_factory.mktemp("toy") / "runs.db") as store:
        for method in ("finetune", "ftp"):
            store.import_(serialisation.to_form(recorded("digits", method, 0)[0], "test"))
        for method in methods.fitting(worlds.load("toy")):
            execute(resolve("toy", method), store, device="cpu")
        yield store


@pytest.fixture(scope="session")
def runs(trained: Store) -> dict[str, RunRecord]:
    """The toy's runs by method, with all their points."""
    return {run.settings.method: trained.load(run.run_id) for run in trained.runs(world="toy")}
