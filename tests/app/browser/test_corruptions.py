"""Corruptions in a real browser: one dial moves pictures, bars and curves, and the page is not asked."""

import re
import statistics
from collections.abc import Callable

import pytest
from browsers import axe, download, open_menu, settled
from playwright.sync_api import Page, expect

from ftp.lab.recordings.extras import extra

pytestmark = pytest.mark.slow
RUNS = [run for run in extra("corruptions")["runs"] if run["method"] == "ftp"]


def said(severity: int) -> str:
    """FTP's mean over the seeds in snow, as its bar writes it."""
    values = [run["corruptions"]["snow"][severity - 1] if severity else run["clean"] for run in RUNS]
    return f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f} %"


def test_the_dial_moves_pictures_and_bars_together(visit: Callable[..., Page]) -> None:
    page = visit("/corruptions?kind=snow&severity=1&guess=no")
    settled(page)
    dial = page.get_by_role("slider", name="Severity")
    bar = page.get_by_role("listitem").filter(has_text=re.compile("^FTP"))
    tile = page.locator(".tile").first
    expect(bar).to_contain_text(said(1))
    before = tile.evaluate("e => getComputedStyle(e).backgroundPosition")
    assert "data:image/webp" in tile.evaluate("e => getComputedStyle(e).backgroundImage")
    dial.focus()
    page.keyboard.press("End")
    expect(bar).to_contain_text(said(5))
    assert tile.evaluate("e => getComputedStyle(e).backgroundPosition") != before
    page.wait_for_url(re.compile("severity=5"))
    page.keyboard.press("Home")
    expect(bar).to_contain_text(said(0))
    page.wait_for_url(re.compile("severity=0"))
    page.reload()
    settled(page)
    expect(page.get_by_role("slider", name="Severity")).to_have_value("0")
    expect(page.get_by_role("combobox", name="Kind of damage")).to_have_value("Snow")


def test_the_pictures_are_drawn(visit: Callable[..., Page]) -> None:
    page = visit("/corruptions")
    settled(page)
    size = page.locator(".tile").first.evaluate(
        """async (e) => {
            const image = new Image();
            image.src = getComputedStyle(e).backgroundImage.slice(5, -2);
            await image.decode();
            return [image.naturalWidth, image.naturalHeight];
        }"""
    )
    assert size == [256, 192]


def test_turn_up_goes_through_the_severities(visit: Callable[..., Page]) -> None:
    page = visit("/corruptions?severity=4&guess=no")
    settled(page)
    page.get_by_role("button", name="Turn up").click()
    expect(page.get_by_role("slider", name="Severity")).to_have_value("5")
    expect(page.get_by_role("button", name="Turn up")).to_be_visible()


def test_download(visit: Callable[..., Page]) -> None:
    page = visit("/corruptions")
    settled(page)
    open_menu(page)
    page.get_by_text("Table and download", exact=True).click()
    lines = download(page, page.get_by_role("button", name="Download as CSV")).splitlines()
    assert lines[0] == "method,seed,kind,clean,severity 1,severity 2,severity 3,severity 4,severity 5"
    assert len(lines) == 1 + 11 * 19 * len(RUNS)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_dial_waits_for_a_guess(visit: Callable[..., Page], width: int) -> None:
    """Only then come the curves, with a band for the two that the question is about."""
    page = visit("/corruptions", width=width)
    settled(page)
    expect(page.locator(".band").first).to_be_hidden()
    dial = page.get_by_role("slider", name="Severity")
    expect(dial).to_be_disabled()
    expect(page.get_by_text("Guess first")).to_be_visible()
    page.get_by_role("radiogroup").first.get_by_text("About the same").click()
    expect(dial).to_be_enabled()
    expect(page.get_by_text("Guess first")).to_be_hidden()
    expect(page.locator(".band")).to_have_count(2)
    expect(page.locator(".band").first).to_be_visible()
    if width == 1280:  # on one screen
        assert page.evaluate("(m => m.scrollHeight <= m.clientHeight)(document.querySelector('[data-testid=stMain]'))")
    assert axe(page) == []
