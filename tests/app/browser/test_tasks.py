"""Tasks in a row in a real browser: a short stream is trained, its matrix fills, and it says what it mistakes."""

from collections.abc import Callable

import pytest
from browsers import axe, settled
from playwright.sync_api import Browser, Page, expect

from app.components._look import script
from ftp.lab import worlds

pytestmark = pytest.mark.slow
WORLD = next(name for name in worlds.names() if len(worlds.load(name).phases) > 2 and worlds.load(name).offline)
SHORT = f"/tasks?world={WORLD}&tasks=2&steps=2&methods=ftp&guess=no"


def test_the_matrix_fills_while_it_trains(visit: Callable[..., Page]) -> None:
    page = visit(SHORT)
    settled(page)
    page.get_by_role("button", name="Train them").click()
    squares = page.locator("td[title]")
    expect(squares).to_have_count(3)  # R of two tasks, without a reload
    expect(page.get_by_text("after 2 of 2 tasks")).to_be_visible()
    page.get_by_role("button", name="Show task 1").click()
    page.get_by_role("button", name="What is taken for what?").click()
    expect(page.get_by_text("Most often mistaken for:")).to_be_visible()
    expect(page.locator(".pair").first).to_be_visible()
    assert axe(page) == []
    replay = page.get_by_role("button", name="Replay")
    page.get_by_role("slider", name="Tasks learned so far").press("Home")
    expect(squares).to_have_count(1)
    expect(replay).to_be_enabled()

    phone = visit(SHORT, width=390, height=844, dark=True)
    settled(phone)
    expect(phone.locator("td[title]")).to_have_count(3)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    assert axe(phone) == []


def test_the_matrix_follows_when_the_page_knows_of_a_task_before_the_poll_does(browser: Browser) -> None:
    """The first row comes by a poll; the second one by a rerun of the page, while the next poll still waits."""
    rows = browser.new_page().evaluate(
        """async (script) => {
            const answer = (body) => Promise.resolve({ ok: true, json: async () => body });
            const evals = [{ whole: true, phase: 0, scores: { accuracy: { one: 90 } } }];
            const polls = [answer({ status: "running", step: 1, points: [], evals })];
            window.fetch = (url) => url.includes("/tail") ? polls.pop() ?? new Promise(() => {}) : answer({});
            const run = { run_id: "a", name: "FTP", about: "", color: "black", status: "running", gamma: [],
                mistakes: {} };
            const data = {
                tasks: { names: ["one", "two"], labels: [[0], [1]], classes: ["a", "b"] },
                metric: { name: "accuracy", unit: "%", higher_is_better: true, low: 0, high: 100 },
                main: "a", colors: ["black", "grey"], tiles: "", dark: false, hold: false,
            };
            const component = new Function(`${script.replace("export default", "return")}`)();
            const squares = () => document.querySelectorAll("td[title]").length;
            const show = (matrix) => component({ parentElement: document.body, setStateValue() {},
                data: { ...data, runs: [{ ...run, matrix }] } });
            show([]);
            while (!squares()) await new Promise((done) => setTimeout(done, 20));
            const polled = squares();
            show([[90], [80, 70]]);
            return [polled, squares()];
        }""",
        script("_common", "_plots", "tasks"),
    )
    assert rows == [1, 3]
