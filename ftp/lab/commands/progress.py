"""`ftp-lab progress`: which exercises of the course were solved on this machine, and which is next."""

from argparse import ArgumentParser, Namespace

from ftp.lab.commands._shared import put

HELP = "how far you are in the course: exercises solved and guesses made on this machine"
EXAMPLE = "ftp-lab progress"


def arguments(parser: ArgumentParser) -> None:
    del parser  # it takes none


def main(options: Namespace) -> int:
    from ftp.lab.solved import progress

    del options
    put(progress())
    return 0
