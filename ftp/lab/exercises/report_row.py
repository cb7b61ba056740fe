"""Lesson 11: one row of a report, from raw runs. The truth is written with plain loops."""

from typing import Any

from ftp.lab.exercises._exercise import CLOSE, Exercise, Mistake, Question

PARTS = ("lr", "seeds", "id", "ood", "spread")
LUCKY = "you chose the rate by its best single run on 'val', which may be luck; take the mean over the rate's seeds."
ALONE = "you reported one run alone; report all seeds of the chosen rate, or there is no spread."


def row(runs: list[dict[str, Any]]) -> dict[str, float]:
    """The rate that is best on validation data, and what was measured with it: means, and from worst to best seed.

    >>> row([{"lr": 0.1, "seed": s, "val": 90, "id": 80, "ood": 60 + s} for s in (0, 2)])
    {'lr': 0.1, 'seeds': 2, 'id': 80.0, 'ood': 61.0, 'spread': 2}
    """
    best, chosen = float("-inf"), runs
    for lr in sorted({run["lr"] for run in runs}):
        mine = [run for run in runs if run["lr"] == lr]
        score = sum(run["val"] for run in mine) / len(mine)
        if score > best:
            best, chosen = score, mine
    ood = [run["ood"] for run in chosen]
    means = {part: sum(run[part] for run in chosen) / len(chosen) for part in ("id", "ood")}
    return {"lr": chosen[0]["lr"], "seeds": len(chosen), **means, "spread": max(ood) - min(ood)}


def judge(given: Any, runs: list[dict[str, Any]]) -> str | None:
    """Every part must be the truth's; the sentence names the first that is not, and what it looks like.

    >>> judge(row(_RUNS), _RUNS)
    """
    if not isinstance(given, dict):
        return f"a dict is expected, yours is of type {type(given).__name__}\n  its keys are {', '.join(PARTS)}"
    truth = row(runs)
    for part in PARTS:
        if part not in given:
            return f"{part!r} is missing\n  the row has {', '.join(PARTS)}"
        value = given[part]
        if not isinstance(value, int | float):
            return f"{part!r} must be a number, yours is of type {type(value).__name__}\n  expected {truth[part]:g}"
        if abs(value - truth[part]) > CLOSE * max(1.0, abs(truth[part])):
            return f"{_likely(part, value, runs)}\n  {part}: expected {truth[part]:g}, yours gave {value:g}"
    return None


def _likely(part: str, value: float, runs: list[dict[str, Any]]) -> str:
    truth, chosen = row(runs), [run for run in runs if run["lr"] == row(runs)["lr"]]
    if part == "lr":
        for by in ("ood", "id"):
            if value == row([{**run, "val": run[by]} for run in runs])["lr"]:
                return (
                    f"you chose the rate by {by!r}, which you report; choose by 'val', or the report flatters itself."
                )
        if value == max(runs, key=lambda run: run["val"])["lr"]:
            return LUCKY
        return "the rate with the best mean on 'val' is another one."
    if part == "seeds" and value == len(runs):
        return "count the seeds of the chosen rate only, not all runs."
    if part == "seeds" and value == 1:
        return ALONE
    if part in ("id", "ood") and abs(value - max(run[part] for run in chosen)) < CLOSE:
        return f"you reported the best seed of {part!r}; report the mean over all seeds."
    if part in ("id", "ood") and abs(value - sum(run[part] for run in runs) / len(runs)) < CLOSE:
        return f"you took the mean of {part!r} over all rates; take the chosen one."
    if part == "spread" and abs(value) < abs(truth[part]):
        return "that is narrower than the seeds; the spread here goes from the worst to the best seed of 'ood'."
    return f"{part!r} is not what the runs of the chosen rate say."


# the best rate on val is 0.03, on id 0.1, on ood 0.01
_SCORES = {0.01: ((88, 88, 85), (90, 86, 81)), 0.03: ((96, 93, 70), (94, 91, 78)), 0.1: ((91, 97, 60), (95, 94, 74))}
_RUNS = [
    {"lr": lr, "seed": seed, "val": val, "id": inside, "ood": ood}
    for lr, seeds in _SCORES.items()
    for seed, (val, inside, ood) in enumerate(seeds)
]


# the best run is at 0.1, but the best mean at 0.03
_LUCKY = [
    {"lr": 0.03, "seed": 0, "val": 93, "id": 92, "ood": 71},
    {"lr": 0.03, "seed": 1, "val": 92, "id": 90, "ood": 77},
    {"lr": 0.1, "seed": 0, "val": 99, "id": 91, "ood": 68},
    {"lr": 0.1, "seed": 1, "val": 80, "id": 90, "ood": 66},
]


def _code(by: str = "val", seeds: str = "len(mine)", ood: str = "mean(r['ood'] for r in mine)", **other: str) -> str:
    """A wrong answer: the solution with one of its parts changed."""
    spread = other.get("spread", "max(r['ood'] for r in mine) - min(r['ood'] for r in mine)")
    score, mine = other.get("score", "mean"), other.get("mine", "[r for r in runs if r['lr'] == lr]")
    return f"""
def my_row(runs):
    from statistics import mean
    lr = max({{r["lr"] for r in runs}}, key=lambda lr: {score}(r["{by}"] for r in runs if r["lr"] == lr))
    mine = {mine}
    return dict(lr=lr, seeds={seeds}, id=mean(r["id"] for r in mine), ood={ood}, spread={spread})
"""


EXERCISE = Exercise(
    name="report_row",
    lesson="11",
    answer="my_row",
    missing="the rate that is best on val, and seeds, id, ood and spread of its runs",
    well_done="Chosen on validation data, reported on what the choice has never seen, with its spread.",
    hints=(
        "first choose the rate, and look at nothing but 'val' for that; only then look at 'id' and 'ood'.",
        "mean(r['val'] for r in runs if r['lr'] == lr) is the score of a rate; max(rates, key=...) finds the best.",
        "mine = [r for r in runs if r['lr'] == lr]; then lr, len(mine), two means, and max - min of 'ood'.",
    ),
    solution="""
def my_row(runs):
    from statistics import mean

    rates = {run["lr"] for run in runs}
    lr = max(rates, key=lambda rate: mean(run["val"] for run in runs if run["lr"] == rate))
    inside, ood = [[run[key] for run in runs if run["lr"] == lr] for key in ("id", "ood")]
    spread = max(ood) - min(ood)
    return {"lr": lr, "seeds": len(ood), "id": mean(inside), "ood": mean(ood), "spread": spread}
""",
    questions=(
        Question("two rates, one seed", ([_RUNS[0], _RUNS[2]],)),
        Question("three rates, two seeds", (_RUNS,)),
        Question("two rates, one lucky run", (_LUCKY,)),
    ),
    judge=judge,
    mistakes=(
        Mistake(
            _code(by="ood"),
            "you chose the rate by 'ood', which you report; choose by 'val', or the report flatters itself.",
        ),
        Mistake(
            _code(by="id"),
            "you chose the rate by 'id', which you report; choose by 'val', or the report flatters itself.",
        ),
        Mistake(_code(score="max"), LUCKY),
        Mistake(_code(mine="[max(runs, key=lambda r: r['val'])]"), ALONE),
        Mistake(_code(seeds="len(runs)"), "count the seeds of the chosen rate only, not all runs."),
        Mistake(
            _code(ood="max(r['ood'] for r in mine)"),
            "you reported the best seed of 'ood'; report the mean over all seeds.",
        ),
        Mistake(
            _code(ood="mean(r['ood'] for r in runs)"),
            "you took the mean of 'ood' over all rates; take the chosen one.",
        ),
        Mistake(
            _code(spread="(max(r['ood'] for r in mine) - min(r['ood'] for r in mine)) / 2"),
            "that is narrower than the seeds; the spread here goes from the worst to the best seed of 'ood'.",
        ),
    ),
    variants=("from ftp.lab.exercises.report_row import row as my_row",),
)
