"""`ftp-lab table`: the paper's table, made of runs."""

from argparse import ArgumentParser, Namespace

from ftp.lab.commands._many import run_all, shared_settings, tell_failures
from ftp.lab.commands._parser import add_many, choice, chosen
from ftp.lab.commands._shared import put, store_path

HELP = "the paper's table: all methods, several seeds"
EXAMPLE = "ftp-lab table digits --methods finetune,ftp --seeds 5"


def arguments(parser: ArgumentParser) -> None:
    add_many(parser, seeds=3)
    form = choice("--format", ("md", "latex", "csv"))
    parser.add_argument("--format", metavar="F", type=form, default="md", help="md, latex or csv (md)")


def main(options: Namespace) -> int:
    from ftp.lab.store import Store
    from ftp.lab.sweep import grid
    from ftp.lab.table import rows, to_csv, to_latex, to_markdown

    wanted = grid(
        chosen(options.methods), world=options.world, seeds=range(options.seeds), given=shared_settings(options)
    )
    with Store(store_path(options.store)) as store:
        outcomes = run_all(wanted, store, options)
        records = [store.load(outcome.run_id) for outcome in outcomes if not outcome.error]
    if records:
        put({"md": to_markdown, "latex": to_latex, "csv": to_csv}[options.format](rows(records)))
    return tell_failures(outcomes)
