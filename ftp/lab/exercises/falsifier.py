"""Lesson 10: design a falsifier. An experiment, and a promise that FTP should keep there and does not."""

from typing import Any

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, numbers
from ftp.lab.exercises.verdict import FALSIFIED, HELPS, gain, truth
from ftp.lab.recordings import recorded
from ftp.lab.recordings.controls import recorded_control

Scores = tuple[list[float], list[float]]  # FTP's and the other's, by seed
EXPERIMENTS = (
    "five shifts, tuned recipes",
    "no shift: the ID test set",
    "optdigits alone, fine-tuning at half its learning rate",
    "five shifts, 30 steps",
    "no shift, 30 steps",
    "five shifts, against the linear probe",
    "five shifts, a tiny learning rate",
    "no shift, random weights as the anchor",
    "five shifts, random weights as the anchor",
)
MOST = 1.0  # points that may be promised: a larger promise is easy to break
KEPT = "there FTP keeps the promise; look where it has nothing to protect, or too little time."
UNDECIDED = "these seeds cannot tell: the promise may still be true; promise more, or look elsewhere."
HOPELESS = "these seeds cannot tell, not even with a promise of 1 point, the most that counts; look elsewhere."
CHEAP = "a promise that nobody makes is easy to break; promise from 0 to 1 point."
UNKNOWN = "there is no such experiment; choose a number of the list."


def scores(experiment: int) -> Scores:
    """What FTP and the method it is compared with reach, in percent, seed by seed.

    >>> ours, theirs = scores(0)
    >>> len(ours), truth(ours, theirs)
    (10, 1)
    """
    if experiment in (7, 8):
        controls = recorded_control("untrained_ftp"), recorded_control("untrained_finetune")
        left, right = ([run.id if experiment == 7 else run.ood_avg for run in half] for half in controls)
        return left, right
    group = {3: "few_steps", 4: "few_steps", 6: "tiny_lr"}.get(experiment, "methods")
    against = {2: ("finetune", "gentle"), 5: ("linear_probe", "methods")}.get(experiment, ("finetune", group))
    runs = recorded(method="ftp", group=group), recorded(method=against[0], group=against[1])
    ours, theirs = ([_score(experiment, run.result) for run in half] for half in runs)
    return ours, theirs


def _score(experiment: int, result: Any) -> float:
    if experiment == 2:
        return float(result["ood"]["optdigits"])
    return float(result["id" if experiment in (1, 4) else "ood_avg"])


def judge(given: Any) -> str | None:
    """Right is an experiment with a modest promise that the recorded seeds break by three standard errors.

    >>> judge((1, 0.0)), judge((0, 0.0)).splitlines()[1]
    (None, '  five shifts, tuned recipes: promised 0, gained 11.83 with a standard error of 1.12')
    """
    pair = numbers(given)
    if pair.shape != (2,):
        return f"a number of the list and a promise are expected, yours has shape {tuple(pair.shape)}"
    number, promise = pair.tolist()
    shown = f"\n  experiment {number:g}, promised {promise:g}"
    if number not in range(len(EXPERIMENTS)):
        return UNKNOWN + shown
    if not 0 <= promise <= MOST:
        return CHEAP + shown
    ours, theirs = scores(int(number))
    found, (mean, error) = truth(ours, theirs, promise), gain(ours, theirs)
    if found == FALSIFIED:
        return None
    problem = KEPT if found == HELPS else UNDECIDED if truth(ours, theirs, MOST) == FALSIFIED else HOPELESS
    seen = f"promised {promise:g}, gained {mean:.2f} with a standard error of {error:.2f}"
    return f"{problem}\n  {EXPERIMENTS[int(number)]}: {seen}"


EXERCISE = Exercise(
    name="falsifier",
    lesson="10",
    answer="my_falsifier",
    missing="the number of an experiment, and a promise of 0 to 1 point that FTP breaks there",
    well_done="A method that helps everywhere would be suspicious; now you know a place where this one does not.",
    hints=(
        "what does a leash protect, and in which experiment is nothing there to be protected from?",
        "a falsifier needs a mean below the promise by three standard errors; compare with 0, 0.5 and 1 point.",
        "without a shift there is nothing to gain: experiment 1, even with a promise of 0.",
    ),
    solution="""
my_falsifier = (1, 0.0)  # on the ID test set FTP gains nothing, it loses a little
""",
    questions=(Question(""),),
    judge=judge,
    mistakes=(
        Mistake("my_falsifier = (0, 0.0)", KEPT),
        Mistake("my_falsifier = (3, 0.5)", KEPT),
        Mistake("my_falsifier = (6, 0.0)", UNDECIDED),
        Mistake("my_falsifier = (2, 0.0)", HOPELESS),
        Mistake("my_falsifier = (2, 1)", HOPELESS),
        Mistake("my_falsifier = (8, 1)", HOPELESS),
        Mistake("my_falsifier = (5, 1.0)", HOPELESS),
        Mistake("my_falsifier = (0, 90.0)", CHEAP),
        Mistake("my_falsifier = (9, 0.0)", UNKNOWN),
    ),
    variants=(
        "my_falsifier = [1, 0.5]",
        "my_falsifier = torch.tensor([4.0, 0.75])",
        "my_falsifier = (7, 0.0)",
        "my_falsifier = (6, 0.5)",
    ),
    takes="value",
)
