"""What every view shares: its heading, its answer, its charts with their numbers, its settings, its links."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Literal, cast
from urllib.parse import urlencode, urlsplit

import streamlit as st

from app import queueing
from app.supervisor import supervisor
from ftp.lab import methods, recordings, worlds
from ftp.lab.record import RUN_ID, LabError, RunRecord, Settings, Value
from ftp.lab.settings import COMMON, Known, known, resolve

Rows = Sequence[Mapping[str, Any]]
MOST_ROWS = 40  # of a table on the page; its file has all
MOST_STEPS = 2000
MAIN = ("lr", "steps", "labels", "seed")  # beside the method's own; the others are under "More settings"
SECOND = ("gamma_lr",)  # of the method's own, but seldom changed
KEPT = ("seed", "steps", "labels")  # stay as they are when another method is chosen
LABELS = {
    "lr": "learning rate",
    "labels": "share of the labels",
    "optimizer": "base rule",
    "weight_decay": "weight decay",
    "k": "κ (kappa)",
    "gamma_lr": "μ, learning rate of γ",
}
# settings that are numbers: each has a widget, and its value is in the address
NUMBERS = {
    name
    for options in (COMMON, *(methods.method(name).options for name in methods.names()))
    for name, option in options.items()
    if not isinstance(option.default, str)
}
CONFIG = {"displaylogo": False, "showSendToCloud": False, "modeBarButtonsToRemove": ["select2d", "lasso2d"]}


def heading(view: ModuleType) -> None:
    """The title of a view and the question that it answers."""
    with st.container(gap=None):
        st.title(view.TITLE, anchor=False)
        st.header(view.QUESTION, anchor=False)


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


def emphasis() -> Literal["primary", "secondary"]:
    """The type of the button that a view is about: white letters on the dark theme's light blue cannot be read."""
    return "secondary" if dark() else "primary"


def chart(fig: Any, alt: str, key: str) -> None:
    """A figure that does not change while it is looked at; `alt` says what it shows."""
    st.plotly_chart(fig, theme=None, key=key, alt=alt, config=CONFIG)


def data_table(rows: Rows, name: str, *, label: str = "Table and download", brief: Rows | None = None) -> None:
    """The numbers of a chart: to read, and as a CSV file. `brief` is read in place of rows with very many columns."""
    with st.expander(label):
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


def prepared(made: tuple[str, Rows, str], name: str) -> None:
    """The inside of a table's box."""
    said, shown, file = made
    if said:
        st.caption(said)
    st.table(shown)
    st.download_button("Download as CSV", file, f"{name}.csv", "text/csv", on_click="ignore", key=f"csv {name}")


def thin(rows: Rows, most: int) -> Rows:
    """At most so many rows, evenly chosen, the first and the last among them.

    >>> [row["x"] for row in thin([{"x": i} for i in range(10)], 4)]
    [0, 3, 6, 9]
    """
    if len(rows) <= most:
        return rows
    return [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]


def even(rows: Rows) -> Rows:
    """Rows with the same columns: the last evaluation of a run has more numbers than those on the way.

    >>> even([{"step": 1}, {"step": 2, "val": 9.0}])
    [{'step': 1, 'val': None}, {'step': 2, 'val': 9.0}]
    """
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


def to_csv(rows: Rows) -> str:
    r"""Rows for a spreadsheet; text that it would take for a formula is marked as text.

    >>> to_csv([{"name": "=1+1", "id": 98.5}])
    "name,id\n'=1+1,98.5\n"
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"'{v}" if isinstance(v, str) and v[:1] in "=+-@" and v else v for k, v in row.items()})
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return plain(f"{value:.4g}" if isinstance(value, float) else str(value))


def sharing(view: str, params: Mapping[str, Any], python: str, lesson: str) -> None:
    """A row of ways to take this along: a link with all settings, the same in Python, the lesson that explains it."""
    with st.container(horizontal=True):
        with st.popover("Share link"):
            st.caption("This address opens the view with these settings.")
            st.code(address(view, params), language=None, wrap_lines=True)
        with st.popover("Copy as Python"):
            st.code(python, language=None, wrap_lines=True)  # colours of a language are too pale for many eyes
        with st.popover("Open in notebook"):
            st.markdown(f"Lesson **{plain(lesson)}** explains this. Start the notebooks, then open the file:")
            st.code(f"make lab\nnotebooks/{lesson}.ipynb", language=None)


def address(view: str, params: Mapping[str, Any]) -> str:
    """The full address of a view with settings, on the server that the viewer uses."""
    here = urlsplit(st.context.url or "http://127.0.0.1:8501/")
    query = urlencode({name: value for name, value in params.items() if value not in (None, "")}, doseq=True)
    return f"{here.scheme}://{here.netloc}/{view}" + (f"?{query}" if query else "")


def predict(key: str, question: str, options: Sequence[str]) -> str | None:
    """Predict first: the question, and what the viewer chose; None until then."""
    return st.radio(question, options, index=None, key=key, horizontal=True, persist_state="session")


def records(world: str = "digits", method: str | None = None, seed: int | None = None) -> list[RunRecord]:
    """Finished runs: those of the store, without their points, then recorded ones with other settings."""
    own = supervisor().store.runs(world=world, method=method, status="done", limit=None)
    kept = recordings.recorded(world) if "methods" in recordings.groups(world) else []
    found: dict[Settings, RunRecord] = {}
    for record in (*own, *kept):
        if method in (None, record.settings.method) and seed in (None, record.settings.seed):
            found.setdefault(record.settings, record)
    return list(found.values())


def record_of(run_id: str) -> RunRecord | None:
    """The run of that id, with its points: from the store, else a recorded one; None if it is in neither."""
    if not RUN_ID.fullmatch(run_id):
        return None
    try:
        return supervisor().store.load(run_id)
    except LabError:
        return recordings.find(run_id)


def in_store(run_id: str) -> bool:
    """True for a run of this machine; a recorded one may have the same id."""
    return bool(supervisor().store.runs(text=run_id, limit=1))


def attempt(action: Callable[[], Any]) -> bool:
    """Do what a button asks for. A refusal is a sentence at this place, and the rest of the view goes on."""
    try:
        action()
    except LabError as error:
        st.error(plain(f"{error}."))
        return False
    return True


def nobody_trains(record: RunRecord) -> bool:
    """True for a run that waits because another program queued it: no dashboard has promised to train it."""
    own = supervisor()
    return (
        record.status == "queued"
        and not queueing.promised(own.store, record.run_id)
        and own.place(record.run_id) is None
        and own.store.status(record.run_id) == "queued"  # it may have begun meanwhile
    )


def described(settings: Settings) -> str:
    """Settings in a few words: the method, and what differs from its tuned settings.

    >>> described(resolve("digits", "ftp", {"k": 0.5}))
    'FTP, seed 0, 300 steps, k 0.5'
    """
    usual = resolve(settings.world, settings.method).as_dict()
    words = [methods.method(settings.method).title, f"seed {settings.seed}", f"{settings.steps} steps"]
    for name, value in settings.as_dict().items():
        if name not in ("seed", "steps") and usual.get(name) != value:
            words.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(words)


def run_settings(prefix: str = "", extra: Mapping[str, Any] | None = None) -> Settings:
    """Widgets for all settings of a run, each a parameter of the URL; `extra` holds settings without a widget."""

    def renew() -> None:
        _to_recipe(prefix)

    main, more = st.container(), st.expander("More settings")
    with more:
        here, about = worlds.names(), worlds.info("digits").summary
        world = choice("World", here, "digits", f"{prefix}world", lambda name: worlds.info(name).title, renew, about)
    with main:
        names = methods.names()
        method = choice("Method", names, "ftp", f"{prefix}method", lambda name: methods.method(name).title, renew)
        st.caption(plain(methods.method(method).summary))
    rows = {row.name: row for row in known(world, method)}
    # text of any kind is not for a form, such as the layer of a what-if
    shown = [name for name, row in rows.items() if not row.option.layer]
    first = [name for name in shown if name in MAIN or (name not in COMMON and name not in SECOND)]
    with main:
        order = [name for name in first if name not in MAIN] + [name for name in MAIN if name in first]
        given = {name: _widget(rows[name], prefix) for name in order}
    with more:
        given |= {name: _widget(rows[name], prefix) for name in shown if name not in first}
    return resolve(world, method, {**given, **(extra or {})})


def linked(key: str, options: Sequence[str], default: Sequence[str]) -> list[str]:
    """What a link says for a widget with titles: `bind` would put the titles into the address, links have names."""
    return [name for name in st.query_params.get_all(key) if name in options] or list(default)


def link(key: str, chosen: Sequence[str], default: Sequence[str]) -> None:
    """Put the names that were chosen into the address; the usual choice leaves it short."""
    if list(chosen) == list(default):
        st.query_params.pop(key, None)
    elif st.query_params.get_all(key) != list(chosen):
        st.query_params[key] = list(chosen)


def choice(
    label: str,
    options: Sequence[str],
    default: str,
    key: str,
    title: Callable[[str], str],
    on_change: Callable[[], None] | None = None,
    about: str | None = None,
) -> str:
    """A select box that shows titles and keeps the name in the address."""
    index = options.index(linked(key, options, [default])[0])
    chosen = st.selectbox(label, options, index, format_func=title, key=key, help=about, on_change=on_change)
    link(key, [chosen], [default])
    return chosen


def _to_recipe(prefix: str) -> None:
    """Another method has other tuned settings."""
    world, method = (st.session_state[f"{prefix}{name}"] for name in ("world", "method"))
    for row in known(world, method):
        if f"{prefix}{row.name}" in st.session_state and row.name not in KEPT:
            st.session_state[f"{prefix}{row.name}"] = row.value


def _widget(row: Known, prefix: str) -> Value:
    """The widget of one setting; its limits only guide, `resolve` checks."""
    option, key = row.option, f"{prefix}{row.name}"
    label = LABELS.get(row.name, row.name.replace("_", " "))
    shared: dict[str, Any] = {"key": key, "help": option.help, "bind": "query-params"}
    if option.choices:
        return cast(str, st.selectbox(label, option.choices, option.choices.index(str(row.value)), **shared))
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
    usual = resolve(settings.world, settings.method).as_dict()
    differs = {name: value for name, value in differs.items() if usual.get(name) != value}
    given = ", ".join(f'"{name}": {_literal(value)}' for name, value in differs.items())
    return f'"{settings.world}", "{settings.method}"' + (f", {{{given}}}" if given else "")


def _literal(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
