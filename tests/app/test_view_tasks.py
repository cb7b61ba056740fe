"""The view of tasks in a row: where it fits, what it gives to its drawing, and its words."""

import subprocess
import sys

import pytest
from app_views import open_view, sent

from app.views import tasks as view
from ftp.lab import worlds
from ftp.lab.figures.data import example_in_tasks

WORLD = next(name for name in worlds.names() if len(worlds.load(name).phases) > 2 and worlds.load(name).offline)


def test_where_there_is_one_task_it_says_so_and_leads_on():
    page = open_view("tasks", world=worlds.default())
    assert "has one task, and this view is about several in a row" in page.info[0].value.replace("\\", "")
    page.button[0].click().run()
    assert page.query_params["world"] in (WORLD, [WORLD])


def test_without_a_world_it_opens_where_it_fits():
    page = open_view("tasks")
    assert page.selectbox(key="world").value == WORLD
    page.selectbox(key="world").set_value(worlds.default()).run()
    assert page.selectbox(key="world").value == worlds.default()
    assert "has one task" in page.info[0].value


def test_nothing_trained_with_these_options_yet():
    page = open_view("tasks", world=WORLD, tasks="3", steps="7")
    assert "press Train them" in page.info[0].value
    assert [button.label for button in page.button] == ["Train them"]


def test_the_tiles_are_made_without_torch():
    code = f"""
import sys
from ftp.lab import worlds
import app.views.tasks
one, other = (worlds.load({WORLD!r}).for_seed(seed) for seed in (0, 1))
assert one.tiles().startswith(b"\\x89PNG") and one.tiles() != other.tiles()
assert len(one.tiles()) < 50_000
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("guess", "verdict"), [(view.GUESSES[2], "Look again"), (view.GUESSES[1], "Right")])
def test_the_answer_in_words(guess, verdict):
    plain, ftp = example_in_tasks("finetune"), example_in_tasks("ftp", 1)
    said = view.sentence(plain, [plain, ftp], guess)
    assert said.startswith(f"{verdict}: on the first task Vanilla FT falls from 85 % to 25 %; in the end FTP 71 %.")
    assert len(view.rows([plain, ftp])) == 6
    assert view.rows([ftp])[1]["third"] is None


def test_recorded_runs_wait_for_a_guess():
    page = open_view("tasks", world=WORLD)
    data = sent(page)
    assert data["hold"] is True
    assert len(data["tasks"]["names"]) == len(data["colors"]) == 10
    assert all(len(run["matrix"]) == 10 for run in data["runs"])
    page.radio(key="tasks_guess").set_value(view.GUESSES[2]).run()
    assert sent(page)["hold"] is False
    assert any("on the first task" in entry.value for entry in page.markdown)


def test_the_copied_python_is_whole():
    code = view.python_of(worlds.load(WORLD), ["ftp"], 3)
    compile(code, "cell", "exec")
    assert "'seed': 3" in code
