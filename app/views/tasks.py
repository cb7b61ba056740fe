"""Tasks in a row: the matrix R fills, and what each method keeps of the first tasks (Tab. 5, Fig. 4)."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import run_chooser, widgets
from app.components.tasks import ShownRun, ShownTasks, tasks
from app.limits import viewer
from app.supervisor import supervisor
from app.world import current
from ftp.lab import methods
from ftp.lab.continual import matrix_so_far, mean_gamma
from ftp.lab.jobs import Order
from ftp.lab.record import RunRecord, Settings
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.table import title
from ftp.lab.task_table import ORDER
from ftp.lab.worlds import World

TITLE = "Tasks in a row"
QUESTION = "What is left of the first task when the last one is learned?"
FIRST = ("ft_plus", "ewc", "ftp", "ftp_ewc", "linear_probe")  # shown at first, as far as they fit the world
PLAIN = ("ft_plus", "finetune")  # fine-tuning without anything against forgetting
GUESSES = ("more than three quarters", "something in between", "less than a quarter")
SHARES = (0.75, 0.25)
PICTURE = (
    "Each task brings new classes; no old picture is kept. Before each task the leashes are tied anew, to the weights "
    "of the last one. **Click a task's number** for its classes, a method's name for its matrix."
)


def misfit(world: World) -> str:
    if len(world.phases) > 1 and world.measures.splits("task"):
        return ""
    return f"{world.title} has one task, and this view is about several in a row"


def render() -> None:
    world = current()
    left, right = st.columns([1, 3.6], gap="medium")
    with left:
        guess = widgets.predict("tasks_guess", "Fine-tuning, unprotected: how much of the first task is left?", GUESSES)
        with st.popover("Methods and seed", icon=":material/tune:", width="stretch"):
            chosen = _methods(world)
            about = "it deals the classes to the tasks"
            seed = int(st.number_input("seed", 0, 2**31 - 1, 0, key="seed", bind="query-params", help=about))
            wanted = _wanted(world, chosen, seed)
        runs = [_find(settings) for settings in wanted]
        _train(wanted, runs)
        st.caption(PICTURE)
    shown = [run for run in runs if run is not None]
    with right:
        if shown:
            _show(world.for_seed(seed), shown, guess)
        else:
            st.info("None of these is recorded with this seed and these options; press Train them, and watch it here.")
    params: dict[str, Any] = {"methods": list(chosen), "seed": seed, **world.chosen}
    widgets.sharing("tasks", params, python_of(world, chosen, seed), run_chooser.lesson("13", "10"))


def _show(world: World, runs: Sequence[RunRecord], guess: str | None) -> None:
    names = [phase.name for phase in world.phases]
    labels = [list(world.labels(n)) for n in range(len(names))]
    about = ShownTasks(names, labels, world.classes, world.tiles(), world.metrics[0])
    usual = next((run for run in runs if run.settings.method in PLAIN), runs[0])
    last = st.session_state.get("tasks_main", "")
    main = next((run for run in runs if run.run_id == last), usual)
    answer = st.container()
    drawn = [_drawn(run) for run in runs]
    clicked, ended, asked = tasks(about, drawn, main.run_id, widgets.dark(), widgets.waits(guess))
    st.session_state["tasks_main"] = clicked
    if asked:
        order = Order("mistakes", asked)
        if order.result(supervisor().store) is None and supervisor().job_status(order) == "missing":
            widgets.attempt(lambda: supervisor().ask(order, viewer()))
    if ended and ended != st.session_state.get("tasks_ended"):
        st.session_state["tasks_ended"] = ended
        st.rerun()
    done = [run for run in runs if run.status == "done"]
    with answer:
        if guess and usual in done:
            widgets.answer(sentence(usual, done, guess))
        elif guess:
            widgets.answer("The answer comes when these runs are through; watch the matrix until then.")
        else:
            widgets.answer("Make your guess, and the matrix fills; the answer stands here in words.")
    widgets.data_table(rows(done), "tasks")


def _methods(world: World) -> Sequence[str]:
    recorded = {run.settings.method for run in widgets.recorded_runs(world.name)}
    names = [name for name in methods.fitting(world) if not recorded or name in recorded]
    usual = [name for name in FIRST if name in names] or names[:4]
    start = widgets.linked("methods", names, usual)
    look: dict[str, Any] = {"selection_mode": "multi", "default": start, "format_func": title, "wrap": True}
    chosen = st.pills("Methods", names, key="methods", **look)
    widgets.link("methods", chosen, usual)
    places = [*ORDER, *names]
    return sorted(chosen or usual, key=places.index)


def _wanted(world: World, chosen: Sequence[str], seed: int) -> list[Settings]:
    usual = resolve(world.name, chosen[0], {**world.chosen, "seed": seed}).steps
    steps = int(st.number_input("steps a task", 1, widgets.MOST_STEPS, usual, key="steps", bind="query-params"))
    changes = {**world.chosen, "seed": seed, **({"steps": steps} if steps != usual else {})}
    return [resolve(world.name, name, changes) for name in chosen]


def _find(settings: Settings) -> RunRecord | None:
    """The run with these settings: a finished or recorded one, else one that is under way."""
    run_id = identify(settings)
    stored = [supervisor().store.load(run_id)] if widgets.in_store(run_id) else []
    alike = [run for run in widgets.recorded_runs(settings.world) if run.settings == settings]
    done = [run for run in (*stored, *alike) if run.status == "done"]
    under_way = [run for run in stored if run.status in ("queued", "running") and not widgets.nobody_trains(run)]
    return (*done, *under_way, None)[0]


def _train(wanted: Sequence[Settings], runs: Sequence[RunRecord | None]) -> None:
    """A button for the runs that are missing."""
    missing = [settings for settings, run in zip(wanted, runs, strict=True) if run is None]
    if not missing:
        return
    seconds = sum(supervisor().expected(settings) for settings in missing)
    about = f"{len(missing)} of these are not there yet; about {seconds:.0f} s"
    pressed = st.button("Train them", type="primary", icon=":material/play_arrow:", help=about)
    if pressed and widgets.attempt(lambda: supervisor().submit_all(missing, viewer())):
        st.rerun()


def _drawn(run: RunRecord) -> ShownRun:
    gamma = [mean_gamma(run, phase) for phase in range(len(run.phases))]
    method = run.settings.method
    weights = run.status == "done" and supervisor().store.weights_path(run.run_id).exists()
    matrix, mistakes = matrix_so_far(run), _mistakes(run)
    return ShownRun(run.run_id, title(method), method, run.status, matrix, gamma, mistakes, weights)


def _mistakes(run: RunRecord) -> dict[str, Any]:
    """What a finished run takes for what, by task: computed by a worker, or recorded; else nothing."""
    result = Order("mistakes", run.run_id).result(supervisor().store)
    if result is None and has_extra("mistakes", run.settings.world):
        recorded = extra("mistakes", run.settings.world)["runs"]
        result = next((entry for entry in recorded if entry["run_id"] == run.run_id), None)
    return dict(result["tasks"]) if result else {}


def sentence(plain: RunRecord, runs: Sequence[RunRecord], guess: str) -> str:
    """What is left of the first task, and what the others keep of it."""
    metric = plain.measures.main
    matrix = matrix_so_far(plain)
    share = matrix[-1][0] / matrix[0][0] if matrix[0][0] else 1.0
    truth = GUESSES[sum(share < limit for limit in SHARES)]
    verdict = "Right" if guess == truth else "Look again"
    others = [
        f"{title(run.settings.method)} {metric.with_unit(matrix_so_far(run)[-1][0], 0)}"
        for run in runs
        if run.run_id != plain.run_id
    ]
    name = title(plain.settings.method)
    said = f"{verdict}: on the first task {name} falls from {metric.with_unit(matrix[0][0], 0)} to "
    rivals = f"; in the end {', '.join(others)}" if others else ""
    compete = " More classes compete at the end, so even a body that never moved falls." if others else ""
    return f"{said}{metric.with_unit(matrix[-1][0], 0)}{rivals}.{compete}"


def rows(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The matrices as lines: method, tasks learned, and the score on each task."""
    lines = []
    for run in runs:
        for i, row in enumerate(matrix_so_far(run)):
            values = dict(zip(run.phases, row, strict=False))
            place = {"method": title(run.settings.method), "tasks learned": i + 1, "mean γ": mean_gamma(run, i)}
            lines.append({**place, **{name: values.get(name) for name in run.phases}})
    return lines


def python_of(world: World, chosen: Sequence[str], seed: int) -> str:
    """The same runs as a table and a picture, in a notebook cell."""
    changes = {**world.chosen, "seed": seed}
    return f"""from ftp.lab.figures import draw
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.task_table import task_table, to_markdown

with Store("runs.db") as store:
    runs = [execute(resolve("{world.name}", method, {changes}), store) for method in {list(chosen)}]
print(to_markdown(task_table(runs)))
draw("task_accuracy", runs).show()"""
