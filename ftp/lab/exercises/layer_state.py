"""Lesson 08: at home, held or free? What a layer's three numbers say together."""

from ftp.lab.exercises._exercise import Exercise, Mistake, Question, equals

HOME, HELD, FREE = 0, 1, 2
SHORT, OFTEN = 0.05, 0.1  # a leash below the first is no leash; a share above the second pulls


def truth(gamma: float, distance: float, boundary: float) -> int:
    """First the length of the leash, then how many rows it pulled back. The distance decides nothing.

    >>> truth(0.001, 0.001, 0.6), truth(2.3, 2.3, 0.4), truth(1.65, 1.65, 0.02)
    (0, 1, 2)
    """
    if gamma < SHORT:
        return HOME
    return HELD if boundary > OFTEN else FREE


def case(gamma: float, distance: float, boundary: float) -> Question:
    return Question(f"γ = {gamma:g}, distance {distance:g}, pulled back {boundary:.0%}", (gamma, distance, boundary))


EXERCISE = Exercise(
    name="layer_state",
    lesson="08",
    answer="my_state",
    missing="0 (at home), 1 (held) or 2 (free), from γ, distance and the share of rows pulled back",
    well_done="The distance decides nothing: the farthest row stands at the end of its leash in nearly every layer.",
    hints=(
        "one of the three numbers is not needed: which one do the three lines of the text not name?",
        "ask first whether the leash has any length (0.05), and only then whether it pulls (0.1).",
        "0 if gamma < 0.05, else 1 if boundary > 0.1, else 2.",
    ),
    solution="""
def my_state(gamma, distance, boundary):
    if gamma < 0.05:
        return 0
    return 1 if boundary > 0.1 else 2
""",
    questions=(
        case(2.3, 2.3, 0.4),
        case(1.65, 1.65, 0.02),
        case(0.001, 0.001, 0.6),
        case(0.004, 0.004, 0.0),
        case(0.3, 0.25, 0.0),
        case(0.07, 0.07, 0.07),
        case(0.3, 0.3, 0.15),
        case(0.5, 0.01, 0.0),
        case(0.2, 0.2, 0.0),
    ),
    judge=equals(truth),
    mistakes=(
        Mistake(
            "def my_state(g, d, b): return 1 if b > 0.1 else 2",
            "a layer whose leash has nearly no length is at home, whether it pulls or not.",
        ),
        Mistake(
            "def my_state(g, d, b): return 0 if g < 0.05 else 1 if d >= g else 2",
            "γ is clipped to the farthest row, so that row stands there in any case; look at the rows pulled back.",
        ),
        Mistake(
            "def my_state(g, d, b): return 0 if g < 0.05 else 2 if b > 0.1 else 1",
            "you have held and free the wrong way round: many rows pulled back means held.",
        ),
        Mistake(
            "def my_state(g, d, b): return 1 if b > 0.1 else 0 if g < 0.05 else 2",
            "ask for the length first: a leash of nearly 0 pulls most of all, and the layer is at home.",
        ),
        Mistake(
            "def my_state(g, d, b): return 0 if g < 0.1 else 1 if b > 0.05 else 2",
            "you have the two numbers the wrong way round: 0.05 is for the leash, 0.1 for the rows pulled back.",
        ),
        Mistake(
            "def my_state(g, d, b): return 0 if b <= 0.1 else 1",
            "a layer that is hardly ever pulled back is not at home: it may go where it wants.",
        ),
        Mistake(
            "def my_state(g, d, b): return 0 if d < 0.05 else 1 if b > 0.1 else 2",
            "you asked how far the layer has gone; ask how far it may go: at home means a leash without length.",
        ),
        *(
            Mistake(
                f"def my_state(g, d, b): return 0 if g < 0.05 else 1 if {often} else 2",
                "the rows pulled back are a share, from 0 to 1, and not a percentage: a tenth of them is 0.1.",
            )
            for often in ("b > 10", "100 * b > 0.1")
        ),
    ),
    variants=(
        "my_state = lambda g, d, b: 0 if g < 0.05 else 1 + (b <= 0.1)",
        "def my_state(g, d, b): return torch.tensor(0 if g < 0.05 else 2 - int(b > 0.1))",
    ),
)
