"""Race: several methods, the same seed, one plane; below it the paper's table."""

import sys
from collections.abc import Sequence

import streamlit as st

from app import parts
from app.components.race import race
from app.limits import viewer
from app.supervisor import supervisor
from ftp.lab import methods, recordings, table, worlds
from ftp.lab.record import RunRecord, Settings, result_of
from ftp.lab.run import identify
from ftp.lab.settings import resolve

TITLE = "Race: who keeps the task and the robustness?"
QUESTION = "Which method ends at the top right?"
LESSON = "06_corrupt"
WORLD = "digits"
FIRST = ("finetune", "linear_probe", "l2_sp", "tpgm", "ftp")
THIS, ALL = "this seed", "all seeds that there are"


def render() -> None:
    parts.heading(sys.modules[__name__])
    left, right = st.columns([1, 2.6], gap="medium")
    with left:
        chosen, seed = _settings()
        guess = parts.predict("winner", "First guess: who will keep the highest OOD accuracy?", _titles(chosen))
        wanted = [resolve(WORLD, name, {"seed": seed}) for name in chosen]
        found = [_find(settings) for settings in wanted]
        _train(wanted, found)
    runs = [run for run in found if run is not None]
    done = [run for run in runs if run.status == "done"]
    with right:
        if not runs:
            st.info("None of these is recorded with this seed; press Train them.")
        else:
            race(runs, parts.dark(), hold=guess is None)
            st.caption("The evaluations on the way stand on few images, the last one on all: points jump a little.")
            parts.answer(sentence(done, guess))
            parts.data_table(paths(runs), "race", label="The points: table and download")
    params = {"methods": list(chosen), "seed": seed, "table_of": st.query_params.get("table_of")}
    parts.sharing("race", params, _python(chosen, seed), LESSON)
    _table(chosen, seed)


def _settings() -> tuple[Sequence[str], int]:
    names = methods.names()
    start = parts.linked("methods", names, FIRST)
    chosen = st.pills(
        "Methods", names, selection_mode="multi", default=start, format_func=_title, key="methods", wrap=True
    )
    parts.link("methods", chosen, FIRST)
    seed = st.number_input("seed", 0, 2**31 - 1, 0, key="seed", bind="query-params")
    return sorted(chosen, key=names.index), seed


def _title(name: str) -> str:
    return methods.method(name).title


def _titles(names: Sequence[str]) -> list[str]:
    return [_title(name) for name in names]


def _find(settings: Settings) -> RunRecord | None:
    """The run with these settings: of the store, whatever its status, else a recorded one."""
    run_id = identify(settings)
    mine = [supervisor().store.load(run_id)] if parts.in_store(run_id) else []
    kept = [run for run in recordings.recorded(WORLD) if run.settings == settings]
    done = [run for run in (*mine, *kept) if run.status == "done"]
    under_way = [run for run in mine if run.status in ("queued", "running") and not parts.nobody_trains(run)]
    return (*done, *under_way, None)[0]


def _train(wanted: Sequence[Settings], found: Sequence[RunRecord | None]) -> None:
    """A button for the runs that are missing."""
    missing = [i for i, run in enumerate(found) if run is None]
    if not missing:
        _under_way([run for run in found if run is not None and run.status != "done"])
        return
    seconds = sum(supervisor().expected(wanted[i]) for i in missing)
    st.caption(f"{len(missing)} of these are not there yet; together they take about {seconds:.0f} s.")
    asked = st.button("Train them", type=parts.emphasis(), icon=":material/play_arrow:", width="stretch")
    if asked and parts.attempt(lambda: [supervisor().submit(wanted[i], viewer()) for i in missing]):
        st.rerun()


def _under_way(runs: Sequence[RunRecord]) -> None:
    """How far the runs are that are not done, and a way to stop them."""
    if not runs:
        st.caption("All of these are there already; they replay.")
        return
    places = [place for place in (supervisor().place(run.run_id) for run in runs) if place is not None]
    seconds = max((place.seconds for place in places), default=0.0) + supervisor().expected(runs[-1].settings)
    st.caption(f"{len(runs) - len(places)} training, {len(places)} waiting; all together about {seconds:.0f} s.")
    if st.button("Stop them", key="stop"):
        for run in runs:
            parts.attempt(lambda run=run: supervisor().stop(run.run_id, viewer()))  # type: ignore[misc]
        st.rerun()


def sentence(done: Sequence[RunRecord], guess: str | None) -> str:
    """Who won, in words."""
    if len(done) < 2:
        return "The answer comes when two of them are done."
    if guess is None:
        return "Make your guess, and the race runs to its end; the answer stands here in words."
    results = {_title(run.settings.method): run.result or result_of(run) for run in done}
    best = max(results, key=lambda name: results[name]["ood_avg"])
    scores = [f"{n}: ID {r['id']:.1f} %, OOD {r['ood_avg']:.1f} %" for n, r in results.items()]
    verdict = "You guessed it. " if guess == best else f"Not as you guessed ({guess}). "
    return f"{verdict}{best} keeps most. {'; '.join(scores)}."


def paths(runs: Sequence[RunRecord]) -> parts.Rows:
    """Where each method was at each evaluation, in percent."""
    return [
        {"method": _title(run.settings.method), "step": entry.step, "ID": entry.accuracy["id"]}
        | {"OOD": sum(shifts := [entry.accuracy[name] for name in worlds.info(WORLD).shifts]) / len(shifts)}
        for run in runs
        for entry in run.evals
    ]


def _table(chosen: Sequence[str], seed: int) -> None:
    st.subheader("The paper's table", anchor=False)
    which = st.radio("Runs in the table", (ALL, THIS), horizontal=True, key="table_of", bind="query-params")
    rows = []
    for name in chosen:
        found = parts.records(WORLD, name, seed if which == THIS else None)
        rows += [run for run in found if run.settings == resolve(WORLD, name, {"seed": run.settings.seed})]
    if not rows:
        st.text("There are no finished runs of these methods yet.")
        return
    made = table.rows(rows)
    st.markdown(table.to_markdown(made))
    st.caption(
        "Accuracies in percent, mean (standard deviation) over seeds; Δ relative to Vanilla FT; bold is the best."
    )
    with st.container(horizontal=True):
        files = {"csv": table.to_csv(made), "md": table.to_markdown(made), "tex": table.to_latex(made)}
        for kind, label in {"csv": "CSV", "md": "Markdown", "tex": "LaTeX"}.items():
            st.download_button(
                f"Download as {label}", files[kind], f"table.{kind}", on_click="ignore", key=f"to {kind}"
            )


def _python(chosen: Sequence[str], seed: int) -> str:
    names = ", ".join(f'"{name}"' for name in chosen)
    if seed not in recordings.SEEDS:
        return f"""from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.table import rows, to_markdown

with Store() as store:  # what is there already is not trained again
    runs = [execute(resolve("{WORLD}", name, {{"seed": {seed}}}), store) for name in [{names}]]
print(to_markdown(rows(runs)))"""
    return f"""from ftp.lab.recordings import recorded
from ftp.lab.table import rows, to_markdown

runs = [run for run in recorded("{WORLD}", seed={seed}) if run.settings.method in [{names}]]
print(to_markdown(rows(runs)))"""
