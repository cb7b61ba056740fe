"""`ftp-lab wise`: the straight way from the pre-trained weights to those of a run."""

import json
from argparse import ArgumentParser, Namespace

from ftp.lab.commands._parser import add_device, add_store, add_threads, whole
from ftp.lab.commands._shared import check_target, columns, load_run, number, put, stored
from ftp.lab.progress import Progress
from ftp.lab.record import finite

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
        from ftp.lab.train import pick_device
        from ftp.lab.wise import wise

        torch.set_num_threads(options.threads)
        alphas = [i / (options.alphas - 1) for i in range(options.alphas)]
        device = str(pick_device(options.device))
        world = worlds.of(record.settings)
        for name in (world.home, *world.shifts):
            world.split(name)  # loaded before the clock of the bar starts
        with Progress(len(alphas), "points") as progress:
            ended: list[float] = []

            def show(alpha: float) -> None:
                ended.append(alpha)
                progress.at(len(ended))

            curve = wise(record, store, alphas, device=device, limit=options.images, progress=show)
    rows = list(zip(curve.alphas, curve.id, curve.ood_avg, strict=True))
    top = curve.metric.best(row[1] + row[2] for row in rows)
    best = next(alpha for alpha, home, shifted in rows if home + shifted == top)
    if options.json:
        names = {"run_id": record.run_id, "method": record.settings.method, "seed": record.settings.seed}
        numbers = {"alphas": curve.alphas, "id": curve.id, "ood_avg": curve.ood_avg, "best": best}
        put(json.dumps(finite({**names, **numbers}), indent=2, allow_nan=False), options.json)
    if options.json != "-":
        lines = [(f"{a:.3g}", number(x), number(y), "<- best mean of both" if a == best else "") for a, x, y in rows]
        put(columns([("alpha", "ID", "OOD avg.", ""), *lines], right=[0, 1, 2]))
    return 0
