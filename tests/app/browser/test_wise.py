"""WiSE in a real browser: the scrubber glides without asking the page, and its numbers are those of the curves."""

import re
import statistics
from collections.abc import Callable

import pytest
from browsers import axe, download, open_menu, settled
from playwright.sync_api import Page, expect

from ftp.lab.recordings.extras import extra

pytestmark = pytest.mark.slow
CURVES = extra("wise")["curves"]


def mean(name: str, at: int) -> float:
    return statistics.fmean(curve[name][at] for curve in CURVES if curve["method"] == "ftp")


def test_scrubbing_shows_computed_points_and_marks_what_lies_between(visit: Callable[..., Page]) -> None:
    page = visit("/wise?alpha=0.3&guess=no")
    settled(page)
    scrubber = page.get_by_role("slider", name="α, from W₀ to W")
    at = CURVES[0]["alphas"].index(0.3)
    wanted = f"FTP: ID {mean('id', at):.1f} %, OOD {mean('ood_avg', at):.1f} %"
    expect(scrubber).to_have_attribute("aria-valuetext", re.compile(re.escape(wanted)))
    expect(page.get_by_text("between two computed points")).to_have_count(0)
    scrubber.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("between two computed points")).to_have_count(2)
    page.wait_for_url(re.compile(r"alpha=0\.305"))
    page.reload()
    settled(page)
    expect(page.get_by_role("slider", name="α, from W₀ to W")).to_have_value("0.305")


def test_it_glides_to_the_end_by_itself_frame_by_frame(visit: Callable[..., Page]) -> None:
    page = visit("/wise?alpha=0.9&guess=no")
    settled(page)
    scrubber = page.get_by_role("slider", name="α, from W₀ to W")
    page.get_by_role("button", name="Glide").click()
    expect(scrubber).to_have_value("1")
    page.wait_for_url(re.compile(r"alpha=1(&|$)"))
    page.get_by_role("button", name="Glide").click()
    seen = page.evaluate(
        """async () => {
            const host = [...document.querySelectorAll("*")].find((e) => e.shadowRoot?.querySelector(".plane"));
            const slider = host.shadowRoot.querySelector("input"), values = new Set();
            const end = performance.now() + 1000;
            while (performance.now() < end) { values.add(slider.value); await new Promise(requestAnimationFrame); }
            return values.size;
        }"""
    )
    assert seen > 3  # many small moves, not one jump


def test_a_curve_can_be_dragged_along(visit: Callable[..., Page]) -> None:
    page = visit("/wise?guess=no")
    settled(page)
    plane = page.get_by_role("img", name=re.compile("ID and OOD at α"))
    box = plane.bounding_box()
    assert box
    page.mouse.click(box["x"] + 0.15 * box["width"], box["y"] + 0.35 * box["height"])  # the pre-trained end
    page.wait_for_url(re.compile(r"alpha=0\.0|alpha=0(&|$)"))


def test_download(visit: Callable[..., Page]) -> None:
    page = visit("/wise")
    settled(page)
    open_menu(page)
    page.get_by_text("Table and download", exact=True).click()
    assert len(download(page, page.get_by_role("button", name="Download as CSV")).splitlines()) == 1 + sum(
        len(c["alphas"]) for c in CURVES
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_the_way_is_drawn_after_a_guess(visit: Callable[..., Page], width: int) -> None:
    page = visit("/wise", width=width)
    settled(page)
    expect(page.locator(".band").first).to_be_hidden()
    scrubber = page.get_by_role("slider", name="α, from W₀ to W")
    expect(scrubber).to_be_disabled()
    page.get_by_role("radiogroup").first.locator("label").nth(1).click()
    expect(scrubber).to_be_enabled()
    expect(page.locator(".band").first).to_be_visible()
    if width == 1280:  # on one screen
        assert page.evaluate("(m => m.scrollHeight <= m.clientHeight)(document.querySelector('[data-testid=stMain]'))")
    assert axe(page) == []
