"""Race in a real browser: the points move in place, and the table can be downloaded."""

import re
from collections.abc import Callable

import pytest
from browsers import axe, download, settled
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow
HEADS = "() => document.querySelector('.ftp-race .plane').data.filter((t) => t.mode !== 'lines').map((t) => t.x[0])"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_points_move_and_the_chart_stays(visit: Callable[..., Page], dark: bool) -> None:
    page = visit("/race", dark=dark)
    settled(page)
    page.wait_for_selector(".ftp-race .plane .main-svg")
    page.evaluate("document.querySelector('.ftp-race .plane').marked = 'same node'")
    slider = page.get_by_role("slider", name="Share of the training")
    slider.focus()
    page.keyboard.press("End")
    ends = page.evaluate(HEADS)
    assert len(ends) == 5
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(f"JSON.stringify(({HEADS})()) !== '{str(ends).replace(' ', '')}'")
    assert page.evaluate("document.querySelector('.ftp-race .plane').marked") == "same node"
    slider.focus()
    page.keyboard.press("End")
    assert page.evaluate(HEADS) == ends
    assert axe(page) == []


def test_the_table_can_be_taken_along(visit: Callable[..., Page]) -> None:
    page = visit("/race?methods=finetune&methods=ftp")
    settled(page)
    expect(page.get_by_role("table")).to_contain_text("OOD Avg.")
    for label, begins in {"CSV": "method,name,seeds", "Markdown": "| Method", "LaTeX": "% needs"}.items():
        assert download(page, page.get_by_role("button", name=f"Download as {label}")).startswith(begins)


def test_the_race_waits_for_a_guess(visit: Callable[..., Page]) -> None:
    page = visit("/race")
    settled(page)
    page.wait_for_selector(".ftp-race .plane .main-svg")
    slider = page.get_by_role("slider", name="Share of the training")
    expect(slider).to_have_value("25")
    page.get_by_role("radiogroup", name=re.compile("First guess")).get_by_text("L2-SP").click()
    expect(page.get_by_text("Not as you guessed (L2-SP)")).to_be_visible()
    expect(slider).to_have_value("100")
