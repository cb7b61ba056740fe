"""`ftp-lab recipe`: how the settings of a world's methods were chosen."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ftp.lab.commands._parser import add_world, pair
from ftp.lab.commands._shared import columns, number, put, settings_text
from ftp.lab.record import LabError
from ftp.lab.registry import unknown
from ftp.lab.worlds import default

if TYPE_CHECKING:
    from ftp.lab.options import Option

HELP = "how the settings of a world were chosen: the grid, the outcome, the choice"
EXAMPLE = f"ftp-lab recipe {default()} ftp"
EVERY = "every method"  # in a published sheet: what all of them share


def arguments(parser: ArgumentParser) -> None:
    add_world(parser)
    parser.add_argument("method", metavar="METHOD", nargs="?", help="all trials of this one (a line for each method)")
    parser.add_argument(
        "--set",
        dest="pairs",
        metavar="NAME=VALUE",
        type=pair,
        action="append",
        default=[],
        help="an option of the world, where recipes differ with it",
    )


def main(options: Namespace) -> int:
    from ftp.lab import methods, recipes, worlds
    from ftp.lab.settings import parse, scale

    world = options.world
    worlds.world(world)  # one that is not there is told
    if options.method:
        methods.method(options.method)
    given = {name: parse(name, value, _option(world, name)) for name, value in options.pairs}
    sheet = recipes.tuned(world, scale(), given)
    if not sheet:
        head = f"{world} has no tuned recipe at scale {scale()}, so runs use the settings of the world and the methods."
    elif "published" in sheet:
        head = _published(sheet, world, given, options.method)
    elif options.method:
        head = _trials(sheet, options.method)
    else:
        head = _overview(sheet)
    if sheet and "published" not in sheet and scale() not in recipes.sheet(world):
        head = f"Nothing was tuned at scale {scale()}: a run takes the settings tuned at scale quick.\n\n{head}"
    use = _in_use(world, options.method, given) if options.method else ""
    put("\n\n".join(part for part in (_division(world, given), head, use) if part))
    return 0


def _published(sheet: Mapping[str, Any], world: str, given: Mapping[str, Any], method: str | None) -> str:
    """Settings that were printed, not tuned, and the source of each."""
    from ftp.lab.settings import known

    rows = [("method", "setting", "value", "source")]
    for name, sources in sheet["source"].items():
        if method in (None, name) or name == EVERY:
            used = {row.name: row.value for row in known(world, "finetune" if name == EVERY else name, given)}
            values = {**used, **sheet["recipe"].get(name, {})}
            rows += [(name, key, str(values.get(key, "")), source) for key, source in sources.items()]
    return "\n".join([f"Published: {sheet['published']}", *([columns(rows)] if len(rows) > 1 else [])])


def _option(world: str, name: str) -> "Option":
    """An option of the world; one that is not there is told."""
    from ftp.lab.worlds import world as world_class

    known = world_class(world).options
    if name not in known:
        raise LabError(unknown(f"the option of {world}", name, known) if known else f"{world} has no options")
    return known[name]


def _division(world: str, given: Mapping[str, Any]) -> str:
    """For which value of an option this recipe is, and what the others are; "" where recipes do not differ."""
    from ftp.lab import recipes
    from ftp.lab.settings import scale

    scales = recipes.sheet(world)
    tuning = scales.get(scale()) or scales.get("quick", {})
    if "divided_by" not in tuning:
        return ""
    name, parts = tuning["divided_by"], list(tuning["parts"])
    shown = given.get(name, parts[0])
    others = " or ".join(f"{name}={value}" for value in parts if value != shown)
    more = f"; for the others add --set {others}" if others else ""
    return f"There is a recipe for each {name}. This is {name}={shown}{more}."


def _overview(sheet: Mapping[str, Any]) -> str:
    """What was spent on every method, and a line for each."""
    from ftp.lab.methods import names

    known = [*names(), *sheet.get("grid", {}), *sheet.get("recipe", {})]
    rows = [("method", "tried", "val", "choice", "grid")]
    for name in dict.fromkeys(known):
        trials = sheet.get("outcome", {}).get(name, [])
        choice = sheet.get("recipe", {}).get(name, {})
        grid = sheet.get("grid", {}).get(name, {})
        if trials or choice or grid:
            values = "; ".join(f"{setting}: {' '.join(map(str, tried))}" for setting, tried in grid.items())
            best: Mapping[str, Any] = next((trial for trial in trials if _is_chosen(trial, choice)), {})
            rows.append((name, str(len(trials)), number(best.get("val_mean")), settings_text(choice.items()), values))
    return "\n".join([_budget(sheet), columns(rows, right=[1, 2])])


def _budget(sheet: Mapping[str, Any]) -> str:
    """What was spent on every method."""
    budget = sheet.get("budget", {})
    lines = ["Chosen on ID validation alone, with the same budget for every method:"]
    lines += [f"  {name.replace('_', ' ')}: {_value(value)}" for name, value in budget.items()]
    return "\n".join(lines)


def _value(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _trials(sheet: Mapping[str, Any], method: str) -> str:
    """All trials of a method, best first."""
    trials = sheet.get("outcome", {}).get(method, [])
    choice = sheet.get("recipe", {}).get(method, {})
    if not trials:
        return f"{method} was not tuned here."
    rows = [("val", "of each seed", "settings", "")]
    sign = -1 if sheet.get("higher_is_better", True) else 1
    for trial in sorted(trials, key=lambda trial: sign * (trial.get("val_mean") or 0.0)):
        seeds = " ".join(number(value) for value in trial.get("val", []))
        mark = "<- chosen" if _is_chosen(trial, choice) else ""
        rows.append((number(trial.get("val_mean")), seeds, settings_text(trial["settings"].items()), mark))
    return "\n".join([_budget(sheet), columns(rows, right=[0])])


def _is_chosen(trial: Mapping[str, Any], choice: Mapping[str, Any]) -> bool:
    return bool(choice) and all(choice.get(name) == value for name, value in trial["settings"].items())


def _in_use(world: str, method: str, given: Mapping[str, Any]) -> str:
    """Every setting of a run, and where its value comes from."""
    from ftp.lab.settings import known

    rows = [(row.name, str(row.value), f"({row.source})", row.option.help) for row in known(world, method, given)]
    return "\n".join([f"A run of {method} uses:", columns(rows, right=[1], indent="  ")])
