"""Every view of the page in a world that is not like the others: it fits, or says why not and where it does."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from app_views import bold, keep, open_view, sent
from servers import until
from streamlit.testing.v1 import AppTest

from app import page as pages
from app.supervisor import close, supervisor
from app.views import live
from ftp.lab import worlds
from ftp.lab.record import RunRecord
from ftp.lab.recordings import replays
from ftp.lab.settings import resolve
from ftp.lab.store import Store

FITS = {"live", "geometry", "runs", "paper"}
MISFITS = {
    "ask": "Toy slopes has no network of pictures and words that was recorded, so nobody would answer.",
    "microscope": "No single step was recorded in Toy slopes.",
    "race": "Toy slopes has no shifts, and this race is between home and shifts.",
    "corruptions": "Nothing damaged was recorded in Toy slopes.",
    "dense": "No pictures of Toy slopes come with the kit.",
    "tasks": "Toy slopes has one task, and this view is about several in a row.",
    "wise": "No walk between two networks was recorded in Toy slopes.",
    "wall": "Toy slopes has no shifts, and the wall is the plane of home and shifts.",
}


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FTP_APP_STORE", str(tmp_path / "app.db"))
    monkeypatch.setenv("FTP_APP_CLASS", "1")  # with the class wall
    yield
    close()


@pytest.fixture
def filled(trained: Store, runs: dict[str, RunRecord]) -> dict[str, RunRecord]:
    """Two runs of the toy and one of digits in the page's store."""
    for method in ("finetune", "ftp"):
        supervisor().store.import_(trained.export(runs[method].run_id))
    keep("00000000000000aa")
    return runs


def button(page: AppTest, label: str) -> AppTest:
    return next(b for b in page.button if b.label == label)  # type: ignore[no-any-return]


def plain(text: str) -> str:
    return text.replace("\\", "").replace("\u00a0", " ")


def link(page: AppTest, view: str) -> dict[str, list[str]]:
    address = next(code.value for code in page.code if f"/{view}?" in code.value)
    return parse_qs(urlsplit(address).query)


def test_every_view_is_here() -> None:
    assert {*FITS, *MISFITS} == set(pages.names())


@pytest.mark.parametrize("view", sorted(FITS))
def test_a_view_that_fits(view: str) -> None:
    page = open_view(view, world="toy", noise="0.3")
    assert page.title[0].value == pages.view(view).TITLE
    assert (page.selectbox(key="world").value, page.selectbox[0].label) == ("toy", "World")
    assert not any(b.label.startswith("Show it in") for b in page.button)
    assert (link(page, view)["world"], link(page, view)["noise"]) == (["toy"], ["0.3"])


@pytest.mark.parametrize("view", MISFITS)
def test_a_view_that_does_not_fit_says_why_and_leads_to_a_world_that_does(view: str) -> None:
    page = open_view(view, world="toy")
    assert [plain(info.value) for info in page.info] == [MISFITS[view]]
    assert page.title[0].value == pages.view(view).TITLE
    home = next(name for name in worlds.names() if not pages.view(view).misfit(worlds.load(name)))
    button(page, f"Show it in: {worlds.world(home).title}").click().run()  # type: ignore[attr-defined]
    assert not page.exception
    assert not page.error
    assert page.selectbox(key="world").value == home
    assert MISFITS[view] not in [plain(info.value) for info in page.info]


def test_another_world_has_its_own_settings_and_an_address_that_begins_anew() -> None:
    page = open_view("live", method="l2_sp", strength="0.5", steps="40", seed="3")
    page.selectbox(key="world").set_value("toy").run()
    assert not page.error
    values = {n.key: n.value for n in (*page.number_input, *page.slider)}
    assert {"steps": 4, "batch": 8, "lr": 0.1, "noise": 0.02, "seed": 3}.items() <= values.items()
    assert page.query_params["world"] == "toy"
    assert "run" not in page.query_params
    assert page.selectbox(key="method").value == "l2_sp"
    assert "Halfway" in page.selectbox(key="method").options
    assert "Shift reader" not in page.selectbox(key="method").options
    page.selectbox(key="world").set_value("digits").run()
    assert "Shift reader" in page.selectbox(key="method").options
    assert "noise" not in {n.key for n in page.slider}


def test_a_method_that_fits_no_more_gives_way() -> None:
    page = open_view("live", method="shift_reader")
    assert page.selectbox(key="method").value == "shift_reader"
    page.selectbox(key="world").set_value("toy").run()
    assert not page.error
    assert page.selectbox(key="method").value == "ftp"


def test_an_option_in_a_link_that_makes_no_sense_is_told() -> None:
    page = open_view("runs", world="toy", noise="7")
    assert plain(page.warning[0].value) == "Noise is '7'; it must be a number from 0 to 1, such as noise=0.02."


def test_live_trains_to_the_end_and_speaks_of_degrees() -> None:
    page = open_view("live", world="toy", seed="2")
    assert "press Train" in page.info[0].value
    assert not any("OOD" in c.value for c in page.caption)
    button(page, "Train").click().run()  # type: ignore[attr-defined]
    assert not page.error
    run = page.query_params["run"]
    until(lambda: supervisor().store.status(run) == "done", what="the end of the run")
    page = open_view("live", world="toy", seed="2", run=run)
    assert sent(page)["run"] == run
    page.radio(key="guess").set_value(live.LATE).run()
    record = supervisor().store.load(run)
    assert record.settings == resolve("toy", "ftp", {"seed": 2})
    said = bold(page)[-1]
    assert said.endswith(f"; ID {record.summary().home:.1f}°.")
    for name in ("Layers", "Scores", "Loss"):
        page.session_state[f"numbers {name}"] = True
    page.run()
    assert not page.error
    scores = next(table.value for table in page.table if "val" in table.value.columns)
    assert list(scores.columns) == ["step", "id", "val"]
    assert not any("OOD" in text for text in (said, *(t.value for t in (*page.text, *page.caption))))


@pytest.mark.parametrize("world", ["toy", "digits"])
def test_a_method_of_one_s_own_works_in_live_before_its_first_step(world: str) -> None:
    settings = resolve(world, "halfway", {"steps": 2, "batch": 8})
    run = supervisor().submit(settings)
    page = open_view("live", world=world, run=run)
    assert sent(page)["run"] == run
    steps = "2 tasks of 2 steps" if world == "toy" else "2 steps"
    assert any(t.value.startswith(f"Run: Halfway, seed 0, {steps}") for t in page.text)
    assert page.radio(key="guess").label == live.NO_LEASH
    supervisor().stop(run)


def test_a_run_of_another_world_is_not_shown_silently(filled: dict[str, RunRecord]) -> None:
    page = open_view("live", run=filled["ftp"].run_id)  # a link that lost its world
    sentence = (
        "The run of this link took place in another world, Toy slopes; choose that world above to see its runs. "
        "Here is a recorded one."
    )
    assert plain(page.info[0].value) == sentence
    assert sent(page)["run"] in {run.run_id for run in replays("digits") if run.settings.method == "ftp"}
    page = open_view("live", world="toy", run="00000000000000aa")
    assert plain(page.info[0].value).startswith("The run of this link took place in another world, Handwritten digits;")


def test_runs_are_those_of_the_chosen_world(filled: dict[str, RunRecord]) -> None:
    page = open_view("runs", world="toy")
    shown = page.dataframe[0].value
    assert set(shown["id"]) == {filled["finetune"].run_id, filled["ftp"].run_id}
    assert "OOD" not in shown.columns
    best = min(filled[method].summary().home for method in ("finetune", "ftp"))
    assert bold(page)[0] == (
        f"2 runs, 2 of them done; Vanilla FT, seed 0, 2 tasks of 4 steps has the best ID angle {best:.1f}°."
    )
    digits = open_view("runs", recorded="false")
    assert list(digits.dataframe[0].value["id"]) == ["00000000000000aa"]
    assert "OOD" in digits.dataframe[0].value.columns


@pytest.mark.parametrize("picture", ["training", "constraint_final", "distance"])
def test_a_run_of_the_toy_in_every_picture_of_runs(filled: dict[str, RunRecord], picture: str) -> None:
    page = open_view("runs", world="toy", runs=filled["ftp"].run_id, picture=picture)
    assert page.radio(key="picture").value == picture
    assert not page.info
    assert page.get("plotly_chart")


def test_a_picture_that_does_not_fit_is_a_sentence(filled: dict[str, RunRecord]) -> None:
    page = open_view("runs", world="toy", runs=[filled["ftp"].run_id, filled["finetune"].run_id], picture="id_ood")
    sentence = "No run has both an ID and an OOD score; choose runs of a world with shifts."
    assert [plain(info.value) for info in page.info] == [sentence]


def test_the_bin_is_one_of_the_world(filled: dict[str, RunRecord], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FTP_APP_CLASS")  # in a class everybody sees their own alone
    supervisor().store.delete("00000000000000aa")
    supervisor().store.delete(filled["ftp"].run_id)
    for world, run in (("toy", filled["ftp"].run_id), ("digits", "00000000000000aa")):
        page = open_view("runs", world=world)
        assert [b.key for b in page.button if b.label == "Put back"] == [f"back {run}"]


def test_what_the_charts_fetch_knows_the_phases_and_the_direction(filled: dict[str, RunRecord]) -> None:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    from app.routes import routes

    with TestClient(Starlette(routes=routes(wall=True))) as client:
        queued = supervisor().submit(resolve("toy", "ftp", {"seed": 5}))
        assert client.get(f"/api/run/{queued}/tail").json()["steps"] == 8  # before its first event
        supervisor().stop(queued)
        tail = client.get(f"/api/run/{filled['ftp'].run_id}/tail").json()
        assert (tail["steps"], tail["world"]) == (8, "toy")
        assert tail["measures"]["metrics"] == [asdict(worlds.load("toy").metrics[0])]
        wall = {world: client.get(f"/api/wall?world={world}").json()["points"] for world in worlds.names()}
    assert {world: {point["world"] for point in points} for world, points in wall.items() if points} == {
        "toy": {"toy"},
        "digits": {"digits"},
    }
