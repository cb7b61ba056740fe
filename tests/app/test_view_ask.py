"""The view Ask: where it fits, what it gives to its drawing, what it says of links and texts that make no sense."""

import pytest
from app_views import bold, open_view, sent
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.routes import routes
from app.views import ask as view
from ftp.lab import worlds
from ftp.lab.ask import asking
from ftp.lab.recordings.extras import has_extra

WORLD = next(name for name in worlds.names() if has_extra("ask", name))
ASKED = asking(WORLD)


def test_where_no_network_of_words_is_recorded_it_says_so_and_leads_on():
    page = open_view("ask", world=worlds.default())
    assert "nobody would answer" in page.info[0].value.replace("\\", "")
    page.button[0].click().run()
    assert page.query_params["world"] in (WORLD, [WORLD])


def test_it_waits_for_a_guess_and_then_says_who_names_how_many():
    page = open_view("ask")
    data = sent(page)
    assert data["hold"] is True
    assert [network["name"] for network in data["networks"]] == ["Zero-shot", "Vanilla FT", "FTP"]
    assert [network["fixed"] for network in data["networks"]] == [0.0, None, None]
    assert all(len(network["cells"]) == len(data["sets"]) == 6 for network in data["networks"])
    page.radio(key="ask_guess").set_value("FTP").run()
    assert sent(page)["hold"] is False
    there = view.hardest(ASKED)
    counts = f"Zero-shot names {ASKED.right(0)[there][0]}, Vanilla FT {ASKED.right(0)[there][-1]}, FTP"
    assert any(counts in said for said in bold(page))


def test_a_link_picks_a_thing_and_alpha():
    name = ASKED.things[7]
    page = open_view("ask", world=WORLD, thing=name, alpha="0.3", guess="no")
    data = sent(page)
    assert (data["targets"], data["alpha"], data["hold"], data["words"]) == ([7], 0.3, False, False)
    assert any(f"thing={name.replace(' ', '+')}" in code.value for code in page.code)


def test_values_of_a_link_that_make_no_sense_are_told():
    page = open_view("ask", world=WORLD, thing=ASKED.things[7] + "x", alpha="2", by="smell")
    told = page.warning[0].value.replace("\\", "")
    assert f"did you mean {ASKED.things[7]}?" in told
    assert "from 0 to 1" in told
    assert "it may be picture, caption" in told
    page = open_view("ask", world=WORLD, thing="%%%")
    assert "it may be one of 150, such as" in page.warning[0].value.replace("\\", "")


def test_a_caption_is_answered_with_pictures():
    page = open_view("ask", world=WORLD, by="caption", caption=f"a {ASKED.things[7]}", guess="no")
    data = sent(page)
    assert data["words"] is True
    assert 7 in data["targets"]
    assert data["alphas"] == list(ASKED.found_at)
    page.text_input(key="caption").set_value("a qqq of food").run()
    assert "Left out" in page.warning[0].value.replace("\\", "")
    assert "qqq" in page.warning[0].value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("  ", "The caption is empty"),
        ("", "The caption is empty"),
        ("qqq", "No word of the caption"),
        ("food " * 30, "at most 24 are read"),
        ("x" * 1000, "The caption has 1000 characters"),
        ("![](qq)", "No word of the caption was in any caption of the pre-training: qq;"),
    ],
)
def test_a_text_that_cannot_be_read_is_a_sentence(text, told):
    page = open_view("ask", world=WORLD, by="caption", guess="no")
    page.text_input(key="caption").set_value(text).run()
    assert not page.exception
    assert told in page.warning[0].value.replace("\\", "")
    assert not page.get("bidi_component")


def test_an_example_is_taken_with_one_click():
    page = open_view("ask", world=WORLD, by="caption", guess="no")
    page.button_group(key="ask_example").set_value(ASKED.examples[1]).run()
    assert page.text_input(key="caption").value == ASKED.examples[1]


def test_what_was_right_by_the_noise_of_the_pictures():
    said = {guess: view.verdict(ASKED, guess).partition(":")[0] for guess in view.names(ASKED)}
    assert "Right" in said.values()
    assert set(said.values()) <= {"Right", "As good as right", "Look again"}


def test_the_first_picture_is_typical():
    thing = view.typical(ASKED)
    start, end = (sum(ASKED.named(0, n, at)[thing] for n in range(6)) for at in (0, -1))
    means = [sum(counts[at] for counts in ASKED.right(0)) / len(ASKED.things) for at in (0, -1)]
    assert abs(end - means[1]) <= 1.5
    assert abs((end - start) - (means[1] - means[0])) <= 0.5  # it shows what fine-tuning costs


@pytest.mark.parametrize("caption", [None, 'a "tiger" \\'])
def test_the_copied_python_runs(caption, capsys):
    exec(view.python_of(WORLD, ASKED.things[0], caption), {})
    assert len(capsys.readouterr().out.splitlines()) == 12


def test_the_sheets_are_served():
    client = TestClient(Starlette(routes=routes(wall=False)))
    reply = client.get(f"/api/sheet/{WORLD}/{ASKED.sets[1]}")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "image/webp")
    assert client.get(f"/api/sheet/{WORLD}/tiles").content.startswith(b"\x89PNG")
    for path in (f"{WORLD}/nobody", f"{worlds.default()}/tiles", "nowhere/tiles", "..%2F..%2Fetc/passwd"):
        assert client.get(f"/api/sheet/{path}").status_code == 404
