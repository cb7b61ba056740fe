"""The microscope in a real browser: forwards and backwards, and the numbers light up in the order of their use."""

import re
from collections.abc import Callable

import pytest
from browsers import download, open_menu, settled
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow
ORDER = ["Eq. 1", "Eq. 4", "Eq. 5", "Alg. 2", "Clip", "Eq. 2"]


def test_the_stages_light_up_in_order_and_back(visit: Callable[..., Page]) -> None:
    page = visit("/microscope?step=1")
    settled(page)
    lit = page.locator("li[aria-current=step]")
    forward, back = (page.get_by_role("button", name=name, exact=True) for name in ("Forward ▶", "◀ Back"))
    expect(lit).to_contain_text("Eq. 2")
    for name in ORDER:  # step 2, from its first stage on
        forward.click()
        expect(lit).to_have_count(1)
        expect(lit).to_contain_text(name)
    page.wait_for_url(re.compile("step=2"))
    expect(page.get_by_text("In step 2 the layer walks")).to_be_in_viewport(ratio=1)  # without scrolling
    for name in ORDER[-2::-1]:
        back.click()
        expect(lit).to_contain_text(name)
    expect(page.locator("li").filter(has_text="Eq. 4")).to_contain_text("…")  # not used yet


def test_the_first_step_is_pulled_all_the_way_back(visit: Callable[..., Page]) -> None:
    page = visit("/microscope?step=1")
    settled(page)
    expect(page.get_by_text("64 of 64 rows are pulled. This row:")).to_be_visible()
    expect(page.get_by_role("button", name="◀◀ Step before")).to_be_disabled()
    page.get_by_role("button", name="Next step ▶▶").click()
    expect(page.get_by_text(re.compile("^Step 2 of 300"))).to_be_visible()


def test_keys_scrub_and_another_layer_is_another_trace(visit: Callable[..., Page]) -> None:
    page = visit("/microscope?step=300")
    settled(page)
    time = page.get_by_role("slider", name="Step and stage")
    time.focus()
    page.keyboard.press("Home")
    expect(page.get_by_text("Step 1 of 300, Eq. 1: walk")).to_be_visible()
    page.goto("/microscope?layer=blocks.0.conv1.weight&step=12")
    settled(page)
    expect(page.get_by_text(re.compile("of 8 rows are pulled. This row:"))).to_be_visible()


def test_download(visit: Callable[..., Page]) -> None:
    page = visit("/microscope")
    settled(page)
    open_menu(page)
    page.get_by_text("Table and download", exact=True).click()
    lines = download(page, page.get_by_role("button", name="Download as CSV")).splitlines()
    assert lines[0].startswith("step,lr,loss,slope (Eq. 4),annealed,m,v,gamma before")
