"""Teacher: what the class has asked for, and the levers of the server. Its address has a token; nothing links to it."""

from typing import Any

import streamlit as st

from app import widgets
from app.cookies import teacher_token
from app.limits import TOKEN, class_mode, is_teacher, secret
from app.queueing import Task
from app.supervisor import supervisor
from ftp.lab.record import LabError
from ftp.lab.worlds import World

TITLE = "Teacher: the queue and its limits"
QUESTION = "Who waits, what runs, and how much may everybody ask for?"
SECONDS = 2.0  # between two looks at the queue
LEVERS = {
    "each": "Requests of one student",
    "address": "Runs of one network address",
    "queue": "Runs of all together",
    "steps": "Steps of a run",
    "seconds": "Seconds of a run",
    "lease": "Seconds that nobody watches",
}


def misfit(world: World) -> str:
    return ""


def render() -> None:
    if not class_mode():
        raise LabError("only a server for a class has a teacher's page; start it with make app CLASS=1 HOST=name")
    if not is_teacher():
        raise LabError("this page opens with the teacher's link alone; the terminal showed it when the server started")
    if TOKEN not in st.query_params:  # from the navigation: so that a reload, or a bookmark, comes back here
        st.query_params[TOKEN] = teacher_token(secret())
    supervisor().store.runs(limit=1)  # says so if the store is in trouble
    queue, levers = st.columns([3, 2], gap="large")
    with queue:
        _queue()
    with levers:
        _levers()


@st.fragment(run_every=SECONDS)
def _queue() -> None:
    """Everything that waits or runs, in the order in which it will begin."""
    tasks = _in_turn(supervisor().queue.tasks)
    busy, students = supervisor().busy(), {viewer for task in tasks for viewer in task.viewers}
    asked = f", asked for by {len(students)} viewer{'s' * (len(students) != 1)}" if tasks else ""
    widgets.answer(f"Under way: {busy.running} of {busy.slots}; waiting: {busy.waiting}{asked}.")
    labels = {_key(task): _label(task) for task in tasks}
    with st.container(horizontal=True):
        idle, clear = not tasks, supervisor().clear_queue
        st.button("Clear the queue", disabled=idle, on_click=clear, help="What is under way goes on.")
        st.button("Stop all", disabled=idle, on_click=_stop, args=(list(labels),), help="What is done is kept.")
    if tasks:
        one = st.selectbox("One of them", list(labels), index=None, format_func=lambda key: labels.get(key, key))
        st.button("Stop this one", disabled=one not in labels, on_click=_stop, args=([one],))
        st.table([{"what": widgets.plain(_label(task)), **_row(task)} for task in tasks])


def _stop(keys: list[str]) -> None:
    for task in supervisor().queue.tasks:
        if _key(task) in keys:
            supervisor().dispatcher.stop(task, "the teacher stopped it; press Train again to go on")


def _in_turn(tasks: list[Task]) -> list[Task]:
    """Those at work first, then in the order of their turns."""

    def turn(task: Task) -> tuple[bool, int]:
        place = supervisor().place(task.run_id) if task.is_run else None
        return task.worker is None, place.ahead if place else 0

    return sorted(tasks, key=turn)


def _key(task: Task) -> str:
    return f"{task.order.job} {task.run_id} {task.asked}"


def _label(task: Task) -> str:
    try:
        what = widgets.described(supervisor().store.load(task.run_id).settings)
    except LabError:
        what = task.run_id
    return what if task.is_run else f"{task.order.job} of {what}"


def _row(task: Task) -> dict[str, Any]:
    place = supervisor().place(task.run_id) if task.is_run and not task.worker else None
    who = sorted(viewer.address or viewer.name[:6] or "?" for viewer in task.viewers)
    wait = "under way" if task.worker else f"in {place.seconds:.0f} s" if place else "waits"
    return {
        "when": "stopping" if task.stopping else wait,
        "for": widgets.plain(", ".join(dict.fromkeys(who[:3]))),
        "viewers": len(who),
    }


def _levers() -> None:
    """The limits, and the wall; they hold until the server ends."""
    dispatcher = supervisor()
    with st.form("limits"):
        st.markdown("**The most that is allowed**")
        st.caption("A race is one request. A whole class may share one address. What nobody watches is stopped.")
        halves = st.columns(2)
        changes = {
            name: halves[number % 2].number_input(
                label, 1, value=int(getattr(dispatcher.limits, name)), key=f"limit {name}"
            )
            for number, (name, label) in enumerate(LEVERS.items())
        }
        if st.form_submit_button("Change the limits") and widgets.attempt(lambda: dispatcher.change_limits(**changes)):
            st.success("They hold from now on, until the server is started again.")
    dispatcher.wall_is_on = st.toggle(
        "Class wall", value=dispatcher.wall_is_on, help="Off: nobody sees the wall or its address."
    )
    with widgets.menu():
        st.markdown("This page's address opens the same levers for whoever has it: do not share it.")
        st.markdown("To make it void, end the server and remove the file that ends in -secret beside the store.")
