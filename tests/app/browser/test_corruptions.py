"""Corruptions in a real browser: one dial moves pictures, bars and curves, and the page is not asked."""

import re
from collections.abc import Callable

import pytest
from browsers import download, settled
from playwright.sync_api import Page, expect

from ftp.lab.recordings.extras import extra

pytestmark = pytest.mark.slow
FTP = next(run for run in extra("corruptions_digits")["runs"] if run["method"] == "ftp")


def test_the_dial_moves_pictures_and_bars_together(visit: Callable[..., Page]) -> None:
    page = visit("/corruptions?kind=snow&severity=1")
    settled(page)
    dial = page.get_by_role("slider", name="Severity")
    bar = page.get_by_role("listitem").filter(has_text=re.compile("^FTP"))
    tile = page.locator(".tile").first
    expect(bar).to_contain_text(f"{FTP['corruptions']['snow'][0]:.1f} %")
    before = tile.evaluate("e => getComputedStyle(e).backgroundPosition")
    assert "data:image/webp" in tile.evaluate("e => getComputedStyle(e).backgroundImage")
    dial.focus()
    page.keyboard.press("End")
    expect(bar).to_contain_text(f"{FTP['corruptions']['snow'][4]:.1f} %")
    assert tile.evaluate("e => getComputedStyle(e).backgroundPosition") != before
    page.wait_for_url(re.compile("severity=5"))
    page.keyboard.press("Home")
    expect(bar).to_contain_text(f"{FTP['clean']:.1f} %")
    page.wait_for_url(re.compile("severity=0"))
    page.reload()
    settled(page)
    expect(page.get_by_role("slider", name="Severity")).to_have_value("0")
    expect(page.locator("[data-testid=stSelectbox] input").first).to_have_value("Snow")


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
    page = visit("/corruptions?severity=4")
    settled(page)
    page.get_by_role("button", name="Turn up").click()
    expect(page.get_by_role("slider", name="Severity")).to_have_value("5")
    expect(page.get_by_role("button", name="Turn up")).to_be_visible()


def test_download(visit: Callable[..., Page]) -> None:
    page = visit("/corruptions")
    settled(page)
    page.get_by_text("Table and download", exact=True).click()
    lines = download(page, page.get_by_role("button", name="Download as CSV")).splitlines()
    assert lines[0] == "method,kind,clean,severity 1,severity 2,severity 3,severity 4,severity 5"
    assert len(lines) == 1 + 11 * 19
