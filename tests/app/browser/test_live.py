"""Live in a real browser: a run grows without a blank frame, keeps the zoom, and survives a reload."""

import re
from collections.abc import Callable

import pytest
from browsers import axe, download, settled
from playwright.sync_api import Page, expect
from servers import Server

from ftp.lab.recordings import recorded

pytestmark = pytest.mark.slow
MAIN = ".ftp-player .main"
LINES = "document.querySelector('.ftp-player .main').data.filter((trace) => trace.mode === 'lines')"
POINTS = f"() => Math.max(0, ...{LINES}.map((line) => line.x.length))"
RANGE = f"document.querySelector('{MAIN}').layout.xaxis.range"


def zoom(page: Page) -> list[float]:
    """Draw a line across the left half of the chart, as a person does; the steps that are in sight then."""
    box = page.locator(f"{MAIN} .nsewdrag").first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, middle, steps=5)
    page.mouse.up()
    page.wait_for_function(f"{RANGE}[0] > 0")
    return list(page.evaluate(RANGE))


def wait_for_points(page: Page, count: int) -> None:
    page.wait_for_function(f"({POINTS})() >= {count}")


def test_a_recorded_run_replays_at_once_and_every_control_works(visit: Callable[..., Page]) -> None:
    page = visit("/")
    page.wait_for_selector(f"{MAIN} .main-svg")
    wait_for_points(page, 5)
    page.get_by_role("button", name="Pause").click()
    before = page.evaluate(POINTS)
    page.get_by_role("button", name="One step forward").click()
    assert page.evaluate(POINTS) == before + 1
    page.get_by_role("button", name="One step back").click()
    assert page.evaluate(POINTS) == before
    scrubber = page.get_by_role("slider", name="Step", exact=True)
    scrubber.focus()
    page.keyboard.press("End")
    expect(page.locator(".ftp-player .says")).to_have_text(re.compile(r"^Step 300 of 300: γ of early layers .* OOD"))
    assert page.evaluate(POINTS) == len(recorded(method="ftp", seed=0)[0].points)
    page.keyboard.press("Home")
    assert page.evaluate(POINTS) == 0
    page.get_by_role("combobox", name="Speed").select_option("5×")
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".ftp-player .says")).to_have_text(re.compile("^Step 300 of 300"))
    page.get_by_role("combobox", name="Small chart").select_option("boundary")
    page.get_by_role("combobox", name="Layer").select_option("blocks.2.conv1.weight")
    expect(page.locator(".ftp-player .says")).to_have_text(re.compile("blocks.2.conv1.weight has γ"))
    expect(page.get_by_role("button", name="frozen: a leash of no length")).to_be_visible()
    assert axe(page) == []


def test_train_grows_the_lines_in_place_and_stop_and_reload_keep_them(
    visit: Callable[..., Page], server: Server
) -> None:
    page = visit("/live?steps=600&batch=4")
    settled(page)
    page.wait_for_selector(f"{MAIN} .main-svg")
    page.evaluate(f"document.querySelector('{MAIN}').marked = 'same node'")
    page.get_by_role("button", name="Train").click()
    page.wait_for_url(re.compile("run=[0-9a-f]{16}"))
    run = re.findall("run=([0-9a-f]{16})", page.url)[0]
    page.wait_for_function(f"document.querySelector('{MAIN}').layout.xaxis.range[1] === 600")
    wait_for_points(page, 2)
    zoomed = zoom(page)
    assert 0 < zoomed[0] < zoomed[1] < 600
    # every frame from now on: is there a line with something in it?
    page.evaluate(f"""() => {{
        window.blank = 0;
        const look = () => {{
            const lines = document.querySelectorAll('{MAIN} .scatterlayer .js-line');
            if (![...lines].some((line) => line.getAttribute('d'))) window.blank += 1;
            requestAnimationFrame(look);
        }};
        look();
    }}""")
    before = page.evaluate(POINTS)
    wait_for_points(page, before + 5)
    page.wait_for_function("document.querySelector('.ftp-player .accuracy').data[0].x.length > 0")  # all is drawn anew
    assert page.evaluate("window.blank") == 0
    assert page.evaluate(f"document.querySelector('{MAIN}').marked") == "same node"
    assert page.evaluate(RANGE) == zoomed
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("This run was stopped")).to_be_visible()
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    kept = len(server.json(f"/api/run/{run}/tail?since=-1")["points"])
    page.reload()
    settled(page)
    page.wait_for_selector(f"{MAIN} .main-svg")
    expect(page.get_by_text("This run was stopped")).to_be_visible()
    page.get_by_role("slider", name="Step", exact=True).focus()
    page.keyboard.press("End")
    wait_for_points(page, kept)
    assert f"run={run}" in page.url
    page.get_by_role("button", name="Go on").click()
    wait_for_points(page, kept + 3)  # the chart follows again, after a replay too


def test_a_share_link_reproduces_the_settings(visit: Callable[..., Page]) -> None:
    page = visit("/live?method=tpgm&seed=3&steps=40&lr=0.02")
    settled(page)
    page.get_by_role("button", name="Share link").click()
    link = page.locator("[data-testid=stPopoverBody] code").inner_text()
    again = visit(link[link.index("/live") :])
    settled(again)
    expect(again.get_by_role("combobox", name=re.compile("Method"))).to_have_value("TPGM")
    for name, value in {"seed": "3", "steps": "40", "learning rate": "0.02"}.items():
        expect(again.get_by_role("spinbutton", name=name, exact=True)).to_have_value(value)


def test_the_numbers_can_be_downloaded(visit: Callable[..., Page]) -> None:
    page = visit("/live")
    settled(page)
    page.get_by_text("Accuracies: table and download").click()
    text = download(page, page.get_by_role("button", name="Download as CSV").last)
    assert text.startswith("step,")
    assert len(text.splitlines()) == 1 + len(recorded(method="ftp", seed=0)[0].evals)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everybody_can_use_it(visit: Callable[..., Page], dark: bool) -> None:
    page = visit("/live", dark=dark)
    page.wait_for_selector(f"{MAIN} .main-svg")
    wait_for_points(page, 5)
    for summary in page.locator("summary").all():
        summary.click()
    page.get_by_role("button", name="Pause").click()
    assert axe(page) == []
