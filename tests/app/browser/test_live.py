"""Live in a real browser: a run grows without a blank frame, keeps the zoom, and survives a reload."""

import json
import re
from collections.abc import Callable

import pytest
from browsers import SLOW, axe, download, open_menu, settled
from playwright.sync_api import Browser, Page, expect
from servers import Server

from ftp.lab.record import EvalEvent
from ftp.lab.recordings import recorded
from ftp.lab.recordings.extras import extra

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


def lines(page: Page) -> None:
    """The growth lines instead of the network, which comes first."""
    page.wait_for_selector(".ftp-player .accuracy .main-svg")
    page.get_by_role("button", name="Growth lines").click()
    page.wait_for_selector(f"{MAIN} .main-svg")


def wait_for_points(page: Page, count: int) -> None:
    page.wait_for_function(f"({POINTS})() >= {count}")


def test_a_recorded_run_replays_at_once_and_every_control_works(visit: Callable[..., Page]) -> None:
    page = visit("/?guess=no")
    lines(page)
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
    assert page.evaluate(POINTS) == len(recorded(method="ftp", group="live")[0].points)
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


def test_who_leaves_a_run_under_way_comes_back_to_it(visit: Callable[..., Page]) -> None:
    page = visit("/live?steps=2000&batch=2&seed=77")
    settled(page)
    page.get_by_role("button", name="Train").click()
    page.wait_for_url(re.compile("run=[0-9a-f]{16}"))
    run = re.findall("run=([0-9a-f]{16})", page.url)[0]
    page.get_by_role("link", name="Geometry").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A row of weights on a leash")
    page.get_by_role("link", name="Live").first.click()
    page.wait_for_url(re.compile(f"run={run}"))
    expect(page.get_by_role("spinbutton", name="seed")).to_have_value("77")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("This run was stopped")).to_be_visible()
    page.get_by_role("link", name="Geometry").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A row of weights on a leash")
    page.get_by_role("link", name="Live").first.click()
    expect(page.get_by_text("Recorded run: FTP")).to_be_visible()


def test_the_task_of_a_link_stays_in_the_address(visit: Callable[..., Page]) -> None:
    page = visit("/live?world=scenes&task=normals&guess=no")
    page.wait_for_selector(".ftp-player .strip.mapped .said[style*='image/webp']")
    settled(page)
    assert "task=normals" in page.url
    truths = page.locator(".ftp-player .strip .cell").first.locator("span").nth(2)
    source = truths.evaluate("e => e.style.backgroundImage")
    assert source.partition(",")[2][:-2] == extra("pictures_task-normals", "scenes")["truths"]


def test_train_grows_the_lines_in_place_and_stop_and_reload_keep_them(
    visit: Callable[..., Page], server: Server
) -> None:
    page = visit("/live?steps=600&batch=4")
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    settled(page)
    lines(page)
    page.evaluate(f"document.querySelector('{MAIN}').marked = 'same node'")
    page.get_by_role("button", name="Train").click()
    page.wait_for_url(re.compile("run=[0-9a-f]{16}"))
    assert posts == []  # a recorded run has no lease
    run = re.findall("run=([0-9a-f]{16})", page.url)[0]
    page.wait_for_function(f"document.querySelector('{MAIN}').layout.xaxis.range[1] === 600")
    wait_for_points(page, 2)
    page.wait_for_selector(".ftp-player .strip .said:not(:empty)")  # a run that is trained here answers too
    assert posts == [f"{server.url}/api/run/{run}/watch"]  # once, not with every look
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
    lines(page)
    expect(page.get_by_text("This run was stopped")).to_be_visible()
    page.get_by_role("slider", name="Step", exact=True).focus()
    page.keyboard.press("End")
    wait_for_points(page, kept)
    assert f"run={run}" in page.url
    second = visit(page.url.removeprefix(server.url))
    settled(second)
    expect(second.get_by_text("This run was stopped")).to_be_visible()
    lines(second)
    page.get_by_role("button", name="Go on").click()
    wait_for_points(page, kept + 3)  # the chart follows again, after a replay too
    wait_for_points(second, kept + 3)  # and so does a second tab, which nobody touched
    expect(second.get_by_role("button", name="Stop")).to_be_visible()


def test_a_share_link_reproduces_the_settings(visit: Callable[..., Page]) -> None:
    page = visit("/live?method=tpgm&seed=3&steps=40&lr=0.02")
    settled(page)
    open_menu(page)
    link = page.locator("[data-testid=stPopoverBody] code").first.inner_text()
    again = visit(link[link.index("/live") :])
    settled(again)
    expect(again.get_by_role("combobox", name=re.compile("Method"))).to_have_value("TPGM")
    for name, value in {"seed": "3", "steps": "40", "learning rate": "0.02"}.items():
        expect(again.get_by_role("spinbutton", name=name, exact=True)).to_have_value(value)


def test_the_numbers_can_be_downloaded(visit: Callable[..., Page]) -> None:
    page = visit("/live")
    settled(page)
    open_menu(page)
    page.get_by_text("Scores: table and download").click()
    text = download(page, page.get_by_role("button", name="Download as CSV").last)
    assert text.startswith("step,")
    assert len(text.splitlines()) == 1 + len(recorded(method="ftp", group="live")[0].evals)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everybody_can_use_it(visit: Callable[..., Page], dark: bool) -> None:
    page = visit("/live?guess=no", dark=dark)
    page.wait_for_selector(".ftp-player .accuracy .main-svg")
    wait_for_points(page, 5)
    for summary in page.locator("summary").all():
        summary.click()
    page.get_by_role("button", name="Pause").click()
    assert axe(page) == []


COLUMNS = "[...document.querySelectorAll('.ftp-player .net rect[height][opacity]')]"
HEIGHTS = f"() => {COLUMNS}.map((column) => Number(column.getAttribute('height')))"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_network_moves_with_the_training(visit: Callable[..., Page], width: int) -> None:
    """Live opens with a picture of the network: a column for each layer, empty at the start, full at the end."""
    page = visit("/live", width=width, height=800)
    page.wait_for_selector(".ftp-player .accuracy .main-svg")
    scrubber = page.get_by_role("slider", name="Step", exact=True)
    scrubber.focus()
    page.keyboard.press("Home")
    page.wait_for_function(f"({HEIGHTS})().slice(0, 45).every((height) => height === 0)")
    page.keyboard.press("End")
    run = recorded(method="ftp", group="live")[0]
    page.wait_for_function(f"({HEIGHTS})().length > 45 && Math.max(...({HEIGHTS})().slice(0, 45)) > 150")
    walked = page.evaluate(HEIGHTS)[:45]
    far = run.points[-1].distance
    assert walked.index(max(walked)) == far.index(max(far))
    expect(page.locator(".ftp-player .net")).to_have_attribute("aria-label", re.compile("45 layers, early ones left"))


def test_a_replay_waits_for_a_guess(visit: Callable[..., Page]) -> None:
    page = visit("/live")
    page.wait_for_selector(".ftp-player .accuracy .main-svg")
    slider = page.get_by_role("slider", name="Step", exact=True)
    expect(slider).to_have_value("6")  # before the leashes give the answer
    expect(page.locator(".ftp-player .says")).to_have_text("Step 6 of 300. Make your guess, and the run plays on.")
    axis = "document.querySelector('.ftp-player .accuracy').layout.yaxis"
    assert page.evaluate(f"{axis}.range") == [0, 100]  # there is no score yet
    expect(page.locator(".ftp-player .strip .key")).to_have_text("✓ right, ✗ wrong")
    page.get_by_text("late layers").first.click()
    expect(slider).to_have_value("300")
    page.wait_for_function(f"{axis}.range[0] > 0")
    expect(page.get_by_text("You guessed it")).to_be_in_viewport(ratio=1)  # without scrolling


SAID = "[...document.querySelectorAll('.ftp-player .strip .said')].map((said) => said.textContent)"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_pictures_have_the_answers_of_the_moment_that_is_shown(visit: Callable[..., Page], width: int) -> None:
    """Right or wrong is a tick or a cross, and all of it is in sight with the network, without scrolling."""
    page = visit("/live?guess=no", width=width, height=720)
    page.wait_for_selector(".ftp-player .strip .said:not(:empty)")
    sheet, run = extra("pictures"), recorded(method="ftp", group="live")[0]

    def marked(event: EvalEvent) -> list[str]:
        rows = zip(sheet["sets"], sheet["labels"], strict=True)
        pairs = [pair for name, labels in rows for pair in zip(event.answers[name], labels, strict=True)]
        return [f"{'✓' if said == label else '✗'}{sheet['classes'][said]}" for said, label in pairs]

    slider = page.get_by_role("slider", name="Step", exact=True)
    slider.focus()
    for key, event in (("Home", run.evals[0]), ("End", run.evals[-1])):
        page.keyboard.press(key)
        page.wait_for_function(f"({SAID}).join() === {json.dumps(','.join(marked(event)))}")
    name = sheet["sets"][0]
    expect(page.locator(".ftp-player .strip .set").first).to_have_attribute(
        "aria-label", re.compile(rf"^{name}: \d of 5 pictures read rightly at step 300; it says ")
    )
    assert "data:image/webp" in page.locator(".ftp-player .strip .tile").first.evaluate("e => e.style.backgroundImage")
    if width == 1280:
        ends = [page.locator(f".ftp-player {place}").bounding_box() for place in (".strip", ".network", ".bar")]
        assert all(box and box["y"] + box["height"] <= 720 for box in ends)
    assert axe(page) == []


SHOWN = "[...document.querySelectorAll('.ftp-player .strip .said')].map((said) => said.style.backgroundImage)"


@pytest.mark.parametrize("width", [1280, 390])
def test_of_a_dense_world_maps_and_truth_stand_beside_the_pictures(visit: Callable[..., Page], width: int) -> None:
    page = visit("/live?world=scenes&guess=no", width=width, height=720)
    page.wait_for_selector(".ftp-player .strip.mapped .said[style*='image/webp']")
    sheet, run = extra("pictures", "scenes"), recorded("scenes", "ftp", group="live")[0]
    slider = page.get_by_role("slider", name="Step", exact=True)
    slider.focus()
    for key, event in (("Home", run.evals[0]), ("End", run.evals[-1])):
        page.keyboard.press(key)
        wanted = [f'url("data:image/webp;base64,{event.maps[name]}")' for name in sheet["sets"] for _ in (1, 2)]
        page.wait_for_function(f"JSON.stringify({SHOWN}) === {json.dumps(json.dumps(wanted, separators=(',', ':')))}")
    tiles = page.locator(".ftp-player .strip .cell").first.locator("span")
    sources = [tiles.nth(n).evaluate("e => e.style.backgroundImage") for n in range(3)]
    assert [text.partition(",")[2][:-2] for text in sources] == [
        sheet["sheet"],
        run.evals[-1].maps["id"],
        sheet["truths"],
    ]
    expect(page.locator(".ftp-player .strip .set").nth(2)).to_have_attribute(
        "aria-label", "night: pictures, and beside each what the network says of every pixel at step 170"
    )
    if width == 1280:
        ends = [page.locator(f".ftp-player {place}").bounding_box() for place in (".strip", ".network", ".bar")]
        assert all(box and box["y"] + box["height"] <= 720 for box in ends)
    assert axe(page) == []


def test_a_run_without_answers_has_no_strip_and_points_on_the_way_have_error_bars(visit: Callable[..., Page]) -> None:
    page = visit("/live?guess=no&seed=0")
    page.wait_for_selector(".ftp-player .accuracy .main-svg")
    slider = page.get_by_role("slider", name="Step", exact=True)
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator(".ftp-player .strip")).to_be_hidden()
    run = recorded(method="ftp", seed=0)[0]
    events = [event for event in run.evals if event.step > 0]
    count = len({event.step for event in events})
    page.wait_for_function(f"document.querySelector('.ftp-player .accuracy').data[0].x.length === {count}")
    bars = page.evaluate("document.querySelector('.ftp-player .accuracy').data[0].error_y.array")
    first = events[0]
    right, images = first.main["id"] / 100 * first.counts["id"] + 2, first.counts["id"] + 4
    share = right / images
    assert bars[0] == pytest.approx(100 * (share * (1 - share) / images) ** 0.5)
    assert bars[-1] < min(bars[:-1])  # the last one stands on all images
    expect(page.locator(".ftp-player .accuracy")).to_contain_text("standard error: 200 images, 100 of each shift")


def test_a_method_without_a_leash_shows_no_chart_twice(visit: Callable[..., Page]) -> None:
    page = visit("/live?method=finetune&guess=no")
    settled(page)
    page.wait_for_selector(f"{MAIN} .main-svg", state="attached")
    page.wait_for_function("document.querySelector('.ftp-player .small').style.display === 'none'")
    assert page.locator(".ftp-player .loss .main-svg").first.is_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_on_a_phone_the_guess_comes_first_then_the_chart_then_train_then_the_settings_and_no_toolbar(
    browser: Browser, server: Server, dark: bool
) -> None:
    look = {"color_scheme": "dark" if dark else "light", "has_touch": True, "is_mobile": True}
    with browser.new_context(base_url=server.url, viewport={"width": 390, "height": 844}, **look) as phone:  # type: ignore[arg-type]
        phone.set_default_timeout(SLOW)
        page = phone.new_page()
        page.goto("/live")
        settled(page)
        page.wait_for_selector(".ftp-player .net")
        page.wait_for_selector(".ftp-player .loss .main-svg")
        train = page.get_by_role("button", name="Train")
        guess, method = page.get_by_role("radiogroup"), page.get_by_role("combobox", name=re.compile("Method"))
        places = [guess, page.locator(".ftp-player .net"), train, method]
        tops = [box["y"] for box in (place.bounding_box() for place in places) if box]
        assert tops == sorted(tops)
        assert len(tops) == 4
        assert not page.locator(".modebar-container").first.is_visible()
        assert train.get_attribute("data-testid") == "stBaseButton-primary"  # the one thing to press, in dark too
        assert axe(page) == []
