"""The WiSE view: recorded curves, a run of one's own, and what the page gives to the scrubber."""

import json
from pathlib import Path

import pytest
from app_views import open_view, sent

from app.supervisor import supervisor
from app.views import wise as view
from ftp.lab.recordings.extras import extra
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store
from ftp.lab.worker import wise_path


@pytest.fixture
def finished(own_store: Path):
    """A finished run in the server's store."""
    with Store(own_store) as store:
        return execute(resolve("digits", "ftp", {"steps": 2, "batch": 8}), store, kinds=())


def test_the_recorded_curves():
    data = extra("wise_digits")
    assert [curve["method"] for curve in data["curves"]] == ["finetune", "ftp"]
    for curve in data["curves"]:
        assert curve["alphas"] == [round(i / 20, 2) for i in range(21)]
        assert all(0 < v < 100 for v in (*curve["id"], *curve["ood_avg"]))


def test_first_view():
    page = open_view("wise")
    data = sent(page)
    assert data["alpha"] == view.START
    assert [curve["name"] for curve in data["curves"]] == ["Vanilla FT", "FTP"]
    assert len(page.table[0].value) == 40  # of 42; the file has all
    assert not page.button


def test_the_answer_comes_after_the_guess():
    page = open_view("wise")
    best = max(extra("wise_digits")["curves"][0]["ood_avg"])
    assert not any(f"{best:.1f}" in m.value for m in page.markdown)
    page.radio(key="wise_guess").set_value(view.GUESSES[1]).run()
    assert any(m.value.startswith("**Right") and f"{best:.1f}" in m.value for m in page.markdown)


@pytest.mark.parametrize(("asked", "alpha"), [("0.25", 0.25), ("0", 0.0), ("2", 0.5), ("nan", 0.5), ("x", 0.5)])
def test_a_link_carries_alpha(asked, alpha):
    page = open_view("wise", alpha=asked)
    assert sent(page)["alpha"] == alpha
    assert page.query_params["alpha"] in (f"{alpha:g}", [f"{alpha:g}"])


@pytest.mark.slow
def test_a_run_of_ones_own_is_asked_for_and_shown(finished):
    page = open_view("wise", run=finished.run_id)
    assert page.selectbox[0].value == finished.run_id
    assert [b.label for b in page.button] == ["Compute the curve of this run"]
    with Store(supervisor().store.path) as store:
        curve = {"run_id": finished.run_id, "method": "ftp", "alphas": [0, 1], "id": [80, 90], "ood_avg": [70, 60]}
        wise_path(store, finished).write_text(json.dumps(curve))
    page = open_view("wise", run=finished.run_id)
    assert sent(page)["curves"][2]["ood"] == [70.0, 60.0]
    assert not page.button


def test_the_copied_python_is_whole():
    code = view.python_of(0.25, None)
    compile(code, "cell", "exec")
    assert 'resolve("digits", "finetune")' in code
    assert "alphas=[0.0, 0.25, 1.0]" in code
