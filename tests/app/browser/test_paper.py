"""The paper map in a real browser: search, share, follow."""

import re
from collections.abc import Callable

import pytest
from browsers import settled
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow


def test_a_search_narrows_the_table_and_is_in_the_address(visit: Callable[..., Page]) -> None:
    page = visit("/paper")
    settled(page)
    page.get_by_label("Search").fill("gamma_grad")
    page.keyboard.press("Enter")
    expect(page.get_by_text('1 places match "gamma_grad"')).to_be_visible()
    page.wait_for_url(re.compile("q=gamma_grad"))
    page.reload()
    settled(page)
    expect(page.get_by_role("cell", name="Eq. 4", exact=True).first).to_be_visible()
    expect(page.get_by_role("link", name="microscope").last).to_have_attribute("href", re.compile("/microscope$"))
