"""The teacher's page in a real browser: shut without the token, on one screen, on a phone, and its levers work."""

import re
from collections.abc import Callable, Iterator

import pytest
from browsers import axe, settled
from playwright.sync_api import Browser, Page, expect
from servers import Server, folder, long, serving, until

from app import promises
from app.limits import Viewer
from ftp.lab.run import identify
from ftp.lab.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Server]:
    """One for a class, with three runs in its queue."""
    with folder() as place, serving(place / "runs.db", "--class", "--host", "127.0.0.1") as made:
        yield made


@pytest.fixture(scope="module")
def link(server: Server) -> str:
    found = re.search(r"(/teacher\?token=[0-9a-f]{32})\n", server.lines[1])
    assert found
    return found[1]


def ask(server: Server) -> list[str]:
    with Store(server.store) as store:
        runs = []
        for seed in range(3):
            run = identify(long(seed=seed))
            store.create(run, long(seed=seed))
            store.finish(run, "queued")
            promises.make(store, run, [Viewer(f"student {seed}")])
            runs.append(run)
        return runs


def test_a_student_does_not_see_it(visit: Callable[..., Page]) -> None:
    page = visit("/live")
    settled(page)
    expect(page.get_by_role("link", name="Class wall").first).to_be_visible()
    expect(page.get_by_role("link", name="Teacher")).to_have_count(0)
    page.goto("/teacher?token=" + "0" * 32)
    expect(page.get_by_text("This page opens with the teacher's link alone")).to_be_visible()
    expect(page.get_by_role("button", name="Clear the queue")).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_and_can_be_used_by_everybody(
    visit: Callable[..., Page], link: str, width: int, height: int, dark: bool
) -> None:
    page = visit(link, width=width, height=height, dark=dark)
    settled(page)
    expect(page.get_by_role("button", name="Clear the queue")).to_be_visible()
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
    if width > 400:  # one screen: every lever is seen without scrolling
        for lever in (page.get_by_role("button", name="Change the limits"), page.get_by_text("Class wall").last):
            box = lever.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= height
    assert axe(page) == []


def test_its_levers(visit: Callable[..., Page], server: Server, link: str) -> None:
    runs = ask(server)
    page = visit(link)
    settled(page)
    until(lambda: sum(server.json("/api/health")[name] for name in ("running", "waiting")) == 3, what="the queue")
    expect(page.get_by_text("asked for by 3 viewers")).to_be_visible()
    page.get_by_role("button", name="Stop all").click()
    with Store(server.store) as store:
        until(lambda: all(store.status(run) == "stopped" for run in runs), what="the stop")
    expect(page.get_by_text("; waiting: 0.")).to_be_visible()
    page.get_by_text("Class wall").last.click()
    until(lambda: server.get("/api/wall")[0] == 503, what="the wall is off")
    page.reload()  # the address keeps the token
    expect(page.get_by_role("link", name="Class wall")).to_have_count(0)
    page.get_by_role("link", name="Geometry").first.click()
    page.wait_for_url("**/geometry*")
    assert "token" not in page.url  # the address that a teacher copies for the class
    page.get_by_role("link", name="Teacher").first.click()
    expect(page.get_by_role("button", name="Clear the queue")).to_be_visible()
