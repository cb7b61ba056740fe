"""Ask in a real browser: a caption finds pictures, an emoji is picked, and alpha moves the answers frame by frame."""

import re
from collections.abc import Callable

import pytest
from browsers import axe, settled
from playwright.sync_api import Page, expect

from ftp.lab import worlds
from ftp.lab.ask import asking
from ftp.lab.recordings.extras import has_extra

pytestmark = pytest.mark.slow
WORLD = next(name for name in worlds.names() if has_extra("ask", name))
ASKED = asking(WORLD)
SLIDER = "α, from W₀ to W"
# milliseconds that the page computes for each frame while it glides for a second
FRAMES = """async () => {
    const real = window.requestAnimationFrame, took = [];
    window.requestAnimationFrame = (draw) => real((now) => {
        const began = performance.now();
        draw(now);
        took.push(performance.now() - began);
    });
    const host = [...document.querySelectorAll("*")].find((e) => e.shadowRoot?.querySelector(".asked"));
    const answers = () => host.shadowRoot.querySelector(".sets").textContent, seen = new Set();
    host.shadowRoot.querySelector(".scrub button").click();
    const end = performance.now() + 1000;
    while (performance.now() < end) { seen.add(answers()); await new Promise(real); }
    window.requestAnimationFrame = real;
    host.shadowRoot.querySelector(".scrub button").click();
    return { median: took.sort((a, b) => a - b)[Math.floor(took.length / 2)], seen: seen.size };
}"""


def moved() -> int:
    """A thing of which the two ends of fine-tuning say something different in some set."""
    cells = ((thing, cell) for thing in range(len(ASKED.things)) for cell in ASKED.answers(thing)[0])
    return next(thing for thing, cell in cells if cell.best(0) != cell.best(-1))


def test_a_picture_is_picked_and_alpha_moves_the_answers(visit: Callable[..., Page]) -> None:
    thing = moved()
    page = visit(f"/ask?world={WORLD}")
    settled(page)
    expect(page.get_by_role("slider", name=SLIDER)).to_be_disabled()
    expect(page.locator(".held")).to_have_count(2 * len(ASKED.sets))
    page.get_by_role("radiogroup").first.locator("label").nth(1).click()
    expect(page.locator(".held")).to_have_count(0)
    page.get_by_role("radio", name=ASKED.things[thing], exact=True).click()
    page.wait_for_url(re.compile("thing="))
    expect(page.get_by_role("radio", name=ASKED.things[thing], exact=True)).to_be_checked()
    assert page.evaluate("(m => m.scrollHeight <= m.clientHeight)(document.querySelector('[data-testid=stMain]'))")
    cells = ASKED.answers(thing)[0]
    n = next(n for n, cell in enumerate(cells) if cell.best(0) != cell.best(-1))
    first = page.locator(".set").nth(n).locator(".cell").nth(1).locator(".what").first
    expect(first).to_have_text(re.compile(f"{re.escape(ASKED.things[cells[n].best(-1)])}$"))
    scrubber = page.get_by_role("slider", name=SLIDER)
    scrubber.focus()
    page.keyboard.press("Home")
    expect(first).to_have_text(re.compile(f"{re.escape(ASKED.things[cells[n].best(0)])}$"))
    page.wait_for_url(re.compile(r"alpha=0(&|$)"))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text(re.compile("^all 150: ≈")).first).to_be_visible()
    frames = page.evaluate(FRAMES)
    assert frames["seen"] > 3  # many small moves, not one jump
    assert frames["median"] < 33  # milliseconds: 30 frames a second
    assert axe(page) == []
    page.reload()  # the address has all of it
    settled(page)
    expect(page.get_by_role("radio", name=ASKED.things[thing], exact=True)).to_be_checked()


def test_the_keyboard_picks_a_picture(visit: Callable[..., Page]) -> None:
    page = visit(f"/ask?world={WORLD}&guess=no&thing={ASKED.things[0]}")
    settled(page)
    page.get_by_role("radio", name=ASKED.things[0], exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("radio", name=ASKED.things[1], exact=True)).to_be_checked()
    expect(page.get_by_role("radio", name=ASKED.things[1], exact=True)).to_be_focused()


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_a_caption_finds_pictures(visit: Callable[..., Page], width: int, dark: bool) -> None:
    page = visit(f"/ask?world={WORLD}&by=caption&guess=no", width=width, dark=dark)
    settled(page)
    box = page.get_by_label("Your caption")
    box.fill(f"a picture of a {ASKED.things[0]} qqq")
    box.press("Enter")
    expect(page.get_by_text("these words were in no caption: qqq")).to_be_visible()
    expect(page.locator(".words .set").first.locator("li button")).to_have_count(9)
    best = ASKED.found(f"a picture of a {ASKED.things[0]}").cells[0][0].best(0)
    found = page.locator(".words .set").first.locator("li button").first
    expect(found).to_have_attribute("aria-label", ASKED.things[best])
    assert page.evaluate("document.documentElement.scrollWidth") == width
    settled(page)
    assert axe(page) == []
    box.fill(" ")
    box.press("Enter")
    expect(page.get_by_text("The caption is empty")).to_be_visible()
    expect(page.locator(".words .set")).to_have_count(0)  # a slow server leaves the old answers there for a while
    box.fill("a tiger")
    box.press("Enter")
    name = ASKED.things[ASKED.found("a tiger").cells[0][0].best(-1)]
    found = page.locator(".words .set").first.locator("li button").first
    expect(found).to_have_attribute("aria-label", name)
    found.click()  # from a found picture to its name
    expect(page.get_by_role("radio", name=name, exact=True)).to_be_checked()
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    if width == 390:
        assert axe(page) == []
