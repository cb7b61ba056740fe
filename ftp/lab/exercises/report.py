"""Lesson 11: the words of a one-page report. A report is judged by its parts, not by its result."""

from typing import Any

from ftp.lab.exercises._exercise import Exercise, Mistake, Question

NEEDED = {
    "compared": "the methods, at least two",
    "tuned": "what was tuned",
    "tuned_on": "the data on which it was tuned",
    "tries": "how many settings each method was tried with",
    "measured_on": "the data on which you report",
    "seeds": "how many seeds each method was run with",
    "spread": "how the spread over seeds is given",
    "shows": "what the numbers show, in a sentence",
    "does_not_show": "what they do not show, in a sentence",
}


def judge(given: Any) -> str | None:
    """None if every part is there and the comparison is fair, else two lines: what is wrong, and what to write.

    >>> judge({"compared": ["sgd", "ftp"]})
    "'tuned' is missing.\\n  give what was tuned"
    """
    if not isinstance(given, dict):
        return f"a dict is expected, yours is of type {type(given).__name__}\n  its keys are {', '.join(NEEDED)}"
    for part, what in NEEDED.items():
        if given.get(part) in (None, ..., "", [], (), {}):
            return f"{part!r} is missing.\n  give {what}"
    for problem in (_fair(given), _honest(given)):
        if problem:
            return problem
    return None


def _fair(given: dict[str, Any]) -> str | None:
    compared, tries = given["compared"], given["tries"]
    if isinstance(compared, str) or len(compared) < 2:
        return f"one method alone says nothing.\n  'compared' has {NEEDED['compared']}, as a list"
    if not isinstance(tries, dict) or set(tries) != set(compared):
        return "each method needs its number of tries.\n  'tries' is a dict with the methods of 'compared' as its keys"
    if len(set(tries.values())) > 1:
        return "who may try more often wins more often.\n  give every method the same number of tries"
    if not isinstance(given["seeds"], int) or given["seeds"] < 3:
        return "that few seeds have no spread.\n  'seeds' is a whole number, at least 3"
    return None


def _honest(given: dict[str, Any]) -> str | None:
    measured, tuned = (_listed(given[part]) for part in ("measured_on", "tuned_on"))
    if set(tuned) & {*measured, "test"}:
        return (
            "you tuned on what you report, so the report flatters itself.\n  tune on data of their own, such as 'val'"
        )
    if not {"id", "ood"} <= set(measured):
        return "a leash is about both: the task itself, and what has shifted.\n  'measured_on' needs 'id' and 'ood'"
    for part in ("shows", "does_not_show"):
        if len(str(given[part]).split()) < 5:
            return f"{part!r} is too short to be a sentence.\n  give {NEEDED[part]}"
    return None


def _listed(value: Any) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list | tuple | set) else [str(value)]


def page(report: Any, rows: dict[str, dict[str, float]]) -> str:
    """The page in markdown: the numbers of each method (see `report_row`) and the words of the report.

    >>> page(..., {})
    'The page is written when your report is.'
    """
    if report is ... or judge(report):
        return "The page is written when your report is."
    head = f"| method | {report['tuned']} | seeds | ID | OOD | spread of OOD |\n|---|---|---|---|---|---|\n"
    table = "".join(
        f"| {name} | {row['lr']:g} | {row['seeds']} | {row['id']:.1f} | {row['ood']:.1f} | {row['spread']:.1f} |\n"
        for name, row in rows.items()
    )
    tries = ", ".join(f"{name} {count}" for name, count in report["tries"].items())
    return (
        f"### {' and '.join(report['compared'])}: one page\n\n{head}{table}\n"
        f"**Tuned:** {report['tuned']}, on {report['tuned_on']}; tries: {tries}. **Spread:** {report['spread']}.\n\n"
        f"**This shows:** {report['shows']}\n\n**It does not show:** {report['does_not_show']}\n"
    )


_SOLUTION = """
my_report = {"compared": ["sgd", "ftp"], "tuned": "lr", "tuned_on": "val", "tries": {"sgd": 3, "ftp": 3}}
my_report |= {"measured_on": ["id", "ood"], "seeds": 10, "spread": "from the worst to the best seed"}
my_report["shows"] = "With both rates tuned, the two methods lie within the spread of each other."
my_report["does_not_show"] = "It does not show what happens with a larger model, or with other shifts."
"""


def _changed(old: str, new: str) -> str:
    assert old in _SOLUTION
    return _SOLUTION.replace(old, new)


EXERCISE = Exercise(
    name="report",
    lesson="11",
    answer="my_report",
    missing="a dict with the nine parts of a report",
    well_done="Whoever reads this knows what was compared, how fairly, and how far to trust it.",
    hints=(
        "imagine a reader who does not believe you: which questions would they ask before they look at a number?",
        "what was compared, tuned on what, how often each was tried, how many seeds, and how far apart they are.",
        f"the keys are {', '.join(NEEDED)}.",
    ),
    solution=_SOLUTION,
    questions=(Question(""),),
    judge=judge,
    mistakes=(
        Mistake(_changed('"tuned_on": "val", ', ""), "'tuned_on' is missing."),
        Mistake(
            _changed('"tuned_on": "val"', '"tuned_on": "ood"'),
            "you tuned on what you report, so the report flatters itself.",
        ),
        Mistake(
            _changed('"tuned_on": "val"', '"tuned_on": ["val", "id"]'),
            "you tuned on what you report, so the report flatters itself.",
        ),
        Mistake(_changed('"ftp": 3}', '"ftp": 30}'), "who may try more often wins more often."),
        Mistake(_changed('"seeds": 10', '"seeds": 1'), "that few seeds have no spread."),
        Mistake(_changed('["sgd", "ftp"]', '["ftp"]'), "one method alone says nothing."),
        Mistake(_changed('["id", "ood"]', '["id"]'), "a leash is about both: the task itself, and what has shifted."),
        Mistake(_changed('{"sgd": 3, "ftp": 3}', "3"), "each method needs its number of tries."),
        Mistake(
            _changed('"With both rates tuned, the two methods lie within the spread of each other."', '"We win."'),
            "'shows' is too short to be a sentence.",
        ),
        Mistake(_changed('"from the worst to the best seed"', '""'), "'spread' is missing."),
    ),
    variants=(
        _changed('"tuned_on": "val"', '"tuned_on": "5-fold cross-validation of train"'),
        _changed('["id", "ood"]', '("ood", "id", "corruptions")'),
    ),
    takes="value",
)
