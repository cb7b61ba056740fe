"""The class wall in a real browser: it notices its first runs by itself, and does not zoom into the noise of two."""

from collections.abc import Callable, Iterator

import pytest
from browsers import axe, settled
from playwright.sync_api import Browser, Page, expect
from servers import Server, folder, serving

from ftp.lab.recordings import recorded
from ftp.lab.store import Store
from ftp.lab.store.serialisation import to_form

pytestmark = pytest.mark.slow
RANGES = "() => ['xaxis', 'yaxis'].map((axis) => document.querySelector('.ftp-wall .plane').layout[axis].range)"


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Server]:
    with folder() as place, serving(place / "runs.db", "--class", "--host", "127.0.0.1") as made:
        yield made


def test_the_wall_notices_its_first_runs_and_does_not_zoom_into_noise(
    visit: Callable[..., Page], server: Server
) -> None:
    page = visit("/wall")
    settled(page)
    expect(page.get_by_text("No run has ended yet")).to_be_visible()
    page.wait_for_selector(".ftp-wall .main-svg")
    runs = [run for run in recorded(method="ftp") if run.settings.seed < 2]
    with Store(server.store) as store:
        for run in runs:
            store.import_(to_form(run, str(run.provenance["code"])))
    expect(page.get_by_text("2 runs so far")).to_be_visible()
    expect(page.get_by_text("No run has ended yet")).to_have_count(0)
    for (low, high), key in zip(page.evaluate(RANGES), ("id", "ood_avg"), strict=True):
        values = [run.result[key] for run in runs if run.result]
        assert low < min(values) <= max(values) < high
        assert high - low >= 5  # two seeds lie within a point: they are not blown up to the whole picture
    assert axe(page) == []
