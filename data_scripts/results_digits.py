"""Ten seeds of every method in the digits world, each with its tuned recipe, and what they say: docs/digits.md.

    .venv/bin/python data_scripts/results_digits.py

About 20 minutes on two cores; what the store holds is not run again. With --recorded it takes the runs that ship with
the kit, and a few seconds.
"""

import argparse
import math
import statistics
from pathlib import Path

from _results import edges, spearman
from tqdm import tqdm

from ftp.lab import methods, recipes, table
from ftp.lab.record import RunRecord, Settings
from ftp.lab.recordings import described, recorded
from ftp.lab.store import Store
from ftp.lab.sweep import grid, sweep

HOME = Path(__file__).resolve().parent.parent / "docs" / "digits.md"
PAGE = """# The digits world, over {seeds} seeds

Made by `data_scripts/results_digits.py`: every method with the recipe that ID validation chose (`ftp-lab recipe
digits`), {seeds} seeds each, mean (standard deviation), accuracies in percent. Your own table of the
first five seeds: `ftp-lab table digits --seeds 5`. The seconds are of two runs at once on two cores, not
of a quiet machine: what a step costs is measured by `make bench`.

{table}

## What it says

| | FTP | against | difference | standard error |
|---|---|---|---|---|
{margins}

The difference is paired by seed. On ID validation fine-tuning read {tuned} % at its own learning rate {rate:g} and
{half} % at half of it. A gentler hand forgets less, so that row is here too{same}; only the
shifts can tell how gentle is gentle enough, and nobody may look at them to choose.

{mars}

Chosen at the edge of what was tried: {edges}.
A wider grid might do a little better there on validation; every method
had the same number of tries.

## How this network was chosen

For speed, among three of the same shape: channels 8-24-48, 8-24-64 (this one) and 8-32-64, each pre-trained once. Two
seeds of fine-tuning, FTP, TPGM and the linear probe were looked at for each, under shift too. In the smallest one FTP
was behind the linear probe under shift; in the other two it was level with it or ahead. So the choice was not blind:
how FTP stands among the others here is a finding about this network, and seeds 0 and 1 had a part in choosing it.

## The constraints (Fig. 5)

γ at the end, mean over the seeds, in the order of depth:

| layers | early half | late half | rank correlation of γ with depth, lowest to highest seed |
|---|---|---|---|
{constraints}

Convolutions of seed 0, mean γ at a few steps: {growth}. They grow fast at first and settle.
"""


def value(record: RunRecord, name: str) -> float:
    assert record.result is not None
    return float(record.result[name])


def margin(ftp: dict[int, RunRecord], other: dict[int, RunRecord], label: str, name: str) -> str:
    seeds = sorted(set(ftp) & set(other))
    gaps = [value(ftp[s], name) - value(other[s], name) for s in seeds]
    error = statistics.stdev(gaps) / math.sqrt(len(gaps))
    mean = statistics.mean(value(ftp[s], name) for s in seeds)
    return f"| {name} | {mean:.2f} | {label} | {statistics.mean(gaps):+.2f} | {error:.2f} |"


def constraints(runs: list[RunRecord]) -> str:
    layers = runs[0].layers
    matrices = [i for i, n in enumerate(layers) if "conv" in n or n == "stem.weight" or "bridge.0" in n]
    kinds = {"convolutions": matrices, "gains and biases": [i for i in range(len(layers)) if i not in matrices]}
    kinds["all"] = list(range(len(layers)))
    lines = []
    for name, places in kinds.items():
        gammas = [[float(run.points[-1].gamma[i] or 0) for i in places] for run in runs]
        half = len(places) // 2
        early = statistics.mean(v for row in gammas for v in row[:half])
        late = statistics.mean(v for row in gammas for v in row[half:])
        ranks = sorted(spearman(row) for row in gammas)
        lines.append(f"| {name} ({len(places)}) | {early:.2f} | {late:.2f} | {ranks[0]:.2f} to {ranks[-1]:.2f} |")
    return "\n".join(lines)


def growth(run: RunRecord) -> str:
    matrices = [i for i, n in enumerate(run.layers) if "conv" in n or n == "stem.weight" or "bridge.0" in n]
    points = [p for p in run.points if p.step in (2, 30, 60, 120, 180, 240, 300)]
    return ", ".join(f"{statistics.mean(float(p.gamma[i] or 0) for i in matrices):.2f} at {p.step}" for p in points)


def mars(run: RunRecord) -> str:
    """Whether the one leash of MARS-SP ever pulled, in words."""
    gamma, far = float(run.settings.options["gamma"]), max(d for point in run.points for d in point.distance)
    pulled = max(share or 0.0 for point in run.points for share in point.boundary)
    said = f"MARS-SP has one leash for all layers, and ID validation chose γ = {gamma:g}. In seed {run.settings.seed} "
    if pulled == 0:
        same = f"that line of the table is plain fine-tuning at learning rate {run.settings.lr:g}"
        said += f"no row\ngoes farther than {far:.1f}, so it never pulls: {same}"
        return f"{said}. {ties(gamma)}"
    return f"{said}the farthest row is {far:.1f} away, and up to {pulled:.0%} of the rows of a layer are pulled back."


def ties(gamma: float) -> str:
    """Which other lengths of MARS-SP read as much on ID validation, at any rate."""
    trials = recipes.tuned("digits")["outcome"]["mars_sp"]
    best = max(trial["val_mean"] for trial in trials)
    as_good = sorted({trial["settings"]["gamma"] for trial in trials if trial["val_mean"] == best} - {gamma})
    others = " and ".join(f"{other:g}" for other in as_good)
    return f"γ = {others} read as much there,\nand the loss decided." if others else "No other length read as much."


def made(wanted: list[Settings], asked: argparse.Namespace) -> dict[Settings, RunRecord]:
    """The runs with these settings, from the store or trained now."""
    with Store(asked.store) as store:
        bar = tqdm(total=len(set(wanted)))
        outcomes = sweep(wanted, store, jobs=asked.jobs, on_outcome=lambda outcome: bar.update())
        failed = [f"{o.settings.method} seed {o.settings.seed}: {o.error}" for o in outcomes if o.error]
        if failed:
            raise SystemExit("\n".join(failed))
        return {o.settings: store.load(o.run_id) for o in outcomes}


def shipped() -> dict[Settings, RunRecord]:
    """The recorded runs."""
    return {run.settings: run for group in ("methods", "gentle") for run in recorded(group=group)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Ten seeds of every method, and what they say.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=HOME)
    parser.add_argument("--recorded", action="store_true", help="take the runs that ship with the kit")
    asked = parser.parse_args()
    wanted = grid(methods.PAPER, seeds=range(asked.seeds))
    gentle = grid(["finetune"], seeds=range(asked.seeds), changes=described()["gentle"].given)
    runs = shipped() if asked.recorded else made([*wanted, *gentle], asked)
    by = {m: {s.seed: runs[s] for s in wanted if s.method == m} for m in methods.PAPER}
    slow, label = {s.seed: runs[s] for s in gentle}, f"Vanilla FT at lr {gentle[0].lr:g}"
    rows = [margin(by["ftp"], by[m], methods.method(m).title, "ood_avg") for m in methods.PAPER if m != "ftp"]
    rows.insert(1, margin(by["ftp"], slow, label, "ood_avg"))
    for name in ("id", "corruption_avg"):
        rows += [margin(by["ftp"], by["finetune"], "Vanilla FT", name)]
        rows += [margin(by["ftp"], slow, label, name)]
    tuned = recipes.tuned("digits")
    read = {row["settings"]["lr"]: row["val_mean"] for row in tuned["outcome"]["finetune"]}
    rate = tuned["recipe"]["finetune"]["lr"]
    page = PAGE.format(
        seeds=asked.seeds,
        table=table.to_markdown(table.rows([runs[s] for s in wanted])),
        margins="\n".join(rows),
        rate=rate,
        tuned=read[rate],
        half=read[gentle[0].lr],
        same=" (it is FTP's own rate: the row says what the leashes add)"
        if gentle[0].lr == by["ftp"][0].settings.lr
        else "",
        mars=mars(by["mars_sp"][0]),
        edges=edges(tuned),
        constraints=constraints(list(by["ftp"].values())),
        growth=growth(by["ftp"][0]),
    )
    asked.out.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
