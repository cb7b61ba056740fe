"""Lesson 14: alpha by home validation alone. The truth walks from alpha 0 and stops at the first that will do."""

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals

ALPHAS = [0.0, 0.25, 0.5, 0.75, 1.0]
RISING = (ALPHAS, [80.0, 93.9, 94.5, 95.0, 95.2], [2.0, 1.0, 1.0, 0.8, 0.8])
FLAT = (ALPHAS, [95.0, 95.1, 95.2, 95.1, 95.0], [0.5, 0.5, 0.5, 0.5, 0.5])
HUMP = (ALPHAS, [70.0, 92.5, 95.0, 94.2, 90.0], [6.0, 3.0, 1.0, 2.0, 5.0])
SHARP = (ALPHAS, [60.0, 70.0, 80.0, 90.0, 99.0], [2.0, 2.0, 2.0, 2.0, 0.5])


def first_that_will_do(alphas: list[float], val: list[float], error: list[float]) -> float:
    """Step by step from the pre-trained end.

    >>> first_that_will_do(*RISING)
    0.5
    """
    best = 0
    for place, score in enumerate(val):
        if score > val[best]:
            best = place
    for alpha, score in zip(alphas, val, strict=True):
        if val[best] - score <= error[best]:
            return alpha
    raise AssertionError("the best itself will do")


EXERCISE = Exercise(
    name="choose_alpha",
    lesson="14",
    answer="my_choose_alpha",
    missing="the smallest alpha whose validation score is within one standard error of the best one",
    well_done="No shift was looked at: among all that validation cannot tell apart, you took the one nearest to W0.",
    hints=(
        "which alpha is the best on validation, and what is the standard error there?",
        "how far may another one be below it, so that it may well be chance? List all that are near enough.",
        "best = val.index(max(val)); then the smallest a of zip(alphas, val) with val[best] - v <= error[best].",
    ),
    solution="""
def my_choose_alpha(alphas, val, error):
    best = val.index(max(val))
    good_enough = [a for a, score in zip(alphas, val, strict=True) if val[best] - score <= error[best]]
    return min(good_enough)
""",
    questions=(
        Question("val = 80, 93.9, 94.5, 95, 95.2 at alpha 0 to 1, error 0.8 at the best", RISING),
        Question("all about equal: 95, 95.1, 95.2, 95.1, 95, error 0.5", FLAT),
        Question("a hump: 70, 92.5, 95, 94.2, 90, with other errors at other places", HUMP),
        Question("a steep way up to 99, error 0.5 there", SHARP),
    ),
    judge=equals(first_that_will_do),
    mistakes=(
        Mistake(
            "my_choose_alpha = lambda alphas, val, error: alphas[val.index(max(val))]",
            "you took the best on validation; it may be best by chance, and home has little to lose near alpha 1.",
        ),
        Mistake(
            "my_choose_alpha = lambda alphas, val, error: "
            "max(a for a, v in zip(alphas, val) if max(val) - v <= error[val.index(max(val))])",
            "you took the largest alpha that will do; the smallest one is nearest to the pre-trained network.",
        ),
        Mistake(
            "my_choose_alpha = lambda alphas, val, error: "
            "min(a for a, v, e in zip(alphas, val, error) if max(val) - v <= e)",
            "you used the error of each alpha; the rule is one standard error of the best.",
        ),
        Mistake(
            "my_choose_alpha = lambda alphas, val, error: "
            "min(i for i, v in enumerate(val) if max(val) - v <= error[val.index(max(val))])",
            "you returned its place in the list; return the alpha itself.",
        ),
        Mistake(
            "my_choose_alpha = lambda alphas, val, error: "
            "min(a for a, v in zip(alphas, val) if max(val) - v <= 2 * error[val.index(max(val))])",
            "you left room for two standard errors; the rule has one.",
        ),
        Mistake(
            "my_choose_alpha = lambda alphas, val, error: alphas[0]",
            "that is the pre-trained network itself; it has to be as good on validation as one can tell.",
        ),
        Mistake(
            "my_choose_alpha = lambda alphas, val, error: alphas[-1]",
            "that is the fine-tuned network itself; an alpha nearer to W0 may be as good on validation.",
        ),
    ),
    variants=(
        """
def my_choose_alpha(alphas, val, error):
    best = max(range(len(val)), key=lambda i: val[i])
    for alpha, score in zip(alphas, val):
        if score >= val[best] - error[best]:
            return alpha
""",
    ),
)
