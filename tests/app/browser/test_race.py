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
    page = visit("/race?methods=finetune&methods=ftp&guess=no")
    settled(page)
    page.get_by_role("tab", name="The table").click()
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


NAMES = """() => [...document.querySelectorAll('.ftp-race .plane .textpoint text')].map((text) => {
  const { left, right, top, bottom } = text.getBoundingClientRect();
  return { text: text.textContent, left, right, top, bottom };
})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_names_in_the_plane_do_not_collide(visit: Callable[..., Page], width: int) -> None:
    page = visit("/race", width=width, height=720)
    settled(page)
    page.wait_for_selector(".ftp-race .plane .main-svg")
    slider = page.get_by_role("slider", name="Share of the training")
    for key in ("End", "PageDown"):
        slider.focus()
        page.keyboard.press(key)
        boxes = page.evaluate(NAMES)
        hits = [
            (a["text"], b["text"])
            for i, a in enumerate(boxes)
            for b in boxes[i + 1 :]
            if min(a["right"], b["right"]) - max(a["left"], b["left"]) > 1
            and min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 3
        ]
        assert hits == [], key
    font = "(where) => getComputedStyle(document.querySelector(where)).fontFamily.split(',')[0]"
    assert page.evaluate(font, "body") == page.evaluate(font, ".ftp-race .plane text")


def test_the_papers_own_numbers_stand_below_the_table_on_demand(visit: Callable[..., Page]) -> None:
    page = visit("/race?guess=no")
    settled(page)
    page.get_by_role("tab", name="The table").click()
    expect(page.get_by_role("table")).to_have_count(1)
    page.get_by_text("The paper's own numbers").click()
    expect(page.get_by_role("table")).to_have_count(3)
    expect(page.get_by_text("other data, another network")).to_be_visible()
    assert axe(page) == []
