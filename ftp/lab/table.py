"""The paper's table (Tab. 1, 2, 4) from finished runs: the world's main metric, mean (spread) over seeds.

The spread is the sample standard deviation (divided by the number of seeds minus 1); one seed has none.
A Δ is relative, as in the paper: Δ = 100 (score / score of plain fine-tuning - 1), of the means over seeds; where
lower is better its sign is turned, so that a positive Δ is always a gain.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ftp.lab import formats, methods, worlds
from ftp.lab.record import LabError, RunRecord, Settings, Value, result_of
from ftp.lab.summary import Metric

MISSING = "-"
ACCURACY = Metric("accuracy")  # of rows that are made by hand
DELTA = Metric("Δ")  # in percent, higher is better


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation; NaN where there is none."""

    mean: float = math.nan
    std: float = math.nan


def spread(values: Iterable[float | None]) -> Spread:
    """Mean and sample standard deviation; one value that is no number makes the mean none.

    >>> spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, std=1.0)
    >>> spread([1.0, None])
    Spread(mean=nan, std=nan)
    """
    numbers = [math.nan if value is None else float(value) for value in values]
    if not numbers or not all(map(math.isfinite, numbers)):
        return Spread()
    return Spread(statistics.fmean(numbers), statistics.stdev(numbers) if len(numbers) > 1 else math.nan)


@dataclass(frozen=True)
class Group:
    """Finished runs that differ in nothing but the seed. `name` is for people, such as "FTP" or "FTP (k=0.5)"."""

    name: str
    records: tuple[RunRecord, ...]
    results: tuple[Mapping[str, Any], ...]  # as `result_of` gives them

    @property
    def settings(self) -> Settings:
        return self.records[0].settings

    @property
    def method(self) -> str:
        return self.settings.method


@dataclass(frozen=True)
class Row:
    """One line of the table, in the main metric of its world; a Δ is NaN without a run of plain fine-tuning."""

    method: str
    name: str
    seeds: int
    id: Spread
    ood: Mapping[str, Spread]
    ood_avg: Spread
    corruption_avg: Spread
    seconds: Spread  # of a training step
    id_delta: float = math.nan
    ood_delta: float = math.nan
    metric: Metric = ACCURACY
    robustness: Spread = Spread()  # effective robustness, where the world has a line of ordinary models


@dataclass(frozen=True)
class Cell:
    """One field as text: the number, its spread or "", and whether it is the best of its column."""

    text: str
    std: str = ""
    best: bool = False


def groups(records: Iterable[RunRecord]) -> list[Group]:
    """Runs put together by method and settings, in the paper's order; unknown methods come last.

    Of two runs with equal settings and seed (made by different code or data) the newer one counts.

    >>> groups([])
    Traceback (most recent call last):
    ftp.lab.record.LabError: no run was given; give at least one finished run
    """
    by_settings: dict[str, dict[int, RunRecord]] = {}
    for record in records:
        if record.status != "done":
            raise LabError(f"{called(record)} is {record.status}; leave it out, or run it to its end first")
        seeds = by_settings.setdefault(str(sorted({**record.settings.as_dict(), "seed": 0}.items())), {})
        other = seeds.setdefault(record.settings.seed, record)
        seeds[record.settings.seed] = max(other, record, key=lambda r: r.ended or r.created)
    if not by_settings:
        raise LabError("no run was given; give at least one finished run")
    parts = [tuple(seeds[seed] for seed in sorted(seeds)) for seeds in by_settings.values()]
    places = sorted({part[0].settings.world for part in parts})
    if len(places) > 1:
        raise LabError(f"the runs are from the worlds {', '.join(places)}; compare runs of one world")
    metrics = sorted({record.measures.main.name for part in parts for record in part})
    if len(metrics) > 1:
        raise LabError(f"the runs measure {' and '.join(metrics)}; compare runs with one metric")
    order = [*methods.names(), *(part[0].settings.method for part in parts)]
    parts.sort(key=lambda part: order.index(part[0].settings.method))
    names = _names([part[0].settings for part in parts])
    return [Group(name, part, tuple(map(_result, part))) for name, part in zip(names, parts, strict=True)]


def title(method: str) -> str:
    """A method's name in the paper; a method that is not known keeps its own.

    >>> title("finetune"), title("mine")
    ('Vanilla FT', 'mine')
    """
    return methods.method(method).title if method in methods.names() else method


def called(record: RunRecord) -> str:
    """How messages name a run.

    >>> called(RunRecord("0123456789abcdef", Settings(method="tpgm", seed=2)))
    'run 0123456789abcdef (tpgm, seed 2)'
    """
    return f"run {record.run_id} ({record.settings.method}, seed {record.settings.seed})"


def differences(all_settings: Sequence[Settings]) -> dict[str, list[Value | None]]:
    """The settings in which runs differ, and what each of them has; None where a method has no such setting.

    >>> differences([Settings(method="ftp", seed=1), Settings(method="ftp", seed=2)])
    {'seed': [1, 2]}
    """
    values = [settings.as_dict() for settings in all_settings]
    names = dict.fromkeys(name for one in values for name in one)
    columns_of = {name: [one.get(name) for one in values] for name in names}
    return {name: column for name, column in columns_of.items() if any(value != column[0] for value in column)}


def rows(
    records: Iterable[RunRecord],
    beyond: Callable[[Group], Iterable[Row]] = lambda group: (),
    line: Callable[[float, float], float] | None = None,
) -> list[Row]:
    """The table's rows. If fine-tuning was run with several settings, a row is compared with the nearest of them.

    beyond: further rows that are made of the runs of a group, such as WiSE; they stand at the end.
    line: effective robustness from the scores at home and on the shifts; see `ftp.lab.robustness`.

    >>> from ftp.lab.figures.data import example
    >>> rows([example("finetune")])[0].ood_avg
    Spread(mean=80.0, std=nan)
    """
    run_groups = groups(records)
    shifts = list(run_groups[0].results[0]["ood"])
    for group in run_groups:
        for record, result in zip(group.records, group.results, strict=True):
            if set(result["ood"]) != set(shifts):
                have = f"{called(record)} has the shifts {', '.join(result['ood'])}"
                raise LabError(f"{have} and others have {', '.join(shifts)}; compare runs with the same shifts")
    bare_rows = [_row(group, shifts, line) for group in run_groups]
    pairs = list(zip(bare_rows, run_groups, strict=True))
    pairs += [(row, group) for group in run_groups for row in beyond(group)]
    return [_with_deltas(row, group, run_groups, bare_rows) for row, group in pairs]


def in_metric(records: Iterable[RunRecord], name: str) -> list[RunRecord]:
    """The same runs with another of their metrics as the main one; damaged pictures, which have no other, left out.

    >>> from ftp.lab.figures.data import example
    >>> [run.measures.main.name for run in in_metric([example()], "accuracy")]
    ['accuracy']
    """
    changed = []
    for record in records:
        by_name = {metric.name: metric for metric in record.measures.metrics}
        if name not in by_name:
            raise LabError(f"metric is {name!r}; {called(record)} has {', '.join(by_name)}")
        if name != record.measures.main.name:
            first = (by_name.pop(name), *by_name.values())
            evals = tuple(replace(event, corruptions={}) for event in record.evals)
            record = replace(record, measures=replace(record.measures, metrics=first), evals=evals)
        changed.append(record)
    return changed


def columns(table: Sequence[Row]) -> dict[str, list[Cell]]:
    """The fields as text, by column; the best of a column is marked, ties too. What no run has, has no column."""
    metric = _filled(table)[0].metric
    arrow = "" if metric.higher_is_better else " ↓"
    out = {"Method": [Cell(row.name) for row in table], f"ID{arrow}": marked([row.id for row in table], metric)}
    out |= {f"{shift}{arrow}": marked([row.ood[shift] for row in table], metric) for shift in table[0].ood}
    shifted = any(math.isfinite(row.ood_avg.mean) for row in table)
    if shifted:
        out[f"OOD Avg.{arrow}"] = marked([row.ood_avg for row in table], metric)
    if any(math.isfinite(row.robustness.mean) for row in table):
        out["Eff. rob."] = marked([row.robustness for row in table], DELTA)
    out["ID Δ (%)"] = marked([Spread(row.id_delta) for row in table], DELTA)
    if shifted:
        out["OOD Δ (%)"] = marked([Spread(row.ood_delta) for row in table], DELTA)
    if any(math.isfinite(row.corruption_avg.mean) for row in table):
        out[f"Corr. Avg.{arrow}"] = marked([row.corruption_avg for row in table], metric)
    out["Time (s/it) ↓"] = [Cell(_number(row.seconds.mean, 3)) for row in table]
    return out | {"Seeds": [Cell(str(row.seeds)) for row in table]}


def to_markdown(table: Sequence[Row]) -> str:
    """The table for a README or a notebook.

    >>> print(to_markdown([Row("ftp", "FTP", 1, Spread(97.2), {}, Spread(87.1), Spread(94.4), Spread(0.069))]))
    | Method | ID | OOD Avg. | ID Δ (%) | OOD Δ (%) | Corr. Avg. | Time (s/it) ↓ | Seeds |
    |:---|---:|---:|---:|---:|---:|---:|---:|
    | FTP | 97.20 | 87.10 | - | - | 94.40 | 0.069 | 1 |
    """
    return markdown_lines(columns(table))


def markdown_lines(shown: Mapping[str, Sequence[Cell]]) -> str:
    """Columns of cells as markdown; `ftp.lab.task_table` has other columns."""
    head = [name.replace("|", r"\|") for name in shown]
    body = [[_markdown(cell) for cell in line] for line in zip(*shown.values(), strict=True)]
    head_line, *lines = [f"| {' | '.join(line)} |" for line in (head, *body)]
    return "\n".join([head_line, f"|:---|{'---:|' * (len(shown) - 1)}", *lines])


def to_latex(table: Sequence[Row]) -> str:
    """The table for a paper; it needs the package booktabs. A line stands before the last method, FTP."""
    shown = columns(table)
    names = [_escape(name) if i > 1 else "" for i, name in enumerate(shown)]  # ID stands in the line above
    over, rules, column = [""], [], 2
    home = _escape(list(shown)[1])
    for name, count in {home: 1, "OOD": len(table[0].ood), "Statistics": len(shown) - 2 - len(table[0].ood)}.items():
        if count:
            over.append(f"\\multicolumn{{{count}}}{{c}}{{{name}}}")
            rules.append(f"\\cmidrule(lr){{{column}-{column + count - 1}}}")
            column += count
    heads = [_line(over), " ".join(rules), _line(names)]
    return latex_lines(shown, [row.method for row in table], heads)


def latex_lines(
    shown: Mapping[str, Sequence[Cell]], methods_of_rows: Sequence[str], heads: Sequence[str] | None = None
) -> str:
    """Columns of cells as a LaTeX table, a line before FTP; `heads` in place of the names of the columns."""
    lines = ["% needs \\usepackage{booktabs}", f"\\begin{{tabular}}{{l{'r' * (len(shown) - 1)}}}", r"\toprule"]
    lines += [*(heads or [_line([_escape(name) for name in shown])]), r"\midrule"]
    for i, line in enumerate(zip(*shown.values(), strict=True)):
        if methods_of_rows[i] == "ftp" and i and methods_of_rows[i - 1] != "ftp":
            lines.append(r"\midrule")
        lines.append(_line([_latex(cell) for cell in line]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def to_csv(table: Sequence[Row]) -> str:
    """The numbers for a spreadsheet, one line per row, with more digits; what is missing is empty.

    >>> print(to_csv([Row("ftp", "FTP", 1, Spread(97.2), {}, Spread(87.1), Spread(94.4), Spread(0.069))]))
    method,name,seeds,id,id_std,ood_avg,ood_avg_std,corruption_avg,corruption_avg_std,id_delta,ood_delta,seconds_per_step
    ftp,FTP,1,97.2,,87.1,,94.4,,,,0.069
    <BLANKLINE>
    """
    return formats.to_csv([_flat(row) for row in _filled(table)])


def _filled(table: Sequence[Row]) -> Sequence[Row]:
    if not table:
        raise LabError("the table has no rows; give at least one finished run")
    return table


def _result(record: RunRecord) -> Mapping[str, Any]:
    if not record.final:
        return record.result or result_of(record)
    result = result_of(record)
    if not record.points and record.result:  # the seconds of a run that is shown without its points
        result["seconds_per_step"] = record.result.get("seconds_per_step")
    return result


def _names(all_settings: Sequence[Settings]) -> list[str]:
    """A method's name; if it was run with several settings, with those that differ."""
    names = []
    for settings in all_settings:
        values = settings.as_dict()
        others = [other.as_dict() for other in all_settings if other.method == settings.method]
        apart = [k for k in values if k != "seed" and any(other.get(k) != values[k] for other in others)]
        name = title(settings.method)
        names.append(f"{name} ({', '.join(f'{k}={values[k]}' for k in apart)})" if apart else name)
    return names


def _row(group: Group, shifts: Sequence[str], line: Callable[[float, float], float] | None) -> Row:
    names = ("id", "ood_avg", "corruption_avg", "seconds_per_step")
    accuracy, average, corrupted, seconds = (spread(r[name] for r in group.results) for name in names)
    ood = {shift: spread(r["ood"][shift] for r in group.results) for shift in shifts}
    metric = group.records[0].measures.main
    above = spread(line(r["id"], r["ood_avg"]) for r in group.results) if line else Spread()
    return Row(
        *(group.method, group.name, len(group.results), accuracy, ood, average, corrupted, seconds),
        metric=metric,
        robustness=above,
    )


def _with_deltas(row: Row, group: Group, peers: Sequence[Group], peer_rows: Sequence[Row]) -> Row:
    # another share of the labels, or another option of the world, is another task; else the settings that agree most
    settings, task = group.settings.common(), _task(group.settings)
    near = [i for i, g in enumerate(peers) if g.method == "finetune" and _task(g.settings) == task]
    if not near:
        return row
    plain = peer_rows[max(near, key=lambda i: sum(settings[k] == v for k, v in peers[i].settings.common().items()))]
    gain = row.metric.relative_gain
    pairs = (row.id, plain.id), (row.ood_avg, plain.ood_avg)
    home, shifted = (gain(score.mean, other.mean) if other.mean else math.nan for score, other in pairs)
    return replace(row, id_delta=home, ood_delta=shifted)


def _task(settings: Settings) -> tuple[Value, ...]:
    """What has to be equal for two scores to be compared."""
    options = worlds.world(settings.world).options if settings.world in worlds.names() else ()
    return (settings.labels, *(settings.options.get(name, "") for name in options))


def _number(value: float, digits: int = 2) -> str:
    # adding 0.0: nobody wants to read -0.00
    return f"{round(value, digits) + 0.0:.{digits}f}" if math.isfinite(value) else MISSING


def marked(values: Sequence[Spread], metric: Metric) -> list[Cell]:
    """A column of numbers, the best of them marked, ties too."""
    texts = [_number(value.mean, metric.digits) for value in values]
    top = metric.best(float(text) for text in texts if text != MISSING)
    several = len(set(texts) - {MISSING}) > 1  # of equals none is best
    return [
        Cell(
            text,
            f"({v.std:.{metric.digits}f})" if math.isfinite(v.std) else "",
            several and text != MISSING and float(text) == top,
        )
        for text, v in zip(texts, values, strict=True)
    ]


def _markdown(cell: Cell) -> str:
    text = cell.text.replace("|", r"\|")
    return f"{f'**{text}**' if cell.best else text} {cell.std}".strip()


def _latex(cell: Cell) -> str:
    text = _escape(cell.text)
    if text.startswith("-") and text != MISSING:  # a minus, not a hyphen
        text = f"$-${text[1:]}"
    bold = rf"\textbf{{{text}}}" if cell.best else text
    return f"{bold} {cell.std}".strip()


def _line(fields: Sequence[str]) -> str:
    return " & ".join(fields).strip() + r" \\"


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {c: f"\\{c}" for c in "&%$#_{}"} | {"Δ": r"$\Delta$", "↓": r"$\downarrow$", "≈": r"$\approx$"}
    return "".join(special.get(c, c) for c in text)


def _flat(row: Row) -> dict[str, str]:
    numbers: dict[str, float] = {}
    for name, value in {"id": row.id, **row.ood, "ood_avg": row.ood_avg, "corruption_avg": row.corruption_avg}.items():
        numbers |= {name: value.mean, f"{name}_std": value.std}
    if math.isfinite(row.robustness.mean):
        numbers |= {"robustness": row.robustness.mean, "robustness_std": row.robustness.std}
    numbers |= {"id_delta": row.id_delta, "ood_delta": row.ood_delta, "seconds_per_step": row.seconds.mean}
    texts = {name: f"{value:.6g}" if math.isfinite(value) else "" for name, value in numbers.items()}
    return {"method": row.method, "name": row.name, "seeds": str(row.seeds)} | texts
