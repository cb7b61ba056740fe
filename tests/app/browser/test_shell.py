"""The page around the views in a real browser: navigation, titles, sizes, and nobody else is asked for anything."""

import time
from collections.abc import Callable

import pytest
from browsers import axe, open_menu, settled
from playwright.sync_api import Browser, Page, WebSocket, expect
from servers import Server
from streamlit.proto.BackMsg_pb2 import BackMsg

from app import page as app_page
from ftp.lab import worlds

pytestmark = pytest.mark.slow
COMPONENTS = app_page.VIEWS.parent / "components"


def test_every_view_opens_under_its_own_address(visit: Callable[..., Page]) -> None:
    page = visit("/")
    settled(page)
    for name in app_page.names():
        page.goto(f"/{name}")
        settled(page)
        expect(page.get_by_role("heading", level=1)).to_have_text(app_page.view(name).TITLE)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", app_page.names())
def test_every_view_can_be_used_by_everybody(visit: Callable[..., Page], name: str, dark: bool) -> None:
    page = visit(f"/{name}", dark=dark)
    settled(page)
    assert axe(page) == []
    open_menu(page)
    expect(page.locator("[data-testid=stPopoverBody] code").first).to_be_visible()
    assert axe(page) == []


@pytest.mark.parametrize("name", app_page.names())
def test_every_view_fits_a_phone(visit: Callable[..., Page], name: str) -> None:
    page = visit(f"/{name}", width=390, height=844)
    settled(page)
    page.wait_for_timeout(1000)  # the view's own style comes with its component
    for what in ("document.documentElement", "document.querySelector('[data-testid=stMain]')"):
        assert page.evaluate(f"{what}.scrollWidth") <= 390


def test_the_navigation_leads_to_the_views(visit: Callable[..., Page]) -> None:
    page = visit("/")
    settled(page)
    page.get_by_role("link", name="Geometry").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(app_page.view("geometry").TITLE)
    page.get_by_role("link", name="Live").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(app_page.view("live").TITLE)


@pytest.mark.parametrize("name", app_page.names())
def test_a_view_that_nobody_touches_runs_once(visit: Callable[..., Page], name: str) -> None:
    """A component that reports at its start runs the script again, and so takes back a click on another view."""
    reruns: list[BackMsg] = []
    page = visit("/geometry")
    settled(page)  # its socket is open; the next one is watched from its first message on
    page.on("websocket", lambda socket: _count(socket, reruns))
    page.goto(f"/{name}")
    settled(page)
    page.wait_for_timeout(2000)  # charts and numbers come after the script
    settled(page)
    assert [[widget.id for widget in message.rerun_script.widget_states.widgets] for message in reruns] == [[]]


@pytest.mark.parametrize("name", app_page.names())
def test_a_view_that_was_only_opened_leaves_the_address_alone_and_back_leads_back(
    visit: Callable[..., Page], name: str
) -> None:
    first = "runs" if name != "runs" else "paper"
    title = app_page.view(first).TITLE
    page = visit(f"/{first}")
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    page.get_by_role("link", name=app_page.LABELS.get(name, name.capitalize()), exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(app_page.view(name).TITLE)
    page.wait_for_timeout(1500)  # what a component says of itself comes after the script
    settled(page)
    assert page.url.partition("?")[2] == ""
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def _count(socket: WebSocket, reruns: list[BackMsg]) -> None:
    def sent(frame: str | bytes) -> None:
        if isinstance(frame, bytes) and (message := BackMsg.FromString(frame)).WhichOneof("type") == "rerun_script":
            reruns.append(message)

    socket.on("framesent", sent)


def test_a_view_opens_in_a_world_that_it_fits_and_the_next_one_in_the_usual_world(visit: Callable[..., Page]) -> None:
    page = visit("/")
    settled(page)
    chosen = page.get_by_role("combobox", name="World")
    usual = chosen.input_value()
    page.get_by_role("link", name="Tasks").first.click()
    expect(chosen).not_to_have_value(usual)
    settled(page)
    expect(page.get_by_text("Show it in")).to_have_count(0)
    page.get_by_role("link", name="Race").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(app_page.view("race").TITLE)
    expect(chosen).to_have_value(usual)


def test_where_another_view_shows_it_there_is_a_way_to_that_view(visit: Callable[..., Page]) -> None:
    world = next(name for name in worlds.names() if app_page.view("corruptions").instead(worlds.load(name)))
    page = visit(f"/corruptions?world={world}")
    settled(page)
    page.get_by_role("button", name="Open that view").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(app_page.view("dense").TITLE)
    expect(page.get_by_role("combobox", name="World")).to_have_value(worlds.world(world).title)


def test_the_first_chart_comes_soon(visit: Callable[..., Page], server: Server) -> None:
    began = time.monotonic()
    page = visit("/")
    page.wait_for_selector(".ftp-player .accuracy .main-svg")
    print(f"server up after {server.up_seconds:.1f} s, first chart after {time.monotonic() - began:.1f} s")


def test_a_call_that_was_overtaken_does_not_take_the_component_away(browser: Browser) -> None:
    script = (COMPONENTS / "_common.js").read_text(encoding="utf-8")
    found = browser.new_page().evaluate(
        """(script) => {
            const component = new Function(`${script}; return component;`)();
            const parentElement = document.body, ends = [];
            const shown = component(() => ({ update() {}, end() { ends.push(1); } }));
            const [first, second] = [{}, {}].map((data) => shown({ parentElement, data }));
            first();  // late: the second call is what is on the page
            const kept = parentElement.querySelectorAll(".root").length;
            second();
            return [kept, parentElement.querySelectorAll(".root").length, ends.length];
        }""",
        script,
    )
    assert found == [1, 0, 1]
