"""The toy world in a real browser: no error, degrees instead of percent, one choice of world above all views."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import axe, chromium, settled, visiting
from playwright.sync_api import Page, expect
from servers import Server, serving

from ftp.lab.record import RunRecord
from ftp.lab.recordings import recorded
from ftp.lab.store import Store, serialisation

PLUGINS = os.environ["FTP_PLUGINS"]


@pytest.fixture(scope="module")
def visit(
    runs: dict[str, RunRecord], trained: Store, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Page, Server]]:
    """A visitor of a server with two runs of the toy and one of digits."""
    path = tmp_path_factory.mktemp("browser") / "runs.db"
    with Store(path) as store:
        for method in ("finetune", "ftp"):
            store.import_(trained.export(runs[method].run_id))
        store.import_(serialisation.to_form(recorded("digits", "ftp", 0)[0], "test"))
    with chromium() as browser, serving(path, FTP_PLUGINS=PLUGINS) as server:
        with visiting(browser, server.url) as (page, seen):
            yield page, server
        assert seen.errors == []
        assert seen.foreign == []
        assert "Traceback" not in server.log()


def look(page: Page, name: str) -> None:
    """A picture for people, where one is asked for by $FTP_TOY_PICTURES."""
    if folder := os.environ.get("FTP_TOY_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_live_race_and_runs(visit: tuple[Page, Server], runs: dict[str, RunRecord]) -> None:
    page, _ = visit
    run = runs["ftp"]
    page.goto(f"/live?world=toy&run={run.run_id}")
    settled(page)
    page.wait_for_selector(".ftp-player .accuracy .main-svg")
    page.get_by_role("slider", name="Step", exact=True).focus()
    page.keyboard.press("End")
    says = page.locator(".ftp-player .says")
    expect(says).to_have_text(re.compile(r"^Step 8 of 8: .* ID \d+°"))
    assert "OOD" not in says.inner_text()
    title = page.evaluate("document.querySelector('.ftp-player .accuracy').layout.title.text")
    assert "Angle (°, lower is better)" in title
    for chart in (".main", ".accuracy"):  # where a phase begins
        names = "layout.annotations.map((mark) => [mark.text, mark.x])"
        marks = page.evaluate(f"document.querySelector('.ftp-player {chart}').{names}")
        assert marks == [["steep", 0], ["gentle", 4]]
    assert axe(page) == []
    look(page, "live")
    page.goto("/race?world=toy")
    settled(page)
    expect(page.get_by_text("Toy slopes has no shifts, and this race is between home and shifts.")).to_be_visible()
    look(page, "race")
    assert axe(page) == []
    page.get_by_role("button", name="Show it in: Handwritten digits").click()
    page.wait_for_selector(".ftp-race .main-svg")
    page.goto("/runs?world=toy")
    settled(page)
    expect(page.get_by_text(re.compile(r"^2 runs, 2 of them done; .* ID angle \d+\.\d°"))).to_be_visible()
    look(page, "runs")
    assert axe(page) == []


def test_the_choice_of_world_goes_along_to_other_views(visit: tuple[Page, Server]) -> None:
    page, _ = visit
    page.goto("/live")
    settled(page)
    chooser = page.get_by_role("combobox", name=re.compile("World"))
    expect(chooser).to_have_value("Handwritten digits")
    chooser.click()
    page.get_by_role("option", name="Toy slopes").click()
    page.wait_for_url(re.compile("world=toy"))
    expect(page.get_by_text("Nothing is recorded in this world yet")).to_be_visible()
    page.get_by_role("link", name="Runs").click()
    page.wait_for_url(re.compile("/runs"))
    settled(page)
    expect(chooser).to_have_value("Toy slopes")
    expect(page.get_by_text(re.compile(r"^2 runs, 2 of them done"))).to_be_visible()
