"""`ftp-lab table`: the paper's table, made of runs."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ftp.lab.commands._many import run_all, shared_settings, tell_failures
from ftp.lab.commands._parser import add_many, choice, chosen
from ftp.lab.commands._shared import put, store_path
from ftp.lab.commands._timing import at_a_time
from ftp.lab.progress import say
from ftp.lab.record import LabError
from ftp.lab.registry import unknown
from ftp.lab.worlds import default, world

if TYPE_CHECKING:
    from ftp.lab.figures import WiseCurve
    from ftp.lab.record import RunRecord
    from ftp.lab.store import Store

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
        curves = _walked(records, store, options) if records else {}
    if records:
        shown = in_metric(records, options.metric) if options.metric else records
        put(_text(shown, options.format, curves))
    return tell_failures(outcomes)


def _walked(records: "list[RunRecord]", store: "Store", options: Namespace) -> "dict[str, WiseCurve]":
    """The way of fine-tuning and of FTP from the pre-trained model, if that is a model of its own; else none."""
    from ftp.lab import worlds
    from ftp.lab.alpha import IN_TABLE, RULES, WALKED, is_whole

    chosen_runs = [r for r in records if r.settings.method in WALKED and is_whole(worlds.of(r.settings))]
    if not chosen_runs:
        return {}
    say(
        f"walking from the pre-trained model to {len(chosen_runs)} fine-tuned ones (WiSE); alpha is chosen in two ways:"
    )
    for name in IN_TABLE:
        say(f"  {RULES[name].title}: looks at {RULES[name].sees}")
    from ftp.lab.train import pick_device
    from ftp.lab.wise import walked

    device = str(pick_device(options.device))
    return walked(chosen_runs, store, at_a_time(options.jobs, len(chosen_runs)), device)


def _text(records: "list[RunRecord]", form: str, curves: "dict[str, WiseCurve]") -> str:
    """The paper's Tab. 1 and 3 or, for tasks in a row, its Tab. 5."""
    from ftp.lab import alpha, robustness, table, task_table

    if task_table.are_in_tasks(records):
        in_tasks = task_table.task_table(records)
        forms = {"md": task_table.to_markdown, "latex": task_table.to_latex, "csv": task_table.to_csv}
        return forms[form](in_tasks)
    line = robustness.line_of(records[0].settings.world)
    above = line.above if line else None
    rows = table.rows(records, lambda group: alpha.rows_of(group, curves, above), above)
    beyond = [row.name for row in rows if line and not line.covers(row.id.mean)]
    if line and beyond:
        span = f"{line.low:.1f} to {line.high:.1f}"
        say(f"effective robustness: its line was fitted for home scores of {span}, and is continued for: ")
        say(f"  {'; '.join(beyond)}")
    return {"md": table.to_markdown, "latex": table.to_latex, "csv": table.to_csv}[form](rows)
