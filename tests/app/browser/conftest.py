"""One Chromium for all browser tests, one server for each file."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from browsers import Seen, chromium, visiting
from playwright.sync_api import Browser, Page
from servers import Server, folder, serving


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Server]:
    """A server with a store of its own; asked for after the browser, so that it does not start in vain."""
    with folder() as place, serving(place / "runs.db") as made:
        yield made


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """`visit("/live", dark=True, width=390, height=844)`: a page of a new visitor. No error, no call to elsewhere."""
    seen: list[Seen] = []
    with ExitStack() as stack:

        def opened(path: str = "/", **how: bool | int) -> Page:
            page, noted = stack.enter_context(visiting(browser, server.url, **how))  # type: ignore[arg-type]
            seen.append(noted)
            page.goto(path)
            return page

        yield opened
    assert [error for noted in seen for error in noted.errors] == []
    assert [url for noted in seen for url in noted.foreign] == []
    assert "Traceback" not in server.log()


@pytest.fixture
def page(visit: Callable[..., Page]) -> Page:
    """The first page, at the size of a small laptop, in light colours."""
    return visit("/")
