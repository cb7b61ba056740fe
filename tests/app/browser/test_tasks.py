"""Tasks in a row in a real browser: a short stream is trained, its matrix fills, and it says what it mistakes."""

from collections.abc import Callable

import pytest
from browsers import axe, settled
from playwright.sync_api import Page, expect

from ftp.lab import worlds

pytestmark = pytest.mark.slow
WORLD = next(name for name in worlds.names() if len(worlds.load(name).phases) > 2 and worlds.load(name).offline)
SHORT = f"/tasks?world={WORLD}&tasks=2&steps=2&methods=ftp&guess=no"


def test_the_matrix_fills_while_it_trains(visit: Callable[..., Page]) -> None:
    page = visit(SHORT)
    settled(page)
    page.get_by_role("button", name="Train them").click()
    squares = page.locator("td[title]")
    expect(squares).to_have_count(3)  # R of two tasks, without a reload
    expect(page.get_by_text("after 2 of 2 tasks")).to_be_visible()
    page.get_by_role("button", name="Show task 1").click()
    page.get_by_role("button", name="What is taken for what?").click()
    expect(page.get_by_text("Most often mistaken for:")).to_be_visible()
    expect(page.locator(".pair").first).to_be_visible()
    assert axe(page) == []
    replay = page.get_by_role("button", name="Replay")
    page.get_by_role("slider", name="Tasks learned so far").press("Home")
    expect(squares).to_have_count(1)
    expect(replay).to_be_enabled()

    phone = visit(SHORT, width=390, height=844, dark=True)
    settled(phone)
    expect(phone.locator("td[title]")).to_have_count(3)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    assert axe(phone) == []
