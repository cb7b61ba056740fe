"""A real Chromium for tests: found on this machine, watched for errors and for calls to other machines."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, TimeoutError, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
NO_BROWSER = "NOT TESTED in a browser: there is no Chromium here"  # tests/conftest.py counts these
SLOW = 240_000  # milliseconds; nothing here decides by time
expect.set_options(timeout=SLOW)


def find_browser(of_playwright: str) -> str:
    """Where Chromium is. In CI there must be one; elsewhere its tests are left out, and `make test` says so."""
    path = next(filter(None, (*map(shutil.which, NAMES), shutil.which(of_playwright))), None)
    if path is None and os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail("no Chromium on this machine; in CI the browser tests must run: install chromium")
    if path is None:
        pytest.skip(NO_BROWSER)
    return path


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = find_browser(playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Seen:
    """What went wrong in a page while it was open."""

    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


@contextlib.contextmanager
def visiting(
    browser: Browser, url: str, *, dark: bool = False, width: int = 1280, height: int = 720
) -> Iterator[tuple[Page, Seen]]:
    """A fresh visitor (no cookies) of the server at `url`, whose pages may ask no other machine."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(
        base_url=url,
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
    )
    context.set_default_timeout(SLOW)
    page, seen, own = context.new_page(), Seen(), urlsplit(url).netloc
    page.on("console", lambda said: seen.errors.append(_said(said)) if _is_error(said) else None)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("request", lambda request: seen.foreign.append(request.url) if not _own(request.url, own) else None)
    try:
        assert page.evaluate(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
        yield page, seen
    finally:
        context.close()


def _is_error(said: ConsoleMessage) -> bool:
    # on a view's own address Streamlit first asks below it where the server is, and then at the root
    looks = said.location["url"].endswith(("/_stcore/host-config", "/_stcore/health"))
    return said.type == "error" and not looks


def _said(said: ConsoleMessage) -> str:
    return f"{said.text} ({said.location['url']})"


def _own(url: str, netloc: str) -> bool:
    return urlsplit(url).scheme in ("data", "blob", "about") or urlsplit(url).netloc == netloc


def settled(page: Page) -> None:
    """Wait until Streamlit has shown the view and its script is through; before it begins, nothing runs either."""
    page.wait_for_selector("h1")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", state="attached")


def open_menu(page: Page) -> None:
    """Open the menu in the heading: tables, link, Python, lesson."""
    page.get_by_role("button", name="More").first.click()
    page.wait_for_selector("[data-testid=stPopoverBody]")


def axe(page: Page) -> list[str]:
    """The accessibility violations of the page as it is, one line each; none is what a test wants."""
    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {node['html'][:200]}" for v in found for node in v["nodes"]]


def download(page: Page, button: Locator) -> str:
    """The text of what a button gives to download. A click while the page is drawn anew is lost: then once more."""
    for patience in (30_000, SLOW):
        try:
            with page.expect_download(timeout=patience) as waiting:
                button.click()
            return waiting.value.path().read_text(encoding="utf-8")
        except TimeoutError:
            if patience == SLOW:
                raise
    raise AssertionError
