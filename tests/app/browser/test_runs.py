"""Runs in a real browser: tick one, and replay it in Live."""

import re
from collections.abc import Callable

import pytest
from browsers import axe, download, settled
from playwright.sync_api import Page, expect

from ftp.lab.recordings import recorded

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_run_is_found_and_replayed(visit: Callable[..., Page], dark: bool) -> None:
    page = visit("/runs?of=tpgm&text=seed+%3D+0", dark=dark)
    settled(page)
    table = page.locator("[data-testid=stDataFrame] canvas").first
    box = table.bounding_box()
    assert box
    page.mouse.click(box["x"] + 15, box["y"] + 53)  # the box before the first row
    expect(page.get_by_role("heading", name="The chosen run")).to_be_visible()
    page.wait_for_selector("[data-testid=stPlotlyChart] .main-svg")
    assert axe(page) == []
    run = recorded(method="tpgm", seed=0)[0]
    assert run.run_id in download(page, page.get_by_role("button", name="Export as JSON"))
    page.get_by_role("button", name="Replay").click()
    page.wait_for_url(re.compile(f"/live.*run={run.run_id}"))
    expect(page.get_by_text("Recorded run: TPGM, seed 0, 300 steps")).to_be_visible()
    expect(page.get_by_role("combobox", name=re.compile("Method"))).to_have_value("TPGM")


@pytest.mark.parametrize("width", [1280, 390])
def test_chosen_runs_are_overlaid_and_compared(visit: Callable[..., Page], width: int) -> None:
    ids = "&".join(f"runs={recorded(method=name, seed=0)[0].run_id}" for name in ("finetune", "ftp"))
    page = visit(f"/runs?{ids}&text=seed+%3D+0&order=best+OOD+first", width=width, height=720)
    settled(page)
    page.wait_for_selector("[data-testid=stPlotlyChart] .main-svg")
    lines = "document.querySelector('.js-plotly-plot').data.map((trace) => trace.name)"
    assert page.evaluate(lines) == ["FTP", "Vanilla FT"] * 3  # as they stand in the table
    expect(page.get_by_role("table")).to_contain_text("0.1")
    assert page.get_by_role("table").get_by_text("steps").count() == 0  # only what differs
    if width > 1000:
        box = page.locator("[data-testid=stPlotlyChart]").first.bounding_box()
        assert box
        assert box["y"] + box["height"] <= 725  # one screen
    assert axe(page) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_names_in_the_plane_of_all_do_not_collide(visit: Callable[..., Page], width: int) -> None:
    page = visit("/runs", width=width, height=720)
    settled(page)
    page.wait_for_selector(".st-key-all .main-svg")
    page.wait_for_timeout(1000)  # the plane takes its width
    boxes = page.evaluate(
        """() => [...document.querySelectorAll('.st-key-all .annotation-text')].map((text) => {
            const box = text.getBoundingClientRect();
            return [box.left, box.top + 3, box.right, box.bottom - 3, text.textContent];
        })"""
    )
    assert len(boxes) > 10
    for i, (left, top, right, bottom, name) in enumerate(boxes):
        for a, b, c, d, other in boxes[:i]:
            assert min(right, c) <= max(left, a) or min(bottom, d) <= max(top, b), (name, other)


def test_a_finger_scrolls_the_plane_on_a_phone(visit: Callable[..., Page]) -> None:
    """The plane is wider than a phone: it says so, and plotly leaves the finger to the browser."""
    page = visit("/runs?world=scenes", width=390, height=844)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    page.reload()
    settled(page)
    page.wait_for_selector(".st-key-all .main-svg")
    page.locator(".st-key-all").scroll_into_view_if_needed()
    hint = "getComputedStyle(document.querySelector('.st-key-all'), '::before').content"
    assert page.evaluate(hint).startswith('"Swipe the plane sideways')
    box = page.locator(".st-key-all .nsewdrag").bounding_box()
    assert box
    x, y = 300, box["y"] + 80
    for kind, moved in (("touchStart", 0), *(("touchMove", 20 * i) for i in range(1, 11))):
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x - moved, "y": y}]})
        page.wait_for_timeout(20)
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_function("document.querySelector('.st-key-all').scrollLeft > 50", timeout=20000)
