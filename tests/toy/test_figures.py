"""Every figure draws, or says in a sentence why not; every form of the table knows that a small angle is good."""

import csv
import io
import re
from dataclasses import replace

import pytest

from ftp.lab.figures import FIGURES, WiseCurve
from ftp.lab.record import LabError, RunRecord, result_of
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.table import Row, rows, to_csv, to_latex, to_markdown
from ftp.lab.wise import wise

DRAWN = {
    *("constraint_final", "constraint_growth", "constraint_heat", "curves", "distance", "paper_table"),
    "differences",
    "severity_curves",
    "training",
}
REFUSED = {
    "id_ood": "no run has both an ID and an OOD score; choose runs of a world with shifts",
    **dict.fromkeys(
        ("task_accuracy", "task_gamma", "task_matrix"),
        "no run learned tasks in a row; choose runs of a world with tasks",
    ),
    "wise_curve": "the world toy has no shifts, so there is no OOD for WiSE to win; choose another world",
}


def data(name: str, runs: dict[str, RunRecord], store: Store) -> RunRecord | list[RunRecord] | list[WiseCurve]:
    if FIGURES[name].needs in ("one", "task run"):
        return runs["ftp"]
    return [wise(runs["ftp"], store)] if FIGURES[name].needs == "wise" else list(runs.values())


def test_every_figure_is_here() -> None:
    assert {*DRAWN, *REFUSED} == set(FIGURES)


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_a_figure_that_draws(name: str, runs: dict[str, RunRecord], trained: Store) -> None:
    given = data(name, runs, trained)
    for dark in (False, True):
        text = FIGURES[name].draw(given, dark=dark).to_json()
        assert "OOD" not in text
        assert "accuracy" not in text.lower()
    assert FIGURES[name].csv(given).count("\n") > 1


@pytest.mark.parametrize("name", REFUSED)
def test_a_figure_that_does_not_fit(name: str, runs: dict[str, RunRecord], trained: Store) -> None:
    with pytest.raises(LabError) as error:
        FIGURES[name].draw(data(name, runs, trained))
    assert str(error.value) == REFUSED[name]


@pytest.mark.parametrize(("name", "axis"), [("training", "yaxis2"), ("severity_curves", "yaxis")])
def test_an_axis_says_the_metric_its_unit_and_its_direction(
    name: str, axis: str, runs: dict[str, RunRecord], trained: Store
) -> None:
    drawn = FIGURES[name].draw(data(name, runs, trained))
    assert drawn.layout[axis].title.text == "angle (°, lower is better)"


def test_a_run_of_two_phases_is_drawn_to_its_end(runs: dict[str, RunRecord], trained: Store) -> None:
    drawn = FIGURES["training"].draw(runs["ftp"])
    assert max(drawn.data[0].x) == 8
    assert drawn.layout.xaxis.range[1] > 8
    assert [line.name for line in drawn.data if line.yaxis == "y2"] == ["ID", "ID, final"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Fine-tuning at a low learning rate, a method with a smaller angle, and one with a larger."""
    with Store(tmp_path_factory.mktemp("table") / "runs.db") as store:
        asked = [("finetune", {"lr": 0.02}), ("mars_sp", {"lr": 0.1}), ("linear_probe", {"lr": 0.02})]
        made = rows(execute(resolve("toy", method, given), store, device="cpu") for method, given in asked)
    assert [row.method for row in made] == ["finetune", "linear_probe", "mars_sp"]
    return made


def test_a_smaller_angle_is_a_gain_and_bold(table: list[Row]) -> None:
    plain, worse, better = table
    assert better.id.mean < plain.id.mean < worse.id.mean
    assert better.id_delta == pytest.approx(100 * (plain.id.mean - better.id.mean) / plain.id.mean)
    assert worse.id_delta < 0 < better.id_delta
    head, _, *lines = to_markdown(table).splitlines()
    assert head == "| Method | ID ↓ | ID Δ (%) | Corr. Avg. ↓ | Time (s/it) ↓ | Seeds |"
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[1].startswith("**") for row in cells] == [False, False, True]
    assert [row[2] for row in cells] == ["0.00", f"{worse.id_delta:.2f}", f"**{better.id_delta:.2f}**"]
    assert re.fullmatch(r"\d+\.\d", cells[0][1])  # one digit, as the world says


def test_latex_has_arrows_and_no_shifts(table: list[Row]) -> None:
    text = to_latex(table)
    assert r"\multicolumn{1}{c}{ID $\downarrow$} & \multicolumn{4}{c}{Statistics}" in text
    assert "OOD" not in text
    assert rf"MARS-SP & \textbf{{{table[2].id.mean:.1f}}} & \textbf{{{table[2].id_delta:.2f}}}" in text
    assert f"$-${-table[1].id_delta:.2f}" in text


def test_csv_has_numbers_with_their_signs(table: list[Row]) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [float(line["id_delta"]) for line in lines] == pytest.approx([row.id_delta for row in table], rel=1e-5)
    assert [float(line["id"]) for line in lines] == pytest.approx([row.id.mean for row in table], rel=1e-5)
    assert {line["ood_avg"] for line in lines} == {""}


def test_a_gain_is_against_fine_tuning_in_the_same_world_with_the_same_options(runs: dict[str, RunRecord]) -> None:
    """Rougher pictures are another task, as fewer labels are."""
    rough = replace(runs["ftp"], settings=resolve("toy", "ftp", {"noise": 0.5}))
    made = {row.name: row for row in rows([runs["finetune"], runs["ftp"], replace(rough, result=result_of(rough))])}
    assert made["FTP (noise=0.02)"].id_delta < 0
    assert str(made["FTP (noise=0.5)"].id_delta) == "nan"


def test_runs_of_two_worlds_are_never_in_one_table(trained: Store, runs: dict[str, RunRecord]) -> None:
    digits = trained.load(trained.runs(world="digits")[0].run_id)
    with pytest.raises(LabError) as error:
        rows([digits, runs["ftp"]])
    assert str(error.value) == "the runs are from the worlds digits, toy; compare runs of one world"
