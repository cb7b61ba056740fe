"""Lesson 12: how far a score would move with as many other test pictures."""

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals


def truth(percent: float, pictures: int) -> float:
    """The spread of a share over all ways in which so many pictures can come out, counted one by one.

    >>> round(truth(50.0, 100), 6)
    5.0
    """
    share, mean, square = percent / 100, 0.0, 0.0
    chances = [1.0]
    for _ in range(pictures):  # one more picture: right with this chance
        chances = [
            (chances[k] if k < len(chances) else 0.0) * (1 - share) + (chances[k - 1] if k else 0.0) * share
            for k in range(len(chances) + 1)
        ]
    for right, chance in enumerate(chances):
        score = 100 * right / pictures
        mean += chance * score
        square += chance * score * score
    return float(max(0.0, square - mean * mean) ** 0.5)


def case(text: str, *given: float) -> Question:
    return Question(text, given)


EXERCISE = Exercise(
    name="picture_error",
    lesson="12",
    answer="my_error",
    missing="the standard error of a score, in percent, from the score and the number of test pictures",
    well_done="Four times the pictures halve it; with a few hundred it is larger than most gains in papers.",
    hints=(
        "one picture is right (1) or wrong (0): what is the variance of such a number, if it is right with chance p?",
        "the variance of one is p (1 - p); a mean of n has the n-th part of it, and the error is its square root.",
        "p = percent / 100; the error is 100 * sqrt(p * (1 - p) / n).",
    ),
    solution="""
def my_error(percent, pictures):
    p = percent / 100
    return 100 * (p * (1 - p) / pictures) ** 0.5
""",
    questions=(
        case("50 % of 100 pictures", 50.0, 100),
        case("90 % of 100 pictures", 90.0, 100),
        case("90 % of 400 pictures", 90.0, 400),
        case("95 % of 240 pictures", 95.0, 240),
        case("40 % of 240 pictures", 40.0, 240),
    ),
    judge=equals(truth),
    mistakes=(
        Mistake(
            "def my_error(percent, n): p = percent / 100; return 100 * p * (1 - p) / n",
            "that is the variance of the mean; the error is its square root.",
        ),
        Mistake(
            "def my_error(percent, n): p = percent / 100; return (p * (1 - p) / n) ** 0.5",
            "that is a share from 0 to 1; the score is in percent.",
        ),
        Mistake(
            "def my_error(percent, n): p = percent / 100; return 100 * (p * (1 - p)) ** 0.5",
            "that is the spread of a single picture; a mean over `pictures` of them moves less.",
        ),
        Mistake(
            "def my_error(percent, n): p = percent / 100; return 100 * (p * (1 - p)) ** 0.5 / n",
            "the error of a mean falls with the square root of the number of pictures, not with the number.",
        ),
        Mistake(
            "def my_error(percent, n): return 100 * (0.25 / n) ** 0.5",
            "that holds at 50 %; a score near 100 % has less room to move: p (1 - p) is smaller there.",
        ),
        Mistake(
            "def my_error(percent, n): p = percent / 100; return 100 * (p / n) ** 0.5",
            "the chance of being wrong belongs in it, too: the variance of one picture is p (1 - p).",
        ),
    ),
    variants=(
        "def my_error(percent, pictures): return (percent * (100 - percent) / pictures) ** 0.5",
        "def my_error(a, n): return torch.tensor(a * (100 - a) / n).sqrt()",
    ),
)
