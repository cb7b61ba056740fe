"""Geometry in a real browser: a point and a leash that can be dragged, and a bound that does not break."""

import csv
import re
from collections.abc import Callable

import pytest
from browsers import axe, download, open_menu, settled
from playwright.sync_api import Locator, Page, expect

from app import geometry

pytestmark = pytest.mark.slow


def drag(page: Page, what: Locator, dx: float, dy: float) -> None:
    box = what.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=6)


def numbers(page: Page) -> str:
    return page.get_by_role("group", name="Eq. 10").inner_text()


def test_dragging_moves_the_numbers_at_once_and_the_address_when_the_hand_rests(visit: Callable[..., Page]) -> None:
    page = visit("/geometry?x=0.5&y=0.5&gamma=0.5")
    settled(page)
    wanted = page.get_by_role("slider", name="Wanted point")
    drag(page, wanted, 80, 30)
    expect(page.get_by_role("group", name="Eq. 10")).not_to_contain_text("(0.50, 0.50)")
    shown = [float(v) for v in re.findall(r"-?\d+\.\d+", numbers(page))]
    row = geometry.project(shown[0], shown[1], 0.5)
    assert shown[0] > 0.5 > shown[1]
    assert shown[-2:] == pytest.approx([round(v, 2) for v in row.projected], abs=0.011)
    assert "x=0.5" in page.url  # the page is not asked while the hand moves
    page.mouse.up()
    page.wait_for_url(re.compile(f"[?&]x={re.escape(str(shown[0]))}&y="))
    expect(page.get_by_text(f"wanted to go {row.l1:.2f} away is held at 0.50")).to_be_visible()
    page.reload()
    settled(page)
    expect(page.get_by_role("group", name="Eq. 10")).to_contain_text(f"({shown[0]:.2f}, {shown[1]:.2f})")


def test_keys_move_what_has_the_focus_and_a_rerun_leaves_it_there(visit: Callable[..., Page]) -> None:
    page = visit("/geometry?x=1&y=1&gamma=1")
    settled(page)
    wanted = page.get_by_role("slider", name="Wanted point")
    wanted.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    page.wait_for_url(re.compile(r"x=0\.95&y=1\.25"))
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"x=1\.0&y=1\.25"))
    corner = page.get_by_role("slider", name="Length of the leash γ")
    corner.focus()
    page.keyboard.press("ArrowUp")
    page.wait_for_url(re.compile(r"gamma=1\.05"))


def test_the_corner_of_the_diamond_is_the_leash_and_the_circle_compares(visit: Callable[..., Page]) -> None:
    page = visit("/geometry")
    settled(page)
    drag(page, page.get_by_role("slider", name="Length of the leash γ"), -40, 0)
    page.mouse.up()
    page.wait_for_url(re.compile(r"gamma=0\."))
    page.get_by_label("Compare with the l2 circle").check()
    page.wait_for_url(re.compile("circle=true"))
    assert "circle: min(1," in numbers(page)
    assert axe(page) == []


def test_the_bound_is_reached_by_the_signs_and_by_nothing_else(visit: Callable[..., Page]) -> None:
    page = visit("/geometry?matrix=3")
    settled(page)
    page.get_by_role("tab", name="Break the bound").click()
    tries = page.get_by_text("Best share so far")
    slider = page.get_by_role("slider", name="x₁")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(r"x1=0\.45"))
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(r"x1=0\.4(&|$)"))
    expect(tries).to_contain_text("Tries: 2.")
    assert "100" not in tries.inner_text()
    page.get_by_role("button", name="Show the worst input").click()
    expect(tries).to_contain_text("Tries: 3. Best share so far: 100")
    expect(page.get_by_text("Reached, and no x goes beyond it.")).to_be_visible()


def test_the_table_can_be_downloaded(visit: Callable[..., Page]) -> None:
    page = visit("/geometry?x=2&y=-2&gamma=1")
    settled(page)
    open_menu(page)
    page.get_by_text("Table and download", exact=True).click()
    rows = list(csv.DictReader(download(page, page.get_by_role("button", name="Download as CSV").first).splitlines()))
    assert [float(row["l1 distance"]) for row in rows] == [0.0, 4.0, 1.0]
