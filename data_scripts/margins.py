"""The margins of what the lessons claim about training, over all recorded seeds: notebooks/margins/digits.json.

    .venv/bin/python data_scripts/margins.py

A claim is one line of CLAIMS: its lesson, its sentence as the lesson has it, and a function that gives one number for
each seed: by how much the claim holds there, in its own unit. The margin is the mean of these numbers in standard
errors of that mean; below 3 a claim is luck. Claims of these lessons that are not about training are in EXACT.
"""

import argparse
import json
import math
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ftp.lab.alpha import RULES, all_sets, from_dict
from ftp.lab.continual import Tasks, tasks_of
from ftp.lab.figures.data import WiseCurve, rank_correlation
from ftp.lab.leashes import EARLY, at_home, final_gammas, halves, ranks, strayed, wound_in
from ftp.lab.recordings import by_method, recorded
from ftp.lab.recordings.controls import recorded_control
from ftp.lab.recordings.extras import extra
from ftp.lab.robustness import line_of

HOME = Path(__file__).resolve().parent.parent / "notebooks" / "margins" / "digits.json"
Values = Callable[[], list[float]]
Read = Callable[[Mapping[str, Any]], float]


def result(name: str) -> Read:
    return lambda found: float(found[name])


def damaged(kind: str, severity: int) -> Read:
    return lambda found: float(found["corruptions"][kind][severity - 1])


def walked(found: Mapping[str, Any]) -> float:
    """How far the convolutions are from where they began."""
    layers = found["lipschitz"]["layers"]
    return statistics.mean(float(l_d) for name, (_, l_d) in layers.items() if "conv" in name)


def of(method: str, read: Read, group: str = "methods") -> list[float]:
    """One number for each seed of a method."""
    runs = by_method(recorded(group=group))[method]
    return [read(run.result) for run in runs if run.result is not None]


def apart(one: str, other: str, read: Read, group: str = "methods", other_group: str = "") -> list[float]:
    """One method minus another, seed by seed."""
    pairs = zip(of(one, read, group), of(other, read, other_group or group), strict=True)
    return [a - b for a, b in pairs]


def above(least: float, values: list[float]) -> list[float]:
    """By how much each value is above what is claimed."""
    return [value - least for value in values]


def within(most: float, values: list[float], middle: float = 0.0) -> list[float]:
    """By how much each value is nearer to the middle than claimed, on the side on which their mean is."""
    side = math.copysign(1.0, statistics.mean(values) - middle)
    return [most - side * (value - middle) for value in values]


def least_sure() -> list[float]:
    """FTP against the method that comes nearest to beating it: the surer of its two advantages, seed by seed."""
    others = [name for name in by_method(recorded()) if name != "ftp"]
    best = [max((apart("ftp", name, result(key)) for key in ("id", "ood_avg")), key=sigmas) for name in others]
    return min(best, key=sigmas)


def on(shift: str) -> Read:
    return lambda found: float(found["ood"][shift])


def shares(group: str) -> list[float]:
    """FTP's leashes as a share of the way of fine-tuning's convolutions, for each seed."""
    pairs = zip(final_gammas(), strayed(group), strict=True)
    return [statistics.mean(end[name] / far[name] for name in far) for end, far in pairs]


def control(name: str, home: bool = False) -> list[float]:
    """The mean over the shifts, or the accuracy at home, for each seed of a control."""
    return [run.id if home else run.ood_avg for run in recorded_control(name)]


def hindered() -> list[float]:
    """What FTP costs at home if its anchor is random."""
    return minus(control("untrained_finetune", home=True), control("untrained_ftp", home=True))


def length(found: Mapping[str, Any]) -> float:
    return statistics.mean(float(gamma) for gamma in found["constraints"].values())


def turned(read: Read, k: float = 0.0) -> list[float]:
    """One number for each seed of FTP with a smaller κ."""
    runs = [run for run in recorded(group="kappa") if run.settings.options["k"] == k]
    return [read(run.result) for run in runs if run.result is not None]


def minus(one: list[float], other: list[float], times: float = 1.0) -> list[float]:
    """One minus so many times the other, seed by seed."""
    return [a - times * b for a, b in zip(one, other, strict=True)]


def in_tasks(method: str, read: Callable[[Tasks], float]) -> list[float]:
    """One number for each seed of a method in the world of lesson 13."""
    return [read(tasks_of(run)) for run in recorded("stream", method)]


def of_words(method: str, read: Read) -> list[float]:
    """One number for each seed of a method in the world of lesson 14."""
    return [read(run.result) for run in recorded("captions", method) if run.result is not None]


def of_scenes(method: str, read: Read, group: str = "methods") -> list[float]:
    """One number for each seed of a method in the first task of the world of lesson 15."""
    return [read(run.result) for run in recorded("scenes", method, group=group) if run.result is not None]


def on_the_way(read: Callable[[WiseCurve], float], method: str = "finetune") -> list[float]:
    """One number for each walk of a method from the pre-trained model, in the world of lesson 14."""
    curves = [from_dict(row) for row in extra("wise", "captions")["curves"]]
    return [read(curve) for curve in curves if curve.method == method]


def off_the_line(method: str) -> list[float]:
    """The effective robustness of each seed of a method, in the world of lesson 14."""
    line = line_of("captions")
    assert line is not None
    return [line.above(*pair) for pair in zip(of_words(method, ID), of_words(method, OOD), strict=True)]


def more_gain_than_loss(curve: WiseCurve) -> float:
    """Halfway: the share of what home gains minus the share of what the shifts lose."""
    half = curve.alphas.index(0.5)
    shares = [(v[half] - v[0]) / (v[-1] - v[0]) for v in (curve.id, curve.ood_avg)]
    return shares[0] - shares[1]


def best_of_all(curve: WiseCurve) -> float:
    return max(all_sets(curve))


def too_far(curve: WiseCurve) -> float:
    return RULES["best_val"].choose(curve) - RULES["best_mean"].choose(curve)


def learned(tasks: Tasks) -> float:
    return tasks.accuracy


def first_left(tasks: Tasks) -> float:
    """The share of the first task that is left after the last."""
    return tasks.matrix[-1][0] / tasks.matrix[0][0]


def shortened(tasks: Tasks) -> float:
    """By how much the last task's leashes are below half of the first one's."""
    return (tasks.gamma[0] or 0.0) / 2 - (tasks.gamma[-1] or 0.0)


FTP, PLAIN, PROBE, ADAPTER = "ftp", "finetune", "linear_probe", "adapter"
FEW, ONE_RATE = "low_label", "one_rate_semseg"
ID, OOD, ALL = result("id"), result("ood_avg"), result("corruption_avg")
FOG, NOISE = damaged("fog", 5), damaged("gaussian_noise", 5)
SLOWER = ("gentle", "quarter", "eighth")  # fine-tuning at a half, a quarter and an eighth of its rate
BRIDGE, BESIDE = "blocks.4.bridge.0.weight", "blocks.4.conv1.weight"
FORGOTTEN = ("typeset", "texture", "colour", "sketch")  # shifts on which the linear probe is ahead of fine-tuning
# lesson: sentence: one number for each seed
CLAIMS: dict[str, dict[str, Values]] = {
    "00": {
        "with a new last layer alone, it reads more than 19 of 20 digits at home...": lambda: above(95, of(PROBE, ID)),
        "... and about 9 of 10 elsewhere: the knowledge is there": lambda: within(2, of(PROBE, OOD), 90),
        "fine-tuning is better at home than the new last layer alone": lambda: above(2, apart(PLAIN, PROBE, ID)),
        "and reads at least 6 points less elsewhere: it forgets": lambda: above(6, apart(PROBE, PLAIN, OOD)),
        "elsewhere FTP reads at least 8 points more than fine-tuning": lambda: above(8, apart(FTP, PLAIN, OOD)),
        "at home it is within one point of fine-tuning": lambda: within(1, apart(FTP, PLAIN, ID)),
        "at home it is more than a point better than the new last layer": lambda: above(1, apart(FTP, PROBE, ID)),
        "elsewhere it is within 2 points of the network that was left as it is": lambda: within(
            2, apart(FTP, PROBE, OOD)
        ),
        "after a fifth of a run FTP already reads more elsewhere": lambda: apart(FTP, PLAIN, OOD, "cold_open"),
        "the weights of fine-tuning have walked more than half as far again": lambda: [
            a - 1.5 * b for a, b in zip(of(PLAIN, walked, "cold_open"), of(FTP, walked, "cold_open"), strict=True)
        ],
        "half the learning rate changes less than half a point at home": lambda: within(
            0.5, apart(PLAIN, PLAIN, ID, "gentle", "methods")
        ),
        "it forgets less...": lambda: above(5, apart(PLAIN, PLAIN, OOD, "gentle", "methods")),
        "... and FTP still reads at least a point more": lambda: above(1, apart(FTP, PLAIN, OOD, "methods", "gentle")),
        "FTP reads at least half a point more than each of the three": lambda: min(
            (above(0.5, apart(FTP, PLAIN, OOD, "methods", group)) for group in SLOWER), key=sigmas
        ),
    },
    "06": {
        "under the thickest fog FTP reads at least 10 points more": lambda: above(10, apart(FTP, PLAIN, FOG)),
        "under the strongest light it reads more": lambda: apart(FTP, PLAIN, damaged("brightness", 5)),
        "under the strongest noise fine-tuning reads at least 15 points more": lambda: above(
            15, apart(PLAIN, FTP, NOISE)
        ),
        "over all kinds and severities the two are within 4 points: what fog gives, noise takes": lambda: within(
            4, apart(FTP, PLAIN, ALL)
        ),
        "against noise the pre-trained network is at least 5 points worse than fine-tuning": lambda: above(
            5, apart(PLAIN, PROBE, NOISE)
        ),
        "against fog it is at least 15 points better": lambda: above(15, apart(PROBE, PLAIN, FOG)),
        "under noise FTP is at least 10 points behind it, too": lambda: above(10, apart(PROBE, FTP, NOISE)),
        "at the same rate, too, FTP is at least 15 points behind under the strongest noise": lambda: above(
            15, apart(PLAIN, FTP, NOISE, "gentle", "methods")
        ),
        "against each of the ten others FTP is surely better, at home or elsewhere": least_sure,
        "elsewhere FTP and TPGM are within 2 points of each other": lambda: within(2, apart(FTP, "tpgm", OOD)),
        "of 1,024 ways to swap the names only the true one gives so large a gap": lambda: apart(FTP, PLAIN, OOD),
        "with a tenth of the labels FTP is better than fine-tuning at home too": lambda: apart(FTP, PLAIN, ID, FEW),
        "and elsewhere": lambda: apart(FTP, PLAIN, OOD, FEW),
        "it is more than a point better than the new last layer at home": lambda: above(1, apart(FTP, PROBE, ID, FEW)),
        "but the new last layer reads at least 2 points more elsewhere": lambda: above(2, apart(PROBE, FTP, OOD, FEW)),
    },
    "08": {
        "in each of the ten seeds the late half ends with leashes twice as long": lambda: halves(lambda vector: True),
        "in each seed, early gains and biases end with less than a third of their longest leash": wound_in,
        "in each seed, most early gains and biases are at home": lambda: above(
            0.5, at_home(lambda i, vector: i < EARLY and vector)
        ),
        "of the convolutions fewer than a third are, and none of the last six": lambda: within(
            1 / 3, at_home(lambda i, vector: not vector)
        ),
        "in each seed the bridge's leash is less than a third of its neighbour's": lambda: [
            end[BESIDE] / 3 - end[BRIDGE] for end in final_gammas()
        ],
        "for each weight, the bridge may move farther than its neighbour, in each seed": lambda: [
            end[BRIDGE] - 1.5 * end[BESIDE] for end in final_gammas(per_weight=True)
        ],
        "convolutions: γ grows with depth in each seed": lambda: above(0.3, ranks("depth")),
        "but it goes with the length of the rows more closely, in each seed": lambda: minus(
            ranks("length"), ranks("depth")
        ),
        "and for each weight, less than half of it is left, on average": lambda: minus(
            [value / 2 for value in ranks("depth")], ranks("per weight")
        ),
        "gains and biases: late leashes are more than twice as long for each weight, too, in each seed": lambda: halves(
            lambda vector: vector, per_weight=True
        ),
        "without a leash, late convolutions go farther than early ones too, in each seed": lambda: [
            rank_correlation(range(len(far)), list(far.values())) - 0.3 for far in strayed()
        ],
        "with FTP they go less than half as far as in fine-tuning, in each seed": lambda: [
            0.5 - share for share in shares("methods")
        ],
        "but of the way at the same rate it is more than 45 %: much of it is the rate": lambda: above(
            0.45, shares("gentle")
        ),
        "which is within a point": lambda: within(1, minus(control("frozen"), of(FTP, OOD))),
        "shuffled leashes still beat fine-tuning by 5 points and more": lambda: above(
            5, minus(control("shuffled"), of(PLAIN, OOD))
        ),
        "but shuffling costs more than a point": lambda: above(1, minus(of(FTP, OOD), control("shuffled"))),
        "and fine-tuning at FTP's rate, without any leash, is within 2 points of them": lambda: within(
            2, minus(control("shuffled"), of(PLAIN, OOD, "gentle"))
        ),
        "FTP is more than a point better than that": lambda: above(1, apart(FTP, PLAIN, OOD, "methods", "gentle")),
        "with κ = 0 leashes are longer, in each seed": lambda: minus(turned(length), of(FTP, length)),
        "that gains a little at home, on average": lambda: minus(turned(ID), of(FTP, ID)),
        "and costs more under shift, on average": lambda: minus(
            minus(of(FTP, OOD), turned(OOD)), minus(turned(ID), of(FTP, ID))
        ),
        "of what FTP has over fine-tuning at the same rate, less than two thirds are left": lambda: minus(
            [gap * 2 / 3 for gap in apart(FTP, PLAIN, OOD, "methods", "gentle")],
            minus(turned(OOD), of(PLAIN, OOD, "gentle")),
        ),
        "a length chosen by ID validation loses 3 points and more against FTP, in each seed": lambda: above(
            3, apart(FTP, "mars_sp", OOD)
        ),
    },
    "10": {
        "and against plain fine-tuning under shift the verdict is clear": lambda: apart(FTP, PLAIN, OOD),
        "without a shift, FTP does not gain: the promise of 0 points is broken": lambda: apart(PLAIN, FTP, ID),
        "but the loss is small, less than a point on average": lambda: within(1, apart(FTP, PLAIN, ID)),
        "at the same rate FTP is within a quarter of a point of fine-tuning at home": lambda: within(
            0.25, apart(FTP, PLAIN, ID, "methods", "gentle")
        ),
        "where the anchor is ahead of fine-tuning, FTP gains": lambda: min(
            (apart(FTP, PLAIN, on(shift)) for shift in FORGOTTEN), key=sigmas
        ),
        "with 30 steps FTP still helps under shift": lambda: apart(FTP, PLAIN, OOD, "few_steps"),
        "but by less than half as much as with 300": lambda: minus(
            [gap / 2 for gap in apart(FTP, PLAIN, OOD)], apart(FTP, PLAIN, OOD, "few_steps")
        ),
        "under shift, FTP is less than 2 points ahead of a linear probe": lambda: within(2, apart(FTP, PROBE, OOD)),
        "without a shift, more than a point in every seed": lambda: above(1, apart(FTP, PROBE, ID)),
        "with a tiny learning rate, FTP and fine-tuning differ by less than half a point in each seed": lambda: within(
            0.5, apart(FTP, PLAIN, OOD, "tiny_lr")
        ),
        "the promise of half a point is broken": lambda: above(-0.5, apart(PLAIN, FTP, OOD, "tiny_lr")),
        "and both pay at home: FTP with its own recipe is more than a point better there": lambda: above(
            1, apart(FTP, FTP, ID, "methods", "tiny_lr")
        ),
        "elsewhere, too": lambda: above(1, apart(FTP, FTP, OOD, "methods", "tiny_lr")),
        "tied to random weights, FTP is worse than fine-tuning at home": hindered,
        "and it costs more there than with a good anchor": lambda: minus(hindered(), apart(PLAIN, FTP, ID)),
        "and both fall by 30 points and more against FTP from a good anchor": lambda: above(
            30, minus(of(FTP, OOD), list(map(max, control("untrained_ftp"), control("untrained_finetune"))))
        ),
        "on leashes of length 0, the drifting statistics alone cost something under shift": lambda: minus(
            of(PROBE, OOD), control("zero")
        ),
        "here it is less than 4 points": lambda: above(-4, minus(control("zero"), of(PROBE, OOD))),
        "the choice of the rival's learning rate changes FTP's gain more than twofold": lambda: minus(
            apart(FTP, PLAIN, OOD), apart(FTP, PLAIN, OOD, "methods", "gentle"), 2
        ),
    },
    "13": {
        "unprotected, less than a tenth of the first task is left, on average": lambda: within(
            0.1, in_tasks("ft_plus", first_left)
        ),
        "without the mask fine-tuning ends lower still": lambda: minus(
            in_tasks("ft_plus", learned), in_tasks(PLAIN, learned)
        ),
        "together with EWC the last task's leashes are less than half as long as the first one's": lambda: in_tasks(
            "ftp_ewc", shortened
        ),
        "FTP ends at least 10 points above unprotected fine-tuning": lambda: above(
            10, minus(in_tasks(FTP, learned), in_tasks("ft_plus", learned))
        ),
        "a body that never moved, with class means, is at least 5 points ahead of FTP": lambda: above(
            5, minus(in_tasks("nearest_mean", learned), in_tasks(FTP, learned))
        ),
        "the same body with a trained head is at least 5 points behind class means": lambda: above(
            5, minus(in_tasks("nearest_mean", learned), in_tasks(PROBE, learned))
        ),
    },
    "14": {
        "halfway, more of the gain is there than of the loss": lambda: on_the_way(more_gain_than_loss),
        "best validation goes farther than whoever could see the shifts": lambda: on_the_way(too_far),
        "their best means differ by less than a point": lambda: within(
            1, minus(on_the_way(best_of_all, FTP), on_the_way(best_of_all))
        ),
        "but without mixing FTP has lost less on the shifts, in each seed": lambda: minus(
            of_words(FTP, OOD), of_words(PLAIN, OOD)
        ),
        "fine-tuning gains more than 5 points at home": lambda: above(
            5, minus(of_words(PLAIN, ID), of_words("zero_shot", ID))
        ),
        "fine-tuning is more than 2 points above the line of models that saw Noto alone": lambda: above(
            2, off_the_line(PLAIN)
        ),
        "FTP is above it by more, in each seed": lambda: minus(off_the_line(FTP), off_the_line(PLAIN)),
    },
    "15": {
        "with κ = 0 it is better at home, in each seed": lambda: minus(
            of_scenes(FTP, ID, "kappa_parts"), of_scenes(FTP, ID, "parts")
        ),
        "and worse elsewhere, in each seed": lambda: minus(
            of_scenes(FTP, OOD, "parts"), of_scenes(FTP, OOD, "kappa_parts")
        ),
        "but under damage, at home's own look, it is better, in each seed": lambda: minus(
            of_scenes(FTP, ALL, "kappa_parts"), of_scenes(FTP, ALL, "parts")
        ),
        "elsewhere FTP is ahead of fine-tuning, in each seed": lambda: minus(
            of_scenes(FTP, OOD), of_scenes(PLAIN, OOD)
        ),
        "and the frozen encoder is ahead of FTP, in each seed": lambda: minus(
            of_scenes(PROBE, OOD), of_scenes(FTP, OOD)
        ),
        "the adapter is ahead of FTP on average, too": lambda: minus(of_scenes(ADAPTER, OOD), of_scenes(FTP, OOD)),
        "but at home FTP is ahead of the frozen encoder": lambda: minus(of_scenes(FTP, ID), of_scenes(PROBE, ID)),
        "with one rate for all FTP's lead is larger, in each seed": lambda: minus(
            minus(of_scenes(FTP, OOD, ONE_RATE), of_scenes(PLAIN, OOD, ONE_RATE)),
            minus(of_scenes(FTP, OOD), of_scenes(PLAIN, OOD)),
        ),
    },
}
TEN = "about these ten seeds themselves"
EIGHT = "about these eight seeds themselves"
# lesson: sentence, or * for all of a lesson: why it has no margin
ONE = "what one recorded seed shows; the lesson claims no more"
LIVE = "trained in the lesson: its margin is in digits_live.json"
EXACT: dict[str, dict[str, str]] = {
    "00": {
        "this rival has the learning rate of FTP": "the settings say so",
        "an eighth of the rate reads no more elsewhere than a quarter": TEN,
    },
    "06": {
        "at severity 5 the kit's contrast keeps a twentieth of the spread": "a formula",
        "and the mean of every channel stays where it was": "a formula",
        "elsewhere FTP is surely ahead of nine of the ten others, on seeds 2 to 9": EIGHT,
        "of the tenth, the adapter, these eight seeds cannot tell": EIGHT,
    },
    "07": {"*": "passes, bytes and images are counted"},
    "08": {
        "no row is farther than its leash": "the projection",
        "where there is a leash, the farthest row nearly always stands at its end": "γ is clipped to the longest row",
        "the twins get the same gradient, and so want the same leash": "the wiring of the network",
        "frozen leashes come within 3 standard errors of leashes that learn": TEN,
        "for some layers γ differs more between seeds than it is long on average": TEN,
        "gentle and leashed have the same learning rate": "the settings say so",
    },
    "10": {
        "FTP does not beat itself, neither at home nor under shift": TEN,
        "after step 1 the body is where it was": "the first leash has no length",
        "and after step t no row is farther than t times μ": "the size of a step of Adam",
        "under shift, ten seeds show no gain": TEN,
        "where it is behind, ten seeds show no gain": TEN,
    },
    "12": {
        "every artist's test pictures are of the same things in the same scenes": "counted",
        "the checks name the picture that is in train and in test": "counted",
        "and the one that cannot be read": "counted",
        "147 tensors of the real network are on a leash, 45 of the small one": "counted",
        "after sixteen steps, live, no row is beyond its leash": "what a projection does",
        "the new head has none": "counted",
        "the worst of four rates costs fine-tuning more than half its score": ONE,
        "and at least five times what lies between the three methods": ONE,
        "of one seed each, the verdict says that nothing can be told": "the rule of the verdict",
        "of three seeds, chance alone passes three standard errors about once in ten times": "a hundred thousand draws",
        "of ten seeds, less than once in fifty": "a hundred thousand draws",
        "an error of half a point at 90 % takes 3,600 test pictures": "a formula",
        "with the 240 of this tree it is almost two points": "a formula",
        "in all twelve runs two sets by the same hand differ by less than three such errors": ONE,
        "in the three chosen ones another hand costs more than 40 points": ONE,
    },
    "13": {
        "with the mask, old rows of the head get no gradient at all": "a formula",
        "without it, every picture of a new class pushes every old logit down": "a formula",
        "it is 0.075 here; three other formulas of the field give 0.175, 0.100 and 0.150": "a formula",
        "the kit's Fisher is that of a loop over pictures": "a formula",
        "the squared gradient of the batch is smaller: signs cancel": "a formula",
        "after the first step of each task the body is where the task began": "the first leash has no length",
        "but the second task's posts are not the first one's": "the weights have moved by then",
    },
    "14": {
        "the kit's head is that of a loop over names and templates": "a formula",
        "every row of it is as long as the scale": "a formula",
        "zero-shot is right in more than half of the pictures of the artist nobody showed it": "counted",
        "and more often at home than there": "counted",
        "the kit's point at α = 0.5 is the one by hand": "a formula",
        "in more than nine of ten pictures, halfway says what the mean of both ends says": "counted; so with ten seeds",
        "one standard error never goes farther from W0 than best validation": "what the rule says",
        "halfway between two pre-trainings, less than a fifth of the worse end is left": "counted",
        "with averaged statistics less than a fifth of the signal is left after eight layers": "computed",
        "measured again, all of it": "what BatchNorm does",
    },
    "15": {
        "saying background everywhere gets more than half of the pixels right": "counted",
        "and an mIoU below 15 %": "counted",
        "where the prediction is right, or nearly so, the slope of arccos is not a number": "a formula",
        "the slope of the mean difference is at most 1, everywhere": "a formula",
        "on average two random decoders agree to less than 0.4": LIVE,
        "and some two of eight want opposite ways: their cosine is below -0.3": LIVE,
        "but each agrees with itself on other pictures to more than 0.7": LIVE,
        "two trained decoders agree more than two random ones on average": LIVE,
        "after the first step of FTP the encoder is where it was": "the first leash has no length",
        "after 12 steps fine-tuning has moved it at least 5 times as far": LIVE,
        "and the training loss of all three is the same within a tenth of its start": LIVE,
        "with κ = 0 leashes get shorter less often": LIVE,
        "and after 12 steps they are longer on average": LIVE,
        "fog costs more than the other three together": LIVE,
        "with its decoder tied, the loss ends at more than one and a half times the other's": LIVE,
    },
}


def sigmas(values: list[float]) -> float:
    """The mean in standard errors."""
    return statistics.mean(values) / (statistics.stdev(values) / math.sqrt(len(values)))


def table() -> dict[str, Any]:
    """Every claim with its numbers, and the claims that need none."""
    rows = []
    for lesson, sentence, function in ((n, *row) for n, claims in CLAIMS.items() for row in claims.items()):
        values = function()
        row: dict[str, Any] = {"lesson": lesson, "claim": sentence, "seeds": len(values)}
        row |= {"values": [round(value, 4) for value in values], "mean": round(statistics.mean(values), 4)}
        row |= {"sd": round(statistics.stdev(values), 4), "sigmas": round(sigmas(values), 2)}
        rows.append(row)
    exact = [{"lesson": n, "claim": c, "why": why} for n, claims in EXACT.items() for c, why in claims.items()]
    return {"claims": rows, "exact": exact}


def text() -> str:
    """The file, one claim a line, so that a change of one is a change of one line."""
    made = table()
    parts = [
        f'"{name}": [\n' + ",\n".join(json.dumps(row, ensure_ascii=False) for row in made[name]) + "\n]"
        for name in made
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="The margins of the claims about training.")
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    asked.out.write_text(text(), encoding="utf-8")
    for row in table()["claims"]:
        print(f"{row['lesson']}  {row['sigmas']:7.1f} sigma  {row['seeds']:3} seeds  {row['claim']}")


if __name__ == "__main__":
    main()
