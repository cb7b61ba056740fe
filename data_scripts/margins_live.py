"""Margins of the claims about training that a lesson trains for by itself: notebooks/margins/digits_live.json.

    .venv/bin/python data_scripts/margins_live.py

Runs the code of lessons 04b, 05, 09 and 11, which train ten seeds each (about a minute), and of lesson 15, with five
seeds (some minutes), and reads from their variables by how much each claim holds. A margin is one number for each seed,
positive where the claim holds. `margins_live.py 15` makes the lines of this lesson anew and keeps the others.
"""

import contextlib
import io
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import torch

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
Names = dict[str, Any]


def against(values: torch.Tensor, factor: float, others: torch.Tensor, largest: bool = True) -> list[float]:
    """Each value over `factor` times the worst of the others, minus 1: positive if it is beyond."""
    worst = others.max() if largest else others.min()
    return [float(v / (factor * worst)) - 1 for v in values]


def fall(losses: torch.Tensor) -> float:
    """The last loss as a share of the first."""
    return float(losses[-1] / losses[0])


def tuned(n: Names) -> list[float]:
    """For each seed: how much less two tuned methods differ than their seeds are spread."""
    rows, runs = n["rows"], n["runs"]
    spread = max(rows["ftp"]["spread"], rows["sgd"]["spread"])
    ours, theirs = ([r["ood"] for r in runs[name] if r["lr"] == rows[name]["lr"]] for name in ("ftp", "sgd"))
    return [float(spread - abs(a - b)) for a, b in zip(ours, theirs, strict=True)]


FIVE = range(5)  # seeds of a lesson that trains networks of a minute


def cosines(n: Names, first: int) -> list[float]:
    """How much eight random decoders agree, two and two."""
    return list(n["agreement"]([n["wish"](n["semseg"].model(seed), n["some"]) for seed in range(first, first + 8)]))


def with_itself(n: Names, seed: int) -> float:
    network = n["semseg"].model(seed)
    return float(n["agreement"]([n["wish"](network, n[part]) for part in ("some", "others")])[0])


def agreed(n: Names, seed: int) -> float:
    """By how much two decoders that have learned alone agree more than eight random ones do on average."""
    learned = [n["wish"](n["taught"](one), n["some"]) for one in (2 * seed, 2 * seed + 1)]
    return float(n["agreement"](learned)[0] - statistics.mean(cosines(n, 8 * seed)))


def first_steps(n: Names, seed: int) -> dict[str, tuple[list[float], list[float], list[dict[str, float]]]]:
    """Losses, distances and leashes of the first steps, as the lesson has them for seed 0; kept for several claims."""
    kept: dict[int, Any] = n.setdefault("_first_steps", {})
    if seed not in kept:
        run = n["first_steps"]
        kept[seed] = {"plain": run("finetune", seed=seed), "leashed": run("ftp", seed=seed)}
        kept[seed] |= {"growing": run("ftp", seed=seed, k=0.0), "frozen": run("linear_probe", seed=seed)}
    return dict(kept[seed])


def same_loss(n: Names, seed: int) -> float:
    losses = [first_steps(n, seed)[name][0] for name in ("plain", "leashed", "frozen")]
    ends = [row[-1] for row in losses]
    return 0.1 - (max(ends) - min(ends)) / losses[0][0]


def fog_alone(n: Names, seed: int) -> float:
    """By how many degrees fog costs more than the other three damages together."""
    score, normals = n["score"], n["normals"]
    network = n["network_of"]("finetune", seed=seed)
    clean = score(network, normals, "id").main
    cost = {
        kind: score(network, normals, n["Corrupted"](normals, kind, 5)).main - clean for kind in normals.corruptions
    }
    return float(2 * cost["fog"] - sum(cost.values()))


def tied_decoder(n: Names, seed: int) -> float:
    torch.manual_seed(seed)
    free, tied = (list(n["losses"](head, seed=seed)) for head in ("decoder", ()))
    return float(tied[-1] / (1.5 * free[-1]) - 1)


# lesson: claim: the margin of each seed, from the names that the lesson leaves behind
CLAIMS: dict[str, dict[str, Callable[[Names], list[float]]]] = {
    "04b": {
        "with a task, the leash gets at least 3 times as long as with nothing to learn": lambda n: against(
            n["there"], 3, n["nothing"]
        ),
        "with nothing to learn, SGD strays at least 3 times as far": lambda n: against(
            n["late"]["no leash"][1], 3, n["nothing"]
        ),
        "with κ = 0 the leash grows all the same, on noise alone": lambda n: against(
            n["late"]["κ = 0"][1], 2, n["nothing"]
        ),
    },
    "05": {
        "all twelve bring the loss below a third in 40 steps": lambda n: [
            1 / 3 - max(fall(n["walk"](mutant.optimizer, seed=seed)["loss"]) for mutant in n["MUTANTS"])
            for seed in range(10)
        ],
    },
    "09": {
        "for each of ten seeds the rate grows more than 200 times": lambda n: (
            n["end"] / n["early"] / 200 - 1
        ).tolist(),
        "and changes by less than a tenth from step 50 to step 100": lambda n: (
            0.1 - (n["end"] / n["middle"] - 1).abs()
        ).tolist(),
        "its loss ends at a tenth of SGD's, or less": lambda n: (
            0.1 - n["late"]["HyperSGD"] / n["late"]["SGD"]
        ).tolist(),
        "with a random arrow the rate ends below half of the learned one": lambda n: [
            -m for m in against(n["rates"]["a random arrow"][99], 0.5, n["end"], largest=False)
        ],
        "with a hyper_lr far too large, the loss ends at infinity or as no number, for each of ten seeds": lambda n: [
            math.log10(float(loss[loss.isfinite()].max() / loss[0])) for loss in n["wild"]
        ],
    },
    "11": {
        "at lr = 0.3, each of ten seeds of SGD gets less than half of the shifted looks right": lambda n: (
            50 - n["ood"]["sgd"][2]
        ).tolist(),
        "and each of ten seeds of SGDP more than half": lambda n: (n["ood"]["ftp"][2] - 50).tolist(),
        "a head on a leash costs each of ten seeds more than 5 points on the task itself": lambda n: [
            float(cost) - 5 for cost in n["cost"]
        ],
        "with both rates tuned on val, the two differ by less than the spread of their seeds": lambda n: tuned(n),
    },
    "15": {
        "on average two random decoders agree to less than 0.4": lambda n: [
            0.4 - statistics.mean(cosines(n, 8 * seed)) for seed in FIVE
        ],
        "and some two of eight want opposite ways: their cosine is below -0.3": lambda n: [
            -0.3 - min(cosines(n, 8 * seed)) for seed in FIVE
        ],
        "but each agrees with itself on other pictures to more than 0.7": lambda n: [
            with_itself(n, seed) - 0.7 for seed in FIVE
        ],
        "two trained decoders agree more than two random ones on average": lambda n: [agreed(n, seed) for seed in FIVE],
        "after 12 steps fine-tuning has moved it at least 5 times as far": lambda n: [
            first_steps(n, seed)["plain"][1][-1] / (5 * first_steps(n, seed)["leashed"][1][-1]) - 1 for seed in FIVE
        ],
        "and the training loss of all three is the same within a tenth of its start": lambda n: [
            same_loss(n, seed) for seed in FIVE
        ],
        "with κ = 0 leashes get shorter less often": lambda n: [
            float(n["shortened"](first_steps(n, seed)["leashed"][2])[0])
            - n["shortened"](first_steps(n, seed)["growing"][2])[0]
            for seed in FIVE
        ],
        "and after 12 steps they are longer on average": lambda n: [
            n["length"](first_steps(n, seed)["growing"][2]) / n["length"](first_steps(n, seed)["leashed"][2]) - 1
            for seed in FIVE
        ],
        "fog costs more than the other three together": lambda n: [fog_alone(n, seed) for seed in FIVE],
        "with its decoder tied, the loss ends at more than one and a half times the other's": lambda n: [
            tied_decoder(n, seed) for seed in FIVE
        ],
    },
}


def names_of(lesson: str) -> Names:
    """What the code of a lesson leaves behind. Later cells may use a name again, so each claim's first cell counts."""
    path = next((NOTEBOOKS / "complete").glob(f"{lesson}_*.ipynb"))
    cells = [c.source for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    names: Names = {"__name__": "lesson", "display": lambda *_: None}
    found: Names = {}
    for source in cells:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, path.name, "exec"), names)
        for claim in CLAIMS[lesson]:
            if claim in source:
                found[claim] = CLAIMS[lesson][claim](names)
    return found


def main() -> None:
    torch.set_num_threads(1)
    path = NOTEBOOKS / "margins" / "digits_live.json"
    wanted = sys.argv[1:] or list(CLAIMS)
    rows = [row for row in json.loads(path.read_text(encoding="utf-8")) if row["lesson"] not in wanted]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FTP_PREDICTIONS"] = f"{folder}/predictions.json"
        for lesson in wanted:
            torch.set_default_dtype(torch.float32)
            for claim, values in names_of(lesson).items():
                mean, sd = statistics.mean(values), statistics.stdev(values)
                row: Names = {"lesson": lesson, "claim": claim, "seeds": len(values)}
                row |= {"values": [round(v, 4) for v in values], "mean": round(mean, 4), "sd": round(sd, 4)}
                row |= {"least": round(min(values), 4), "sigmas": round(mean / (sd / len(values) ** 0.5), 2)}
                rows.append(row)
                print(f"{lesson}  {row['sigmas']:7.1f} sigma  least {row['least']:.3f}  {claim}", flush=True)
    rows.sort(key=lambda row: list(CLAIMS).index(row["lesson"]))
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("[\n" + lines + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
