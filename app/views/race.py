"""Race: several methods, the same seed, one plane; below it the paper's table."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import widgets
from app.components.race import race
from app.limits import viewer
from app.sentences import shown
from app.supervisor import supervisor
from app.world import choose_option, current
from ftp.lab import methods, noise, published, recipes, recordings, table
from ftp.lab.record import RunRecord, Settings, result_of
from ftp.lab.run import identify
from ftp.lab.settings import resolve
from ftp.lab.summary import Metric, average
from ftp.lab.worlds import World

TITLE = "Race: who keeps the task and the robustness?"
QUESTION = "Which method ends at the top right?"
LESSON = "06_corrupt"
FIRST = ("finetune", "linear_probe", "l2_sp", "tpgm", "ftp")
MEAN, ONE = "mean of the recorded seeds", "one seed"
RECORDED, MINE = "recorded", "my own"
LINK: dict[str, Any] = {"methods": methods.names(), "seeds": (MEAN, ONE), "table_of": (RECORDED, MINE)}
Racers = Sequence[Sequence[RunRecord]]


def misfit(world: World) -> str:
    return "" if world.shifts else f"{world.title} has no shifts, and this race is between home and shifts"


def render() -> None:
    with st.container(key="race_view"):  # by this name race.py puts the chart first on a phone
        left, right = st.columns([1, 2.6], gap="medium")
    world = current()
    with left:
        divided = recipes.divided_by(world.name)
        if divided:  # each of its values is a race of its own
            world = choose_option(world, divided, world.options[divided].choices or ())
        first, button = st.container(), st.container()  # Train stands above the settings, which a small screen cuts off
        chosen = _methods(world)
        seed = _seed(world, chosen)
    with first:
        question = f"First guess: who will have the best OOD {world.metrics[0].name}?"
        guess = widgets.predict("winner", question, _titles(chosen))
    with button:
        racers = _recorded(world, chosen) if seed is None else _of_seed(world, chosen, seed)
    with right:
        plane, numbers = st.tabs(["The race", "The table"])
    with plane:
        if not racers:
            st.info("None of these is recorded with this seed; press Train them.")
        else:
            race(racers, world.metrics[0], widgets.dark(), hold=widgets.waits(guess))
            widgets.answer(sentence(racers, guess))
            st.caption(_standing(racers, seed))
            widgets.data_table(paths(racers), "race", label="The points: table and download")
    state = {"paper": "true" if st.session_state.get("paper") else None, "seeds": st.query_params.get("seeds")}
    params = {"methods": list(chosen), "seed": seed, **state}
    widgets.sharing("race", params, _python(chosen, seed, world), LESSON)
    with numbers:
        if widgets.waits(guess):
            widgets.answer("Make your guess first: the table gives the answer away.")
        else:
            _table(chosen, world)


def _standing(racers: Racers, seed: int | None) -> str:
    """What the points, and their bars, stand on."""
    way = _images(racers[0][0])
    if seed is None:
        return f"Each point is the mean of {len(racers[0])} recorded seeds, its bars one standard deviation. {way}"
    bars = "bars: one standard error of so many images" if racers[0][0].measures.main.unit == "%" else ""
    return f"One seed alone; another one may end in another order. {way[:-1]}{'; ' + bars if bars else ''}."


def _images(run: RunRecord) -> str:
    """How many images the evaluations on the way have, and the last one; a run that has just begun has none yet."""
    home, shift = (next(iter(run.measures.splits(role)), "") for role in ("home", "shift"))
    counts = [(e.counts.get(home), e.counts.get(shift)) for e in (run.evals[:1] + run.evals[-1:])]
    if len(run.evals) < 2 or None in counts[0]:
        return "Evaluations on the way stand on few images, the last one on all."
    (few, few_shifted), (many, many_shifted) = counts
    if (few, few_shifted) == (many, many_shifted):
        return f"Every point stands on {few} images at home and {few_shifted} of each shift."
    return f"On the way: {few} images at home, {few_shifted} of each shift; at the end: {many} and {many_shifted}."


def _methods(world: World) -> Sequence[str]:
    names = methods.fitting(world)
    recorded = {run.settings.method for run in widgets.recorded_runs(world.name)}
    usual = [name for name in FIRST if name in names and (not recorded or name in recorded)]
    start = widgets.linked("methods", names, usual)
    chosen = st.pills(
        "Methods", names, selection_mode="multi", default=start, format_func=_title, key="methods", wrap=True
    )
    widgets.link("methods", chosen, usual)
    return sorted(chosen, key=names.index)


def _seed(world: World, chosen: Sequence[str]) -> int | None:
    """The seed that races; None for the mean over all recorded ones."""
    if not _recorded(world, chosen):
        return int(st.number_input("seed", 0, 2**31 - 1, 0, key="seed", bind="query-params"))
    linked = ONE if "seed" in st.query_params or st.query_params.get("seeds") == ONE else MEAN
    which = st.radio("Seeds", (MEAN, ONE), index=(MEAN, ONE).index(linked), horizontal=True, key="seeds")
    widgets.remember({"seeds": which}, {"seeds": MEAN})
    if which == MEAN:
        st.query_params.pop("seed", None)
        return None
    typical = recordings.typical_seed(world.name)
    about = f"{typical} is nearest to the mean of the recorded ones, and was chosen for that"
    return int(st.number_input("seed", 0, 2**31 - 1, typical, key="seed", bind="query-params", help=about))


def _recorded(world: World, chosen: Sequence[str]) -> Racers:
    """The recorded runs of each method, if each has several seeds and the world has its usual options."""
    alike = [run for run in widgets.recorded_runs(world.name) if run.settings.method in chosen]
    by_method = recordings.by_method(run for run in alike if _is_tuned(run, world))
    return [by_method[name] for name in chosen] if all(len(by_method.get(name, ())) > 1 for name in chosen) else []


def _is_tuned(run: RunRecord, world: World) -> bool:
    tuned = resolve(world.name, run.settings.method, {**world.chosen, "seed": run.settings.seed})
    return run.settings == tuned


def _of_seed(world: World, chosen: Sequence[str], seed: int) -> Racers:
    """One run of each method with this seed, as far as there are any, and a button for those that are missing."""
    wanted = [resolve(world.name, name, {**world.chosen, "seed": seed}) for name in chosen]
    runs = [_find(settings) for settings in wanted]
    _train(wanted, runs)
    return [[run] for run in runs if run is not None]


def _title(name: str) -> str:
    return methods.method(name).title


def _titles(names: Sequence[str]) -> list[str]:
    return [_title(name) for name in names]


def _find(settings: Settings) -> RunRecord | None:
    """The run with these settings: of the store, whatever its status, else a recorded one."""
    run_id = identify(settings)
    stored = [supervisor().store.load(run_id)] if widgets.in_store(run_id) else []
    recorded = widgets.recorded_runs(settings.world)
    alike = [run for run in recorded if run.settings == settings]
    done = [run for run in (*stored, *alike) if run.status == "done"]
    under_way = [run for run in stored if run.status in ("queued", "running") and not widgets.nobody_trains(run)]
    return (*done, *under_way, None)[0]


def _train(wanted: Sequence[Settings], runs: Sequence[RunRecord | None]) -> None:
    """A button for the runs that are missing."""
    missing = [i for i, run in enumerate(runs) if run is None]
    if not missing:
        _under_way([run for run in runs if run is not None and run.status != "done"])
        return
    seconds = sum(supervisor().expected(wanted[i]) for i in missing)
    st.caption(f"{len(missing)} of these are not there yet; together they take about {seconds:.0f} s.")
    pressed = st.button("Train them", type="primary", icon=":material/play_arrow:", width="stretch")
    if pressed and widgets.attempt(lambda: supervisor().submit_all([wanted[i] for i in missing], viewer())):
        st.rerun()


def _under_way(runs: Sequence[RunRecord]) -> None:
    """How far the runs are that are not done, and a way to stop them."""
    if not runs:
        st.caption("These runs are finished; you see them replayed.")
        return
    places = [place for place in (supervisor().place(run.run_id) for run in runs) if place is not None]
    seconds = max((place.seconds for place in places), default=0.0) + supervisor().expected(runs[-1].settings)
    st.caption(f"{len(runs) - len(places)} training, {len(places)} waiting; all together about {seconds:.0f} s.")
    if st.button("Stop them", key="stop"):
        for run in runs:
            widgets.attempt(lambda run=run: supervisor().stop(run.run_id, viewer()))  # type: ignore[misc]
        st.rerun()


def sentence(racers: Racers, guess: str | None) -> str:
    """Who won, in words; a difference within the noise is no victory."""
    done = [runs for runs in racers if all(run.status == "done" for run in runs)]
    if len(done) < 2:
        return "The answer comes when two of them are done."
    if guess is None:
        return "Make your guess, and the race runs to its end; the answer stands here in words."
    metric = done[0][0].measures.main
    scores = {
        _title(runs[0].settings.method): {run.settings.seed: _result(run)["ood_avg"] for run in runs} for runs in done
    }
    means = {name: average(by_seed) for name, by_seed in scores.items()}
    top = metric.best(means.values())
    best = next(name for name, mean in means.items() if mean == top)
    level = noise.level_with(best, scores, metric)
    said = {_title(runs[0].settings.method): _words(runs, metric) for runs in done}
    if len(done[0]) == 1:
        verdict = f"{best} ends highest with this seed, which alone cannot tell who is better"
    elif level:
        verdict = f"{best} ends highest, but {_listed(level)} {'is' if len(level) == 1 else 'are'} about the same"
    else:
        verdict = f"{best} keeps most, by more than the noise of the seeds"
    right = guess == best or guess in level
    mark = "You guessed it" if guess == best else "As good as right" if right else f"Not as you guessed ({guess})"
    return f"{mark}: {verdict}. {'; '.join(f'{name}: {text}' for name, text in said.items())}."


def _words(runs: Sequence[RunRecord], metric: Metric) -> str:
    home, shifted = (table.spread(_result(run)[key] for run in runs) for key in ("id", "ood_avg"))
    bars = [f" ± {value.std:.1f}" if math.isfinite(value.std) else "" for value in (home, shifted)]
    return f"ID {home.mean:.1f}{bars[0]} {metric.unit}, OOD {shifted.mean:.1f}{bars[1]} {metric.unit}"


def _result(run: RunRecord) -> Mapping[str, Any]:
    return run.result or result_of(run)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def paths(racers: Racers) -> widgets.Rows:
    """Where each run was at each evaluation, in the main metric."""
    return [
        {"method": _title(run.settings.method), "seed": run.settings.seed, "step": entry.step}
        | {"ID": summary.home, "OOD": summary.shift_mean}
        for runs in racers
        for run in runs
        for entry in run.evals
        for summary in [run.summary(entry)]
    ]


def _table(chosen: Sequence[str], world: World) -> None:
    """The table of the paper's form, of recorded runs or of the viewer's own: never of both at once."""
    sources = {RECORDED: widgets.recorded_runs(world.name), MINE: widgets.finished_runs(world.name)}
    filled = [name for name, runs in sources.items() if runs]
    which = st.radio("Runs in the table", filled or [MINE], horizontal=True, key="table_of", bind="query-params")
    rows = [run for run in sources[which or MINE] if run.settings.method in chosen and _is_tuned(run, world)]
    if not rows:
        st.text("There are no finished runs of these methods with their tuned settings yet.")
        return
    lines = table.rows(rows)
    st.markdown(table.to_markdown(lines))
    st.caption(
        f"{shown(lines[0].metric.axis)}: mean (standard deviation) over seeds. Δ is relative: percent of Vanilla FT's "
        "value. Bold is the best."
    )
    _equals(lines)
    _published(chosen, world)
    with st.container(horizontal=True):
        files = {"csv": table.to_csv(lines), "md": table.to_markdown(lines), "tex": table.to_latex(lines)}
        for kind, label in {"csv": "CSV", "md": "Markdown", "tex": "LaTeX"}.items():
            st.download_button(
                f"Download as {label}", files[kind], f"table.{kind}", on_click="ignore", key=f"to {kind}"
            )


def _published(chosen: Sequence[str], world: World) -> None:
    """The paper's own numbers, on demand: never in one table with those of this machine."""
    tables = published.meant(world.paper)
    if not tables or not st.toggle("The paper's own numbers", key="paper", bind="query-params"):
        return
    st.markdown(f"**{widgets.plain('As printed in the paper: other data, another network.')}**")
    for part in tables:
        st.markdown(part.to_markdown(chosen))
        st.caption(widgets.plain(f"{part.number}: {part.data}. {part.network}. Accuracy (%), mean (spread)."))
    missing = [_title(name) for name in chosen if not any(name in part.rows for part in tables)]
    absent = f" {_listed(missing)} {'is' if len(missing) == 1 else 'are'} not in these tables." if missing else ""
    st.caption(
        widgets.plain(
            f"Source: {tables[0].source}. Compare who is ahead of whom, and by what share of fine-tuning (Δ): the "
            f"accuracies themselves are of another task.{absent}"
        )
    )


def _equals(rows: Sequence[table.Row]) -> None:
    """A method that ends exactly where fine-tuning does looks like a mistake: say why it is none."""
    by_method = {row.method: row for row in rows}
    plain, fixed = by_method.get("finetune"), by_method.get("mars_sp")
    if plain and fixed and (plain.id, plain.ood_avg) == (fixed.id, fixed.ood_avg):
        st.caption(widgets.NEVER_PULLS)


def _python(chosen: Sequence[str], seed: int | None, world: World) -> str:
    names = ", ".join(f'"{name}"' for name in chosen)
    group = _group(world)
    if seed is not None and (seed not in recordings.SEEDS or not group):
        return f"""from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.summary import Metric, average
from ftp.lab.store import Store
from ftp.lab.table import rows, to_markdown

with Store() as store:  # what is there already is not trained again
    runs = [execute(resolve("{world.name}", name, { {**world.chosen, "seed": seed} }), store) for name in [{names}]]
print(to_markdown(rows(runs)))"""
    which = "" if seed is None else f", seed={seed}"
    which += "" if group == "methods" else f', group="{group}"'
    return f"""from ftp.lab.recordings import recorded
from ftp.lab.table import rows, to_markdown

runs = [run for run in recorded("{world.name}"{which}) if run.settings.method in [{names}]]
print(to_markdown(rows(runs)))"""


def _group(world: World) -> str:
    """The recorded group with these options of the world; "" if there is none."""
    wanted = {name: world.option(name) for name in world.options}
    for group in recordings.tuned(world.name):
        options = recordings.recorded(world.name, group=group)[0].settings.options
        if {name: options.get(name, option.default) for name, option in world.options.items()} == wanted:
            return group
    return ""
