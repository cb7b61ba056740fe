"""Corruptions: one dial damages the pictures and moves every method's accuracy (Fig. 6)."""

import sys
from typing import Any

import streamlit as st

from app import own, parts
from app.components.corruptions import severity_dial
from app.supervisor import supervisor
from ftp.lab.figures._template import style
from ftp.lab.record import RunRecord, average
from ftp.lab.recordings.extras import extra

TITLE = "Damaged pictures"
QUESTION = "Who still reads digits in fog, noise and blur?"
PICTURE = (
    "None of these networks saw a damaged digit while it was fine-tuned. The pre-trained one had seen many. "
    "**Turn the dial**: the pictures and all bars follow."
)
GUESSES = ("Vanilla FT (plain fine-tuning)", "FTP", "About the same")


def render() -> None:
    parts.heading(sys.modules[__name__])
    data = extra("corruptions_digits")
    kinds = list(data["pictures"])
    st.markdown(PICTURE)
    guess = parts.predict("corruptions_guess", "Mean over all kinds and severities: who loses less?", GUESSES)
    left, right = st.columns(2)
    with left:
        linked = st.query_params.get("kind", "")
        index = kinds.index(linked if linked in kinds else "fog")
        kind = st.selectbox("Kind of damage", kinds, index, format_func=spoken) or "fog"
        st.query_params["kind"] = kind
    with right:
        chosen = own.choose()
    rows = [_drawn(run["method"], run["clean"], run["corruptions"][kind]) for run in data["runs"]]
    mine = _mine(chosen, kind) if chosen else None
    severity = severity_dial(
        spoken(kind), data["pictures"][kind], data["digits"], [*rows, *([mine] if mine else [])], _start()
    )
    st.query_params["severity"] = str(severity)
    if chosen and mine is None:
        about = "All 19 kinds at five severities; about half a minute in the background"
        run = chosen.run_id

        def there() -> bool:
            return kind in ((supervisor().store.load(run).result or {}).get("corruptions") or {})

        own.ask("corruptions", run, there, "Compute all kinds for this run", about)
    means = {
        run["method"]: average([average(values) for values in run["corruptions"].values()]) for run in data["runs"]
    }
    if guess:
        better = GUESSES[means["ftp"] > means["finetune"]]
        parts.answer(f"{'Right' if guess == better else 'Look again'}: {answer(means)}")
    else:
        parts.answer("Make your guess above, turn the dial, and the answer stands here in words.")
    st.caption(f"Recorded runs of seed 0; the first {data['images']} test images, damaged alike for every method.")
    parts.data_table(table(data["runs"]), "corruptions")
    settings: dict[str, Any] = {"kind": kind, "severity": severity, "run": chosen.run_id if chosen else None}
    parts.sharing("corruptions", settings, python_of(kind, severity), own.lesson("06", "03"))


def spoken(kind: str) -> str:
    """The name of a kind for people.

    >>> spoken("defocus_blur")
    'Defocus blur'
    """
    return kind.replace("_", " ").capitalize()


def answer(means: dict[str, float]) -> str:
    """Who reads damaged digits best, and how far FTP and fine-tuning are apart.

    >>> answer({"ftp": 80.0, "finetune": 74.0})
    'over all kinds and severities FTP reads 80.0 % of the digits and fine-tuning 74.0 %; best of all is FTP.'
    """
    best = max(means, key=means.__getitem__)
    return (
        f"over all kinds and severities FTP reads {means['ftp']:.1f} % of the digits and fine-tuning "
        f"{means['finetune']:.1f} %; best of all is {style(best).name}."
    )


def table(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each method and kind: clean and severity 1 to 5, in percent.

    >>> table([{"method": "ftp", "clean": 98.0, "corruptions": {"fog": [9.0, 8.0, 7.0, 6.0, 5.0]}}])[0]["severity 5"]
    5.0
    """
    return [
        {"method": style(run["method"]).name, "kind": kind, "clean": run["clean"]}
        | {f"severity {n}": value for n, value in enumerate(values, start=1)}
        for run in runs
        for kind, values in run["corruptions"].items()
    ]


def python_of(kind: str, severity: int) -> str:
    """The damaged digits, in a notebook cell."""
    return f"""import torch
from ftp.lab import worlds
from ftp.lab.corruptions import corrupt

world = worlds.load("digits")
images, labels = world.split("id").batch(torch.arange(8))
damaged = corrupt(images, "{kind}", severity={max(1, severity)}, parameters=world.info.severities)
print(damaged.shape, (damaged - images).abs().mean())"""


def _drawn(method: str, clean: float, values: list[float], name: str = "") -> dict[str, Any]:
    look = style(method)
    own_look = {"name": name or look.name, "light": look.light, "dark": look.dark, "dash": "dot" if name else look.dash}
    return {**own_look, "strong": bool(name) or method in ("ftp", "finetune"), "values": [clean, *values]}


def _mine(record: RunRecord, kind: str) -> dict[str, Any] | None:
    result = record.result or {}
    values = (result.get("corruptions") or {}).get(kind)
    return _drawn(record.settings.method, result["id"], list(values), "yours") if values else None


def _start() -> int:
    asked = st.query_params.get("severity", "3")
    return int(asked) if asked in list("012345") else 3
