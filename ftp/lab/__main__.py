"""The command line `ftp-lab`, also `python -m ftp.lab`; its commands are the files in `ftp.lab.commands`.

Exit codes: 0 all went well, 1 some of it did not, 2 the input was wrong, 130 stopped by Ctrl-C.
"""

import os
import shlex
import sys
import traceback
from collections.abc import Sequence

from ftp.lab import commands
from ftp.lab.commands._parser import Parser
from ftp.lab.commands._shared import first_run
from ftp.lab.progress import say
from ftp.lab.record import LabError


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the words say and return the exit code; whatever goes wrong is one sentence on standard error.

    >>> main(["rnu"])  # says: command is 'rnu'; did you mean run?
    2
    """
    try:
        return _dispatch(list(sys.argv[1:] if argv is None else argv))
    except LabError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt as error:
        say(str(error) or "stopped by Ctrl-C; what was done is kept")
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("FTP_DEBUG"):
            traceback.print_exc()
        say(_surprise(error))
        return 1


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return 0
    if words[0] == "--version":
        import ftp

        print(f"ftp-kit {ftp.__version__}")
        return 0
    if words[0].startswith("-"):
        Parser("ftp-lab").parse(words)  # which says what was meant
    command = commands.command(words[0])
    parser = Parser(f"ftp-lab {words[0]}", command.HELP, command.EXAMPLE)
    command.arguments(parser)
    try:
        options = parser.parse(words[1:])
    except SystemExit:  # --help has been printed
        return 0
    options.command = shlex.join(["ftp-lab", *words])  # for telling how to go on
    return command.main(options)


def _surprise(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and not (error.name or "ftp").startswith("ftp"):
        return f"{error.name} is not installed; write: pip install 'ftp-kit[lab]'"
    detail = (str(error).splitlines() or ["no details"])[0]
    return f"this should not have happened ({type(error).__name__}: {detail}); set FTP_DEBUG=1 to see where it did"


def _overview() -> str:
    lines = [f"  {name:9}{commands.command(name).HELP}" for name in commands.names()]
    head = "ftp-lab COMMAND ...: fine-tune on a learned leash, and see what survives."
    tail = f"ftp-lab COMMAND --help says more. Begin with: {first_run()}"
    return "\n".join([head, "", *lines, "", tail])


def script() -> None:
    """The entry point of `ftp-lab`: a reader that goes away (`| head`) ends it without a word."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that has no γ shows its number
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the last flush complains
        code = 141
    sys.exit(code)


if __name__ == "__main__":
    script()
