"""`ftp-lab example`: a tree of pictures that comes with the kit, to try a comparison on."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ftp.lab import worlds
from ftp.lab.commands._parser import choice
from ftp.lab.commands._shared import columns, put
from ftp.lab.progress import say
from ftp.lab.record import LabError
from ftp.lab.registry import unknown

HELP = "unpack an example: emoji of six artists as a tree of class folders"
EXAMPLE = "ftp-lab example emoji pictures"
NAMES = ("emoji",)
FORMS = ("things", "kinds")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="emoji")
    parser.add_argument("path", metavar="PATH", help="a folder that is empty or not there yet")
    form = choice("--form", FORMS)
    parser.add_argument(
        "--form",
        metavar="F",
        type=form,
        default=FORMS[0],
        help=f"things: which emoji is it; kinds: ten classes ({FORMS[0]})",
    )


def main(options: Namespace) -> int:
    if options.name not in NAMES:
        raise LabError(unknown("example", options.name, NAMES))
    from ftp.lab.emoji.tree import write

    folder = Path(options.path).expanduser()
    try:
        counts = write(folder, options.form)
    except OSError as error:
        raise LabError(f"{folder} cannot be written ({error.strerror}); name another folder") from None
    put(columns([["pictures", "in"], *([str(count), f"{folder / part}"] for part, count in counts.items())], right=[0]))
    world = next(name for name in worlds.names() if worlds.world(name).own)
    say(f"next: ftp-lab doctor --data {folder}, or: ftp-lab compare {world} --set data={folder} --methods finetune,ftp")
    return 0
