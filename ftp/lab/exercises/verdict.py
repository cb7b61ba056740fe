"""Lesson 10: does it help, does it not, or can these seeds not tell? Paired differences and their standard error."""

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals
from ftp.lab.noise import beyond_noise as truth
from ftp.lab.noise import paired as gain

__all__ = ["EXERCISE", "FALSIFIED", "HELPS", "OPEN", "gain", "truth"]
HELPS, OPEN, FALSIFIED = 1, 0, -1

WAVES = [2.0, 1.0, 3.0, 1.5, 2.5, 0.5, 3.5, 2.0, 1.0, 3.0, 1.5, 2.5, 0.5, 3.5, 1.0, 3.0]

SAMPLE = "the spread of a sample divides by n - 1; yours divides by n, as NumPy's std and pstdev do: ddof=1, or stdev."

EXERCISE = Exercise(
    name="verdict",
    lesson="10",
    answer="my_verdict",
    missing="1 (above the promise), -1 (below it) or 0 (these seeds cannot tell)",
    well_done="Pair by seed, then ask for three standard errors: many a gain of one seed is gone after that.",
    hints=(
        "the same seed means the same head and the same order of batches, so subtract seed by seed first.",
        "standard error = standard deviation of the differences / square root of their number.",
        "1 if mean - 3 * error > promise, -1 if mean + 3 * error < promise, else 0.",
    ),
    solution="""
def my_verdict(ours, theirs, promise):
    gains = torch.tensor(ours) - torch.tensor(theirs)
    mean, error = gains.mean(), gains.std() / len(gains) ** 0.5
    return 1 if mean - 3 * error > promise else -1 if mean + 3 * error < promise else 0
""",
    questions=(
        Question("10 points more, promise 0", ([90.0, 91.0, 92.0, 93.0], [80.0, 81.0, 83.0, 82.0], 0.0)),
        Question(
            "1 point more in each of very different seeds", ([50.0, 60.0, 70.0, 80.0], [49.0, 59.0, 69.2, 79.0], 0.0)
        ),
        Question("1 point more, promise 2", ([50.0, 60.0, 70.0, 80.0], [49.0, 59.0, 69.2, 79.0], 2.0)),
        Question("differences 3, -2.5, 0.5, -0.5", ([13.0, 7.5, 10.5, 9.5], [10.0, 10.0, 10.0, 10.0], 0.0)),
        Question("differences 2, -1, 0.5, 1.5", ([12.0, 9.0, 10.5, 11.5], [10.0, 10.0, 10.0, 10.0], 0.0)),
        Question("differences 0, 1, 2, 3", ([10.0, 11.0, 12.0, 13.0], [10.0, 10.0, 10.0, 10.0], 0.0)),
        Question("differences 0.2, 1.2, 2.2, 3.2", ([10.2, 11.2, 12.2, 13.2], [10.0, 10.0, 10.0, 10.0], 0.0)),
        Question("differences 0.8, 1.8, 2.8, 3.8", ([10.8, 11.8, 12.8, 13.8], [10.0, 10.0, 10.0, 10.0], 0.0)),
        Question("differences 0.6, 1.6, 2.6, 3.6", ([10.6, 11.6, 12.6, 13.6], [10.0, 10.0, 10.0, 10.0], 0.0)),
        Question("16 seeds that differ by 0.5 to 3.5", (WAVES, [0.0] * 16, 0.0)),
    ),
    judge=equals(truth),
    mistakes=(
        Mistake(
            "def my_verdict(a, b, p):\n g = torch.tensor(b) - torch.tensor(a)\n"
            " m, e = g.mean(), g.std() / len(g) ** 0.5\n return 1 if m - 3 * e > p else -1 if m + 3 * e < p else 0",
            "you subtracted the wrong way round: a gain is ours minus theirs.",
        ),
        Mistake(
            "def my_verdict(a, b, p):\n a, b = torch.tensor(a), torch.tensor(b); m = a.mean() - b.mean()\n"
            " e = ((a.var() + b.var()) / len(a)) ** 0.5\n return 1 if m - 3 * e > p else -1 if m + 3 * e < p else 0",
            "you compared two heaps; pair the runs by seed and look at the differences.",
        ),
        Mistake(
            "def my_verdict(a, b, p):\n g = torch.tensor(a) - torch.tensor(b); m, e = g.mean(), g.std()\n"
            " return 1 if m - 3 * e > p else -1 if m + 3 * e < p else 0",
            "that is the standard deviation of one seed; the mean of n seeds is surer by the root of n.",
        ),
        Mistake(
            "def my_verdict(a, b, p):\n g = torch.tensor(a) - torch.tensor(b)\n"
            " m, e = g.mean(), g.std() / len(g) ** 0.5\n return 1 if m - e > p else -1 if m + e < p else 0",
            "one standard error is passed by chance in every third comparison; ask for three.",
        ),
        Mistake(
            "def my_verdict(a, b, p):\n g = torch.tensor(a) - torch.tensor(b)\n"
            " m, e = g.mean(), g.std() / len(g) ** 0.5\n return 1 if m - 2 * e > p else -1 if m + 2 * e < p else 0",
            "two standard errors are passed by chance in about every twentieth comparison; ask for three.",
        ),
        Mistake(
            "def my_verdict(a, b, p):\n g = torch.tensor(a) - torch.tensor(b)\n"
            " m, e = g.mean(), g.std(correction=0) / len(g) ** 0.5\n"
            " return 1 if m - 3 * e > p else -1 if m + 3 * e < p else 0",
            SAMPLE,
        ),
        Mistake(
            "import statistics as s\ndef my_verdict(a, b, p):\n g = [x - y for x, y in zip(a, b)]\n"
            " m, e = s.mean(g), s.pstdev(g) / len(g) ** 0.5\n"
            " return 1 if m - 3 * e > p else -1 if m + 3 * e < p else 0",
            SAMPLE,
        ),
        Mistake(
            "def my_verdict(a, b, p):\n g = torch.tensor(a) - torch.tensor(b)\n"
            " m, e = g.mean(), g.std() / (len(g) - 1) ** 0.5\n"
            " return 1 if m - 3 * e > p else -1 if m + 3 * e < p else 0",
            "you divided by the root of n - 1; the n - 1 is in the standard deviation already, so take the root of n.",
        ),
        Mistake(
            "def my_verdict(a, b, p):\n m = (torch.tensor(a) - torch.tensor(b)).mean()\n return 1 if m > p else -1",
            "a mean alone always says something; compare it with its standard error.",
        ),
        Mistake(
            "def my_verdict(a, b, p):\n g = torch.tensor(a) - torch.tensor(b)\n"
            " m, e = g.mean(), g.std() / len(g) ** 0.5\n return 1 if m - 3 * e > 0 else -1 if m + 3 * e < 0 else 0",
            "you compared with 0; what was promised is `promise`.",
        ),
    ),
    variants=(
        "import statistics as s\ndef my_verdict(a, b, p):\n g = [x - y - p for x, y in zip(a, b)]\n"
        " t = s.mean(g) / (s.stdev(g) / len(g) ** 0.5)\n return (t > 3) - (t < -3)",
        "import statistics as s\ndef my_verdict(a, b, p):\n g = [x - y for x, y in zip(a, b)]\n"
        " m, e = s.mean(g), s.pstdev(g) / (len(g) - 1) ** 0.5\n"  # n - 1 once, at either place
        " return 1 if m - 3 * e > p else -1 if m + 3 * e < p else 0",
    ),
)
