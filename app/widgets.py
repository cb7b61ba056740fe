"""What every view shares: its heading, its answer, its charts with their numbers, its settings, its links."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import ModuleType
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from app import promises
from app.limits import class_mode, is_teacher
from app.sentences import shown, without_paths
from app.supervisor import supervisor
from ftp.lab import methods, recipes, recordings, worlds
from ftp.lab.formats import thin, to_csv
from ftp.lab.options import Option
from ftp.lab.record import RUN_ID, LabError, RunRecord, Settings, Value
from ftp.lab.settings import COMMON, Known, known, resolve
from ftp.lab.store import DamagedError
from ftp.lab.table import title
from ftp.lab.worlds import World

Rows = Sequence[Mapping[str, Any]]
MOST_ROWS = 40  # of a table on the page; its file has all
MOST_STEPS = 2000
MAIN = ("lr", "steps", "labels", "seed")  # beside the method's own; the others are under "More settings"
SECOND = ("gamma_lr",)  # of the method's own, but seldom changed
KEPT = ("seed", "steps", "labels")  # stay as they are when another method is chosen
# a row of a table that equals another one looks like a mistake
NEVER_PULLS = (
    "MARS-SP equals Vanilla FT: the one length that validation chose for all its leashes is longer than any "
    "layer walks, so no row is ever pulled back."
)
LABELS = {
    "lr": "learning rate",
    "labels": "share of the labels",
    "optimizer": "base rule",
    "weight_decay": "weight decay",
    "k": "κ (kappa)",
    "gamma_lr": "μ, learning rate of γ",
}
_menu: ContextVar[DeltaGenerator] = ContextVar("menu")  # of this run of the script
CONFIG = {"displaylogo": False, "showSendToCloud": False, "modeBarButtonsToRemove": ["select2d", "lasso2d"]}


@contextmanager
def heading(view: ModuleType) -> Iterator[None]:
    """One line: the title of a view and the question that it answers, what is written inside, and the menu."""
    with st.container(key="heading", horizontal=True, vertical_alignment="center", gap="small"):
        st.title(view.TITLE, anchor=False, width="content")
        st.header(view.QUESTION, anchor=False, width="content")
        st.space("stretch")
        yield
        with st.popover("More", icon=":material/more_horiz:"):
            _menu.set(st.container(key="menu"))


def menu() -> DeltaGenerator:
    """The menu in the heading: tables and files, the link, the same in Python, the lesson."""
    return _menu.get(None) or st.container()  # a view that is shown without its heading


def answer(text: str) -> None:
    """The answer to the view's question, in words. Names in it stay text."""
    st.markdown(f"**{plain(text)}**")


def plain(text: str) -> str:
    r"""Text that markdown shows letter by letter; no line break between a number and its percent sign.

    >>> plain("*a* [b](c) 98 %")
    '\\*a\\* \\[b\\]\\(c\\) 98\xa0%'
    """
    special = set("\\`*_{}[]()<>#+-!|~$:&")
    return "".join("\\" + c if c in special else c for c in text).replace(" %", "\u00a0%")


def dark() -> bool:
    """True if the viewer's page is dark."""
    return st.context.theme.type == "dark"


def chart(fig: Any, alt: str, key: str) -> None:
    """A figure that does not change while it is looked at; `alt` says what it shows."""
    st.plotly_chart(fig, theme=None, key=key, alt=alt, config=CONFIG)


def data_table(rows: Rows, name: str, *, label: str = "Table and download", brief: Rows | None = None) -> None:
    """The numbers of a chart, in the menu: to read, and as a file. `brief` is read in place of very many columns."""
    with menu(), st.expander(label):
        if not rows:
            st.text("There are no numbers yet.")
            return
        prepared(prepare(rows, brief), name)


def prepare(rows: Rows, brief: Rows | None = None) -> tuple[str, Rows, str]:
    """What is said of the rows, those to read, and the file; it takes milliseconds, so a busy view keeps it."""
    rows = even(rows)
    shown = brief or thin(rows, MOST_ROWS)
    part = bool(brief) or len(shown) < len(rows)
    said = f"A part of the numbers; the file has all {len(rows)} rows." if part else ""
    # a table reads markdown
    return said, [{plain(key): _cell(value) for key, value in row.items()} for row in shown], to_csv(rows)


def plain_table(rows: Rows) -> None:
    """A small table in the page; names in it stay text."""
    st.table([{plain(key): _cell(value) for key, value in row.items()} for row in even(rows)])


def prepared(contents: tuple[str, Rows, str], name: str) -> None:
    """The inside of a table's box."""
    said, shown, file = contents
    if said:
        st.caption(said)
    st.table(shown)
    st.download_button("Download as CSV", file, f"{name}.csv", "text/csv", on_click="ignore", key=f"csv {name}")


def even(rows: Rows) -> Rows:
    """Rows with the same columns: the last evaluation of a run has more numbers than those on the way.

    >>> even([{"step": 1}, {"step": 2, "val": 9.0}])
    [{'step': 1, 'val': None}, {'step': 2, 'val': 9.0}]
    """
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return plain(f"{value:.4g}" if isinstance(value, float) else str(value))


def sharing(view: str, params: Mapping[str, Any], python: str, lesson: str) -> None:
    """Ways to take this along, in the menu: a link with all settings, the same in Python, the lesson about it."""
    with menu():
        share_link(view, params)
        st.caption("Copy as Python")
        st.code(python, language=None, wrap_lines=True)  # colours of a language are too pale for many eyes
        st.caption("Open in notebook")
        st.markdown(f"Lesson **{plain(lesson)}** explains this. Start the notebooks, then open the file:")
        st.code(f"make lab\nnotebooks/{lesson}.ipynb", language=None)


def share_link(view: str, params: Mapping[str, Any]) -> None:
    """The address of this view in the chosen world, to copy."""
    st.caption("Share link")
    guess = {"guess": st.query_params.get("guess")}  # a link without a guess leads to one without
    st.code(address(view, {**_place(), **params, **guess}), language=None, wrap_lines=True)


def _place() -> dict[str, str]:
    """The chosen world with its options, as the address names them; the usual world leaves it short."""
    asked = st.session_state.get("world") or st.query_params.get("world", "")
    name = asked if asked in worlds.names() else worlds.default()
    known = worlds.world(name).options
    options = {key: st.query_params[key] for key in known if key in st.query_params and not known[key].private}
    return options if name == worlds.default() else {"world": name, **options}


def address(view: str, params: Mapping[str, Any]) -> str:
    """The full address of a view with settings, on the server that the viewer uses."""
    server = urlsplit(st.context.url or "http://127.0.0.1:8501/")
    query = urlencode({name: value for name, value in params.items() if value not in (None, "")}, doseq=True)
    return f"{server.scheme}://{server.netloc}/{view}" + (f"?{query}" if query else "")


def predict(key: str, question: str, options: Sequence[str]) -> str | None:
    """Predict first: the question, and what the viewer chose; None until then."""
    return st.radio(question, options, index=None, key=key, horizontal=True, persist_state="session")


def waits(guess: str | None) -> bool:
    """True as long as a picture must not give the answer away; a link with guess=no asks for no guess."""
    return guess is None and st.query_params.get("guess") != "no"


def finished_runs(world: str) -> list[RunRecord]:
    """The finished runs of a world that were made here, without their points."""
    return supervisor().store.runs(world=world, status="done", limit=None)


def recorded_runs(world: str) -> list[RunRecord]:
    """The recorded runs of a world with their tuned settings, whatever its options; none if it has no recordings."""
    return [run for group in recordings.tuned(world) for run in recordings.recorded(world, group=group)]


def replays(world: str) -> list[RunRecord]:
    """The recorded runs of a world that can be watched step by step, the ones to open with first."""
    return recordings.replays(world)


def record_of(run_id: str) -> RunRecord | None:
    """The run of that id, with its points: from the store, else a recorded one; None if it is in neither."""
    if not RUN_ID.fullmatch(run_id):
        return None
    try:
        record = supervisor().store.load(run_id)
    except DamagedError:
        raise
    except LabError:
        return recordings.find(run_id)
    return replace(record, error=without_paths(record.error))


def in_store(run_id: str) -> bool:
    """True for a run of this machine; a recorded one may have the same id."""
    return bool(supervisor().store.runs(text=run_id, limit=1))


def attempt(action: Callable[[], Any]) -> bool:
    """Do what a button asks for. A refusal is a sentence at this place, and the rest of the view goes on."""
    try:
        action()
    except LabError as error:
        refuse(error)
        return False
    return True


def refuse(error: LabError | str) -> None:
    """Say why something cannot be done. Who may, is offered to move a damaged store aside; it is kept."""
    if not isinstance(error, DamagedError):
        st.error(plain(f"{shown(error)}."))
    elif class_mode() and not is_teacher():
        st.error("The runs of this server cannot be read; the teacher's page can mend that.")
    else:
        st.error(plain(f"{error}."))
        label = "Move it aside, and begin with an empty one"
        st.button(label, on_click=_move_aside, type="primary", help="the damaged file keeps all that is in it")


def _move_aside() -> None:
    aside = supervisor().move_store_aside()
    st.toast(plain(f"The damaged store is aside as {aside.name}, in the same folder."))


def open_live(settings: Settings, run_id: str = "") -> None:
    """Go to the view Live, with these settings, and to a run if one is named."""
    values = {name: str(value) for name, value in settings.as_dict().items()}
    page = st.Page(lambda: None, title="Live", url_path="live")  # Streamlit knows a page by its address
    st.switch_page(page, query_params={**values, **({"run": run_id} if run_id else {})})


def nobody_trains(record: RunRecord) -> bool:
    """True for a run that waits because another program queued it: no dashboard has promised to train it."""
    dashboard = supervisor()
    return (
        record.status == "queued"
        and not promises.has(dashboard.store, record.run_id)
        and dashboard.place(record.run_id) is None
        and dashboard.store.status(record.run_id) == "queued"  # it may have begun meanwhile
    )


def described(settings: Settings) -> str:
    """Settings in a few words: the method, and what differs from its tuned settings.

    >>> described(resolve("digits", "ftp", {"k": 0.5}))
    'FTP, seed 0, 300 steps, k 0.5'
    >>> described(resolve("scenes", "l2_sp", {"task": "normals"}))
    'L2-SP, seed 0, 170 steps, task normals'
    """
    usual = _usual(settings)
    words = [title(settings.method), f"seed {settings.seed}", _length(settings)]
    for name, value in settings.as_dict().items():
        if name not in ("seed", "steps") and usual.get(name) != value:
            words.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(words)


def _length(settings: Settings) -> str:
    """How long a run is: its steps, in a world of several phases those of each."""
    try:
        phases = len(worlds.of(settings).phases)
    except LabError:
        phases = 1
    return f"{settings.steps} steps" if phases == 1 else f"{phases} tasks of {settings.steps} steps"


def _usual(settings: Settings) -> dict[str, Value]:
    """The tuned settings of the same world and method; of a world or a method that is not here, none.

    Where they differ with an option of the world, such as its task, they are those for that of the run.
    """
    divided = recipes.divided_by(settings.world)
    same = {divided: settings.options[divided]} if divided and divided in settings.options else {}
    try:
        usual = resolve(settings.world, settings.method, same).as_dict()
        return usual | {name: worlds.world(settings.world).options[name].default for name in same}
    except LabError:
        return {}


def run_settings(
    world: World, extra: Mapping[str, Any] | None = None, begins: Mapping[str, Value] | None = None
) -> Settings:
    """Widgets for all settings of a run, each a parameter of the URL.

    extra: settings without a widget. begins: values that a widget begins with, in place of the tuned ones.
    """
    main, more = st.container(), st.expander("More settings")
    with main:
        names = methods.fitting(world)
        usual = "ftp" if "ftp" in names else names[0]
        method = choice("Method", names, usual, "method", lambda name: methods.method(name).title, to_recipe)
        st.caption(plain(methods.method(method).summary))
    asked = _dividing(world)
    every = known(world.name, method, asked)
    rows = {row.name: replace(row, value=(begins or {}).get(row.name, row.value)) for row in every}
    # text of any kind is not for a form, such as the layer of a what-if
    shown = [name for name, row in rows.items() if _is_for_a_form(row.option)]
    second = {*COMMON, *SECOND, *(world.options if world.own else ())}  # those of one's own pictures are many
    first = [name for name in shown if name in MAIN or name not in second]
    with main:
        order = [name for name in first if name not in MAIN] + [name for name in MAIN if name in first]
        values = {name: _widget(rows[name]) for name in order}
    with more:
        values |= {name: _widget(rows[name]) for name in shown if name not in first}
    return resolve(world.name, method, {**values, **(extra or {})})


def _is_for_a_form(option: Option) -> bool:
    """Layers and paths are no matter of a form, nor is how the work is divided on the server."""
    return option.decides and not (option.layer or option.private)


def linked(key: str, options: Sequence[str], default: Sequence[str]) -> list[str]:
    """What a link says for a widget with titles: `bind` would put the titles into the address, links have names."""
    return [name for name in st.query_params.get_all(key) if name in options] or list(default)


def link(key: str, chosen: Sequence[str], default: Sequence[str]) -> None:
    """Put the names that were chosen into the address; the usual choice leaves it short."""
    remember({key: list(chosen)}, {key: list(default)})


def remember(values: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Let the address follow the hand: what differs from the usual is written, all at once, and nothing else.

    The browser makes an entry in its history of every message about the address, also of one that changes nothing, and
    Back goes through them one by one. So a view that was only opened must leave the address as it is. None is no value.
    """
    texts = {name: _texts(value) for name, value in values.items()}
    wanted = {name: text for name, text in texts.items() if text and text != _texts(usual.get(name))}
    present = {name: st.query_params.get_all(name) for name in values if name in st.query_params}
    if wanted == present:
        return
    others = {name: st.query_params.get_all(name) for name in st.query_params if name not in values}
    try:
        st.query_params.from_dict({**others, **wanted})
    except StreamlitAPIException:  # a widget is bound to one of the others, and only that widget may write it
        st.query_params.update(wanted)
        for name in present.keys() - wanted.keys():
            del st.query_params[name]


def _texts(value: Any) -> list[str]:
    return [] if value is None else list(map(str, value)) if isinstance(value, list | tuple) else [str(value)]


def choice(
    label: str,
    options: Sequence[str],
    default: str,
    key: str,
    title: Callable[[str], str],
    on_change: Callable[[], None] | None = None,
    **look: Any,
) -> str:
    """A select box that shows titles and keeps the name in the address."""
    index = options.index(linked(key, options, [default])[0])
    chosen: str = st.selectbox(label, options, index, format_func=title, key=key, on_change=on_change, **look)
    link(key, [chosen], [default])
    return chosen


def to_recipe(kept: Sequence[str] = KEPT) -> None:
    """Another method, or another world, has other tuned settings; some stay as they are."""
    world = worlds.load(st.session_state.get("world") or worlds.default())
    method = st.session_state.get("method")
    if method not in methods.fitting(world):
        st.session_state.pop("method", None)
        return
    asked = _dividing(world)
    for row in known(world.name, method, asked):
        if row.name in st.session_state and row.name not in (*kept, *asked):
            st.session_state[row.name] = row.value


def _dividing(world: World) -> dict[str, Any]:
    """The option that the tuned settings of a world differ with, such as its task, as it is chosen; {} if none does."""
    name = recipes.divided_by(world.name)
    return {name: st.session_state.get(name) or world.option(name)} if name else {}


def _widget(row: Known) -> Value:
    """The widget of one setting; its limits only guide, `resolve` checks."""
    option = row.option
    label = LABELS.get(row.name, row.name.replace("_", " "))
    shared: dict[str, Any] = {"key": row.name, "help": option.help, "bind": "query-params"}
    if option.choices:
        divides = row.name == recipes.divided_by(st.session_state.get("world") or worlds.default())
        look = {**shared, "on_change": to_recipe if divides else None}
        usual = option.default if divides else row.value  # the address leaves out what a widget begins with
        return cast(str, st.selectbox(label, option.choices, option.choices.index(str(usual)), **look))
    if isinstance(option.default, str):
        return cast(str, st.text_input(label, str(row.value), **shared))
    if isinstance(row.value, float) and option.high <= 1 and option.low in (0.0, 0.01) and row.value >= 0.01:
        return st.slider(label, option.low, option.high, row.value, 0.01, **shared)
    if isinstance(option.default, int):
        high = MOST_STEPS if row.name == "steps" else int(min(option.high, 2**31 - 1))
        return cast(int, st.number_input(label, int(option.low), high, int(row.value), **shared))
    value = float(row.value)
    step = value / 10 if value else 0.1
    return st.number_input(label, option.low, option.high, value, step, format="%g", **shared)


def python_of(settings: Settings) -> str:
    """The lines that make the same run in a notebook; only what differs from the tuned settings is named.

    >>> print(python_of(resolve("digits", "ftp", {"seed": 3})))
    from ftp.lab.train import finetune
    <BLANKLINE>
    for event in finetune("digits", "ftp", {"seed": 3}):
        print(event)
    """
    call = f"finetune({arguments_of(settings)})"
    return "\n".join(["from ftp.lab.train import finetune", "", f"for event in {call}:", "    print(event)"])


def arguments_of(settings: Settings) -> str:
    """World, method and what differs from the tuned settings, as they stand in a call.

    >>> arguments_of(resolve("digits", "ftp", {"seed": 3}))
    '"digits", "ftp", {"seed": 3}'
    """
    differs = {name: value for name, value in settings.as_dict().items() if name not in ("world", "method")}
    usual = _usual(settings)
    differs = {name: value for name, value in differs.items() if usual.get(name) != value}
    items = ", ".join(f'"{name}": {_literal(value)}' for name, value in differs.items())
    return f'"{settings.world}", "{settings.method}"' + (f", {{{items}}}" if items else "")


def _literal(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
