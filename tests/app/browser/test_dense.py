"""Every pixel in a real browser: the camera turns, damage grows, methods and tasks change, and errors are counted."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from browsers import axe, settled
from playwright.sync_api import Locator, Page, expect
from servers import Server

from app.page import view
from ftp.lab import worlds
from ftp.lab.jobs import Order
from ftp.lab.map_sheets import tiles_of
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store

pytestmark = pytest.mark.slow
WORLD = next(name for name in worlds.names() if worlds.load(name).dense and has_extra("dense", name))
DATA = extra("dense", WORLD)
OPEN = f"/dense?world={WORLD}&guess=no&scene=0"
PIXELS = (
    "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].reduce((a, b, i) => (a * 31 + b) % 1e9, 7)"
)


def state(dial: str, value: int) -> int:
    about = next(entry for entry in DATA["dials"] if entry["name"] == dial)
    return int(about["states"][about["values"].index(value)])


def score(method: str, number: int, task: str = "semseg", scene: int = 0) -> float:
    run = next(run for run in DATA["tasks"][task]["runs"] if run["method"] == method)
    return float(run["scores"][scene][number])


def wrong(method: str, number: int) -> tuple[int, int]:
    """Counted and wrong pixels of the first scene, from the recording."""
    task = DATA["tasks"]["semseg"]
    run = next(run for run in task["runs"] if run["method"] == method)
    said = tiles_of(run["said"][0], run["side"], number + 1)[number, ..., 0]
    pose = DATA["poses"][number]
    truth = tiles_of(task["truth"][0], DATA["side"], pose + 1)[pose, ..., 0]
    counted = truth != 255
    return int(counted.sum()), int(np.sum(counted & (said != truth)))


def ready(page: Page) -> Locator:
    settled(page)
    four = page.locator(".four[data-counted]")
    expect(four).to_be_visible()
    return four


def test_camera_damage_and_method_move_all_four(visit: Callable[..., Page]) -> None:
    page = visit(OPEN)
    four, maps = ready(page), page.locator("canvas.map")
    before = [maps.nth(n).evaluate(PIXELS) for n in range(4)]
    expect(page.locator(".says")).to_contain_text(f"{score('finetune', 0):.1f}\u00a0% mIoU")
    page.get_by_role("slider", name="Camera round the scene").press("End")
    turned = state("azimuth", 60)
    expect(page.locator(".says")).to_contain_text(f"{score('finetune', turned):.1f}\u00a0% mIoU")
    counted, bad = wrong("finetune", turned)
    expect(four).to_have_attribute("data-counted", str(counted))
    expect(four).to_have_attribute("data-bad", str(bad))
    after = [maps.nth(n).evaluate(PIXELS) for n in range(4)]
    assert all(a != b for a, b in zip(before, after, strict=True))
    page.wait_for_url(re.compile("at=60"))

    page.get_by_role("button", name="FTP", exact=False).click()
    expect(four).to_have_attribute("data-bad", str(wrong("ftp", turned)[1]))
    assert maps.nth(1).evaluate(PIXELS) == after[1]  # the truth is the same

    page.get_by_role("button", name="Gaussian noise").click()
    dial = page.get_by_role("slider", name="Severity of gaussian noise")
    dial.press("End")
    expect(four).to_have_attribute("data-bad", str(wrong("ftp", state("gaussian_noise", 5))[1]))
    dial.press("Home")
    expect(four).to_have_attribute("data-bad", str(wrong("ftp", 0)[1]))
    page.wait_for_url(re.compile("dial=gaussian_noise$"))  # its start is what a dial without a value means
    page.reload()
    ready(page)
    expect(page.get_by_role("slider", name="Severity of gaussian noise")).to_have_value("0")


def test_dragging_the_picture_turns_the_camera_and_the_arrow_keys_tell_a_pixel(visit: Callable[..., Page]) -> None:
    page = visit(OPEN)
    ready(page)
    box = page.locator("canvas.picture").bounding_box()
    assert box
    page.mouse.move(box["x"] + 150, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 80, steps=5)
    page.mouse.up()
    places = DATA["dials"][0]["values"].index(0) + 4  # 90 pixels
    expect(page.locator(".says")).to_contain_text("Vanilla FT with the camera moved round the scene by +40°: ")
    expect(page.get_by_role("slider", name="Camera round the scene")).to_have_value(str(places))
    page.locator(".four").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".here")).to_contain_text(re.compile("^Here"))
    expect(page.locator(".cross").first).to_be_visible()


def test_dragging_a_damaged_picture_says_that_the_damage_is_off_and_a_click_leaves_it(
    visit: Callable[..., Page],
) -> None:
    page = visit(f"{OPEN}&dial=fog&at=5")
    ready(page)
    damaged = f"{score('finetune', state('fog', 5)):.1f}\u00a0% mIoU"
    expect(page.locator(".says")).to_contain_text(f"Vanilla FT with fog at severity 5: {damaged}")
    box = page.locator("canvas.picture").bounding_box()
    assert box
    page.mouse.move(box["x"] + 60, box["y"] + 80)
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("slider", name="Severity of fog")).to_have_value("5")
    page.mouse.down()
    page.mouse.move(box["x"] + 104, box["y"] + 80, steps=5)
    page.mouse.up()
    expect(page.locator(".says")).to_contain_text(
        "with fog off again and the camera moved round the scene by \u221220°: "
    )
    page.wait_for_url(re.compile("at=-20$"))
    page.get_by_role("button", name="Fog").click()
    expect(page.locator(".says")).to_contain_text("Vanilla FT with fog at severity 3: ")


def test_the_browsers_back_leaves_the_view_and_undoes_a_move(visit: Callable[..., Page]) -> None:
    page, title = visit("/geometry"), view("geometry").TITLE
    settled(page)
    heading = page.get_by_role("heading", level=1)
    page.get_by_role("link", name="Scenes").first.click()
    ready(page)
    scene = page.locator(".thumb[aria-pressed=true]").inner_text()
    assert not any(f"{name}=" in page.url for name in ("scene", "method", "dial", "at"))
    page.go_back()
    expect(heading).to_have_text(title)

    page.get_by_role("link", name="Scenes").first.click()
    ready(page)
    length = page.evaluate("history.length")
    dial = page.get_by_role("slider", name="Camera round the scene")
    start = str(DATA["dials"][0]["values"].index(0))
    dial.press("End")
    page.wait_for_url(re.compile("at=60"))
    page.get_by_role("button", name="FTP", exact=False).click()
    page.wait_for_url(re.compile("method=ftp"))
    assert page.evaluate("history.length") == length + 2  # one for each move
    page.get_by_role("link", name="Geometry").first.click()
    expect(heading).to_have_text(title)
    page.go_back()
    expect(dial).to_have_value(str(len(DATA["dials"][0]["values"]) - 1))
    expect(page.locator(".methods [aria-pressed=true]")).to_contain_text("FTP")
    ready(page)

    page.go_back()
    expect(page.locator(".methods [aria-pressed=true]")).to_contain_text("Vanilla FT")
    page.go_back()
    expect(dial).to_have_value(start)
    expect(page.locator(".thumb[aria-pressed=true]")).to_have_text(scene)
    settled(page)
    dial.press("End")  # where the hand rested before
    page.wait_for_url(re.compile("at=60"))


def test_the_damage_of_a_link_waits_for_the_guess_and_stays_in_the_address(visit: Callable[..., Page]) -> None:
    page = visit(f"/dense?world={WORLD}&scene=0&dial=fog&at=5")
    four = ready(page)
    expect(four).to_have_attribute("data-bad", str(wrong("finetune", 0)[1]))
    expect(page.locator(".says")).to_contain_text("Fog comes after your guess.")
    page.get_by_role("button", name="FTP", exact=False).click()
    page.wait_for_url(re.compile("method=ftp.*dial=fog.*at=5"))
    page.locator("[data-testid=stRadio] label", has_text="Brightness").click()
    expect(four).to_have_attribute("data-bad", str(wrong("ftp", state("fog", 5))[1]))
    expect(page.get_by_role("slider", name="Severity of fog")).to_have_value("5")
    page.get_by_text("Parts", exact=True).click()  # asks anew
    expect(page.get_by_text("Guess first.")).to_be_visible()
    expect(page.get_by_role("button", name="Fog")).to_be_disabled()
    page.get_by_text("Things", exact=True).click()
    expect(page.get_by_role("slider", name="Severity of fog")).to_have_value("5")
    expect(four).to_have_attribute("data-bad", str(wrong("ftp", state("fog", 5))[1]))


def test_what_is_not_counted_and_the_thumbnails_are_explained(visit: Callable[..., Page]) -> None:
    page = visit(OPEN)
    ready(page)
    expect(page.locator(".entry", has_text="not counted")).to_have_attribute("title", re.compile("frosted glass"))
    expect(page.locator(".thumb", has_text="night")).to_have_attribute("title", re.compile("lamp in the dark"))
    expect(page.locator("svg text", has_text="60°").first).to_have_text("\u221260°")


def test_tasks_and_scenes(visit: Callable[..., Page]) -> None:
    page = visit(OPEN)
    four = ready(page)
    page.get_by_text("Normals", exact=True).click()
    angle = score("finetune", 0, "normals")
    expect(page.locator(".says")).to_contain_text(f"{angle:.1f}° mean angle")
    expect(page.locator(".ball")).to_be_visible()
    assert float(four.get_attribute("data-angle") or "nan") == pytest.approx(angle, abs=0.5)
    page.get_by_text("Parts", exact=True).click()
    page.get_by_role("button", name="home 5").click()  # without a figure
    expect(page.locator(".says")).to_contain_text("Home 5: no pixel of it counts in this task")
    assert axe(page) == []


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_laptop_and_a_phone(visit: Callable[..., Page], dark: bool) -> None:
    page = visit(OPEN, dark=dark)
    ready(page)
    assert page.evaluate("(m => m.scrollHeight <= m.clientHeight)(document.querySelector('[data-testid=stMain]'))")
    assert axe(page) == []
    phone = visit(OPEN, width=390, height=844, dark=dark)
    ready(phone)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    picture, about = phone.locator("canvas.picture").bounding_box(), phone.locator(".about").bounding_box()
    assert picture
    assert about
    assert picture["y"] + picture["height"] / 2 < 844  # seen without scrolling
    assert picture["y"] < about["y"]
    assert axe(phone) == []


def test_a_run_of_ones_own_is_computed_and_stands_beside_the_others(visit: Callable[..., Page], server: Server) -> None:
    with Store(server.store) as store:
        given = {"task": "semseg", "steps": 2, "batch": 4, "labels": 0.1}
        record = execute(resolve(WORLD, "linear_probe", given), store, device="cpu")
    page = visit(f"{OPEN}&run={record.run_id}")
    ready(page)
    page.get_by_role("button", name="Show what this run says").click()
    yours = page.locator(".methods button", has_text="Yours: Frozen encoder")
    expect(yours).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".says")).to_contain_text("Yours: Frozen encoder on the untouched picture")
    page.locator(".thumb").nth(5).click()
    with Store(server.store) as store:
        said = Order("pixels", record.run_id).result(store)
    expect(page.locator(".says")).to_contain_text(f"{said['scores'][5][0]:.1f}\u00a0% mIoU")
    tile = tiles_of(said["said"][5], said["side"], 1)[0, ..., 0]
    truth = tiles_of(DATA["tasks"]["semseg"]["truth"][5], DATA["side"], 1)[0, ..., 0]
    wrong_ones = int(np.sum((truth != 255) & (tile != truth)))
    expect(page.locator(".four")).to_have_attribute("data-bad", str(wrong_ones))
