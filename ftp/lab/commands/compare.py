"""`ftp-lab compare`: the same small budget of settings for every method, then seeds, then a verdict in words."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ftp.lab.commands._many import run_all, shared_settings, tell_failures
from ftp.lab.commands._parser import add_many, choice, chosen, whole
from ftp.lab.commands._shared import check_target, put, settings_text, store_path, write
from ftp.lab.formats import counted
from ftp.lab.progress import say
from ftp.lab.record import LabError, RunRecord, Settings
from ftp.lab.worlds import default

if TYPE_CHECKING:
    from ftp.lab.store import Store
    from ftp.lab.tuning import Trial

HELP = "tune every method alike, run seeds, and say in words who is ahead; a report to mail"
EXAMPLE = f"ftp-lab compare {default()} --methods finetune,l2_sp,ftp --seeds 3 --tune 4 --report report.html"
TRIALS = 6


def arguments(parser: ArgumentParser) -> None:
    from ftp.lab.tuning import MOST

    add_many(parser, seeds=3)
    tune = whole("--tune", 1, MOST, TRIALS)
    parser.add_argument(
        "--tune", metavar="N", type=tune, default=TRIALS, help=f"settings tried of each method; 1 tries none ({TRIALS})"
    )
    parser.add_argument("--report", metavar="FILE.html", help="a page with figures, for mailing")
    form = choice("--format", ("md", "latex", "csv"))
    parser.add_argument("--format", metavar="F", type=form, default="md", help="of the table: md, latex or csv (md)")


def main(options: Namespace) -> int:
    from ftp.lab.store import Store
    from ftp.lab.table import rows, to_csv, to_latex, to_markdown
    from ftp.lab.verdict import judge
    from ftp.lab.worlds import of

    if options.report:
        if not options.report.lower().endswith((".html", ".htm")):
            raise LabError(f"--report is {options.report!r}; it must be a page, such as --report report.html")
        check_target(options.report)
    methods, shared = chosen(options.methods, options.world), shared_settings(options)
    if len(methods) < 2:
        raise LabError(f"--methods names {methods[0]} alone; name two or more to compare: --methods finetune,ftp")
    remarks = of(_settled(options.world, methods[0], shared, None, 0)).remarks()
    for remark in remarks:
        say(f"look at: {remark}")
    with Store(store_path(options.store)) as store:
        tried = {m: [] for m in methods} if options.tune == 1 else _tune(methods, shared, store, options)
        best = {m: _best(trials) for m, trials in tried.items()}
        wanted = [_settled(options.world, m, shared, best[m], seed) for seed in range(options.seeds) for m in methods]
        outcomes = run_all(wanted, store, options)
        records = [store.load(outcome.run_id) for outcome in outcomes if not outcome.error]
    if records:
        verdict = judge(records)
        put({"md": to_markdown, "latex": to_latex, "csv": to_csv}[options.format](rows(records)))
        say(f"{verdict.headline}\n\n{verdict.paragraph}\n\n{verdict.limits}")
        if options.report:
            write(options.report, _page(options, records, tried, best, remarks))
            say(f"wrote {options.report}")
    return tell_failures(outcomes)


def _tune(
    methods: Sequence[str], shared: Mapping[str, Any], store: "Store", options: Namespace
) -> dict[str, list["Trial"]]:
    """Run every trial, without damaged pictures; what each gave on home validation. One that fails gave nothing."""
    from ftp.lab.tuning import trials
    from ftp.lab.worlds import of

    planned = {m: trials(options.world, m, options.tune, shared) for m in methods}
    settings = [trial.settings for tried in planned.values() for trial in tried]
    if not of(settings[0]).measures.splits("val"):
        raise LabError(f"the world {options.world} has no validation set to choose settings by; write --tune 1")
    say(f"tuning: {counted(options.tune, 'setting')} of each of {len(methods)} methods, chosen by home validation")
    outcomes = {outcome.settings: outcome for outcome in run_all(settings, store, options, kinds=())}
    results = {
        record.run_id: record.result or {} for record in store.runs(world=options.world, status="done", limit=None)
    }
    scored: dict[str, list[Trial]] = {}
    for method, tried in planned.items():
        ids = [outcomes[trial.settings].run_id for trial in tried]
        values = [results.get(run, {}).get("val") for run in ids]
        scored[method] = [
            replace(trial, run_id=run, val=float("nan") if value is None else float(value))
            for trial, run, value in zip(tried, ids, values, strict=True)
        ]
    return scored


def _best(tried: Sequence["Trial"]) -> "Trial | None":
    from ftp.lab.tuning import best
    from ftp.lab.worlds import of

    return best(tried, of(tried[0].settings).measures.main) if tried else None


def _settled(world: str, method: str, shared: Mapping[str, Any], trial: "Trial | None", seed: int) -> Settings:
    from ftp.lab.settings import resolve

    return resolve(world, method, {**shared, **(trial.changed if trial else {}), "seed": seed})


def _page(
    options: Namespace,
    records: Sequence[RunRecord],
    tried: Mapping[str, Sequence["Trial"]],
    best: Mapping[str, "Trial | None"],
    remarks: Sequence[str],
) -> str:
    from ftp.lab.report import Page, Tried, to_html
    from ftp.lab.worlds import of

    world = of(records[0].settings)
    metric = world.measures.main
    lines = [
        Tried(method, settings_text(trial.changed.items()), metric.text(trial.val), trial is best[method])
        for method, trials in tried.items()
        for trial in trials
    ]
    facts = {"world": f"{world.name}: {world.title}", "licence": world.licence}
    facts |= {f"odd about the data, {n}": remark for n, remark in enumerate(remarks, start=1)}
    facts |= {"shared settings": settings_text(shared_settings(options).items())} if shared_settings(options) else {}
    return to_html(Page(f"{world.title}: which way to fine-tune?", records, lines, options.command, facts))
