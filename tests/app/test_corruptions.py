"""The corruptions view: what was recorded, what the page gives to the dial, and a run of one's own."""

import base64
import io
import math
import statistics
from pathlib import Path

import pytest
from app_views import open_view, sent
from PIL import Image

from app.views import corruptions as view
from ftp.lab import methods
from ftp.lab.corruptions import KINDS
from ftp.lab.record import CORRUPTIONS
from ftp.lab.recordings import recorded
from ftp.lab.recordings.extras import HOME, extra
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.summary import Metric, average

DATA = extra("corruptions")
SEEDS = list(dict.fromkeys(run["seed"] for run in DATA["runs"]))
ACCURACY = Metric("accuracy")


def test_every_kind_has_pictures_and_every_method_its_numbers():
    assert set(DATA["pictures"]) == set(KINDS)
    assert len(SEEDS) >= 4
    assert [(run["seed"], run["method"]) for run in DATA["runs"]] == [(s, m) for s in SEEDS for m in methods.PAPER]
    for run in DATA["runs"]:
        assert set(run["corruptions"]) == set(KINDS)
        assert all(len(values) == 5 and all(0 <= v <= 100 for v in values) for values in run["corruptions"].values())
    assert (HOME / "digits" / "corruptions.json.gz").stat().st_size < 300_000


def test_another_machine_gave_other_runs_that_agree_within_the_noise():
    """The recorded runs of ten seeds have four of the kinds; their means and those of these seeds must be alike."""
    for method, runs in view.by_method(DATA["runs"]).items():
        ours = [average([average(run["corruptions"][kind]) for kind in CORRUPTIONS]) for run in runs]
        theirs = [record.result["corruption_avg"] for record in recorded(method=method)]
        errors = [statistics.stdev(values) / math.sqrt(len(values)) for values in (ours, theirs)]
        assert abs(average(ours) - average(theirs)) < 4 * math.hypot(*errors)
    assert set(DATA["made_by"]) == {"torch", "python", "machine", "device", "threads"}


def test_the_runs_that_live_opens_with_are_among_them():
    [ftp] = [run for run in recorded(group="live") if run.settings.method == "ftp"]
    [ours] = [run for run in DATA["runs"] if run["run_id"] == ftp.run_id]
    assert ours["corruptions"]["fog"] == pytest.approx(ftp.result["corruptions"]["fog"], abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_has_six_rows_of_eight_digits_and_the_last_is_damaged(kind):
    picture = Image.open(io.BytesIO(base64.b64decode(DATA["pictures"][kind])))
    assert picture.size == (8 * 32, 6 * 32)
    clean, worst = picture.crop((0, 0, 256, 32)), picture.crop((0, 160, 256, 192))
    assert clean.tobytes() != worst.tobytes()


def test_first_view():
    page = open_view("corruptions")
    data = sent(page)
    assert data["title"] == "All kinds"  # what the guess is about


def test_one_kind():
    page = open_view("corruptions", kind="fog")
    data = sent(page)
    assert (data["title"], data["severity"], len(data["runs"])) == ("Fog", 3, len(methods.PAPER))
    ftp = next(run for run in data["runs"] if run["name"] == "FTP")
    runs = [[run["clean"], *run["corruptions"]["fog"]] for run in DATA["runs"] if run["method"] == "ftp"]
    assert ftp["values"] == pytest.approx([statistics.fmean(column) for column in zip(*runs, strict=True)])
    assert ftp["spread"] == pytest.approx([statistics.stdev(column) for column in zip(*runs, strict=True)])
    assert ftp["strong"]
    assert page.get("download_button")
    assert f"Mean of {len(SEEDS)} seeds" in page.caption[-1].value


def test_single_seeds_on_demand():
    page = open_view("corruptions", kind="fog")
    next(box for box in page.selectbox if box.label == "Recorded seeds").set_value(str(SEEDS[1])).run()
    run = next(run for run in DATA["runs"] if (run["method"], run["seed"]) == ("ftp", SEEDS[1]))
    for shown in (page, open_view("corruptions", kind="fog", seed=str(SEEDS[1]))):
        ftp = next(row for row in sent(shown)["runs"] if row["name"] == "FTP")
        assert (ftp["values"], ftp["spread"]) == ([run["clean"], *run["corruptions"]["fog"]], None)
        assert f"seed {SEEDS[1]} alone, which cannot tell" in shown.caption[-1].value
    assert sent(open_view("corruptions", seed="77"))["runs"][0]["spread"]  # one that is not recorded


def test_a_difference_within_the_noise_is_none():
    better = {"finetune": dict(enumerate([70.0, 71.0, 72.0])), "ftp": dict(enumerate([80.0, 81.5, 82.0]))}
    level = {**better, "ftp": dict(enumerate([69.0, 71.5, 74.0]))}
    cases = [
        (better, (0, 1, 0)),
        (level, (0, 0, 1)),
        ({"finetune": better["ftp"], "ftp": better["finetune"]}, (1, 0, 0)),
    ]
    for scores, right in cases:
        assert [view.mark(guess, scores, ACCURACY) == "Right" for guess in view.GUESSES] == list(map(bool, right))
    assert "about the same by the noise of 3 seeds" in view.answer(level, ACCURACY)
    assert "too few seeds" in view.answer({name: {0: by_seed[0]} for name, by_seed in better.items()}, ACCURACY)


@pytest.mark.parametrize(("asked", "severity"), [("0", 0), ("5", 5), ("6", 3), ("-1", 3), ("x", 3), ("", 3)])
def test_a_link_carries_kind_and_severity(asked, severity):
    data = sent(open_view("corruptions", kind="snow", severity=asked))
    assert (data["title"], data["severity"]) == ("Snow", severity)
    assert data["picture"] == DATA["pictures"]["snow"]


def test_a_kind_that_is_none_is_all_kinds():
    assert sent(open_view("corruptions", kind="<b>"))["title"] == "All kinds"


def test_all_kinds_show_the_mean_that_the_guess_is_about() -> None:
    page = open_view("corruptions", kind=view.ALL)
    data = sent(page)
    ftp = next(row for row in data["runs"] if row["name"] == "FTP")
    whole = average(list(view.overall(DATA["runs"])["ftp"].values()))
    assert average(ftp["values"][1:]) == pytest.approx(whole)
    assert data["picture"] not in DATA["pictures"].values()
    assert "MARS-SP equals Vanilla FT" in page.caption[-1].help


def test_a_prediction_gets_its_answer():
    page = open_view("corruptions")
    right = {1: "FTP", 0: "About the same", -1: view.GUESSES[0]}[view.verdict(view.overall(DATA["runs"]), ACCURACY)]
    page.radio(key="corruptions_guess").set_value(right).run()
    assert any(m.value.startswith("**Right") and "FTP has" in m.value for m in page.markdown)


@pytest.mark.slow
def test_a_run_of_ones_own_stands_beside_the_others(own_store: Path):
    with Store(own_store) as store:
        run = execute(resolve("digits", "ftp", {"steps": 2, "batch": 8}), store, kinds=["fog"]).run_id
    page = open_view("corruptions", kind="fog", run=run)
    assert sent(page)["runs"][-1]["name"] == "yours"
    assert not page.button
    page = open_view("corruptions", run=run, kind="snow")
    assert len(sent(page)["runs"]) == len(methods.PAPER)
    assert [b.label for b in page.button] == ["Compute all kinds for this run"]


def test_the_copied_python_runs(capsys):
    exec(view.python_of("fog", 0, "digits"), {})
    assert "torch.Size([8, 3, 32, 32])" in capsys.readouterr().out
