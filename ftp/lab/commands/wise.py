"""`ftp-lab wise`: the straight way from the pre-trained weights to those of a run."""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING

from ftp.lab.commands._parser import add_device, add_store, add_threads, whole
from ftp.lab.commands._shared import check_target, columns, load_run, number, put, stored
from ftp.lab.progress import Progress
from ftp.lab.record import finite

if TYPE_CHECKING:
    from ftp.lab.figures import WiseCurve

HELP = "walk from the pre-trained weights to those of a run (WiSE)"
EXAMPLE = "ftp-lab wise 1f2e3d4c --alphas 11"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="an id, or its first letters; see `ftp-lab runs`")
    parser.add_argument(
        "--alphas", metavar="N", type=whole("--alphas", 2, 1001, 11), default=11, help="points on the way (11)"
    )
    images = whole("--images", 10, 1_000_000, 500)
    parser.add_argument("--images", metavar="N", type=images, default=500, help="of each set (500)")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="as JSON, to standard output or a file")
    add_device(parser)
    add_threads(parser)
    add_store(parser)


def main(options: Namespace) -> int:
    if options.json not in (None, "-"):
        check_target(options.json)
    with stored(options.store) as store:
        record = load_run(store, options.run)
        import torch

        from ftp.lab import worlds
        from ftp.lab.alpha import HOME_ONLY, RULES
        from ftp.lab.train import pick_device
        from ftp.lab.wise import wise

        torch.set_num_threads(options.threads)
        alphas = [i / (options.alphas - 1) for i in range(options.alphas)]
        device = str(pick_device(options.device))
        world = worlds.of(record.settings)
        for name in (*world.measures.splits("val"), world.home, *world.shifts):
            world.split(name)  # loaded before the clock of the bar starts
        with Progress(len(alphas), "points") as progress:
            ended: list[float] = []

            def show(alpha: float) -> None:
                ended.append(alpha)
                progress.at(len(ended))

            curve = wise(record, store, alphas, device=device, limit=options.images, progress=show)
    picked = {rule.name: rule.choose(curve) for rule in RULES.values() if curve.val or rule.sees != HOME_ONLY}
    if options.json:
        numbers = asdict(curve) | {"best": picked["best_mean"], "chosen": picked}
        put(json.dumps(finite(numbers), indent=2, allow_nan=False), options.json)
    if options.json != "-":
        put(_text(curve, picked))
    return 0


def _text(curve: "WiseCurve", picked: dict[str, float]) -> str:
    """The curve, and what each rule takes, with what it looks at."""
    from ftp.lab.alpha import RULES, all_sets

    val = curve.val or [float("nan")] * len(curve.alphas)
    lines = [["alpha", "val", "ID", "OOD avg.", "all sets", ""]]
    for row in zip(curve.alphas, val, curve.id, curve.ood_avg, all_sets(curve), strict=True):
        marks = [RULES[name].title for name, alpha in picked.items() if alpha == row[0]]
        lines.append([f"{row[0]:.3g}", *map(number, row[1:]), f"<- {', '.join(marks)}" if marks else ""])
    sees = [(RULES[name].title, f"alpha {alpha:.3g}", f"looks at {RULES[name].sees}") for name, alpha in picked.items()]
    return f"{columns(lines, right=range(5))}\n\n{columns(sees)}"
