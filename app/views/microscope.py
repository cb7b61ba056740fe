"""Microscope: one real step of SGDP at a time, with every number of Eq. 1, 4, 5, Alg. 2 and Eq. 2."""

from typing import Any

import streamlit as st

from app import run_chooser, widgets
from app.components.microscope import steps_of
from app.supervisor import supervisor
from app.world import current
from ftp.lab.jobs import Order
from ftp.lab.record import RunRecord, settings_from_dict
from ftp.lab.recordings.extras import extra, has_extra
from ftp.lab.worlds import World

TITLE = "One step under the microscope"
QUESTION = "What happens to one layer in a single step of FTP?"
PICTURE = (
    "The anchor **W₀** is a post, **γ** the length of the leash. In each step the layer walks to **W̃** (Eq. 1), the "
    "new gradient says whether the leash was too short (Eq. 4), γ follows (Eq. 5, Alg. 2), and every row is pulled "
    "back to the end of its leash (Eq. 2). **Go forward and back**, and watch each number where it is used."
)
GUESSES = ("As far as the gradient says", "About half as far", "Nowhere")
START = 3


def misfit(world: World) -> str:
    return "" if has_extra("microscope", world.name) else f"No single step was recorded in {world.title}"


def render() -> None:
    left, right = st.columns([1, 3], gap="medium")
    with left:
        guess = widgets.predict("microscope_guess", "How far does the layer get in the very first step?", GUESSES)
    traces = {trace["layer"]: trace for trace in extra("microscope", current().name)["traces"]}
    with left:
        chosen = run_chooser.choose("ftp")
    layers = list(supervisor().store.load(chosen.run_id).layers) if chosen else list(traces)
    late = len(traces) - 1 if not chosen else 0
    with left:
        layer = st.selectbox("Layer", layers, late, key="layer", bind="query-params") or layers[late]
        st.markdown(PICTURE)
    trace = _your_trace(chosen, layer) if chosen else traces[layer]
    if trace is None:
        assert chosen is not None
        order, about = Order("microscope", chosen.run_id, layer), "The same steps once more, looked at one by one"
        run_chooser.ask(order, order.path(supervisor().store).exists, "Look at this layer of this run", about)
        return
    with right:
        step = steps_of(trace, _start(trace), chosen.run_id if chosen else "")
        widgets.answer(answer(next(one for one in trace["steps"] if one["step"] == step)))
        st.caption(_about(trace))
    widgets.remember({"step": step}, {"step": first_step(trace)})
    if guess:
        left.markdown(
            f"{'Right' if guess == GUESSES[2] else 'Look again, at step 1'}: γ starts at 1e-8, so the first step is "
            "pulled all the way back. It only shows where the layer wants to go; then the leash begins to move."
        )
    widgets.data_table(table(trace), "microscope")
    settings: dict[str, Any] = {"layer": layer, "step": step, "run": chosen.run_id if chosen else None}
    widgets.sharing("microscope", settings, python_of(trace, step), run_chooser.lesson("05", "04"))


def answer(step: dict[str, Any]) -> str:
    """One step of one layer in words."""
    before, _, after = step["gamma"]
    way = "grows" if after > before else "shrinks" if after < before else ""
    change = f"{way} from {before:.3g} to {after:.3g}" if way else f"stays at {after:.3g}"
    pulled = sum(factor < 1 for factor in step["rows"]["factor"])
    rows = len(step["rows"]["factor"])
    return (
        f"In step {step['step']} the layer walks, the leash {change}, and {pulled} of "
        f"{rows} rows are pulled back to its end."
    )


def table(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """One line for each step: the numbers in the order in which they are used."""
    return [
        {"step": s["step"], "lr": s["lr"], "loss": s["loss"], "slope (Eq. 4)": s["slope"], "annealed": s["annealed"]}
        | {"m": s["m"][1], "v": s["v"][1], "gamma before": s["gamma"][0], "gamma after Adam": s["gamma"][1]}
        | {"gamma": s["gamma"][2], "row wants": s["row"]["wanted"], "shrink": s["row"]["factor"]}
        | {"row keeps": s["row"]["kept"], "rows pulled": sum(f < 1 for f in s["rows"]["factor"])}
        for s in trace["steps"]
    ]


def python_of(trace: dict[str, Any], step: int) -> str:
    """The same numbers in a notebook cell."""
    known = settings_from_dict(trace["settings"])
    call = widgets.arguments_of(known)
    return f"""from ftp.lab.microscope import trace
from ftp.lab.settings import resolve

history = trace(resolve({call}), "{trace["layer"]}", steps=range(1, {step + 1}))
for one in history["steps"]:
    print(one["step"], one["slope"], one["gamma"], one["row"])"""


def _about(trace: dict[str, Any]) -> str:
    worst = max(one["gap"] for one in trace["steps"])
    return (
        f"Row {trace['row']} of {trace['layer']}. These are steps of the optimizer ftp.SGDP itself, looked at before "
        f"and after; γ computed once more from the equations differs from its γ by at most {worst:.1g}. The picture is "
        "a cut through the ball: two weights of the row, the others where the step leaves them."
    )


def _your_trace(record: RunRecord, layer: str) -> dict[str, Any] | None:
    trace: dict[str, Any] | None = Order("microscope", record.run_id, layer).result(supervisor().store)
    return trace


def _start(trace: dict[str, Any]) -> int:
    steps = [str(one["step"]) for one in trace["steps"]]
    step = st.query_params.get("step", "")
    return int(step) if step in steps else first_step(trace)


def first_step(trace: dict[str, Any]) -> int:
    """The step that the view begins with."""
    return int(trace["steps"][min(START, len(trace["steps"])) - 1]["step"])
