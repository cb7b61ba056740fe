"""The paper's Tab. 5 from finished runs of a world with tasks in a row: A and F_N, mean (spread) over seeds.

A difference is paired by seed against one method, FTP if it is there, with its standard error; what lies within three
of them is marked with ≈, for these seeds cannot tell (`ftp.lab.noise`). A run of one task, such as joint training on
all of them at once, has an A and no forgetting. What was masked, what trained and how the head grew is said with every
table, and so is the formula of F_N: papers mean different numbers by it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ftp.lab import formats, worlds
from ftp.lab.continual import CUT, forgetting_step_by_step, in_tasks, tasks_of
from ftp.lab.noise import beyond_noise, paired
from ftp.lab.record import LabError, RunRecord, Value
from ftp.lab.summary import Metric
from ftp.lab.table import ACCURACY, Cell, Group, Spread, groups, latex_lines, markdown_lines, marked, spread

REFERENCE = "ftp"
# the paper's Tab. 5; controls and others come after it
ORDER = (
    *("finetune", "ft_plus", "lwf_mc", "l2p", "dualprompt", "coda_prompt"),
    *("ewc", "l2_sp", "ftp", "ftp_ewc"),
)
ENOUGH = 3  # seeds, for a difference to be told from chance
FORMULA = (
    "F_N = 1/(N-1) Σ_{i=2..N} Σ_{n<i} |T_n|/|T_{1:i}| (R_nn - R_in): the paper's appendix, its printed weight "
    "|T_N|/|T_{1:n}| taken for a misprint; {}. Drops: the same sum of the drops from task to task, with weights "
    "1/(i-1) and all classes competing, as in the code of CODA-Prompt"
)
CUT_TO, UNCUT = "R with the head cut to the tasks 1..n", "R with all classes seen so far"


@dataclass(frozen=True)
class Gap:
    """A paired difference: its mean, its standard error, and 1, -1 or 0 if it is above, below or within chance."""

    mean: float = math.nan
    error: float = math.nan
    verdict: int = 0


@dataclass(frozen=True)
class TaskRow:
    """One line of the table; forgetting is NaN where there was one task. `options` are those of the world."""

    method: str
    name: str
    seeds: int
    accuracy: Spread
    forgetting: Spread
    drops: Spread
    seconds: Spread
    accuracy_gap: Gap = Gap()
    forgetting_gap: Gap = Gap()
    metric: Metric = ACCURACY
    options: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskTable:
    """The rows, whom they are compared with, and what has to be said with them."""

    rows: tuple[TaskRow, ...]
    against: str
    notes: tuple[str, ...]


def are_in_tasks(records: Iterable[RunRecord]) -> bool:
    """Whether this is the table for some runs: one of them learned tasks in a row.

    >>> from ftp.lab.figures.data import example, example_in_tasks
    >>> are_in_tasks([example()]), are_in_tasks([example_in_tasks()])
    (False, True)
    """
    return any(map(in_tasks, records))


def task_table(records: Iterable[RunRecord], against: str = REFERENCE) -> TaskTable:
    """The table of finished runs.

    >>> from ftp.lab.figures.data import example_in_tasks
    >>> table = task_table(example_in_tasks(method, seed) for method in ("finetune", "ftp") for seed in (0, 1, 2))
    >>> row = table.rows[0]
    >>> row.name, round(row.accuracy.mean, 6), round(row.forgetting.mean, 6), round(row.accuracy_gap.mean, 6)
    ('Vanilla FT', 56.0, 22.5, -25.0)
    """
    run_groups = sorted(groups(records), key=_place)
    numbers = [{run.settings.seed: _numbers(run) for run in group.records} for group in run_groups]
    if not any(in_tasks(run) for group in run_groups for run in group.records):
        raise LabError("no run learned tasks in a row; choose runs of a world with tasks")
    names = _titles(run_groups)
    places = [i for i, group in enumerate(run_groups) if group.method == against and in_tasks(group.records[0])]
    rows = []
    for i, (group, by_seed) in enumerate(zip(run_groups, numbers, strict=True)):
        accuracy, forgetting, drops = (spread(n[k] for n in by_seed.values()) for k in range(3))
        compared = places and i != places[0]
        gap, loss = (_gap(by_seed, numbers[places[0]], k) if compared else Gap() for k in (0, 1))
        seconds = spread(result["seconds_per_step"] for result in group.results)
        row = TaskRow(group.method, names[i], len(by_seed), accuracy, forgetting, drops, seconds, gap, loss)
        rows.append(_with_terms(row, group))
    return TaskTable(tuple(rows), names[places[0]] if places else "", _notes(run_groups, rows))


def columns(table: TaskTable) -> dict[str, list[Cell]]:
    """The fields as text, by column; the best of a column is marked."""
    metric = table.rows[0].metric
    unit = f" ({metric.unit})" if metric.unit else ""
    lost = Metric("forgetting", metric.unit, higher_is_better=False, digits=metric.digits)
    arrow = "" if metric.higher_is_better else " ↓"
    out = {"Method": [Cell(row.name) for row in table.rows]}
    out[f"A{unit}{arrow}"] = marked([row.accuracy for row in table.rows], metric)
    out[f"F_N{unit} ↓"] = marked([row.forgetting for row in table.rows], lost)
    out[f"Drops{unit} ↓"] = marked([row.drops for row in table.rows], lost)
    if table.against:
        out[f"A minus {table.against}'s"] = [_cell(row.accuracy_gap, metric) for row in table.rows]
        out[f"F_N minus {table.against}'s"] = [_cell(row.forgetting_gap, metric) for row in table.rows]
    out["Time (s/it) ↓"] = [Cell(Metric("", digits=3).text(row.seconds.mean)) for row in table.rows]
    return out | {"Seeds": [Cell(str(row.seeds)) for row in table.rows]}


def to_markdown(table: TaskTable) -> str:
    """The table for a README or a notebook, and below it what has to be said."""
    notes = [f"- {note.replace('|', chr(92) + '|').replace('*', chr(92) + '*')}" for note in table.notes]
    return "\n".join([markdown_lines(columns(table)), "", *notes])


def to_latex(table: TaskTable) -> str:
    """The table for a paper; it needs the package booktabs. What has to be said stands above it, as comments."""
    lines = [f"% {note}" for note in table.notes]
    return "\n".join([*lines, latex_lines(columns(table), [row.method for row in table.rows])])


def to_csv(table: TaskTable) -> str:
    """The numbers for a spreadsheet, with the settings of the world in columns of their own; missing ones are empty."""
    options = list(dict.fromkeys(name for row in table.rows for name in row.options))
    lines = []
    for row in table.rows:
        numbers = {
            "a": row.accuracy.mean,
            "a_std": row.accuracy.std,
            "f_n": row.forgetting.mean,
            "f_n_std": row.forgetting.std,
            "drops": row.drops.mean,
            "drops_std": row.drops.std,
            "a_difference": row.accuracy_gap.mean,
            "a_difference_error": row.accuracy_gap.error,
            "f_n_difference": row.forgetting_gap.mean,
            "f_n_difference_error": row.forgetting_gap.error,
            "seconds_per_step": row.seconds.mean,
        }
        texts = {name: f"{value:.6g}" if math.isfinite(value) else "" for name, value in numbers.items()}
        chosen = {name: row.options.get(name, "") for name in options}
        lines.append({"method": row.method, "name": row.name, "seeds": str(row.seeds), **texts, **chosen})
    return formats.to_csv(lines)


def _numbers(run: RunRecord) -> tuple[float, float, float]:
    """A, F_N and the drops of one run; of one task there is A alone."""
    if not in_tasks(run):
        return run.summary().home, math.nan, math.nan
    tasks = tasks_of(run)
    sign = 1 if run.measures.main.higher_is_better else -1
    return tasks.accuracy, sign * tasks.forgetting, sign * forgetting_step_by_step(tasks.matrix)


def _gap(ours: Mapping[int, Sequence[float]], theirs: Mapping[int, Sequence[float]], place: int) -> Gap:
    """By the seeds that both have."""
    seeds = sorted(set(ours) & set(theirs))
    pair = [ours[seed][place] for seed in seeds], [theirs[seed][place] for seed in seeds]
    if not seeds or not all(math.isfinite(value) for values in pair for value in values):
        return Gap()
    if len(seeds) < 2:
        return Gap(pair[0][0] - pair[1][0])
    return Gap(*paired(*pair), beyond_noise(*pair) if len(seeds) >= ENOUGH else 0)


def _cell(gap: Gap, metric: Metric) -> Cell:
    if not math.isfinite(gap.mean):
        return Cell("-")
    sign = "" if gap.verdict else "≈ "
    error = f"({gap.error:.{metric.digits}f})" if math.isfinite(gap.error) else ""
    return Cell(f"{sign}{gap.mean:+.{metric.digits}f}", error)


def _place(group: Group) -> int:
    """In the order of Tab. 5; what learned all tasks at once comes last."""
    known = group.method in ORDER and in_tasks(group.records[0])
    return ORDER.index(group.method) if known else len(ORDER) + (not in_tasks(group.records[0]))


def _titles(run_groups: Sequence[Group]) -> list[str]:
    """The name that the world has for such a row, else the method's with the settings that differ."""
    titles = []
    for group in run_groups:
        kind = worlds.world(group.settings.world) if group.settings.world in worlds.names() else worlds.World
        values = group.settings.as_dict()
        known = [
            title
            for title, (method, changes) in kind.beside.items()
            if method == group.method and all(values.get(name) == value for name, value in changes.items())
        ]
        titles.append(known[0] if known else group.name)
    # settings that only set a row of the world's own apart need not be told in the others
    plain = [group.name.partition(" (")[0] for group in run_groups]
    others = [name for name, title, group in zip(plain, titles, run_groups, strict=True) if title == group.name]
    return [
        name if title == group.name and others.count(name) == 1 else title
        for name, title, group in zip(plain, titles, run_groups, strict=True)
    ]


def _with_terms(row: TaskRow, group: Group) -> TaskRow:
    settings = group.settings
    options = worlds.world(settings.world).options if settings.world in worlds.names() else {}
    chosen = {name: settings.options[name] for name in options if name in settings.options}
    return TaskRow(**{**row.__dict__, "metric": group.records[0].measures.main, "options": chosen})


def _notes(run_groups: Sequence[Group], rows: Sequence[TaskRow]) -> tuple[str, ...]:
    """The settings of the world, the head, the formula; an option that differs is told with the rows that have it."""
    world = run_groups[0].settings.world
    kind = worlds.world(world) if world in worlds.names() else worlds.World
    most = {name: [row.options.get(name) for row in rows] for name in kind.options}
    usual = {name: max(values, key=values.count) for name, values in most.items() if any(v is not None for v in values)}
    notes = [f"{world}: {', '.join(f'{name}={value}' for name, value in usual.items())}"] if usual else [world]
    for row in rows:
        differs = [f"{name}={value}" for name, value in row.options.items() if usual.get(name) != value]
        if differs:
            notes.append(f"{row.name}: {', '.join(differs)}")
    if kind.protocol:
        notes.append(kind.protocol)
    cut = any(CUT in (run.final.scores if run.final else {}) for group in run_groups for run in group.records)
    notes.append(FORMULA.replace("{}", CUT_TO if cut else UNCUT))
    differ = "a difference is paired by seed, with its standard error; ≈: within three of them, so these seeds cannot"
    return (*notes, f"spread: standard deviation over seeds; {differ} tell")
