"""Ask: a picture for its name or a caption for its pictures; zero-shot, fine-tuned and FTP answer side by side."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import run_chooser, widgets
from app.components.ask import Network, Shown, answers, checked
from app.sentences import shown as sentence_of
from app.world import current
from ftp.lab import methods
from ftp.lab.ask import TOP, Asking, Cell, Found, asking, level
from ftp.lab.figures.template import style
from ftp.lab.record import LabError
from ftp.lab.recordings.extras import has_extra
from ftp.lab.worlds import World

TITLE = "Ask"
QUESTION = "What does fine-tuning on one artist do to what the network knows of the others?"
START, END = 0, -1  # places of alpha 0 and alpha 1
BY = {"picture": "a picture", "caption": "a caption"}
ZERO_SHOT = "zero_shot"
PICTURE = {
    "picture": "One scene, drawn by each artist, and what each network takes it for. *All {things}*: how much of "
    "everything it names right. **Pick** another emoji; **move α**: WiSE mixes the weights, W₀ + α (W − W₀).",
    "caption": "The text tower turns your words into one arrow. Shown are the pictures whose arrows are nearest, with "
    "the cosine. Fine-tuning moved the pictures' arrows, not the text's. **Click** a picture to ask for its name.",
}


def _things(world: str) -> Sequence[str]:
    return asking(world).things if has_extra("ask", world) else ()


LINK = {"alpha": (0.0, 1.0), "by": tuple(BY), "thing": _things}


def misfit(world: World) -> str:
    if has_extra("ask", world.name):
        return ""
    return f"{world.title} has no network of pictures and words that was recorded, so nobody would answer"


def render() -> None:
    world = current()
    asked = asking(world.name)
    left, right = st.columns([1, 3.7], gap="medium")
    with left:
        guess = widgets.predict("ask_guess", question(asked), names(asked))
        said = st.container()
        by = _by()
        st.caption(PICTURE[by].format(things=len(asked.things)))
        st.caption(_standing(asked, by))
    thing, hold = _thing(asked), widgets.waits(guess)
    with said:
        widgets.answer(verdict(asked, guess) if guess else "Make your guess, and all three answer.")
    alpha = _start()
    with right:
        found = _found(asked) if by == "caption" else None
        if by == "picture" or found:
            cells = found.cells if found else asked.answers(thing)
            alpha, _ = answers(_shown(world, asked, thing, found), _networks(asked, cells, found), alpha, hold, _pick)
    caption = st.session_state.get("caption", "") if by == "caption" else None
    params: dict[str, Any] = {"by": by, "alpha": f"{alpha:g}"}
    if by == "picture":
        params["thing"] = asked.things[thing]
    else:
        params["caption"] = caption
    first = asked.things[typical(asked)] if by == "picture" else None
    widgets.remember({"alpha": params["alpha"], "thing": params.get("thing")}, {"alpha": "1", "thing": first})
    if not hold and (by == "picture" or found):
        widgets.data_table(rows(asked, found.cells if found else asked.answers(thing), found is not None), "ask")
    python = python_of(world.name, asked.things[thing], caption)
    widgets.sharing("ask", params, python, run_chooser.lesson("14", "06"))


def names(asked: Asking) -> list[str]:
    """The networks, by name: the pre-trained one first."""
    return [methods.method(ZERO_SHOT).title, *(style(method).name for method in asked.methods)]


def hardest(asked: Asking) -> int:
    """The shift on which fine-tuning falls deepest below where it began: the one worth a guess."""
    right = asked.right(0)
    return min(range(1, len(asked.sets)), key=lambda n: right[n][END] - right[n][START])


def question(asked: Asking) -> str:
    """What is to be guessed."""
    return f"Fine-tuning saw {asked.titles[0]} alone. Who now names the most things in {asked.titles[hardest(asked)]}?"


def verdict(asked: Asking, guess: str) -> str:
    """Who names how many, at home and where it is hardest; what differs less than the pictures' noise is level."""
    shift = hardest(asked)
    answers_of = [asked.named(0, shift, START), *(asked.named(way, shift, END) for way in range(len(asked.methods)))]
    best = max(range(len(answers_of)), key=lambda n: sum(answers_of[n]))
    chosen = names(asked).index(guess) if guess in names(asked) else 0
    close = level(answers_of[best], answers_of[chosen])
    mark = "Right" if chosen == best else "As good as right" if close else "Look again"
    home = [asked.right(0)[0][START], *(asked.right(way)[0][END] for way in range(len(asked.methods)))]

    first, *others = zip(names(asked), (sum(row) for row in answers_of), strict=True)
    counts = [f"{first[0]} names {first[1]}", *(f"{name} {count}" for name, count in others)]
    return (
        f"{mark}: of {len(asked.things)} things in {asked.titles[shift]}, {', '.join(counts)}; "
        f"in {asked.titles[0]} {', '.join(map(str, home))}."
    )


def _by() -> str:
    start = widgets.linked("by", list(BY), ["picture"])[0]
    chosen = st.segmented_control("Ask with", list(BY), default=start, format_func=BY.__getitem__, key="by")
    widgets.link("by", [chosen or "picture"], ["picture"])
    return str(chosen or "picture")


def _found(asked: Asking) -> Found | None:
    """The text box, and what its caption finds; what is wrong with the text is said below the box."""
    text = st.text_input("Your caption", asked.examples[0], key="caption", bind="query-params")
    tries: dict[str, Any] = {"key": "ask_example", "on_change": _take_example, "label_visibility": "collapsed"}
    st.pills("Or one of these", asked.examples, wrap=True, **tries)
    told = st.container()  # always there: what stands below must not move, for a component that moves begins anew
    try:
        found = asked.found(text)
    except LabError as error:
        told.warning(widgets.plain(f"{sentence_of(error)}."))
        return None
    if found.remark:
        told.warning(widgets.plain(f"{sentence_of(found.remark)}."))
    return found


def _take_example() -> None:
    if example := st.session_state.get("ask_example"):
        st.session_state["caption"], st.session_state["ask_example"] = example, None


def _pick() -> None:
    """A picture was clicked: it is asked for its name from now on."""
    thing = checked(st.session_state["ask"]["picked"], 2**16)
    if thing is not None:
        st.session_state["ask_thing"], st.session_state["by"] = thing, "picture"


def _thing(asked: Asking) -> int:
    """The number of the thing that is asked about: clicked, or linked, or a typical one."""
    thing = st.session_state.get("ask_thing")
    if isinstance(thing, int) and thing < len(asked.things):
        return thing
    linked = st.query_params.get("thing", "")
    return asked.things.index(linked) if linked in asked.things else typical(asked)


def typical(asked: Asking) -> int:
    """A fair first thing: what zero-shot names of it and what each method changes there are nearest to the means."""
    ends = [(0, START), *((way, END) for way in range(len(asked.methods)))]
    named = [[asked.named(way, n, at) for n in range(len(asked.sets))] for way, at in ends]  # by network, set, thing
    first, *others = ([sum(column) for column in zip(*rows, strict=True)] for rows in named)
    sums = [first, *([after - before for after, before in zip(row, first, strict=True)] for row in others)]
    means = [sum(row) / len(row) for row in sums]
    return min(range(len(asked.things)), key=lambda t: sum((s[t] - m) ** 2 for s, m in zip(sums, means, strict=True)))


def _shown(world: World, asked: Asking, thing: int, found: Found | None) -> Shown:
    return Shown(
        world=world.name,
        sets=asked.sets,
        titles=asked.titles,
        things=asked.things,
        alphas=asked.found_at if found else asked.alphas,
        targets=found.named if found else [thing],
        words=found is not None,
        version=asked.version,
        across=asked.across,
    )


def _networks(asked: Asking, cells: Sequence[Sequence[Cell]], found: Found | None) -> list[Network]:
    """Zero-shot, which is where every walk begins, and a row for each walk."""
    looks = [style(method) for method in (ZERO_SHOT, *asked.methods)]
    return [
        Network(
            name,
            look.light,
            look.dark,
            cells[max(0, row - 1)],
            () if found else asked.right(max(0, row - 1)),
            None if row else 0.0,
        )
        for row, (name, look) in enumerate(zip(names(asked), looks, strict=True))
    ]


def _standing(asked: Asking, by: str) -> str:
    """What the answers stand on."""
    step = asked.found_at[1] if by == "caption" else asked.alphas[1]
    return (
        f"One recorded run of each method: seed {asked.seed}, the nearest to the means. Computed from mixed weights at "
        f"every {step:g} of α; in between, numbers are interpolated (≈)."
    )


def rows(asked: Asking, cells: Sequence[Sequence[Cell]], words: bool) -> list[dict[str, Any]]:
    """The answers as lines: method, set, alpha, and the best with their values."""
    lines = []
    for method, row in zip(asked.methods, cells, strict=True):
        for title, cell in zip(asked.titles, row, strict=True):
            for at, alpha in enumerate(asked.found_at if words else asked.alphas):
                best = sorted(zip(cell.labels, cell.values, strict=True), key=lambda pair: -pair[1][at])[:TOP]
                line: dict[str, Any] = {"method": style(method).name, "set": title, "α": alpha}
                for place, (label, values) in enumerate(best, start=1):
                    line |= {f"{place}": asked.things[label], f"{'cosine' if words else 'chance'} {place}": values[at]}
                lines.append(line)
    return lines


def python_of(world: str, thing: str, caption: str | None) -> str:
    """The same answers, in a notebook cell."""
    call = f"found({caption!r}).cells" if caption is not None else f"answers(asked.things.index({thing!r}))"
    return f"""from ftp.lab.ask import asking

asked = asking("{world}")
for method, cells in zip(asked.methods, asked.{call}):
    for title, cell in zip(asked.titles, cells):
        start, end = (asked.things[cell.best(at)] for at in (0, -1))
        print(f"{{method:10}} {{title:26}} W0: {{start:20}} W: {{end}}")"""


def _start() -> float:
    """Where the scrubber stands at first: at the end, where nothing is mixed. `LINK` has been checked."""
    return float(st.query_params.get("alpha", 1.0))
