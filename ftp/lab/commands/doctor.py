"""`ftp-lab doctor`: whether all is there, and how long things will take here."""

import contextlib
import os
import platform
import shutil
import sqlite3
from argparse import ArgumentParser, Namespace
from collections import Counter
from importlib import metadata
from pathlib import Path

from ftp.lab.commands._parser import add_device, add_settings, add_store, written_settings
from ftp.lab.commands._shared import put, store_path
from ftp.lab.commands._timing import cores
from ftp.lab.formats import duration
from ftp.lab.progress import say
from ftp.lab.record import LabError, Settings
from ftp.lab.store import Store

HELP = "versions, device, disk and store, and how many seconds a run takes here"
EXAMPLE = "ftp-lab doctor"
PACKAGES = (
    *("torch", "torchvision", "numpy", "scikit-learn", "mlxtend", "matplotlib", "pillow", "safetensors"),
    *("joblib", "plotly", "tqdm"),
)
LEAST_ROOM = 200e6  # bytes: some hundred runs
SEEDS = 5  # of the table that is foretold


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--data", metavar="PATH", help="look at this tree of pictures instead, before you train on it")
    parser.add_argument("--model", metavar="M", help="with --data: the network, such as torchvision:resnet50")
    add_settings(parser)
    add_device(parser)
    add_store(parser)


def main(options: Namespace) -> int:
    if options.data is not None:
        return _pictures(options)
    if options.model or options.pairs or options.labels:
        raise LabError("--model, --set and --labels belong to --data; write: ftp-lab doctor --data PATH --model M")
    wrong: list[str] = []
    for name, text in (*_software(wrong), *_machine(), *_disk(store_path(options.store), wrong)):
        print(f"{name:15}{text}", flush=True)
    say("timing a few training steps")
    for name, text in _work(options.device, wrong):
        print(f"{name:15}{text}")
    put("All is well." if not wrong else f"To mend: {'; '.join(wrong)}.")
    return 1 if wrong else 0


def _pictures(options: Namespace) -> int:
    """A tree of pictures: what is in it, what is odd about it, and how long a run on it takes."""
    import torch

    from ftp.lab import worlds
    from ftp.lab.commands._timing import measure
    from ftp.lab.settings import resolve
    from ftp.lab.train import pick_device

    name = next(n for n in worlds.names() if "data" in (kind := worlds.world(n).options) and kind["data"].path)
    settings = resolve(name, "ftp", written_settings(options, data=options.data, model=options.model))
    world = worlds.of(settings)
    remarks = world.remarks()
    for row, text in world.inventory():
        print(f"{row:9} {text}", flush=True)
    for remark in remarks:
        print(f"look at   {remark}", flush=True)
    say("timing a few training steps")
    torch.set_num_threads(1)
    device = pick_device(options.device)
    cost = measure(settings, str(device))
    call = (
        f"ftp-lab run {name} {' '.join(f'--set {n}={v}' for n, v in _written(settings, options).items())} --method ftp"
    )
    speed = f"{settings.batch} images, {settings.batch / cost.step:.0f} images/s, 1 thread"
    print(f"{'a step':10}{cost.step:.3f} s (ftp on {device}, {speed})")
    print(f"{'a run':10}about {duration(cost.run(settings.steps))} ({settings.steps} steps, evaluation): {call}")
    put("All is well." if not remarks else "Training works; what to look at is said above.")
    return 0


def _written(settings: Settings, options: Namespace) -> dict[str, object]:
    """The settings that were asked for, as they are checked now."""
    return {
        name: settings.as_dict()[name] for name in written_settings(options, data=options.data, model=options.model)
    }


def _software(wrong: list[str]) -> list[tuple[str, str]]:
    import ftp

    installed, missing = [], []
    for name in PACKAGES:
        try:
            installed.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        wrong.append(f"{', '.join(missing)} not installed, write: pip install 'ftp-kit[lab]'")
    return [
        ("ftp-kit", f"{ftp.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"),
        ("packages", ", ".join(installed)),
    ]


def _machine() -> list[tuple[str, str]]:
    return [("cores", f"{cores()}; runs use 1 thread each unless --threads says otherwise")]


def _disk(path: Path, wrong: list[str]) -> list[tuple[str, str]]:
    place = next(folder for folder in (path.parent, *path.parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    if free < LEAST_ROOM:
        wrong.append(f"only {free / 1e6:.0f} MB are free at {place}, make room or set FTP_STORE to another disk")
    return [("store", f"{path}: {_health(path, place, wrong)}"), ("disk", f"{free / 1e9:.1f} GB free at the store")]


def _health(path: Path, place: Path, wrong: list[str]) -> str:
    """Whether the store can be read and written; nothing is made."""
    if not path.exists():
        if not os.access(place, os.W_OK):
            wrong.append(f"{place} cannot be written, set FTP_STORE to a file elsewhere")
            return "not there, and its folder cannot be written"
        return "not there yet; the first run makes it"
    try:
        with Store(path) as store:
            statuses = Counter(record.status for record in store.runs(limit=None))
        with contextlib.closing(sqlite3.connect(path)) as db:
            verdict = db.execute("PRAGMA quick_check").fetchone()[0]
    except (LabError, sqlite3.Error) as error:
        wrong.append(str(error))
        return "cannot be used"
    if verdict != "ok":
        wrong.append(f"the store is damaged ({verdict}), move {path} elsewhere")
        return "damaged"
    if not os.access(path, os.W_OK):
        wrong.append(f"{path} cannot be written, make it writable or set FTP_STORE to another file")
    runs = ", ".join(f"{count} {status}" for status, count in statuses.most_common()) or "no runs yet"
    return f"healthy; {runs}"


def _work(device: str, wrong: list[str]) -> list[tuple[str, str]]:
    """Load each world, train a little in the first, and multiply."""
    from ftp.lab import worlds
    from ftp.lab.methods import fitting
    from ftp.lab.settings import resolve, scale

    rows = []
    try:
        rows.append(("scale", f"{scale()} (FTP_SCALE)"))
        import torch

        from ftp.lab.commands._timing import expected, measure
        from ftp.lab.train import pick_device

        torch.set_num_threads(1)
        chosen = pick_device(device)
        gpu = f" ({torch.cuda.get_device_name(chosen)})" if chosen.type == "cuda" else ""
        rows.append(("device", f"{chosen}{gpu}"))
        for name in worlds.names():
            world = worlds.load(name)
            if problem := world.missing():
                rows.append((name, problem))
            elif world.offline:
                world.model(0)
                rows.append((name, "its weights are there and fit"))
        first = worlds.default()
        settings = resolve(first, "ftp")
        cost, steps = measure(settings, str(chosen)), settings.steps * len(worlds.of(settings).phases)
        rows.append(("a step", f"{cost.step:.3f} s (ftp on {first}, {settings.batch} images, 1 thread)"))
        rows.append(("a run", f"about {duration(cost.run(steps))}: ftp-lab run {first} --method ftp"))
        wanted = [resolve(first, name) for name in fitting(worlds.load(first)) for _ in range(SEEDS)]
        seconds = expected(wanted, str(chosen), cores())
        rows.append(("a table", f"about {duration(seconds)}: ftp-lab table {first} --seeds {SEEDS}"))
    except LabError as error:
        wrong.append(str(error))
    except ImportError as error:
        wrong.append(f"{error.name} cannot be imported ({error}), write: pip install 'ftp-kit[lab]'")
    return rows
