"""The corruptions view: what was recorded, what the page gives to the dial, and a run of one's own."""

import base64
import io
from pathlib import Path

import pytest
from app_views import open_view, sent
from PIL import Image

from app.views import corruptions as view
from ftp.lab import methods
from ftp.lab.corruptions import KINDS
from ftp.lab.recordings import recorded
from ftp.lab.recordings.extras import HOME, extra
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store

DATA = extra("corruptions_digits")


def test_every_kind_has_pictures_and_every_method_its_numbers():
    assert set(DATA["pictures"]) == set(KINDS)
    assert [run["method"] for run in DATA["runs"]] == list(methods.PAPER)
    for run in DATA["runs"]:
        assert set(run["corruptions"]) == set(KINDS)
        assert all(len(values) == 5 and all(0 <= v <= 100 for v in values) for values in run["corruptions"].values())
    assert (HOME / "corruptions_digits.json.gz").stat().st_size < 300_000


def test_the_numbers_are_those_of_the_recorded_runs():
    runs = {run["method"]: run for run in DATA["runs"]}
    for record in recorded(seed=0):
        for kind, values in (record.result or {})["corruptions"].items():
            assert runs[record.settings.method]["corruptions"][kind] == pytest.approx(values, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_has_six_rows_of_eight_digits_and_the_last_is_damaged(kind):
    picture = Image.open(io.BytesIO(base64.b64decode(DATA["pictures"][kind])))
    assert picture.size == (8 * 32, 6 * 32)
    clean, worst = picture.crop((0, 0, 256, 32)), picture.crop((0, 160, 256, 192))
    assert clean.tobytes() != worst.tobytes()


def test_first_view():
    page = open_view("corruptions")
    data = sent(page)
    assert (data["title"], data["severity"], len(data["runs"])) == ("Fog", 3, len(DATA["runs"]))
    ftp = next(run for run in data["runs"] if run["name"] == "FTP")
    recorded_ftp = next(run for run in DATA["runs"] if run["method"] == "ftp")
    assert ftp["values"] == [recorded_ftp["clean"], *recorded_ftp["corruptions"]["fog"]]
    assert ftp["strong"]
    assert page.get("download_button")


@pytest.mark.parametrize(("asked", "severity"), [("0", 0), ("5", 5), ("6", 3), ("-1", 3), ("x", 3), ("", 3)])
def test_a_link_carries_kind_and_severity(asked, severity):
    data = sent(open_view("corruptions", kind="snow", severity=asked))
    assert (data["title"], data["severity"]) == ("Snow", severity)
    assert data["picture"] == DATA["pictures"]["snow"]


def test_a_kind_that_is_none_is_fog():
    assert sent(open_view("corruptions", kind="<b>"))["title"] == "Fog"


def test_a_prediction_gets_its_answer():
    page = open_view("corruptions")
    page.radio(key="corruptions_guess").set_value("FTP").run()
    assert any(m.value.startswith("**Right") and "FTP reads" in m.value for m in page.markdown)


@pytest.mark.slow
def test_a_run_of_ones_own_stands_beside_the_others(own_store: Path):
    with Store(own_store) as store:
        run = execute(resolve("digits", "ftp", {"steps": 2, "batch": 8}), store, kinds=["fog"]).run_id
    page = open_view("corruptions", run=run)
    assert sent(page)["runs"][-1]["name"] == "yours"
    assert not page.button
    page = open_view("corruptions", run=run, kind="snow")
    assert len(sent(page)["runs"]) == len(DATA["runs"])
    assert [b.label for b in page.button] == ["Compute all kinds for this run"]


def test_the_copied_python_runs(capsys):
    exec(view.python_of("fog", 0), {})
    assert "torch.Size([8, 3, 32, 32])" in capsys.readouterr().out
