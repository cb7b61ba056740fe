"""The paper's own numbers were carried over without a slip: its averages and changes follow from its scores."""

import pytest

from ftp.lab import methods, worlds
from ftp.lab.published import meant, published
from ftp.lab.worlds import default

TABLES = ("Tab. 1", "Tab. 2")


def value(cell: str) -> float:
    return float(cell.replace("*", "").split(" ")[0])


@pytest.mark.parametrize("number", TABLES)
def test_averages_and_changes_follow_from_the_scores(number: str) -> None:
    rows = published(number).rows
    home, *_, average = map(value, rows["finetune"][:6])
    for method, cells in rows.items():
        assert method in methods.names()
        scores = list(map(value, cells[:8]))
        assert scores[5] == pytest.approx(sum(scores[1:5]) / 4, abs=0.0051)
        assert scores[6] == pytest.approx(100 * (scores[0] / home - 1), abs=0.02)
        assert scores[7] == pytest.approx(100 * (scores[5] / average - 1), abs=0.04)


@pytest.mark.parametrize("number", TABLES)
def test_the_best_ood_average_is_bold_as_in_the_paper(number: str) -> None:
    column = {method: cells[5] for method, cells in published(number).rows.items()}
    assert [method for method, cell in column.items() if "*" in cell] == [max(column, key=lambda m: value(column[m]))]


def test_a_world_names_the_tables_that_it_stands_for() -> None:
    assert [table.number for table in meant(worlds.world(default()).paper)] == list(TABLES)
    assert meant("Fig. 5") == []
