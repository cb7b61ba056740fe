"""The class wall: only for a class, and names stay text."""

from app_views import keep, sent
from streamlit.testing.v1 import AppTest

SHOW = "from app.page import show\nshow('wall')"


def test_it_is_off_at_home():
    page = AppTest.from_string(SHOW, default_timeout=300).run()
    assert "The class wall is off" in page.error[0].value.replace("\\", "")
    assert not page.get("bidi_component")


def test_it_is_on_for_a_class(monkeypatch):
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    page = AppTest.from_string(SHOW, default_timeout=300).run()
    assert not page.error
    assert "There are no numbers yet." in [text.value for text in page.text]
    keep(name="![x](http://x)")
    page.run()
    assert sent(page)["styles"]["ftp"]["name"] == "FTP"
    assert list(page.table[0].value["name"]) == [r"\!\[x\]\(http\://x\)"]
