"""Lesson 13: how much was forgotten, F_N of the paper's appendix for tasks of equal size. The truth counts pictures."""

from fractions import Fraction

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals

SMALL = [[0.9], [0.8, 0.85], [0.7, 0.75, 0.88]]
TWO = [[0.9], [0.5, 0.8]]
RISEN = [[0.5], [0.7, 0.6], [0.4, 0.6, 0.9], [0.3, 0.2, 0.8, 0.7]]


def counted(matrix: list[list[float]]) -> float:
    """With 100 pictures a task: of all seen so far, what share was lost since it was learned; the mean over times.

    >>> counted(SMALL)
    0.075
    """
    shares = []
    for i in range(1, len(matrix)):
        lost = [round(100 * matrix[n][n]) - round(100 * matrix[i][n]) for n in range(i)]
        shares.append(Fraction(sum(lost), 100 * (i + 1)))  # the new task counts among the pictures, and has lost none
    return float(sum(shares) / len(shares))


EXERCISE = Exercise(
    name="forgetting",
    lesson="13",
    answer="my_forgetting",
    missing="the mean over i = 2..N of the sum over n < i of (R_nn - R_in) / i",
    well_done="Of all that it had ever learned up to a time, this share was lost by then, on average over the times.",
    hints=(
        "begin with one time, after two tasks: of the pictures of both, which share was known and is not now?",
        "after i tasks: add up R_nn - R_in for all earlier n, and divide by i, the number of tasks seen.",
        "take the mean of these numbers over i = 2..N; that is N - 1 of them. In Python rows are counted from 0.",
    ),
    solution="""
def my_forgetting(R):
    lost = [sum(R[n][n] - R[i][n] for n in range(i)) / (i + 1) for i in range(1, len(R))]
    return sum(lost) / len(lost)
""",
    questions=(
        Question("R = [[.90], [.50, .80]]", (TWO,)),
        Question("R = [[.90], [.80, .85], [.70, .75, .88]]", (SMALL,)),
        Question("four tasks, the first of which got better before it got worse", (RISEN,)),
    ),
    judge=equals(counted),
    mistakes=(
        Mistake(
            "my_forgetting = lambda R: sum(sum(R[n][n] - R[i][n] for n in range(i)) / i for i in range(1, len(R))) "
            "/ (len(R) - 1)",
            "you divided by the number of old tasks; the new one counts too, for its pictures are among those seen.",
        ),
        Mistake(
            "my_forgetting = lambda R: sum(sum(R[i - 1][n] - R[i][n] for n in range(i)) / i for i in range(1, len(R))) "
            "/ (len(R) - 1)",
            "you took the drop since the last task, as the code of CODA-Prompt does; the paper's R_nn is from when the "
            "task was new.",
        ),
        Mistake(
            "my_forgetting = lambda R: sum(R[n][n] - R[-1][n] for n in range(len(R) - 1)) / (len(R) - 1)",
            "you looked at the end only; F_N is a mean over all times, after 2, 3, ... N tasks.",
        ),
        Mistake(
            "my_forgetting = lambda R: sum(max(row[n] for row in R[n:]) - R[-1][n] for n in range(len(R) - 1)) "
            "/ (len(R) - 1)",
            "that is the best ever minus the end, as other papers have it; here it is R_nn - R_in, at all times.",
        ),
        Mistake(
            "my_forgetting = lambda R: sum((R[n][n] - R[i][n]) / (n + 1) for i in range(1, len(R)) for n in range(i)) "
            "/ (len(R) - 1)",
            "you took the weight as it is printed, with T_{1:n}; a misprint: old tasks would count for too much.",
        ),
        Mistake(
            "my_forgetting = lambda R: sum(sum(R[i][n] - R[n][n] for n in range(i)) / (i + 1) for i in "
            "range(1, len(R))) / (len(R) - 1)",
            "the sign is the other way round; what was lost counts as positive.",
        ),
        Mistake(
            "my_forgetting = lambda R: sum(sum(R[n][n] - R[i][n] for n in range(i)) / (i + 1) for i in "
            "range(1, len(R))) / len(R)",
            "you divided by N; there are N - 1 times at which something can have been forgotten.",
        ),
        Mistake(
            "my_forgetting = lambda R: sum(R[n][n] - R[i][n] for i in range(1, len(R)) for n in range(i)) "
            "/ (len(R) - 1)",
            "the weights are missing; after i tasks the sum is divided by i.",
        ),
    ),
    variants=(
        "from ftp.lab.continual import forgetting as my_forgetting",
        """
def my_forgetting(R):
    total = 0.0
    for i in range(1, len(R)):
        for n in range(i):
            total += (R[n][n] - R[i][n]) / (i + 1)
    return total / (len(R) - 1)
""",
    ),
)
