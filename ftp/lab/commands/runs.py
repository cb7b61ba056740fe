"""`ftp-lab runs`: what the store holds, newest first; and names and the bin."""

import contextlib
import json
import time
from argparse import ArgumentParser, Namespace

from ftp.lab.commands._parser import add_store, choice, whole
from ftp.lab.commands._shared import (
    check_target,
    columns,
    differing,
    find_run,
    first_run,
    put,
    settings_text,
    store_path,
    stored,
    with_unit,
)
from ftp.lab.formats import duration
from ftp.lab.progress import say
from ftp.lab.record import STATUSES, LabError, RunRecord, finite

HELP = "the runs in the store, newest first; also: runs resume, rename, delete, undelete, purge"
EXAMPLE = "ftp-lab runs --method ftp --status done"
FORMS = {"rename": "runs rename RUN NAME", "delete": "runs delete RUN", "undelete": "runs undelete RUN"}
FORMS |= {"purge": "runs purge RUN", "resume": "runs resume RUN"}


def arguments(parser: ArgumentParser) -> None:
    forms = "nothing, or: resume RUN (also one that an older version began), rename RUN NAME, delete RUN, "
    forms += "undelete RUN, purge RUN (removes it for good, files included)"
    parser.add_argument("words", metavar="WORD", nargs="*", help=forms)
    parser.add_argument("--world", metavar="W", help="only runs in this world")
    parser.add_argument("--method", metavar="M", help="only runs of this method")
    parser.add_argument("--status", metavar="S", type=choice("--status", STATUSES), help=f"{', '.join(STATUSES)}")
    parser.add_argument("--limit", metavar="N", type=whole("--limit", 1, 10**6, 50), default=50, help="lines (50)")
    parser.add_argument("--deleted", action="store_true", help="what is in the bin")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="as JSON, to standard output or a file")
    add_store(parser)


def main(options: Namespace) -> int:
    from ftp.lab import methods, worlds

    if options.words:
        return _change(options)
    if options.world is not None:
        worlds.world(options.world)
    if options.method is not None:
        methods.method(options.method)
    if options.json not in (None, "-"):
        check_target(options.json)
    records = _records(options)
    if options.json:
        put(json.dumps([_plain(record) for record in records], indent=2, allow_nan=False), options.json)
    elif records:
        put(_text(records))
    else:
        say(f"no such runs in {store_path(options.store)}; make one with: {first_run()}")
    if len(records) == options.limit:
        say(f"these are the newest {options.limit}; --limit shows more")
    return 0


def _records(options: Namespace) -> list[RunRecord]:
    if not store_path(options.store).exists():
        return []
    with stored(options.store) as store:
        with contextlib.suppress(LabError):  # a store that can only be read is shown as it is
            store.sweep_stale()
        filters = {"world": options.world, "method": options.method, "status": options.status}
        return store.runs(limit=options.limit, deleted=options.deleted, **filters)


def _change(options: Namespace) -> int:
    """rename, delete, undelete, purge, resume."""
    what, *rest = options.words
    if what not in FORMS or len(rest) != (2 if what == "rename" else 1):
        forms = [FORMS[what]] if what in FORMS else FORMS.values()
        raise LabError(f"runs is followed by {' '.join(options.words)!r}; it must be {', or '.join(forms)}, or nothing")
    with stored(options.store) as store:
        run = find_run(store, rest[0], deleted=what == "undelete")
        if what == "resume":
            from ftp.lab.commands.run import resume

            return resume(store, run)
        if what == "purge":
            store.delete(run)
            store.purge(run_id=run)
            say(f"run {run} and its files are gone for good")
            return 0
        if what == "rename":
            store.rename(run, rest[1])
            say(f"run {run} is now called {rest[1]!r}")
        elif what == "delete":
            store.delete(run)
            say(f"run {run} is in the bin; it comes back with: ftp-lab runs undelete {run}")
        else:
            store.undelete(run)
            say(f"run {run} is out of the bin")
    return 0


def _text(records: list[RunRecord]) -> str:
    now = time.time()
    rows = [("run", "status", "world", "method", "seed", "ID", "OOD avg.", "made", "")]
    for record in records:
        settings, result = record.settings, record.result or {}
        unit = str(result.get("metric", {}).get("unit", ""))
        numbers = with_unit(result.get("id"), unit), with_unit(result.get("ood_avg"), unit)
        more = [record.name, settings_text(differing(record)), " ".join(record.error.split())]
        shown = (record.run_id, record.status, settings.world, settings.method, str(settings.seed), *numbers)
        rows.append((*shown, _ago(now - record.created), "; ".join(part for part in more if part)))
    return columns(rows, right=[4, 5, 6, 7])


def _ago(seconds: float) -> str:
    return f"{duration(seconds)} ago" if seconds < 2 * 86400 else f"{seconds / 86400:.0f} days ago"


def _plain(record: RunRecord) -> dict[str, object]:
    same = ("run_id", "status", "name", "error", "created", "started", "ended", "result")
    plain = {name: getattr(record, name) for name in same}
    return finite({**plain, "settings": record.settings.as_dict()})  # type: ignore[no-any-return]
