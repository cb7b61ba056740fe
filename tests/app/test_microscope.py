"""The microscope view: recorded steps, a run of one's own, and the worker's job."""

from pathlib import Path

import pytest
from app_views import open_view, sent

from app.views import microscope as view
from ftp.lab.jobs import Order, do
from ftp.lab.microscope import moments
from ftp.lab.recordings.extras import extra
from ftp.lab.run import execute
from ftp.lab.settings import resolve
from ftp.lab.store import Store

TRACES = {trace["layer"]: trace for trace in extra("microscope")["traces"]}


def test_first_view():
    page = open_view("microscope")
    data = sent(page)
    assert data["trace"] == TRACES[data["trace"]["layer"]]
    assert data["step"] == view.START
    assert any(m.value.startswith(f"**In step {view.START} the layer walks") for m in page.markdown)
    assert len(page.table[0].value) == len(data["trace"]["steps"])


@pytest.mark.parametrize(("asked", "step"), [("1", 1), ("300", 300), ("20", 3), ("nan", 3), ("-1", 3)])
def test_a_link_carries_layer_and_step(asked, step):
    layer = next(iter(TRACES))
    data = sent(open_view("microscope", layer=layer, step=asked))
    assert (data["trace"]["layer"], data["step"]) == (layer, step)


def test_the_answer_is_that_of_the_numbers():
    step = TRACES["blocks.5.conv2.weight"]["steps"][0]
    rows = len(step["rows"]["factor"])
    assert view.answer(step).endswith(f"the leash stays at 1e-08, and {rows} of {rows} rows are "
                                      "pulled back to its end.")  # fmt: skip


def test_a_prediction_gets_its_answer():
    page = open_view("microscope")
    page.radio(key="microscope_guess").set_value("Nowhere").run()
    assert any(m.value.startswith("Right: γ starts at 1e-8") for m in page.markdown)


def test_the_copied_python_runs(capsys):
    trace = {"settings": resolve("digits", "ftp", {"steps": 4, "batch": 8}).as_dict(), "layer": "stem.weight"}
    exec(view.python_of(trace, 2), {})
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["1", "2"]


@pytest.mark.slow
def test_a_run_of_ones_own(own_store: Path):
    with Store(own_store) as store:
        run = execute(resolve("digits", "ftp", {"steps": 3, "batch": 8}), store, kinds=()).run_id
        page = open_view("microscope", run=run, layer="stem.weight")
        assert [b.label for b in page.button] == ["Look at this layer of this run"]
        order = Order("microscope", run, "stem.weight")
        assert order.result(store) is None
        assert do(order, store, device="cpu") == "done"
    data = sent(open_view("microscope", run=run, layer="stem.weight"))
    assert [one["step"] for one in data["trace"]["steps"]] == moments(3)
    assert data["run"] == run
