"""The Live view: what it shows first, what Train does, and what a link brings back."""

import json
from dataclasses import replace

import pytest
from app_views import bold, keep, open_view, sent
from servers import until

from app.supervisor import supervisor
from app.views import live
from ftp.lab.recordings import recorded
from ftp.lab.run import identify
from ftp.lab.settings import resolve


def button(page, label):
    return next(b for b in page.button if b.label == label)


def test_nobody_meets_an_empty_page():
    page = open_view("live")
    first = recorded(method="ftp", group="live")[0]
    data = sent(page)
    assert data["run"] == first.run_id
    assert data["replay"]
    assert page.title[0].value == live.TITLE
    assert page.header[0].value.endswith("?")
    assert any(
        t.value == "Recorded run: FTP, seed 5, 300 steps; of 10 seeds the one nearest to the mean" for t in page.text
    )


def test_another_recorded_method_replays_as_soon_as_it_is_chosen():
    page = open_view("live")
    page.selectbox(key="method").set_value("finetune").run()
    assert sent(page)["run"] == recorded(method="finetune", group="live")[0].run_id
    assert page.number_input(key="lr").value == recorded(method="finetune", group="live")[0].settings.lr != 0.05
    assert page.query_params["method"] == "finetune"


def test_a_link_to_another_seed_shows_that_one_and_claims_nothing_of_it():
    page = open_view("live", seed="0")
    assert sent(page)["run"] == recorded(method="ftp", seed=0)[0].run_id
    assert any(t.value == "Recorded run: FTP, seed 0, 300 steps" for t in page.text)


def test_the_answer_comes_after_the_guess():
    page = open_view("live")
    assert "make your guess" in bold(page)[-1]
    page.radio(key="guess").set_value(live.LATE).run()
    assert bold(page)[-1].startswith("You guessed it: leashes grew to")
    page.radio(key="guess").set_value(live.EARLY).run()
    assert bold(page)[-1].startswith("Not as you guessed (early layers)")


def test_train_puts_the_run_into_the_queue_and_into_the_address():
    page = open_view("live", steps="2", batch="8", seed="5")
    button(page, "Train").click().run()
    assert not page.exception
    run = page.query_params["run"]
    assert sent(page)["run"] == run
    record = supervisor().store.load(run)
    assert (record.settings.steps, record.settings.batch, record.settings.seed) == (2, 8, 5)
    assert any(b.label == "Stop" for b in page.button)
    button(page, "Stop").click().run()
    until(lambda: supervisor().store.status(run) == "stopped", what="the stop")


def test_a_link_brings_the_run_and_its_settings_back():
    run = keep(name="![x](http://x)")
    page = open_view("live", run=run.run_id, steps="40", k="0.5")
    assert sent(page)["run"] == run.run_id
    assert page.number_input(key="steps").value == 40
    assert page.slider(key="k").value == 0.5
    assert any("“![x](http://x)”" in t.value for t in page.text)  # text, never markdown
    assert not any("http://x" in m.value for m in page.markdown)
    code = [c.value for c in page.code]
    assert any(f"run={run.run_id}" in c and "steps=40" in c and "k=0.5" in c for c in code)
    assert any('finetune("digits", "ftp")' in c for c in code)


@pytest.mark.parametrize("run", ["0123456789abcdef", "../../etc/passwd", "x"])
def test_a_link_to_a_run_of_another_machine_says_so_and_shows_a_recorded_one(run):
    page = open_view("live", run=run)
    assert "not on this machine" in page.info[0].value
    page.run()  # the page runs again at once, when its charts answer
    assert "not on this machine" in page.info[0].value
    assert sent(page)["run"] == recorded(method="ftp", group="live")[0].run_id


@pytest.mark.parametrize(("status", "words"), live.ENDED.items())
def test_a_run_that_ended_early_can_go_on(status, words):
    run = keep(status=status, error="the disk is full")
    page = open_view("live", run=run.run_id)
    assert page.warning[0].value.startswith(words)
    assert "the disk is full" in page.warning[0].value
    button(page, "Go on").click().run()
    assert not page.exception
    assert supervisor().store.status(page.query_params["run"]) in ("queued", "running")


def test_a_what_if_makes_a_run_beside_the_one_that_is_shown():
    run = keep()
    page = open_view("live", run=run.run_id)
    assert not any("frozen" in b.label for b in page.button)
    page.session_state["player"] = {"status": "", "layer": "stem.weight"}
    page.run()
    next(b for b in page.button if b.label.startswith("frozen")).click().run()
    assert not page.exception
    assert page.query_params["other"] == run.run_id
    made = supervisor().store.load(page.query_params["run"])
    assert made.settings == replace(run.settings, options={**run.settings.options, "frozen": "stem.weight"})
    assert (sent(page)["run"], sent(page)["other"]) == (made.run_id, run.run_id)


def test_a_what_if_that_no_layer_has_is_a_sentence():
    page = open_view("live")
    page.query_params["frozen"] = "stem.weigt"
    page.run()
    assert "did you mean stem.weight?" in page.error[0].value
    assert sent(page)["run"]  # and the rest goes on
    assert button(page, "Train")


def test_what_is_refused_is_said_and_the_chart_stays(monkeypatch):
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    page = open_view("live", batch="4096")
    button(page, "Train").click().run()
    assert [error.value[:14] for error in page.error] == ["Batch is 4096;"]
    assert sent(page)["run"]


def test_a_what_if_can_be_left():
    page = open_view("live", frozen="stem.weight", seed="11")
    assert "frozen" in resolve("digits", "ftp", {"frozen": "stem.weight"}).options
    button(page, "What-if: stem.weight frozen").click().run()
    assert not page.error
    assert "frozen" not in page.query_params
    assert not any(b.label.startswith("What-if") for b in page.button)


def test_a_run_of_this_machine_is_its_own_even_under_a_recorded_id():
    recording = recorded(method="ftp", seed=0)[0]
    assert sent(open_view("live"))["recorded"]
    run = keep(recording.run_id)
    page = open_view("live", run=run.run_id)
    assert not sent(page)["recorded"]
    assert any(t.value.startswith("Run: ") for t in page.text)


def test_a_difference_in_words():
    before = recorded(method="ftp", seed=0)[0]
    after = replace(before, settings=resolve("digits", "ftp", {"frozen": "stem.weight"}))
    assert live.difference(after, before).startswith("With stem.weight frozen: ID ")


def opened(page):
    """With its tables open; a closed one is empty, so that the first chart need not wait."""
    assert not page.table
    for name in ("Layers", "Scores", "Loss"):
        page.session_state[f"numbers {name}"] = True
    return page.run()


def test_every_number_is_in_a_table_and_a_file():
    page = opened(open_view("live"))
    layers, scores, loss = (t.value for t in page.table)
    first = recorded(method="ftp", group="live")[0]
    assert len(layers) == len(first.layers)
    assert len(scores) == len(first.evals)
    assert list(loss.columns) == ["step", "loss", "learning rate"]
    assert len(page.get("download_button")) == 3
    json.dumps(sent(page))  # plain data


def test_a_run_whose_last_evaluation_has_more_numbers_has_a_table():
    run = recorded(method="ftp", seed=0)[0]
    last = replace(run.evals[-1], scores={"accuracy": {**run.evals[-1].main, "val": 99.0}})
    kept = keep(evals=(*[replace(e, scores={"accuracy": {"id": e.main["id"]}}) for e in run.evals[:-1]], last))
    page = opened(open_view("live", run=kept.run_id))
    assert not page.error
    assert any("val" in table.value.columns for table in page.table)


def test_a_run_that_another_program_queued_can_be_trained_here():
    settings = resolve("digits", "ftp", {"steps": 2, "batch": 8, "seed": 6})
    run = identify(settings)
    supervisor().store.create(run, settings)
    page = open_view("live", run=run)
    assert "nobody trains it" in page.warning[0].value
    assert sent(page)["idle"]
    assert not any(b.label == "Stop" for b in page.button)
    button(page, "Go on").click().run()
    assert not page.exception
    assert not page.warning
    assert not sent(page)["idle"]
    until(lambda: supervisor().store.status(run) != "queued", what="its begin")
    supervisor().stop(run)


def test_a_method_without_leashes_is_not_asked_for_the_longest():
    page = open_view("live")
    assert page.radio(key="guess").label == live.GUESS
    page.selectbox(key="method").set_value("finetune").run()
    assert page.radio(key="guess").label == live.NO_LEASH
    page.radio(key="guess").set_value(live.LATE).run()
    assert "there is no leash: layers moved" in bold(page)[-1]


def test_what_changed_is_said_without_a_guess():
    run, other = keep(), keep("00000000000000bb")
    page = open_view("live", run=run.run_id, other=other.run_id)
    assert bold(page)[-1].startswith("This time: ID ")


def test_settings_that_are_not_those_of_the_run_say_so():
    page = open_view("live")
    assert not any("other settings" in c.value for c in page.caption)
    page.slider(key="k").set_value(0.5).run()
    assert any("other settings" in c.value for c in page.caption)
