"""WiSE: glide from the pre-trained to the fine-tuned weights, and watch ID and OOD accuracy change."""

import json
import math
import sys
from typing import Any

import streamlit as st

from app import own, parts
from app.components.wise import scrubber
from app.supervisor import supervisor
from ftp.lab.figures import WiseCurve
from ftp.lab.figures._template import style
from ftp.lab.figures.wise_curve import table
from ftp.lab.record import RunRecord
from ftp.lab.recordings.extras import extra
from ftp.lab.worker import wise_path

TITLE = "Between pre-trained and fine-tuned (WiSE)"
QUESTION = "Is there a better network on the straight way from W₀ to W?"
PICTURE = (
    "WiSE mixes two networks weight by weight: **W₀ + α (W − W₀)**. At α = 0 it is the pre-trained body, at α = 1 the "
    "fine-tuned network; the head is the fine-tuned one all along. **Move α**, or drag along a curve."
)
GUESSES = ("At the start, α = 0", "In between", "At the end, α = 1")
START = 0.5


def render() -> None:
    parts.heading(sys.modules[__name__])
    curves = [curve_of(row) for row in extra("wise_digits")["curves"]]
    st.markdown(PICTURE)
    guess = parts.predict("wise_guess", "Fine-tuning: where on the way is the OOD accuracy best?", GUESSES)
    chosen = own.choose()
    mine = _own_curve(chosen) if chosen else None
    shown = [*curves, *([mine] if mine else [])]
    alpha = round(scrubber(curves, _start(), mine), 3)
    if guess:
        best = max(zip(curves[0].ood_avg, curves[0].alphas, strict=True))[1]
        right = GUESSES.index(guess) == (0 if best == 0 else 2 if best == 1 else 1)
        parts.answer(f"{'Right' if right else 'Look again'}: {answer(curves)}")
    else:
        parts.answer("Make your guess above, move α, and the answer stands here in words.")
    st.caption(
        f"Recorded runs of seed 0; {extra('wise_digits')['images']} images of each set at every dot. Between the dots "
        "nothing was computed: the line joins them, and its numbers are marked with ≈."
    )
    if chosen:
        path, about = (
            wise_path(supervisor().store, chosen),
            "21 points on the line; about half a minute in the background",
        )
        own.ask("wise", chosen.run_id, path.exists, "Compute the curve of this run", about)
    parts.data_table(table(shown), "wise")
    st.query_params["alpha"] = f"{alpha:g}"
    settings: dict[str, Any] = {"alpha": f"{alpha:g}", "run": chosen.run_id if chosen else None}
    parts.sharing("wise", settings, python_of(alpha, chosen), own.lesson("06", "03"))


def curve_of(row: dict[str, Any]) -> WiseCurve:
    """A curve from JSON.

    >>> curve_of({"run_id": "a", "method": "ftp", "alphas": [0], "id": [90], "ood_avg": [80], "seed": 1}).seed
    1
    """
    numbers = {name: tuple(float(v) for v in row[name]) for name in ("alphas", "id", "ood_avg")}
    return WiseCurve(run_id=row["run_id"], method=row["method"], seed=int(row.get("seed", 0)), **numbers)


def answer(curves: list[WiseCurve]) -> str:
    """The best point of each curve against its end, in words."""
    said = []
    for curve in curves:
        ood, alpha, home = max(zip(curve.ood_avg, curve.alphas, curve.id, strict=True))
        name = style(curve.method).name
        said.append(
            f"{name} is best on the shifts at α = {alpha:g} with {ood:.1f} % (ID {home:.1f} %), "
            f"{ood - curve.ood_avg[-1]:.1f} points above its end."
        )
    return " ".join([*said, "FTP ends near its best point; fine-tuning runs past its own."])


def python_of(alpha: float, record: RunRecord | None) -> str:
    """The point at this alpha, computed in a notebook cell."""
    settings = f"resolve({parts.arguments_of(record.settings)})" if record else ""
    call = settings or 'resolve("digits", "finetune")'
    return f"""from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.wise import wise

with Store("runs.db") as store:
    record = execute({call}, store)  # half a minute, if it is not there yet
    print(wise(record, store, alphas=[0.0, {alpha}, 1.0]))"""


def _start() -> float:
    try:
        alpha = float(st.query_params.get("alpha", START))
    except ValueError:
        return START
    return alpha if math.isfinite(alpha) and 0 <= alpha <= 1 else START


def _own_curve(record: RunRecord) -> WiseCurve | None:
    path = wise_path(supervisor().store, record)
    return curve_of(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
