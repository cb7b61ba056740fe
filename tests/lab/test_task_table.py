"""The table of tasks in a row: its numbers, its differences, its three forms, and what is said with it."""

import csv
import dataclasses
import io

import pytest

from ftp.lab.continual import matrix_so_far
from ftp.lab.figures import FIGURES, draw
from ftp.lab.figures.data import example, example_in_tasks
from ftp.lab.record import LabError, RunRecord, result_of
from ftp.lab.task_table import task_table, to_csv, to_latex, to_markdown


def joint(seed: int) -> RunRecord:
    """All tasks at once: one phase, and the same splits."""
    run = example_in_tasks("finetune", seed)
    settings = dataclasses.replace(run.settings, options={"tasks": 1})
    run = dataclasses.replace(run, settings=settings, phases=("all",), evals=run.evals[-1:])
    return dataclasses.replace(run, result=result_of(run))


RUNS = [
    *(example_in_tasks(method, seed) for method in ("ftp", "finetune") for seed in range(3)),
    *(joint(seed) for seed in range(3)),
]


def test_numbers_and_paired_differences() -> None:
    plain, ftp, once = task_table(RUNS).rows
    assert (plain.method, ftp.method) == ("finetune", "ftp")  # the order of Tab. 5; what is no stream comes last
    # R falls by 10 a task: (1/2) (10/2 + (20 + 10)/3) = 7.5; the drops are 10 each
    assert ftp.forgetting.mean == pytest.approx(7.5)
    assert ftp.drops.mean == pytest.approx(10)
    assert ftp.accuracy.mean == pytest.approx(81)
    assert ftp.accuracy.std == pytest.approx(1)
    assert (plain.accuracy_gap.mean, plain.accuracy_gap.verdict) == (pytest.approx(-25), -1)
    assert plain.forgetting_gap.mean == pytest.approx(15)
    assert once.accuracy.mean == pytest.approx(plain.accuracy.mean)
    assert once.forgetting.mean != once.forgetting.mean  # NaN: one task has nothing to forget


def test_few_seeds_cannot_tell() -> None:
    rows = task_table([example_in_tasks("finetune"), example_in_tasks("ftp", 0), example_in_tasks("ftp", 1)]).rows
    assert rows[0].accuracy_gap.verdict == 0
    assert "≈ -25.00" in to_markdown(task_table([example_in_tasks("finetune"), example_in_tasks()]))


def test_three_forms_say_formula_and_differences() -> None:
    table = task_table(RUNS)
    text = to_markdown(table)
    assert text.startswith("| Method | A (%) | F_N (%) ↓ | Drops (%) ↓ | A minus FTP's | F_N minus FTP's |")
    assert "| FTP | **81.00** (1.00) | **7.50** (0.00) | **10.00** (0.00) | - | - |" in text
    assert "misprint" in text
    assert "CODA-Prompt" in text
    latex = to_latex(table)
    assert latex.count("\\\\") == 4
    assert "% F_N = 1/(N-1)" in latex
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [line["f_n"] for line in lines] == ["22.5", "7.5", ""]
    assert "nan" not in text + latex + to_csv(table)


def test_runs_without_tasks_are_refused() -> None:
    with pytest.raises(LabError) as caught:
        task_table([example()])
    assert str(caught.value) == "no run learned tasks in a row; choose runs of a world with tasks"


def test_a_run_on_its_way_has_the_rows_of_the_tasks_that_have_ended() -> None:
    run = example_in_tasks()
    assert matrix_so_far(dataclasses.replace(run, status="running", evals=run.evals[:2])) == [[90.0], [80.0, 90.0]]
    assert matrix_so_far(dataclasses.replace(run, evals=())) == []


def test_the_pictures_show_the_same_numbers() -> None:
    streams = [run for run in RUNS if len(run.phases) > 1]
    (heat,) = draw("task_matrix", streams[0]).data
    assert [list(row) for row in heat.z] == [[90.0, None, None], [80.0, 90.0, None], [70.0, 80.0, 90.0]]
    last = [line["score"] for line in FIGURES["task_accuracy"].table(streams) if line["after"] == "third"]
    assert sum(last[:3]) / 3 == pytest.approx(56)  # Vanilla FT's A
    gammas = FIGURES["task_gamma"].table(streams)
    assert {line["method"] for line in gammas} == {"FTP"}
    assert gammas[0]["seeds"] == 3
