"""The paper's table: its arithmetic against the published numbers, its order, its three forms, its errors."""

import csv
import dataclasses
import io
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable

import pytest
from lab.records import SHIFTS, make, many

from ftp.lab import methods
from ftp.lab.record import EvalEvent, LabError, RunRecord, Settings
from ftp.lab.summary import Measures, Metric
from ftp.lab.table import ACCURACY, Row, columns, groups, in_metric, rows, spread, to_csv, to_latex, to_markdown

DOMAINS = ("sketch", "painting", "infograph", "clipart")
# Tab. 1 and Tab. 2 as printed: ID, four shifts | OOD avg., ID Δ, OOD Δ
TAB_1 = """
finetune        81.99 31.52 42.89 18.51 44.98 | 34.47   0.00   0.00
linear_probe    73.01 24.10 39.56 12.27 30.38 | 26.58 -10.96 -22.90
partial_fusion  78.27 27.72 39.74 15.56 38.18 | 30.30  -4.55 -12.11
l2_sp           81.51 34.91 45.76 18.97 45.29 | 36.23  -0.59   5.09
mars_sp         81.89 34.44 45.05 19.97 46.36 | 36.45  -0.13   5.74
lp_ft           82.92 34.50 45.42 20.12 47.11 | 36.79   1.13   6.72
tpgm            82.66 35.35 46.20 20.13 45.75 | 36.86   0.82   6.91
ftp             82.17 36.26 46.58 20.67 46.97 | 37.62   0.22   9.13
"""
TAB_2 = """
finetune        80.93 31.81 41.02 20.29 43.59 | 34.18   0.00   0.00
linear_probe    52.56 20.05 24.92 19.18 21.15 | 21.33 -35.05 -37.60
partial_fusion  78.27 36.77 42.13 24.71 43.31 | 36.73  -3.29   7.46
l2_sp           82.07 36.67 45.62 22.97 47.78 | 38.26   1.40  11.94
mars_sp         77.19 25.33 33.43 14.81 39.20 | 28.19  -4.62 -17.53
lp_ft           80.82 34.85 44.03 22.23 46.13 | 36.81  -0.14   7.69
tpgm            83.64 38.78 43.11 28.70 48.01 | 39.65   3.34  16.01
ftp             84.22 37.66 46.11 28.33 47.67 | 39.94   4.05  16.87
"""
ROUNDING = 0.03  # the printed numbers were rounded before they are used here


def published(text: str) -> tuple[list[RunRecord], dict[str, list[float]]]:
    runs: list[RunRecord] = []
    printed = {}
    for line in text.strip().splitlines():
        left, right = line.split("|")
        method, *numbers = left.split()
        accuracy = dict(zip(("id", *DOMAINS), map(float, numbers), strict=True))
        runs.append(ended(len(runs), Settings("domainnet", method), accuracy))
        printed[method] = [float(number) for number in right.split()]
    return runs, printed


def ended(number: int, settings: Settings, values: dict[str, float], metric: Metric = ACCURACY) -> RunRecord:
    """A finished run that has nothing but its final scores: at home, and under shifts."""
    roles = {name: "home" if name == "id" else "shift" for name in values}
    final = EvalEvent(1, {metric.name: values}, final=True)
    return RunRecord(f"{number:016x}", settings, "done", evals=(final,), measures=Measures((metric,), roles))


def changed(run: RunRecord, **accuracy: float) -> RunRecord:
    """The same run with other final accuracies; a split that it did not have is a shift."""
    scores = {**run.evals[-1].scores, "accuracy": {**run.evals[-1].main, **accuracy}}
    final = dataclasses.replace(run.evals[-1], scores=scores)
    roles = dict(run.measures.roles)
    measures = Measures(run.measures.metrics, {**roles, **{name: "shift" for name in accuracy if name not in roles}})
    return dataclasses.replace(run, evals=(*run.evals[:-1], final), measures=measures)


@pytest.mark.parametrize("text", [TAB_1, TAB_2])
def test_averages_and_deltas_are_the_published_ones(text: str) -> None:
    runs, printed = published(text)
    for row in rows(reversed(runs)):
        average, id_delta, ood_delta = printed[row.method]
        assert row.ood_avg.mean == pytest.approx(average, abs=0.0051)
        assert row.id_delta == pytest.approx(id_delta, abs=ROUNDING)
        assert row.ood_delta == pytest.approx(ood_delta, abs=ROUNDING)


@pytest.mark.parametrize("text", [TAB_1, TAB_2])
def test_the_order_is_the_papers(text: str) -> None:
    runs, printed = published(text)
    assert [row.method for row in rows(reversed(runs))] == list(printed)


def test_the_names_are_the_papers() -> None:
    names = {row.method: row.name for row in rows(many(seeds=[0]))}
    assert names == {name: methods.method(name).title for name in names}
    assert names["finetune"] == "Vanilla FT"
    assert names["linear_probe"] == "Linear Prob."
    assert set(names) == set(methods.PAPER)


def test_the_best_of_each_column_is_what_the_paper_prints_bold() -> None:
    runs, printed = published(TAB_1)
    shown = columns(rows(runs))
    bold = {name: [m for m, cell in zip(printed, cells, strict=True) if cell.best] for name, cells in shown.items()}
    assert bold["ID"] == bold["ID Δ (%)"] == bold["clipart"] == ["lp_ft"]
    assert bold["sketch"] == bold["painting"] == bold["infograph"] == ["ftp"]
    assert bold["OOD Avg."] == bold["OOD Δ (%)"] == ["ftp"]
    assert bold["Method"] == bold["Time (s/it) ↓"] == bold["Seeds"] == []
    assert "Corr. Avg." not in shown


def test_mean_and_sample_deviation_over_seeds() -> None:
    runs = many(["ftp"])
    (row,) = rows(runs)
    values = [run.evals[-1].main["sketch"] for run in runs]
    assert row.ood["sketch"].mean == pytest.approx(sum(values) / 3)
    assert row.ood["sketch"].std == pytest.approx(math.sqrt(sum((v - sum(values) / 3) ** 2 for v in values) / 2))
    averages = [statistics.fmean(run.evals[-1].main[s] for s in SHIFTS) for run in runs]
    assert row.ood_avg.mean == pytest.approx(statistics.fmean(averages))
    assert row.ood_avg.std == pytest.approx(statistics.stdev(averages))
    assert row.corruption_avg.mean == pytest.approx(statistics.fmean(run.result["corruption_avg"] for run in runs))
    assert row.seconds.mean == pytest.approx(statistics.fmean(run.result["seconds_per_step"] for run in runs))
    assert row.seeds == 3


def test_one_seed_has_no_deviation() -> None:
    assert math.isnan(rows([make()])[0].id.std)
    assert "(" not in to_markdown(rows([make()])).splitlines()[2]


def test_a_result_is_enough() -> None:
    light = [dataclasses.replace(run, points=(), evals=()) for run in many(["finetune", "ftp"])]
    assert to_csv(rows(light)) == to_csv(rows(many(["finetune", "ftp"])))


def test_without_fine_tuning_there_is_no_delta() -> None:
    table = rows(many(["l2_sp", "ftp"]))
    assert all(math.isnan(row.id_delta) and math.isnan(row.ood_delta) for row in table)
    assert [cell.text for cell in columns(table)["OOD Δ (%)"]] == ["-", "-"]


def test_other_labels_are_another_task() -> None:
    full, few = make("finetune"), make("ftp", labels=0.1)
    assert [math.isnan(row.id_delta) for row in rows([full, few])] == [False, True]
    assert not any(math.isnan(row.id_delta) for row in rows([full, few, make("finetune", labels=0.1)]))


def test_delta_is_taken_from_the_nearest_fine_tuning() -> None:
    low, high = (changed(make("finetune", lr=lr), id=value) for lr, value in ((0.01, 50.0), (0.1, 80.0)))
    mine = changed(make("ftp", lr=0.1), id=88.0)
    assert rows([low, high, mine])[-1].id_delta == pytest.approx(10.0)


def test_several_settings_of_a_method_are_several_rows() -> None:
    table = rows([make("ftp", seed, k=k) for k in (0.0, 1.0) for seed in (0, 1)] + [make("finetune")])
    assert [(row.name, row.seeds) for row in table] == [("Vanilla FT", 1), ("FTP (k=0.0)", 2), ("FTP (k=1.0)", 2)]


def test_of_equal_runs_the_newer_counts() -> None:
    old = changed(make(), id=1.0)
    new = dataclasses.replace(changed(make(), id=2.0), ended=2e9)
    for runs in ([old, new], [new, old]):
        (row,) = rows(runs)
        assert (row.seeds, row.id.mean) == (1, 2.0)


def test_unknown_methods_come_last_under_their_own_name() -> None:
    mine = dataclasses.replace(make("ftp"), settings=Settings("digits", "my_own"))
    assert [row.name for row in rows([mine, make("ftp")])] == ["FTP", "my_own"]


def test_what_is_no_number_is_a_dash() -> None:
    table = rows([changed(make("finetune"), sketch=math.nan), make("ftp")])
    shown = columns(table)
    assert shown["sketch"][0].text == shown["OOD Avg."][0].text == shown["OOD Δ (%)"][1].text == "-"
    assert not any(cell.best for cell in shown["sketch"])  # there is nothing it is better than
    assert not any(cell.best for cell in shown["OOD Avg."])


def test_ties_are_all_best_and_equals_are_not() -> None:
    three = [changed(make(m), id=v) for m, v in (("finetune", 97.001), ("l2_sp", 97.002), ("ftp", 96.0))]
    assert [cell.best for cell in columns(rows(three))["ID"]] == [True, True, False]
    assert not any(cell.best for cell in columns(rows(three[:2]))["ID"])


def test_where_lower_is_better_a_gain_is_still_positive() -> None:
    angle = Metric("angle", "°", higher_is_better=False, digits=1, high=180.0)
    values = {"finetune": {"id": 20.0, "dusk": 30.0}, "ftp": {"id": 22.0, "dusk": 24.0}}
    runs = [ended(i, Settings("dense", name), scores, angle) for i, (name, scores) in enumerate(values.items())]
    table = rows(runs)
    assert [row.id_delta for row in table] == pytest.approx([0.0, -10.0])
    assert [row.ood_delta for row in table] == pytest.approx([0.0, 20.0])
    shown = columns(table)
    assert list(shown)[:4] == ["Method", "ID ↓", "dusk ↓", "OOD Avg. ↓"]
    assert [(cell.text, cell.best) for cell in shown["ID ↓"]] == [("20.0", True), ("22.0", False)]
    assert [(cell.text, cell.best) for cell in shown["dusk ↓"]] == [("30.0", False), ("24.0", True)]
    assert [cell.best for cell in shown["OOD Δ (%)"]] == [False, True]


def test_a_world_without_shifts_has_no_columns_for_them() -> None:
    runs = [ended(i, Settings("plain", name), {"id": 90.0 + i}) for i, name in enumerate(("finetune", "ftp"))]
    assert list(columns(rows(runs))) == ["Method", "ID", "ID Δ (%)", "Time (s/it) ↓", "Seeds"]
    for form in (to_markdown, to_latex, to_csv):
        assert "nan" not in form(rows(runs))


def test_runs_with_different_metrics_are_not_compared() -> None:
    runs = [ended(i, Settings("plain", "ftp", i), {"id": 9.0}, Metric(m)) for i, m in enumerate(("accuracy", "miou"))]
    with pytest.raises(LabError) as caught:
        rows([runs[0], dataclasses.replace(runs[1], settings=Settings("plain", "finetune"))])
    assert str(caught.value) == "the runs measure accuracy and miou; compare runs with one metric"
    with pytest.raises(LabError) as caught:
        rows(runs)  # two seeds of one method
    assert str(caught.value) == "the runs measure accuracy and miou; compare runs with one metric"


def test_no_minus_zero() -> None:
    pair = [changed(make("finetune"), id=97.0), changed(make("ftp"), id=96.9999)]
    assert [cell.text for cell in columns(rows(pair))["ID Δ (%)"]] == ["0.00", "0.00"]


def test_markdown() -> None:
    table = rows(many())
    head, rule, *body = to_markdown(table).splitlines()
    assert head.count("|") == rule.count("|") == 14
    assert all(line.count("|") == 14 for line in body)
    assert body[0].startswith("| Vanilla FT | ")
    assert body[-1].startswith("| FTP | ")
    for name, cells in columns(table).items():
        place = [part.strip() for part in head.split("|")].index(name)
        for line, cell in zip(body, cells, strict=True):
            text = line.split("|")[place].strip()
            assert (
                text == f"**{cell.text}** {cell.std}".strip()
                if cell.best
                else text == f"{cell.text} {cell.std}".strip()
            )


def test_latex() -> None:
    odd = {"a_b & 50% #1": 60.0, "{x}~^$": 70.0, "back\\slash": 80.0}
    pair = [ended(i, Settings(method=m), {"id": 90.0, **odd}) for i, m in enumerate(("l2_sp", "ftp"))]
    for table in (rows(many()), rows(pair)):
        text = to_latex(table)
        count = len(columns(table))
        assert f"\\begin{{tabular}}{{l{'r' * (count - 1)}}}" in text
        lines = [line for line in text.splitlines() if line.endswith(r"\\")]
        spans = [1 + sum(int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", lines[0])), *[count] * (len(lines) - 1)]
        separators = [len(re.findall(r"(?<!\\)&", line)) for line in lines]
        assert spans[0] == count
        assert separators[1:] == [n - 1 for n in spans[1:]]
        bare = re.sub(r"\\[{}]", "", text)
        assert bare.count("{") == bare.count("}")
        assert text.index("\\toprule") < text.index("\\midrule") < text.index("\\bottomrule")
        assert text.splitlines()[-4] == "\\midrule"  # before FTP
        assert not re.search(r"(?<!\\)[#%]", text.split("\n", 1)[1])  # the first line is a comment
        assert "Δ" not in text
    assert r"a\_b \& 50\% \#1" in text
    assert r"\{x\}\textasciitilde{}\textasciicircum{}\$" in text
    assert r"back\textbackslash{}slash" in text
    assert "L2-SP" in text
    best = to_latex(rows(many(["finetune", "ftp"])))
    assert r"\textbf{" in best
    assert "$-$0." in best


def test_csv_gives_the_numbers_back() -> None:
    table = rows(many(["finetune", "ftp"]))
    read = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [line["method"] for line in read] == ["finetune", "ftp"]
    for line, row in zip(read, table, strict=True):
        assert float(line["sketch"]) == pytest.approx(row.ood["sketch"].mean, rel=1e-5)
        assert float(line["ood_avg_std"]) == pytest.approx(row.ood_avg.std, rel=1e-5)
        assert float(line["ood_delta"]) == pytest.approx(row.ood_delta, rel=1e-5)
        assert float(line["seconds_per_step"]) == pytest.approx(row.seconds.mean, rel=1e-5)
    assert next(csv.DictReader(io.StringIO(to_csv(rows([make()])))))["id_std"] == ""


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "no run was given; give at least one finished run"),
        (
            [make("ftp"), make("ftp", 1, world="captions")],
            "the runs are from the worlds captions, digits; compare runs of one world",
        ),
        (
            [make("ftp"), make("tpgm", 2, status="stopped", upto=10)],
            f"run {make('tpgm', 2).run_id} (tpgm, seed 2) is stopped; leave it out, or run it to its end first",
        ),
        (
            [make("finetune"), changed(make("ftp"), fog=1.0)],
            f"run {make('ftp').run_id} (ftp, seed 0) has the shifts optdigits, typeset, texture, colour, sketch, fog "
            "and others have optdigits, typeset, texture, colour, sketch; compare runs with the same shifts",
        ),
        (
            [dataclasses.replace(make("ftp"), evals=(), result=None)],
            f"run {make('ftp').run_id} is done and has no final evaluation; run it to its end first",
        ),
    ],
)
def test_errors_are_one_sentence(runs: list[RunRecord], message: str) -> None:
    with pytest.raises(LabError) as caught:
        rows(runs)
    assert str(caught.value) == message


@pytest.mark.parametrize("form", [columns, to_markdown, to_latex, to_csv])
def test_an_empty_table_has_no_form(form: Callable[[list[Row]], object]) -> None:
    with pytest.raises(LabError) as caught:
        form([])
    assert str(caught.value) == "the table has no rows; give at least one finished run"


def test_groups_keep_the_runs() -> None:
    (group,) = groups(reversed(many(["ftp"])))
    assert [run.settings.seed for run in group.records] == [0, 1, 2]
    assert group.results[1]["seed"] == 1
    assert math.isnan(spread([]).mean)


def test_no_torch_is_loaded() -> None:
    code = "import sys, ftp.lab.table as t; t.title('tpgm'); print('torch' in sys.modules, 'plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"


def test_another_metric_can_be_the_one_that_is_shown() -> None:
    angle, root = (Metric(name, "°", higher_is_better=False) for name in ("mean angle", "angle RMSE"))
    measures = Measures((angle, root), {"id": "home", "night": "shift"})
    runs = []
    for n, (method, factor) in enumerate((("finetune", 1.0), ("ftp", 0.5))):
        scores = {"mean angle": {"id": 10 * factor, "night": 20 * factor}}
        scores["angle RMSE"] = {"id": 16 * factor, "night": 24.0}
        final = EvalEvent(1, scores, corruptions={"fog": (11.0,) * 5}, final=True)
        runs.append(RunRecord(str(n), Settings("rooms", method), "done", evals=(final,), measures=measures))
    means, roots = (rows(in_metric(runs, name)) for name in ("mean angle", "angle RMSE"))
    assert means == rows(runs)
    assert [row.id.mean for row in roots] == [16.0, 8.0]
    assert (roots[1].id_delta, roots[1].ood_delta) == (50.0, 0.0)  # lower is better: half of it is a gain
    assert "Corr. Avg. ↓" in columns(means)
    assert "Corr. Avg. ↓" not in columns(roots)  # damaged pictures were scored in the main metric alone
    with pytest.raises(LabError, match=r"metric is 'median'; run 0 \(finetune, seed 0\) has mean angle, angle RMSE"):
        in_metric(runs, "median")
