"""The address at the end of each lesson opens its view of the app, and every setting in it takes effect."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from app_views import open_view, sent
from notebooks.lessons import COMPLETE, code, read

from app.supervisor import close
from ftp.lab.lesson import APP, app_link

lesson = pytest.mark.parametrize("path", COMPLETE, ids=lambda p: p.stem)


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FTP_APP_STORE", str(tmp_path / "app.db"))
    monkeypatch.delenv("FTP_APP_CLASS", raising=False)
    yield
    close()


def asked(address: str) -> dict[str, list[str | float]]:
    """The settings of an address; 2 and 2.0 are the same."""
    return {name: [_value(text) for text in texts] for name, texts in parse_qs(urlsplit(address).query).items()}


def _value(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def opened(address: str) -> dict[str, list[str | float]]:
    """Open a link as a visitor does; the settings of the link that the view then offers for sharing."""
    there = urlsplit(address)
    view = there.path.strip("/")
    page = open_view(view, **parse_qs(there.query))
    shares = [block.value for block in page.code if f"/{view}?" in block.value]
    assert len(shares) == 1
    shown = asked(shares[0])
    if "run" in shown:  # a run that is shown, not only named
        data = sent(page)
        assert [data["run"], data["other"]] == [shown["run"][0], shown["other"][0]]
    return shown


@lesson
def test_every_setting_of_a_lessons_link_takes_effect(path: Path) -> None:
    said = "".join(output.get("text", "") for cell in code(read(path)) for output in cell.outputs)
    links = [line for line in said.splitlines() if line.startswith(APP)]
    assert links
    for link in links:
        wanted = asked(link)
        assert wanted
        shown = opened(link)
        assert {name: shown.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "link",
    [
        app_link("race", methods="finetune,ftp"),
        app_link("microscope", k=1),
        app_link("live", steps="many"),
        app_link("live", run="0123456789abcdef"),
    ],
)
def test_a_link_that_the_app_does_not_understand_is_seen(link: str) -> None:
    shown = opened(link)
    assert {name: shown.get(name) for name in asked(link)} != asked(link)
