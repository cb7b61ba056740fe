"""Class wall: everyone's runs, as they end, in one plane. Only on a server that was started for a class."""

import sys
from typing import Any

import streamlit as st

from app import parts
from app.components.wall import wall
from app.limits import class_mode
from app.supervisor import supervisor
from ftp.lab.record import LabError
from ftp.lab.table import title

TITLE = "Class wall: everyone's runs"
QUESTION = "What does the whole class find, run by run?"
LESSON = "06_corrupt"
MOST = 500
PYTHON = """from ftp.lab.figures import draw
from ftp.lab.store import Store

draw("id_ood", Store().runs(status="done", limit=None), each=True).show()"""


def render() -> None:
    parts.heading(sys.modules[__name__])
    if not class_mode():
        raise LabError("the class wall is off; start the server with make app CLASS=1 to have it")
    wall(parts.dark())
    runs = supervisor().store.runs(status="done", limit=MOST)
    rows: list[dict[str, Any]] = [
        {"method": title(run.settings.method), "name": run.name, "seed": run.settings.seed}
        | {"ID": run.result["id"], "OOD": run.result["ood_avg"], "run": run.run_id}
        for run in runs
        if run.result
    ]
    if rows:
        best = max(rows, key=lambda row: row["OOD"])
        parts.answer(
            f"{len(rows)} runs have ended; {best['method']} has the highest OOD accuracy, {best['OOD']:.1f} %."
        )
    else:
        parts.answer("No run has ended yet; train one in Live, and it arrives here by itself.")
    st.caption("The chart grows by itself; the table shows what there was when the page was opened.")
    parts.sharing("wall", {}, PYTHON, LESSON)
    parts.data_table(rows, "wall")
