"""`ftp-lab sweep`: a grid of settings, one line per run."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ftp.lab.commands._many import finished, run_all, shared_settings, tell_failures
from ftp.lab.commands._parser import add_many, choice, chosen, listed
from ftp.lab.commands._shared import columns, number, put, store_path
from ftp.lab.formats import to_csv
from ftp.lab.record import LabError
from ftp.lab.worlds import default

if TYPE_CHECKING:
    from ftp.lab.sweep import Outcome

HELP = "a grid of settings, one line for each run"
EXAMPLE = f"ftp-lab sweep {default()} --methods ftp --over lr=0.01,0.1 --over k=0,1"
NUMBERS = ("val", "id", "ood_avg", "corruption_avg", "seconds_per_step")


def arguments(parser: ArgumentParser) -> None:
    add_many(parser, seeds=1, choose=True)
    parser.add_argument(
        "--over",
        metavar="NAME=V,V",
        type=listed,
        action="append",
        default=[],
        help="values of a setting that are tried; give it once for each setting",
    )
    form = choice("--format", ("text", "csv"))
    parser.add_argument("--format", metavar="F", type=form, default="text", help="text or csv (text)")


def main(options: Namespace) -> int:
    from ftp.lab.store import Store
    from ftp.lab.sweep import grid

    shared = shared_settings(options)
    over: dict[str, Any] = {}
    for name, values in options.over:
        if name in over or name in shared:
            raise LabError(f"{name} is given twice; give it once, with all its values: --over {name}=1,2")
        if name == "seed":
            raise LabError("seed is given by --over; it must be given by --seeds, such as --seeds 3 for 0, 1 and 2")
        over[name] = values
    wanted = grid(
        chosen(options.methods, options.world),
        world=options.world,
        seeds=range(options.seeds),
        over=over,
        changes=shared,
    )
    with Store(store_path(options.store)) as store:
        outcomes = run_all(wanted, store, options)
        results = {run: record.result for run, record in finished(store, options.world).items()}
    lines = [_line(outcome, results.get(outcome.run_id) or {}, ("method", "seed", *over)) for outcome in outcomes]
    put(to_csv(lines) if options.format == "csv" else _text(lines))
    return tell_failures(outcomes)


def _line(outcome: "Outcome", result: Any, names: Sequence[str]) -> dict[str, Any]:
    settings = outcome.settings.as_dict()
    line = {"run_id": outcome.run_id, **{name: settings.get(name, "") for name in names}}
    return line | {name: result.get(name) for name in NUMBERS} | {"error": outcome.error}


def _text(lines: Sequence[dict[str, Any]]) -> str:
    shown = [name for name in lines[0] if name not in ("run_id", "error", *NUMBERS)]
    head = ("run", *shown, "val", "ID", "OOD avg.")
    rows = [
        (line["run_id"], *(str(line[name]) for name in shown), *(number(line[name]) for name in NUMBERS[:3]))
        for line in lines
    ]
    return columns([head, *rows], right=range(len(shown) + 1, len(head)))
