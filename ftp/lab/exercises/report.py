"""Lesson 11: the words of a one-page report. A report is judged by its parts, not by its result."""

import re
from typing import Any

from ftp.lab import worlds
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


VAL = {"val", "valid", "validation", "dev", "development"}
FILLERS = {"a", "an", "the", "of", "on", "my", "our", "set", "data", "split", "heap", "images", *worlds.names()}
SHIFTED = {"ood", "shift", "shifts", "shifted", "look", "looks", "corruption", "corruptions", "corrupted"}
SHIFTED |= {"inverted", "noisy", "faint", "grainy"}  # the looks of the lesson
AT_HOME = {"id", "test", "tests", "testing", "tested"}
BEST = {"best", "max", "maximum", "highest", "largest", "top"}
WORST = {"worst", "min", "minimum", "lowest", "smallest"}
WIDTHS = {"std", "stdev", "sd", "deviation", "deviations", "sem", "se", "error", "errors", "variance", "range", "iqr"}
WIDTHS |= {"quartile", "quartiles", "quantile", "quantiles", "percentile", "percentiles", "interval", "intervals", "ci"}
ONE_BY_ONE = {"all", "each", "every"}  # seeds that are shown as they are
DENIALS = {"no", "none", "not", "never", "without", "unknown"}
FLATTERS = (
    "you tuned on what you report, so the report flatters itself.\n  tune on other data and name these alone: 'val'"
)


def judge(given: Any) -> str | None:
    """None if every part is there and the comparison is fair, else two lines: what is wrong, and what to write.

    >>> judge({"compared": ["sgd", "ftp"]})
    "'tuned' is missing.\\n  give what was tuned"
    """
    if not isinstance(given, dict):
        return f"a dict is expected, yours is of type {type(given).__name__}\n  its keys are {', '.join(NEEDED)}"
    for part, what in NEEDED.items():
        if _empty(given.get(part)):
            return f"{part!r} is missing.\n  give {what}"
    return _fair(given) or _seeded(given) or _honest(given) or _said(given)


def _empty(value: Any) -> bool:
    return value is None or value is ... or (hasattr(value, "__len__") and len(value) == 0)


def _fair(given: dict[str, Any]) -> str | None:
    compared, tries = given["compared"], given["tries"]
    if not isinstance(compared, list | tuple | set | dict) or len({str(name) for name in compared}) < 2:
        return f"one method alone says nothing.\n  'compared' has {NEEDED['compared']}, as a list"
    if not all(isinstance(name, str) for name in compared):
        return "a method needs a name.\n  'compared' is a list of words, such as ['sgd', 'ftp']"
    if not isinstance(tries, dict) or set(tries) != set(compared):
        return "each method needs its number of tries.\n  'tries' is a dict with the methods of 'compared' as its keys"
    if not all(_whole(count) for count in tries.values()):
        return "a number of tries counts settings.\n  the values of 'tries' are whole numbers, at least 1"
    if min(tries.values()) < 1:
        return "what was never tried was not compared.\n  the values of 'tries' are whole numbers, at least 1"
    if len(set(tries.values())) > 1:
        return "who may try more often wins more often.\n  give every method the same number of tries"
    return None


def _seeded(given: dict[str, Any]) -> str | None:
    seeds = given["seeds"]
    if isinstance(seeds, list | tuple | set | range):
        seeds = len({str(seed) for seed in seeds})
    if not _whole(seeds):
        kind = type(seeds).__name__
        return f"'seeds' is of type {kind}.\n  give a whole number, such as 10, or a list of the seeds"
    if seeds < 3:
        return "that few seeds have no spread.\n  'seeds' is a whole number, at least 3"
    spread = _words(given["spread"])
    if spread & BEST and not spread & (WORST | WIDTHS):
        return (
            "the best seed hides the others.\n  'spread' says how far apart they are: 'from the worst to the best seed'"
        )
    if spread & DENIALS or not (spread & (WIDTHS | ONE_BY_ONE) or (spread & BEST and spread & WORST)):
        return "'spread' does not say how far the seeds are apart.\n  write 'from the worst to the best seed', or 'std'"
    return None


def _honest(given: dict[str, Any]) -> str | None:
    measured, tuned = (_listed(given[part]) for part in ("measured_on", "tuned_on"))
    if any(entry in measured or entry & (SHIFTED | AT_HOME) for entry in tuned):
        return FLATTERS
    if not any("val" in entry for entry in tuned):
        return "what chose the settings must be neither trained on nor reported.\n  'tuned_on' names such data: 'val'"
    shifted = [bool(entry & SHIFTED) for entry in measured]
    at_home = [bool(entry & (AT_HOME | {"clean"})) and not away for entry, away in zip(measured, shifted, strict=True)]
    if not (any(shifted) and any(at_home)):
        return "a leash is about both: the task itself, and what has shifted.\n  write 'measured_on': ['id', 'ood']"
    return None


def _said(given: dict[str, Any]) -> str | None:
    for part in ("shows", "does_not_show"):
        if len(str(given[part]).split()) < 5:
            return f"{part!r} is too short to be a sentence.\n  give {NEEDED[part]}"
    if _words(given["shows"]) == _words(given["does_not_show"]):
        return "'does_not_show' repeats 'shows'.\n  give what a reader might believe, and these numbers cannot tell"
    return None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _listed(value: Any) -> list[set[str]]:
    """The words of each entry; commas and 'and' part entries, too.

    >>> [sorted(entry) for entry in _listed("the Validation set and ID")]
    [['val'], ['id']]
    """
    entries = value if isinstance(value, list | tuple | set | dict) else [value]
    return [words for entry in entries for one in re.split(r"[,;/&+]|\band\b", str(entry)) if (words := _words(one))]


def _words(value: Any) -> set[str]:
    """What a text is about: its words in small letters, without fillers; all names of validation data are 'val'."""
    text = re.sub(r"out[- ]of[- ]distribution", "ood", str(value).lower())
    text = re.sub(r"in[- ]distribution", "id", text)
    words = set(re.findall(r"[a-z0-9]+", text)) - FILLERS
    return words - VAL | {"val"} if words & VAL else words


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
        *(
            Mistake(
                _changed('"tuned_on": "val"', f'"tuned_on": {data}'),
                "you tuned on what you report, so the report flatters itself.",
            )
            for data in (
                *('"test"', '"the test set"', '"test data"', '"Test"', '"id"', '"ID"', '"ood"', '"OOD"'),
                *('"the ood looks"', '"noisy"', '["val", "id"]', '"val and test"', '"out-of-distribution data"'),
            )
        ),
        *(
            Mistake(
                _changed('"tuned_on": "val"', f'"tuned_on": "{data}"'),
                "what chose the settings must be neither trained on nor reported.",
            )
            for data in ("train", "the training data", "my data")
        ),
        Mistake(
            _changed('["id", "ood"]', '["id", "ood", "the validation set"]'),
            "you tuned on what you report, so the report flatters itself.",
        ),
        Mistake(_changed('"ftp": 3}', '"ftp": 30}'), "who may try more often wins more often."),
        Mistake(_changed('{"sgd": 3, "ftp": 3}', '{"sgd": 0, "ftp": 0}'), "what was never tried was not compared."),
        Mistake(
            _changed('{"sgd": 3, "ftp": 3}', '{"sgd": [1, 2], "ftp": [1, 2]}'), "a number of tries counts settings."
        ),
        Mistake(_changed('"seeds": 10', '"seeds": 1'), "that few seeds have no spread."),
        Mistake(_changed('"seeds": 10', '"seeds": range(2)'), "that few seeds have no spread."),
        Mistake(_changed('"seeds": 10', '"seeds": "10"'), "'seeds' is of type str."),
        Mistake(_changed('["sgd", "ftp"]', '["ftp"]'), "one method alone says nothing."),
        Mistake(_changed('["sgd", "ftp"]', '["ftp", "ftp"]'), "one method alone says nothing."),
        Mistake(_changed('["sgd", "ftp"]', "2"), "one method alone says nothing."),
        *(
            Mistake(_changed('["id", "ood"]', data), "a leash is about both: the task itself, and what has shifted.")
            for data in ('["id"]', '"OOD"', '["test"]', '["the shifted test set"]')
        ),
        Mistake(_changed('{"sgd": 3, "ftp": 3}', "3"), "each method needs its number of tries."),
        Mistake(
            _changed('"With both rates tuned, the two methods lie within the spread of each other."', '"We win."'),
            "'shows' is too short to be a sentence.",
        ),
        Mistake(
            _changed(
                '"It does not show what happens with a larger model, or with other shifts."',
                'my_report["shows"].upper()',
            ),
            "'does_not_show' repeats 'shows'.",
        ),
        Mistake(_changed('"from the worst to the best seed"', '""'), "'spread' is missing."),
        *(
            Mistake(
                _changed('"from the worst to the best seed"', f'"{spread}"'),
                "'spread' does not say how far the seeds are apart.",
            )
            for spread in ("none", "no std", "yes")
        ),
        *(
            Mistake(_changed('"from the worst to the best seed"', f'"{spread}"'), "the best seed hides the others.")
            for spread in ("best seed", "the max", "the best of all seeds")
        ),
    ),
    variants=(
        _changed('"tuned_on": "val"', '"tuned_on": "5-fold cross-validation of train"'),
        *(
            _changed('"tuned_on": "val"', f'"tuned_on": {data}')
            for data in ('"Val"', '["val"]', '"the validation set"', '"a validation part of train"')
        ),
        *(
            _changed('["id", "ood"]', data)
            for data in (
                *('("ood", "id", "corruptions")', '["ID", "OOD"]', '["test", "four shifted looks"]', '"ID and OOD"'),
                *('["id", "inverted", "noisy", "faint", "grainy"]', '["in-distribution", "out-of-distribution"]'),
                '["the task itself: ID", "four shifted looks: OOD"]',
            )
        ),
        *(_changed('"seeds": 10', f'"seeds": {seeds}') for seeds in ("range(10)", "list(range(10))", "(0, 1, 2)")),
        *(
            _changed('"from the worst to the best seed"', f'"{spread}"')
            for spread in ("std", "Standard deviation", "min to max", "max - min", "mean ± 2 SE", "all seeds as dots")
        ),
    ),
    takes="value",
)
