"""`ftp-lab export`: a run as files, for other programs and other people."""

import json
from argparse import ArgumentParser, Namespace
from typing import Any

from ftp.lab.commands._parser import add_store
from ftp.lab.commands._shared import check_target, load_run, put, stored, write
from ftp.lab.progress import say
from ftp.lab.record import LabError, RunRecord
from ftp.lab.run import no_weights
from ftp.lab.store import Store

HELP = "a run as files: its record as JSON, its weights, its figures"
EXAMPLE = "ftp-lab export 1f2e3d4c --out run.json"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="an id, or its first letters; see `ftp-lab runs`")
    parser.add_argument("--out", metavar="FILE", help="the whole record as JSON (standard output)")
    parser.add_argument("--weights", metavar="FILE", help="the weights as safetensors")
    page = ("NAME", "FILE.html")
    parser.add_argument("--figure", metavar=page, nargs=2, action="append", default=[], help="a figure as a page")
    add_store(parser)


def main(options: Namespace) -> int:
    for name, file in options.figure:
        from ftp.lab.figures import find

        find(name)
        if not file.lower().endswith(".html"):
            raise LabError(f"--figure {name} goes to {file!r}; it must be a page, such as --figure {name} {name}.html")
    out = None if options.out == "-" else options.out
    for file in (out, options.weights, *(file for _, file in options.figure)):
        if file is not None:
            check_target(file)
    with stored(options.store) as store:
        record = load_run(store, options.run)
        if options.weights:
            _weights(record, store, options.weights)
        for name, file in options.figure:
            page = _draw(name, record, store).to_html(include_plotlyjs=True, full_html=True)
            write(file, page)
            say(f"wrote {file}")
        if options.out or not (options.weights or options.figure):
            text = json.dumps(store.export(record.run_id), indent=1, allow_nan=False)
            put(text, out)
            if out is not None:
                say(f"wrote {out}")
    return 0


def _weights(record: RunRecord, store: Store, file: str) -> None:
    path = store.weights_path(record.run_id)
    if not path.exists():
        raise LabError(no_weights(record))
    write(file, path.read_bytes())
    say(f"wrote {file}")


def _draw(name: str, record: RunRecord, store: Store) -> Any:
    from ftp.lab.figures import draw, find

    if find(name).needs != "wise":
        return draw(name, record)
    say("walking from the pre-trained weights to those of the run")
    from ftp.lab.wise import wise

    return draw(name, [wise(record, store)])
