"""Lesson 07: the time of a step of FTP over that of TPGM, from passes and what each costs."""

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals


def truth(turns: int, forward: float, backward: float, project: float, other: float) -> float:
    """Walk through one step of each method and add up what it does.

    >>> truth(turns=1, forward=1.0, backward=2.0, project=0.5, other=0.0)
    0.5
    """
    ftp = tpgm = other
    for part in (forward, backward, project):
        ftp += part
    for _ in range(1 + turns):  # the step itself, and every turn of the nested loop
        for part in (forward, backward, project):
            tpgm += part
    return ftp / tpgm


def case(text: str, *given: float) -> Question:
    return Question(text, given)


EXERCISE = Exercise(
    name="cost_ratio",
    lesson="07",
    answer="my_ratio",
    missing="the time of a step of FTP, divided by that of a step of TPGM",
    well_done="With one turn it is a half, whatever a pass costs; only what a step does once brings it nearer to 1.",
    hints=(
        "write down what one step of FTP does, then what one step of TPGM does, each as a sum.",
        "TPGM does forward + backward + project for the step and again for each turn; `other` happens once in both.",
        "FTP: other + one; TPGM: other + (1 + turns) * one, with one = forward + backward + project.",
    ),
    solution="""
def my_ratio(turns, forward, backward, project, other):
    one = forward + backward + project
    return (other + one) / (other + (1 + turns) * one)
""",
    questions=(
        case("1 turn, forward 1, backward 2, project 0, other 0", 1, 1.0, 2.0, 0.0, 0.0),
        case("1 turn, forward 1, backward 2, project 0.5, other 0", 1, 1.0, 2.0, 0.5, 0.0),
        case("3 turns, forward 1, backward 2, project 0.5, other 0", 3, 1.0, 2.0, 0.5, 0.0),
        case("2 turns, forward 1, backward 2, project 0.5, other 1", 2, 1.0, 2.0, 0.5, 1.0),
        case("2 turns, forward 5, backward 8, project 1, other 4", 2, 5.0, 8.0, 1.0, 4.0),
    ),
    judge=equals(truth),
    mistakes=(
        Mistake(
            "def my_ratio(t, f, b, p, o): return (o + (1 + t) * (f + b + p)) / (o + f + b + p)",
            "that is how much longer TPGM takes; the time of FTP belongs above the line.",
        ),
        Mistake(
            "def my_ratio(t, f, b, p, o): return (o + f + b + p) / (o + t * (f + b + p))",
            "you counted TPGM's nested loop only; the step itself comes first.",
        ),
        Mistake(
            "def my_ratio(t, f, b, p, o): return (o + f + b + p) / (o + f + b + p + t * (f + p))",
            "a turn needs a backward pass too: the slope of γ comes out of it.",
        ),
        Mistake(
            "def my_ratio(t, f, b, p, o): return (o + f + b + p) / (o + (1 + t) * (f + b) + p)",
            "TPGM projects in every turn, and once more for good.",
        ),
        Mistake(
            "def my_ratio(t, f, b, p, o): return (o + 3 * f + p) / (o + (1 + t) * (3 * f + p))",
            "a backward pass need not cost twice a forward one; take `backward` as it is given.",
        ),
        Mistake(
            "def my_ratio(t, f, b, p, o): return 1 / (1 + t)",
            "`other` happens once in a step of either method, so it does not cancel.",
        ),
        Mistake(
            "def my_ratio(t, f, b, p, o): return (o + f + b + p) / (o + 2 * (f + b + p))",
            "you counted one turn; there are `turns` of them.",
        ),
    ),
    variants=(
        "my_ratio = lambda t, f, b, p, o: (f + b + p + o) / ((1 + t) * (f + b + p) + o)",
        "def my_ratio(*a): return torch.tensor(a[4] + sum(a[1:4])) / (a[4] + (1 + a[0]) * sum(a[1:4]))",
    ),
)
