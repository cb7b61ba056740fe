"""`ftp-lab table`: the paper's table, made of runs."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ftp.lab.commands._many import run_all, shared_settings, tell_failures
from ftp.lab.commands._parser import add_many, choice, chosen
from ftp.lab.commands._shared import put, store_path
from ftp.lab.record import LabError
from ftp.lab.registry import unknown
from ftp.lab.worlds import default, world

if TYPE_CHECKING:
    from ftp.lab.record import RunRecord

HELP = "the paper's table: all methods, several seeds"
EXAMPLE = f"ftp-lab table {default()} --methods finetune,ftp --seeds 5"


def arguments(parser: ArgumentParser) -> None:
    add_many(parser, seeds=3)
    form = choice("--format", ("md", "latex", "csv"))
    parser.add_argument("--format", metavar="F", type=form, default="md", help="md, latex or csv (md)")
    parser.add_argument("--metric", metavar="NAME", help="another metric of the world (the main one)")


def main(options: Namespace) -> int:
    from ftp.lab.store import Store
    from ftp.lab.sweep import grid
    from ftp.lab.table import in_metric
    from ftp.lab.worlds import of

    changes, seeds = shared_settings(options), range(options.seeds)
    wanted = grid(chosen(options.methods, options.world), world=options.world, seeds=seeds, changes=changes)
    if not options.methods:  # rows that are other settings of a method
        for method, differs in world(options.world).beside.values():
            if not changes.keys() & differs.keys():
                wanted += grid([method], world=options.world, seeds=seeds, changes={**changes, **differs})
    if options.metric:  # one that is not there is told before anything is trained
        known = [metric.name for metric in of(wanted[0]).metrics]
        if options.metric not in known:
            raise LabError(unknown("--metric", options.metric, known))
    with Store(store_path(options.store)) as store:
        outcomes = run_all(wanted, store, options)
        records = [store.load(outcome.run_id) for outcome in outcomes if not outcome.error]
    if records:
        put(_text(in_metric(records, options.metric) if options.metric else records, options.format))
    return tell_failures(outcomes)


def _text(records: "list[RunRecord]", form: str) -> str:
    """The paper's Tab. 1 or, for tasks in a row, its Tab. 5."""
    from ftp.lab import table, task_table

    if task_table.are_in_tasks(records):
        in_tasks = task_table.task_table(records)
        forms = {"md": task_table.to_markdown, "latex": task_table.to_latex, "csv": task_table.to_csv}
        return forms[form](in_tasks)
    return {"md": table.to_markdown, "latex": table.to_latex, "csv": table.to_csv}[form](table.rows(records))
