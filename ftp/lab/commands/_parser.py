"""Arguments: argparse with one sentence for each mistake, and the options that several commands share."""

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ftp.lab.record import LabError
from ftp.lab.registry import nearest, unknown


class Parser(argparse.ArgumentParser):
    """A parser that raises what is wrong as a `LabError`, instead of printing its usage.

    >>> parser = Parser("ftp-lab run", "fine-tune once", "ftp-lab run digits")
    >>> _ = parser.add_argument("--seed", type=whole("--seed", 0, 9, 3))
    >>> parser.parse(["--sed", "1"])
    Traceback (most recent call last):
    ftp.lab.record.LabError: ftp-lab run has no option --sed; did you mean --seed?
    """

    def __init__(self, prog: str, about: str = "", example: str = "") -> None:
        self.example = example
        tail = f"In brackets: what holds if nothing is said. Example: {example}"
        super().__init__(prog=prog, description=about, epilog=tail, allow_abbrev=False)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The options in the words after the command."""
        known = sorted(self._option_string_actions)
        for word in words:
            if word == "--":
                break
            name = word.partition("=")[0]
            if re.match(r"-[^\d.]", name) and name not in known:
                raise LabError(f"{self.prog} has no option {name}; {_meant(name, known)}")
        options, rest = self.parse_known_args(words)
        if rest:
            raise LabError(f"{self.prog} has no use for {rest[0]!r}; write it as in: {self.example}")
        return options

    def error(self, message: str) -> NoReturn:
        """argparse's own remarks, in our form."""
        if match := re.match(r"the following arguments are required: ([^,]+)", message):
            raise LabError(f"{self.prog} needs {match[1].split('/')[-1]}; write it as in: {self.example}")
        if match := re.match(r"argument (\S+): expected (\d*)", message):
            raise LabError(
                f"{match[1]} needs {match[2] + ' values' if match[2] else 'a value'}; see: {self.prog} --help"
            )
        if match := re.match(r"argument \S+: (.*; .*)", message):  # one of the types below
            raise LabError(match[1])
        raise LabError(f"{message}; see: {self.prog} --help")


def _meant(name: str, known: Sequence[str]) -> str:
    """What a person may have meant by an option that is not there: a setting, or the nearest option."""
    from ftp.lab.settings import settings_anywhere

    options, setting = [option for option in known if option.startswith("--")], name.lstrip("-").replace("-", "_")
    is_slip = difflib.get_close_matches(name, options, n=1, cutoff=0.9)  # --seed of a command that has --seeds
    if not is_slip and "--set" in known and setting in settings_anywhere():
        return f"{setting} is a setting: write --set {setting}=VALUE"
    return nearest(name, options)


def whole(name: str, low: int, high: int, example: int) -> Callable[[str], int]:
    """The type of an option that is a whole number.

    >>> whole("--seeds", 1, 100, 3)("5")
    5
    """

    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not low <= int(text) <= high:
            allowed = f"it must be a whole number from {low} to {high}, such as {name} {example}"
            raise argparse.ArgumentTypeError(f"{name} is {text!r}; {allowed}")
        return int(text)

    return read


def choice(name: str, allowed: Sequence[str]) -> Callable[[str], str]:
    """The type of an option that is one of a few words.

    >>> choice("--format", ["md", "csv"])("csv")
    'csv'
    """

    def read(text: str) -> str:
        if text not in allowed:
            raise argparse.ArgumentTypeError(unknown(name, text, allowed))
        return text

    return read


def device(text: str) -> str:
    """The type of --device; whether the machine has it is seen later.

    >>> device("cuda:1")
    'cuda:1'
    """
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,2})?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"--device is {text!r}; it must be auto, cpu, cuda, cuda:1 or mps")
    return text


def pair(text: str) -> tuple[str, str]:
    """The type of --set: name=value.

    >>> pair("lr=0.1")
    ('lr', '0.1')
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"--set is {text!r}; it must be name=value, such as --set lr=0.05")
    return name, value


def listed(text: str) -> tuple[str, list[str]]:
    """The type of --over: name=value,value.

    >>> listed("lr=0.1,0.2")
    ('lr', ['0.1', '0.2'])
    """
    name, _, values = (part.strip() for part in text.partition("="))
    choices = [value.strip() for value in values.split(",")]
    if not (name and all(choices)):
        raise argparse.ArgumentTypeError(f"--over is {text!r}; it must be name=value,value, such as --over lr=0.01,0.1")
    return name, choices


def add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="FILE", help="where runs are kept ($FTP_STORE, or your data folder)")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Options that change the settings of runs; `written_settings` reads them."""
    parser.add_argument("--labels", metavar="SHARE", help="the share of the training labels, such as 0.1 (1.0)")
    parser.add_argument(
        "--set",
        dest="pairs",
        metavar="NAME=VALUE",
        type=pair,
        action="append",
        default=[],
        help="any setting that `ftp-lab recipe WORLD METHOD` shows; as often as you like",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="D", type=device, default="auto", help="auto, cpu, cuda, cuda:1 or mps (auto)"
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", metavar="N", type=whole("--threads", 1, 1024, 1), default=1, help="of torch (1)")


def add_world(parser: argparse.ArgumentParser) -> None:
    from ftp.lab.worlds import default

    parser.add_argument("world", metavar="WORLD", help=f"such as {default()}; `ftp-lab list worlds` shows them")


def add_many(parser: argparse.ArgumentParser, *, seeds: int, choose: bool = False) -> None:
    """Options of commands that make many runs. `choose`: the methods must be named."""
    add_world(parser)
    which = "such as finetune,ftp; `ftp-lab list methods` shows them" + ("" if choose else " (all)")
    parser.add_argument("--methods", metavar="M", nargs="+", required=choose, help=which)
    count = whole("--seeds", 1, 1000, 5)
    parser.add_argument("--seeds", metavar="N", type=count, default=seeds, help=f"0 to N - 1 ({seeds})")
    parser.add_argument("--jobs", metavar="N", type=whole("--jobs", 1, 4096, 2), help="runs at a time (one per core)")
    backend = choice("--backend", ("processes", "ray", "dask"))
    parser.add_argument(
        "--backend", metavar="B", type=backend, default="processes", help="processes, ray or dask (processes)"
    )
    add_settings(parser)
    add_device(parser)
    add_store(parser)


def written_settings(options: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """The settings that were written, each once; `more` are those that have options of their own.

    >>> written_settings(argparse.Namespace(pairs=[("lr", "0.1")], labels=None), seed=1)
    {'lr': '0.1', 'seed': 1}
    """
    written: list[tuple[str, Any]] = [*options.pairs, ("labels", options.labels), *more.items()]
    changes: dict[str, Any] = {}
    for name, value in written:
        if value is not None:
            if name in changes:
                raise LabError(f"{name} is given twice, as {changes[name]} and as {value}; give it once")
            changes[name] = value
    return changes


def chosen(methods: Sequence[str] | None, world: str) -> list[str]:
    """The methods that --methods names, with commas or spaces; if it names none, those recorded, or all that fit.

    >>> chosen(["ftp,finetune", "tpgm"], "digits")
    ['ftp', 'finetune', 'tpgm']
    """
    from ftp.lab.methods import fitting, method
    from ftp.lab.recordings import described
    from ftp.lab.worlds import load

    table = described(world).get("methods")
    usual = (table.methods if table else ()) or fitting(load(world))
    method_names = [name for part in methods or usual for name in part.split(",") if name]
    if not method_names:
        raise LabError(
            f"--methods is {' '.join(methods or ())!r} and names none; write it as in: --methods finetune,ftp"
        )
    for name in method_names:
        no_wise(name)
        method(name)
    return list(dict.fromkeys(method_names))


def no_wise(method: str) -> None:
    """WiSE is among the paper's methods, but nothing is trained for it: say where it is."""
    if method == "wise":
        raise LabError("method is 'wise', which is no training; walk over a finished run with: ftp-lab wise RUN")
