"""What the tests of views share: a view in a script of its own, and runs in its store."""

import json
from dataclasses import replace

from streamlit.testing.v1 import AppTest

from app.supervisor import supervisor
from ftp.lab.recordings import recorded
from ftp.lab.store import serialisation


def open_view(view, **query):
    page = AppTest.from_string(f"from app.page import show\nshow({view!r})", default_timeout=300)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    assert not page.error
    return page


def sent(page, place=0):
    """What the page gives to one of its components."""
    return json.loads(page.get("bidi_component")[place].proto.json)


def bold(page):
    return [m.value.strip("*").replace("\u00a0", " ").replace("\\", "") for m in page.markdown if m.value[:2] == "**"]


def keep(run_id="00000000000000aa", method="ftp", name="", **changes):
    """A recorded run, put into the server's store under another id."""
    run = replace(recorded(method=method, seed=0)[0], run_id=run_id, name=name)
    run = replace(run, result={**run.result, "run_id": run_id}, **changes)
    supervisor().store.import_(serialisation.to_form(run, "test"))
    return run
