"""Class wall: everyone's runs, as they end, in one plane. Only on a server that was started for a class."""

from typing import Any

import streamlit as st

from app import widgets
from app.components.wall import wall
from app.limits import class_mode
from app.supervisor import supervisor
from app.world import current
from ftp.lab.record import LabError
from ftp.lab.table import title
from ftp.lab.worlds import World

TITLE = "Class wall: everyone's runs"
QUESTION = "What does the whole class find, run by run?"
LESSON = "06_corrupt"
MOST = 500
PYTHON = """from ftp.lab.figures import draw
from ftp.lab.store import Store

draw("id_ood", Store().runs(status="done", limit=None), each=True).show()"""


def misfit(world: World) -> str:
    return "" if world.shifts else f"{world.title} has no shifts, and the wall is the plane of home and shifts"


def render() -> None:
    if not class_mode():
        raise LabError("the class wall is off; start the server with make app CLASS=1 to have it")
    world = current()
    wall(world, widgets.dark())
    runs = supervisor().store.runs(world=world.name, status="done", limit=MOST)
    rows: list[dict[str, Any]] = [
        {"method": title(run.settings.method), "name": run.name, "seed": run.settings.seed}
        | {"ID": run.result["id"], "OOD": run.result["ood_avg"], "run": run.run_id}
        for run in runs
        if run.result and run.result["ood_avg"] is not None
    ]
    st.caption("The chart grows by itself; the table in the menu has what there was when the page was opened.")
    widgets.sharing("wall", {}, PYTHON, LESSON)
    widgets.data_table(rows, "wall")
