"""What lessons are made of: predictions that are kept, claims that can fail, figures that say how they were made."""

import json
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest

from ftp.lab import lesson, predictions
from ftp.lab.lesson import app_link, band, begin, calibration, card, claim, figure, forget, outcome, predict
from ftp.lab.record import LabError


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "new folder" / "predictions.json"
    monkeypatch.setenv("FTP_PREDICTIONS", str(path))
    monkeypatch.setattr(predictions, "_guessed", set())
    return path


def test_a_prediction_is_kept_with_its_time_and_the_outcome_beside_it(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predict("01.coin", "heads", options=("heads", "tails"), sure=70)
    outcome("01.coin", "tails")
    entry = json.loads(kept.read_text())["01.coin"]
    assert abs(entry.pop("time") - time.time()) < 60
    said = {"value": "heads", "latest": "heads", "sure": 70, "options": ["heads", "tails"]}
    assert entry == said | {"outcome": "tails", "right": False}
    assert capsys.readouterr().out == "✎ you expect: heads (70 % sure)\n→ it was: tails, and you expected heads\n"


def test_who_knows_the_outcome_cannot_predict_it_any_more(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predict("01.coin", "edge")
    predict("01.coin", "heads", sure=90)  # not decided yet: one may think again
    outcome("01.coin", "tails")
    predict("01.coin", "tails", sure=100)
    outcome("01.coin", "tails")
    entry = json.loads(kept.read_text())["01.coin"]
    assert (entry["value"], entry["sure"], entry["right"]) == ("heads", 90, False)
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "✎ you expect: tails (100 % sure)",
        '  your first guess counts: heads, 90 % sure; forget("01.coin") takes it back',
        "→ it was: tails, as you expected",
    ]


@pytest.mark.parametrize(("said", "within", "right"), [(2.0, 0.1, True), (2.0, 0.01, False), (2.1, 0.0, True)])
def test_a_number_is_right_within_a_share_of_the_outcome(kept: Path, said: float, within: float, right: bool) -> None:
    predict("01.ratio", said)
    outcome("01.ratio", 2.1, within=within)
    assert json.loads(kept.read_text())["01.ratio"]["right"] is right


WAITING = '○ this cell waits for your guess "01.coin": fill in `guess` above, run that cell, then this one\n'
SIDES = ("heads", "tails")


def test_nothing_is_told_and_nothing_kept_before_the_guess(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predict("01.coin", ..., options=SIDES)
    outcome("01.coin", "tails")
    asked = "○ your guess first: write one of 'heads', 'tails' in place of the dots and run this cell again\n"
    assert capsys.readouterr().out == asked + WAITING
    assert not kept.exists()
    predict("01.coin", "heads", options=SIDES, sure=70)
    outcome("01.coin", "tails")
    capsys.readouterr()
    predict("01.coin", ..., options=SIDES)  # the dots again: it waits again, and what was kept stays
    outcome("01.coin", "tails")
    assert capsys.readouterr().out == asked + WAITING
    assert json.loads(kept.read_text())["01.coin"]["value"] == "heads"
    predict("01.free", ...)
    assert "write what you expect in place of the dots" in capsys.readouterr().out


def test_who_does_not_want_to_guess_says_none(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predict("01.coin", None, options=SIDES)
    outcome("01.coin", "tails")
    said = "✎ no guess: the cells below show what happens, and nothing is kept\n→ it was: tails\n"
    assert capsys.readouterr().out == said
    assert not kept.exists()
    assert calibration() == []


def test_a_guess_can_be_taken_back(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for key in ("01.coin", "02.die", "03.card"):
        predict(key, "heads")
        outcome(key, "tails")
    capsys.readouterr()
    forget("01.coin")
    forget("01.coin")
    assert list(json.loads(kept.read_text())) == ["02.die", "03.card"]
    outcome("01.coin", "tails")
    predict("01.coin", "tails", sure=90)
    outcome("01.coin", "tails")
    assert json.loads(kept.read_text())["01.coin"]["right"] is True
    said = capsys.readouterr().out
    assert said.startswith("1 prediction is forgotten: 01.coin\nthere is no prediction '01.coin'\n" + WAITING)
    forget()
    forget()
    said = capsys.readouterr().out
    assert said == "3 predictions are forgotten: 02.die, 03.card, 01.coin\nthere is no prediction\n"
    outcome("02.die", "tails")
    assert "waits for your guess" in capsys.readouterr().out


def test_a_cell_that_waits_is_replaced_by_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    cell = ["# waits for 01.coin\n", "print('tails')\n"]
    exec("".join(predictions.hold(cell)))
    assert capsys.readouterr().out == WAITING
    predict("01.coin", "heads")
    assert predictions.hold(cell) == cell
    for other in ([], ["print(1)\n"], ["# waits for nobody in particular\n"]):
        assert predictions.hold(other) == other


def test_a_notebook_holds_its_cells_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(input_transformers_cleanup=[])
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    predictions.hold_cells()
    predictions.hold_cells()
    assert shell.input_transformers_cleanup == [predictions.hold]


def test_calibration_groups_by_how_sure_you_were() -> None:
    for key, value, sure in (("a", 1, 50), ("b", 2, 50), ("c", 1, 90), ("open", 1, 90)):
        predict(key, value, sure=sure)
        if key != "open":
            outcome(key, 1)
    assert calibration() == [{"sure": 50.0, "right": 50.0, "count": 2}, {"sure": 90.0, "right": 100.0, "count": 1}]


def test_bad_predictions_get_one_sentence(kept: Path) -> None:
    for call, sentence in (
        (lambda: predict("k", "edge", options=("heads", "tails")), "choose one of 'heads', 'tails'"),
        (lambda: predict("k", 1, sure=700), "sure is 700; give a percentage from 0 to 100"),
        (lambda: predict("k", 1, sure="very"), "sure is 'very'; give a percentage from 0 to 100"),  # type: ignore[arg-type]
        (lambda: app_link("kitchen"), f"view is 'kitchen'; the app has {', '.join(lesson.VIEWS)}"),
    ):
        with pytest.raises(LabError) as error:
            call()
        assert str(error.value).endswith(sentence)
    kept.parent.mkdir()
    for broken in ("{", "[1]"):
        kept.write_text(broken)
        with pytest.raises(LabError) as error:
            predict("k", 1)
        assert str(error.value) == f"{kept} is not a file of predictions; move it away, and a new one is begun"


def test_a_folder_that_cannot_be_written_does_not_stop_a_lesson(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.parent.write_text("a file where the folder should be")
    monkeypatch.setattr("ftp.lab.predictions._predictions", lambda path: {})
    predict("k", 1)
    out = capsys.readouterr().out
    assert out.startswith("Your prediction could not be kept: ")
    assert out.endswith("✎ you expect: 1 (50 % sure)\n")


def test_a_claim_that_does_not_hold_stops_the_cell(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    claim("a tensor can be true", torch.tensor(True))
    with pytest.raises(AssertionError, match=r"^this does not hold: the sky is green$"):
        claim("the sky is green", torch.tensor(False))
    claim("so can a recorded number", True, live=False)
    said = "✓ a tensor can be true · checked live\n✓ so can a recorded number · computed from recorded runs\n"
    assert capsys.readouterr().out == said


def test_at_full_scale_a_claim_about_own_runs_may_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Only for runs that were trained there: with recorded runs a claim holds at both scales, or it is an error."""
    monkeypatch.setattr(lesson, "_trained", set())
    monkeypatch.setenv("FTP_STORE", str(tmp_path / "runs.db"))
    monkeypatch.setenv("FTP_SCALE", "full")
    lesson.runs("few_steps", method="ftp", seed=0)
    with pytest.raises(AssertionError):
        claim("the sky is green", False)
    (tmp_path / "runs.db").mkdir()
    with pytest.raises(LabError):  # it is asked to train, and cannot: a folder in the place of the store
        lesson.runs("few_steps", method="ftp", seed=0, train=True)
    claim("the sky is green", False)
    claim("the sky is blue", True)
    assert capsys.readouterr().out == "✗ not at full scale: the sky is green\n✓ the sky is blue · checked live\n"


def test_begin_says_where_and_how_long(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lesson, "_probe", lambda: 2 * lesson.PROBE_SECONDS)
    monkeypatch.setenv("FTP_SCALE", "quick")
    begin("01", seconds=60)
    assert capsys.readouterr().out.endswith("· scale quick · all cells together take about 2 min here\n")
    monkeypatch.setenv("FTP_SCALE", "full")
    begin("01", seconds=60, full=600)
    assert capsys.readouterr().out.endswith("about 20 min here, less with a GPU; what is trained is GPU-sized\n")
    monkeypatch.setenv("FTP_SCALE", "huge")
    with pytest.raises(LabError, match="FTP_SCALE is 'huge'"):
        begin("01", seconds=60)


def test_in_a_notebook_machine_lines_are_html(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[Any] = []
    display = types.SimpleNamespace(display=lambda data, raw: shown.append((data, raw)))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: 1, display=display))
    predictions.note("2 threads & more")
    assert shown == [({"text/html": "<small>2 threads &amp; more</small>"}, True)]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("seeds", "said"),
    [(None, "nothing random"), (3, "seed 3"), ([4], "seed 4"), ([1, 5], "seeds 1, 5"), (range(10), "seeds 0-9")],
)
def test_a_card_says_how_a_figure_was_made(seeds: Any, said: str) -> None:
    text = card(figure("A title"), seeds=seeds, live=False).layout.annotations[-1].text
    first, threads, torch_version, ftp_version, mode = text.split(" · ")
    assert (first, mode) == (said, "replayed")
    assert threads.endswith(("thread", "threads"))
    assert torch_version.startswith("torch 2")
    assert ftp_version.startswith("ftp ")


def test_a_card_lies_inside_the_figure_whatever_the_figure() -> None:
    import plotly.graph_objects as go

    for fig in (figure("A title", height=300), go.Figure()):
        before = fig.layout.height or 440
        note = card(fig).layout.annotations[-1]
        assert fig.layout.height == before + lesson.CARD
        assert -fig.layout.margin.b < note.yshift - 11 < note.yshift < 0  # the text hangs below its point


def test_a_figure_has_its_own_paper_and_no_default_template() -> None:
    fig = figure("Two", "x", "y", panels=("left", "right"))
    assert fig.layout.paper_bgcolor == fig.layout.plot_bgcolor == "#FFFFFF"
    assert "data" not in fig.layout.template.to_plotly_json() or not fig.layout.template.data.to_plotly_json()
    assert (fig.layout.xaxis2.anchor, fig.layout.yaxis2.anchor) == ("y2", "x2")
    assert fig.layout.xaxis.domain[1] < fig.layout.xaxis2.domain[0]
    assert (fig.layout.yaxis.title.text, fig.layout.yaxis2.title.text) == ("y", "")


def test_a_band_goes_from_the_lowest_seed_to_the_highest() -> None:
    fig = figure("Two", panels=("left", "right"))
    band(fig, [1, 2], [[0.0, 1.0], [2.0, 4.0]], "ours", lesson.BLUE, panel=2)
    around, middle = fig.data
    assert (around.x, around.y) == ((1, 2, 2, 1), (1.0, 4.0, 2.0, 0.0))
    assert (middle.x, middle.y, middle.name) == ((1, 2), (0.5, 3.0), "ours")
    assert {around.xaxis, middle.xaxis} == {"x2"}
    assert not around.showlegend
    assert not middle.showlegend


def test_lessons_are_imported_without_torch() -> None:
    code = "import sys, ftp.lab.lesson; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_a_share_is_not_a_percentage() -> None:
    with pytest.raises(LabError, match=r"sure is 0.8, less than one percent; it is a percentage: write sure=80"):
        predict("01.coin", "heads", sure=0.8)
