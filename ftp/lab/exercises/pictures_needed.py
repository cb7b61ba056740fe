"""Lesson 12: how many test pictures it takes until a score is as sure as one wants."""

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals


def truth(percent: float, error: float) -> int:
    """Try one number of pictures after the other until the error of the score is small enough.

    >>> truth(90.0, 0.5)
    3600
    """
    pictures = 1
    while percent * (100 - percent) / pictures > error * error * (1 + 1e-12):
        pictures += 1
    return pictures


EXERCISE = Exercise(
    name="pictures_needed",
    lesson="12",
    answer="my_pictures",
    missing="how many test pictures a score needs until its standard error is at most `error`",
    well_done="Half the error costs four times the pictures.",
    hints=(
        "turn the formula of the first exercise round: it gives an error from a number of pictures.",
        "error = sqrt(percent (100 - percent) / n), all in percent. Square it, and solve for n.",
        "n = percent * (100 - percent) / error ** 2, rounded up.",
    ),
    solution="""
def my_pictures(percent, error):
    return math.ceil(percent * (100 - percent) / error**2)
""",
    questions=(
        Question("50 %, an error of 5", (50.0, 5.0)),
        Question("90 %, an error of 0.5", (90.0, 0.5)),
        Question("90 %, an error of 2", (90.0, 2.0)),
        Question("80 %, an error of 3", (80.0, 3.0)),
    ),
    judge=equals(truth),
    mistakes=(
        Mistake(
            "def my_pictures(percent, error): return percent * (100 - percent) / error",
            "the error has to be squared: half of it costs four times the pictures.",
        ),
        Mistake(
            "def my_pictures(percent, error): p = percent / 100; return math.ceil(p * (1 - p) / error**2)",
            "a share from 0 to 1 goes with an error from 0 to 1; here the error is in percent.",
        ),
        Mistake(
            "def my_pictures(percent, error): return math.ceil(2500 / error**2)",
            "that holds at 50 %; elsewhere percent (100 - percent) is smaller, and fewer pictures do.",
        ),
        Mistake(
            "def my_pictures(percent, error): return math.floor(percent * (100 - percent) / error**2)",
            "round up: with the whole number below, the error is a little too large.",
        ),
    ),
    variants=("def my_pictures(percent, error): return -int(-percent * (100 - percent) // error**2)",),
)
